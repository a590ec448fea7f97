//! One-time setup: adding servers, importing from other clients, and diagnosis.
//!
//! This crate reads and writes files, asks registries, and asks no questions; the commands of `proxy` talk to the person.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod add;
mod advice;
pub mod catalogue;
pub mod doctor;
mod fetch;
pub mod known;
pub mod leaving;
pub mod moving;
pub mod naming;

pub use advice::{advise_typed, translate};
