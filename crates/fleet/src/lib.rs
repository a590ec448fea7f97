//! The servers we talk to: how each is started, kept, asked for its tools, called and stopped.
//!
//! This room knows processes, sockets and the protocol. It does not know that an index exists,
//! what the three tools are, where a configuration file lies, or that there is a terminal.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod child;
mod environment;
mod error;
mod fleet;
mod keeper;
mod lane;
mod limits;
pub mod line;
mod link;
mod mask;
mod message;
mod spec;
mod template;
mod wire;

pub use error::{CallError, Failure, Ran, SurveyError};
pub use fleet::{Fleet, Survey};
pub use lane::ProgressSink;
pub use link::{Request, json};
pub use message::{Json, Message, ProtocolError};
pub use spec::{Launch, ServerSpec};
pub use template::{Template, TemplateError, Unset};
pub use wire::{About, Era};
