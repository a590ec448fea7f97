//! The kernel ends a helper with its parent, and limits its address space.

use std::{fs, io};

use rustix::process::{
    DumpableBehavior, Resource, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};

use super::posix::{parent, set_limit};

/// Has the kernel end this process with its parent. Returns the pid of the parent, read afterwards: if
/// it is not the expected one, the parent ended before.
pub(super) fn end_with_parent(_: u64) -> io::Result<u32> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(parent())
}

pub(super) fn limit_further(memory_bytes: u64) -> io::Result<()> {
    // If memory runs short, the system should end this process first.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    set_limit(Resource::As, memory_bytes, memory_bytes)?;
    // The limit of a core file does not apply to one that is piped to a program.
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
