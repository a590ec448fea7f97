//! Scripts of models: TypeScript or JavaScript in which every server is an object and every tool a
//! function, run in a separate process that can only reach what its [`Tools`] provide.
//!
//! The crate has two halves, which exchange messages line by line. The helper ([`work_as_helper`],
//! our own program) reads a script, removes its types and runs it in `QuickJS`, without files and
//! network. The [`Runner`] starts the helper, enforces its limits and answers its requests. This
//! crate does not depend on servers, protocols or clients.

#![warn(missing_docs)]

mod advice;
mod clock;
mod compile;
mod confine;
mod engine;
mod helper;
mod limits;
mod message;
mod names;
mod runner;
mod saved;

#[cfg(test)]
mod tests;

pub use clock::Clock;
pub use helper::work_as_helper;
pub use limits::{CALLS_MAX, Limit, NESTING_MAX, SCRIPT_BYTES_MAX, WALL_DEFAULT, WALL_MAX};
pub use message::{CallSite, Job, ScriptPosition, ScriptRequest};
pub use names::ServerNames;
pub use runner::{Ended, RequestError, RequestResult, Runner, ScriptOutcome, Tools};
pub use saved::Interface;
