//! Secrets to which the configuration refers without holding them: `${secret:NAME}`, `${file:PATH}` and
//! `${command:...}`.
//!
//! This crate stores and reads secrets. It does not depend on their use.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod command;
mod error;
mod keeping;
mod keyring;
mod name;
mod reference;
mod resolver;
mod secret;
mod store;

pub use error::ResolveError;
pub use keeping::{HAS_KEYRING, Keeping, PrivateFiles, read_bounded};
pub use name::{NAME_CHARS_MAX, NameError, SecretName};
pub use reference::{Reference, ReferenceError};
pub use resolver::Resolver;
pub use secret::Secret;
pub use store::{Store, StoreError};
