//! Starts child processes that end with our process, together with all their descendants. Never
//! signals a process that is not ours.
//!
//! This crate depends neither on the purpose of the children nor on any protocol.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod group;
mod group_watch;
mod limits;
mod mark;
mod own_program;
mod pace;
mod proc;
mod proof;
mod reaper;
pub mod sandbox;
mod spawner;
mod sweep;
mod tree;

pub use own_program::own_program;
pub use pace::Pace;
pub use proc::{group_memory, own_memory};
pub use reaper::{Reaper, reap};
pub use spawner::Spawner;
pub use sweep::sweep;
pub use tree::Tree;
