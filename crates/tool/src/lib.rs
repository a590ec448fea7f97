#![cfg_attr(test, allow(clippy::unwrap_used))]
#![warn(missing_docs)]
//! A tool: its names, its schema, its signature, the check of its arguments, its digest.
//!
//! This crate is pure: it does no I/O, and uses no clock and no protocol types. It reads the JSON of a
//! server and never rewrites it.

mod app;
mod argument_note;
mod argument_settings;
mod check;
mod client;
mod compatibility;
mod declaration;
mod digest;
mod example;
mod header_arguments;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod literal;
mod names;
mod offer;
mod purpose;
mod schema;
mod signature;
mod tool;
mod yaml;

pub use argument_note::{argument_note, wrong_arguments};
pub use argument_settings::{ArgumentSetting, ArgumentSettings};
pub use check::{Checker, Violation};
pub use client::{ClientId, HttpCaller};
pub use compatibility::{ChangeKind, DefinitionChange, compare_definitions};
pub use declaration::{declare_globals, declare_server};
pub use digest::{Digest, DuplicateMember};
pub use example::example;
pub use literal::Literal;
pub use names::{
    NameError, SERVER_NAME_CHARS_MAX, ServerName, ToolRef, fold, is_same_member_name, near,
};
pub use offer::{Capability, ItemKind, Offer, OfferItem, SkillFile, is_in_skill};
pub use purpose::{PURPOSE_CHARS_MAX, purpose};
pub use schema::{Parameter, minified, parameter_types, parameters};
pub use signature::{output_signature, signature};
pub use tool::{Annotations, TOOL_NAME_CHARS_MAX, Tool, ToolError};
pub use yaml::{YamlError, read_yaml};
