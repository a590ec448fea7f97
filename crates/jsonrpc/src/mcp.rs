//! The names of MCP that are used towards clients and towards servers: revisions, transports, keys of
//! `_meta`, error codes. This module parses no messages.

pub mod meta;
mod revision;
mod transport;

pub use revision::Revision;
pub use transport::Transport;

/// The code of the error that refuses an HTTP request whose headers do not match its body.
pub const HEADER_MISMATCH: i32 = -32_020;

/// The code of the error that refuses a request that needs a capability that the client did not declare
/// (from 2026-07-28 on).
pub const MISSING_CAPABILITY: i32 = -32_021;

/// The code of the error that refuses a request until a person has visited some addresses, named in
/// its `data` (2025-11-25).
pub const ADDRESSES_FIRST: i32 = -32_042;
