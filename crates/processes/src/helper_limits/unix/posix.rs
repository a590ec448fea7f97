//! Calls that every system has.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

pub(super) fn set_limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let (current, maximum) = (Some(soft), Some(hard));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

/// Returns the pid of the process that started us, or of its successor if it has ended.
pub(super) fn parent() -> u32 {
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    parent.cast_unsigned()
}
