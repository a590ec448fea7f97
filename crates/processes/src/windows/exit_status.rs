//! The reasons why a program ended, or was not started.

use std::{io, process::ExitStatus};

/// The exit code of a helper that used up its processor time.
pub(super) const PROCESSOR_TIME_USED_UP: i32 = 152;

/// The exit codes of a process whose stack overflowed, and of one that aborted (`ntstatus.h`).
const STATUS_STACK_OVERFLOW: i32 = 0xC000_00FD_u32.cast_signed();
const STATUS_FAST_FAIL: i32 = 0xC000_0409_u32.cast_signed();

/// The error for a file that is no program of this machine (`ERROR_BAD_EXE_FORMAT`).
const BAD_EXE_FORMAT: i32 = 193;

/// Returns `None`: no signal ends a process on Windows.
pub fn ending_signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Returns the number of the signal that ends a helper on Unix at the limit that it reached.
pub fn limit_signal(status: ExitStatus) -> Option<i32> {
    match status.code()? {
        PROCESSOR_TIME_USED_UP => Some(24),
        STATUS_STACK_OVERFLOW => Some(11),
        STATUS_FAST_FAIL => Some(6),
        _ => None,
    }
}

/// Returns true if a file could not be started because it is no program of this machine.
pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(BAD_EXE_FORMAT)
}
