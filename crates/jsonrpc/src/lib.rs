//! One JSON-RPC message as one line of bytes, in and out.
//!
//! Messages are read without parsing their payload and written from pieces that are already text, so
//! that arguments and results are passed on byte for byte. The readers and writers handle frames, ids
//! and errors, but no MCP methods; [`mcp`] has the protocol names that both sides need.

#![warn(missing_docs)]

pub mod events;
mod fields;
pub mod frame;
mod head;
#[cfg(any(test, fuzzing))]
pub mod laws;
pub mod limits;
mod line;
pub mod mcp;
mod message;
mod outbox;

pub use fields::{Fields, text_of};
pub use head::{answered_id, canonical_id};
pub use line::{Cap, Line, LineReader};
pub use message::{Json, Message, ProtocolError, json};
pub use outbox::{Closed, Outbox, Sink, split_socket};
