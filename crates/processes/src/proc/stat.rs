//! A process, and its state.

use std::fmt;

/// One process, distinguished from a later one with the same pid by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// The start time in the unit of the system: clock ticks since the start of Linux, microseconds
    /// since 1970 on macOS.
    pub(crate) start_ticks: u64,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pid, self.start_ticks)
    }
}

impl Identity {
    /// Parses the form in which an identity is written.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (pid, start_ticks) = text.split_once(':')?;
        Some(Self {
            pid: pid.parse().ok()?,
            start_ticks: start_ticks.parse().ok()?,
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
