//! The reasons why a program ended, or was not started.

use std::{io, os::unix::process::ExitStatusExt as _, process::ExitStatus};

/// Returns the number of the signal that ended a process; `None` if it exited by itself.
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Returns the number of the signal by which a helper ended at one of its limits, or was killed.
pub fn limit_signal(status: ExitStatus) -> Option<i32> {
    ending_signal(status)
}

/// Returns true if a file could not be started because it is no program of this machine (ENOEXEC): a
/// script without a first line, or a program for another system.
pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}
