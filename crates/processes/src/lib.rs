//! Child processes that end with us, with all their descendants; no signal of ours reaches a foreign
//! process.
//!
//! This crate does not know the purpose of its children, nor any protocol.

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
