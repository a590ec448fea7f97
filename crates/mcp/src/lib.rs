//! What of the protocol our two sides share, towards clients and towards servers.
//!
//! This room knows names and their meaning; it reads no message and speaks to nobody.

#![warn(missing_docs)]

pub mod meta;
mod revision;
mod transport;

pub use revision::Revision;
pub use transport::Transport;

/// The code of the error that refuses an HTTP request whose headers do not say what its body says.
pub const HEADER_MISMATCH: i32 = -32_020;
