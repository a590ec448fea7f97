//! Reads and writes JSON-RPC messages, one per line.
//!
//! Messages are read without parsing their payload and written from pieces that are already text,
//! so arguments and results are forwarded byte for byte. The readers and writers handle frames, ids
//! and errors, but no MCP methods; [`mcp`] has the protocol names that both sides need.

#![warn(missing_docs)]

pub mod events;
mod fields;
pub mod frame;
mod head;
mod known;
#[cfg(any(test, fuzzing))]
pub mod laws;
pub mod limits;
mod line;
pub mod mcp;
mod message;
mod messages;
mod one_line;
mod outbox;
mod scan;
mod surrogates;

pub use fields::{Fields, quote, text_of};
pub use head::{answered_id, canonical_id};
pub use known::KnownString;
pub use line::{Cap, Line, LineReader};
pub use message::{Json, Message, ProtocolError, json};
pub use messages::messages_in;
pub use one_line::{one_line, replace_breaks};
pub use outbox::{Outbox, SendError, Sink};
pub use surrogates::{replace_lone_surrogates, without_lone_surrogates};
