//! The processes of this machine, as the system reports them.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod stat;

use std::collections::HashMap;

#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(target_os = "macos")]
use self::macos as system;
pub(crate) use self::stat::{Identity, Stat};
pub(crate) use self::system::{
    ProcessHandle, is_in_our_pid_space, list, open_handle, read_own, read_process, read_variable,
};

/// Returns the memory that each process group uses, in bytes, by group id.
pub fn group_memory() -> HashMap<i32, u64> {
    let mut memory = HashMap::new();
    for stat in list().filter_map(read_process) {
        *memory.entry(stat.group).or_default() += stat.memory_bytes;
    }
    memory
}

/// Returns the memory that this process uses, in bytes.
pub fn own_memory() -> Option<u64> {
    Some(read_own()?.memory_bytes)
}

impl Identity {
    /// Returns the identity of the process that has this pid now.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Some(read_process(pid)?.identity)
    }

    /// Reads the current state; returns `None` once the pid is free or reused.
    pub(crate) fn read(self) -> Option<Stat> {
        read_process(self.pid).filter(|stat| stat.identity == self)
    }
}
