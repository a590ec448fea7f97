//! The processes of this machine, as the system reports them.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

use std::{collections::HashMap, fmt, num::ParseIntError, str::FromStr};

#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(target_os = "macos")]
use self::macos as system;
pub(crate) use self::system::{
    Handle, is_in_our_pid_space, list, open_handle, read_own, read_process, read_variable,
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

/// One process, distinguished from a later one with the same pid by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// The start time in the unit of the system: clock ticks since the start of Linux, microseconds
    /// since 1970 on macOS.
    pub(crate) start_ticks: u64,
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

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pid, self.start_ticks)
    }
}

impl FromStr for Identity {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (pid, start_ticks) = text.split_once(':').unwrap_or((text, ""));
        Ok(Self {
            pid: pid.parse()?,
            start_ticks: start_ticks.parse()?,
        })
    }
}

/// The state of a process.
#[derive(Debug)]
pub(crate) struct Stat {
    pub(crate) identity: Identity,
    /// True for a zombie.
    pub(crate) is_dead: bool,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// False for a process of the kernel.
    pub(crate) has_memory: bool,
    /// The resident memory; 0 if the system does not tell it to us.
    pub(crate) memory_bytes: u64,
}
