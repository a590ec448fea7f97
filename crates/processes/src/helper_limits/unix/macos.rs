//! A thread ends a helper with its parent, and when it uses too much memory: macOS has no signal for
//! the death of a parent, and does not enforce `RLIMIT_AS`.

use std::{io, process, thread, time::Duration};

use kqueue::{EventData, EventFilter, FilterFlag, Watcher};
use libproc::pid_rusage::{RUsageInfoV2, pidrusage};

use super::posix::parent;

/// The interval at which the thread reads the memory in use: a process fills some hundred megabytes in
/// that time, and reading takes microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Starts the thread, and returns the pid of the parent. If the parent is not the expected one, it ended
/// before the thread could watch it.
pub(super) fn end_with_parent(memory_bytes: u64) -> io::Result<u32> {
    let parent_pid = parent();
    let pid = i32::try_from(parent_pid).map_err(io::Error::other)?;
    let mut watcher = Watcher::new()?;
    watcher.add_pid(pid, EventFilter::EVFILT_PROC, FilterFlag::NOTE_EXIT)?;
    // Fails if the parent has ended already.
    watcher.watch()?;
    let watching = move || loop {
        let event = watcher.poll(Some(LOOK_EVERY));
        let has_ended = event.is_some_and(|event| matches!(event.data, EventData::Proc(_)));
        if has_ended || parent() != parent_pid {
            process::exit(1);
        }
        if memory_in_use().is_none_or(|bytes| bytes > memory_bytes) {
            // Reported as an allocator reports that there is no more memory.
            process::abort();
        }
    };
    let thread = thread::Builder::new().name("limits".to_owned());
    thread.spawn(watching)?;
    // Read after the watch began, as on Linux.
    Ok(parent())
}

fn memory_in_use() -> Option<u64> {
    let pid = i32::try_from(process::id()).ok()?;
    Some(pidrusage::<RUsageInfoV2>(pid).ok()?.ri_phys_footprint)
}

#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(super) fn limit_further(_: u64) -> io::Result<()> {
    Ok(())
}
