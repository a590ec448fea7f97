//! Starts child processes that end with our process, together with all their descendants. Never
//! signals a process that is not ours.
//!
//! This crate depends neither on the purpose of the children nor on any protocol.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(unix)]
mod background;
#[cfg(unix)]
mod clock;
mod desktop;
#[cfg(unix)]
mod exit_status;
#[cfg(unix)]
mod group;
#[cfg(unix)]
mod group_watch;
mod guarantees;
mod helper_limits;
mod host;
mod limits;
#[cfg(unix)]
mod mark;
mod own_program;
mod pace;
#[cfg(unix)]
pub mod pipes;
#[cfg(unix)]
mod proc;
#[cfg(unix)]
mod proof;
#[cfg(unix)]
mod reaper;
pub mod sandbox;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod spawner;
#[cfg(unix)]
mod sweep;
#[cfg(unix)]
mod tree;
#[cfg(windows)]
mod windows;

#[cfg(windows)]
pub use self::windows::*;
#[cfg(unix)]
pub use self::{
    background::{
        become_program, close_output, close_stdin, essential_variables, hide_streams_from_children,
        keep_apart, leave_terminal, rename, stay_behind,
    },
    clock::machine_time,
    exit_status::{ending_signal, is_no_program, limit_signal},
    helper_limits::unix::{forbid_core_dumps, processor_time},
    proc::{find_listener, group_memory, is_stopped, own_memory},
    reaper::{Reaper, reap},
    signals::{SystemRequest, SystemRequests},
    spawner::Spawner,
    sweep::sweep,
    tree::Tree,
};
pub use desktop::{BROWSER_OPENERS, DESKTOP_VARIABLES};
pub use guarantees::{GUARANTEES, Guarantee};
pub use helper_limits::HelperLimits;
pub use host::{host_name, machine_id};
pub use own_program::{own_program, set_process_name, start_helper};
pub use pace::Pace;
