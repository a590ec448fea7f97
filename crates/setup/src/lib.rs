//! What a person does once: adding servers, moving in from other clients, looking what is wrong.
//!
//! It reads and writes files and asks nobody; the commands of `proxy` talk to the person.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod add;
mod advice;
pub mod doctor;
pub mod known;
pub mod moving;
pub mod naming;

pub use advice::advise_typed;
