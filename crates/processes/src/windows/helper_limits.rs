//! A thread of a helper enforces its limits. The helper is in the job of the process that started it, and ends
//! with it.

use std::{io, process, thread, time::Duration};

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

use super::{exit_status::PROCESSOR_TIME_USED_UP, memory::committed_memory};
use crate::{HelperLimits, limits::PROCESSOR_MORE_S};

/// The interval at which the thread looks: a process fills some hundred megabytes in that time, and a look
/// takes microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl HelperLimits {
    /// Applies the limits to this process. Fails if that is not possible, or if the parent has ended: the
    /// process must not continue then.
    pub fn apply(&self) -> io::Result<()> {
        if self.parent.is_some_and(|parent| !lives(parent)) {
            return Err(io::Error::other("the parent process has ended"));
        }
        let limits = *self;
        let watching = move || {
            loop {
                if committed_memory().is_none_or(|bytes| bytes > limits.memory_bytes) {
                    // Reported as an allocator reports that there is no more memory.
                    process::abort();
                }
                if processor_time() > Duration::from_secs(limits.processor_s + PROCESSOR_MORE_S) {
                    process::exit(PROCESSOR_TIME_USED_UP);
                }
                #[expect(clippy::disallowed_methods, reason = "this thread does nothing else")]
                thread::sleep(LOOK_EVERY);
            }
        };
        thread::Builder::new()
            .name("limits".to_owned())
            .spawn(watching)?;
        Ok(())
    }
}

fn lives(pid: u32) -> bool {
    let pid = Pid::from_u32(pid);
    let Ok(mut system) = System::new() else {
        return false;
    };
    let what = ProcessRefreshKind::nothing();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, what);
    system.process(pid).is_some()
}

/// Changes nothing: Windows writes no file with the memory of a process that crashed, unless an administrator
/// configures it.
pub fn forbid_core_dumps() {}

/// Returns the processor time that this process has used.
pub fn processor_time() -> Duration {
    cpu_time::ProcessTime::now().as_duration()
}
