//! Windows: children in job objects, which the kernel ends; console events; pipes by threads.

mod clock;
mod exit_status;
mod helper_limits;
mod job;
mod memory;
pub mod pipes;
mod reaper;
mod signals;
mod spawner;
mod streams;
#[cfg(test)]
mod tests;
mod tree;
mod users;

pub use self::{
    clock::machine_time,
    exit_status::{ending_signal, is_no_program, limit_signal},
    helper_limits::{forbid_core_dumps, processor_time},
    memory::{group_memory, own_memory},
    reaper::{Reaper, reap, sweep},
    signals::{SystemRequest, SystemRequests},
    spawner::Spawner,
    streams::{
        become_program, close_output, close_stdin, essential_variables, hide_streams_from_children,
        keep_apart, leave_terminal, rename, stay_behind,
    },
    tree::JobTree as Tree,
    users::{is_same_user, own_user},
};

/// Returns the process that listens on a TCP port, and its name; here the system is not asked.
pub fn find_listener(_: u16) -> Option<(u32, String)> {
    None
}

/// Returns false: no signal stops a process here.
pub fn is_stopped(_: u32) -> bool {
    false
}
