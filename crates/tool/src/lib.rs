#![cfg_attr(test, allow(clippy::unwrap_used))]
#![warn(missing_docs)]
//! A tool: its names, its schema, its signature, the check of its arguments, its digest.
//!
//! This crate is pure. It does no I/O, knows no clock and no protocol types; it reads the JSON that
//! a server sent and never rewrites it.

mod check;
mod client;
mod declaration;
mod digest;
mod example;
mod header_arguments;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod names;
mod offer;
mod purpose;
mod schema;
mod signature;
mod tool;

pub use check::{Checker, Violation};
pub use client::ClientId;
pub use declaration::{SCRIPT_GLOBALS, declare_server};
pub use digest::{Digest, DuplicateMember};
pub use example::example;
pub use names::{NameError, SERVER_NAME_CHARS_MAX, ServerName, ToolRef, fold, near};
pub use offer::{Capability, Item, ItemKind, Offer};
pub use purpose::{PURPOSE_CHARS_MAX, purpose};
pub use schema::{Parameter, minified, parameter_types, parameters};
pub use signature::{output_signature, signature};
pub use tool::{Annotations, TOOL_NAME_CHARS_MAX, Tool, ToolError};
