//! Starts child processes that end with our process, together with all their descendants. Never
//! signals a process that is not ours.
//!
//! This crate depends neither on the purpose of the children nor on any protocol.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("this program runs on Linux and macOS; on Windows, run it in WSL");

mod background;
mod desktop;
mod exit_status;
mod group;
mod group_watch;
mod guarantees;
mod helper_limits;
mod limits;
mod mark;
mod own_program;
mod pace;
pub mod pipes;
mod proc;
mod proof;
mod reaper;
pub mod sandbox;
mod signals;
mod spawner;
mod sweep;
mod tree;

pub use background::{
    become_program, close_output, close_stdin, keep_apart, leave_terminal, rename,
};
pub use desktop::{BROWSER_OPENERS, DESKTOP_VARIABLES};
pub use exit_status::{ending_signal, is_no_program};
pub use guarantees::{GUARANTEES, Guarantee};
pub use helper_limits::{HelperLimits, forbid_core_dumps, processor_time};
pub use own_program::{own_program, set_process_name};
pub use pace::Pace;
pub use proc::{group_memory, own_memory};
pub use reaper::{Reaper, reap};
pub use signals::{SystemRequest, SystemRequests};
pub use spawner::Spawner;
pub use sweep::sweep;
pub use tree::Tree;
