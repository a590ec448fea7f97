//! Confinement of a process to what a script needs.

use std::io;

use processes::HelperLimits;

use crate::limits::{ADDRESS_BYTES_MAX, PROCESSOR_MAX};

/// Confines this process: it can no longer open files or sockets or start processes, and it ends when
/// its parent ends. On a system without a filter for system calls, the limits still apply, and the
/// engine offers no function for any of this.
pub(crate) fn confine() -> io::Result<()> {
    let limits = HelperLimits {
        parent: None,
        memory_bytes: ADDRESS_BYTES_MAX,
        processor_s: PROCESSOR_MAX.as_secs(),
        file_bytes: Some(0),
    };
    limits.apply()?;
    filter_calls()
}

/// Refuses every system call that is not listed here.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn filter_calls() -> io::Result<()> {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

    let allowed = calls::ALLOWED.iter().map(|number| (*number, Vec::new()));
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refused = SeccompAction::Errno(calls::EPERM);
    let filter = SeccompFilter::new(allowed.collect(), refused, SeccompAction::Allow, arch);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
fn filter_calls() -> io::Result<()> {
    Ok(())
}

/// System call numbers of the kernel, which never change.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod calls {
    pub(super) const EPERM: u32 = 1;
    /// read, write, mmap, mprotect, munmap, brk, `rt_sigaction`, `rt_sigprocmask`, `rt_sigreturn`,
    /// mremap, madvise, getpid, exit, gettid, futex, sigaltstack, `clock_gettime`, `exit_group`,
    /// tgkill, getrandom, rseq.
    pub(super) const ALLOWED: [i64; 21] = [
        0, 1, 9, 10, 11, 12, 13, 14, 15, 25, 28, 39, 60, 186, 202, 131, 228, 231, 234, 318, 334,
    ];
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod calls {
    pub(super) const EPERM: u32 = 1;
    /// The same system calls.
    pub(super) const ALLOWED: [i64; 21] = [
        63, 64, 222, 226, 215, 214, 134, 135, 139, 216, 233, 172, 93, 178, 98, 132, 113, 94, 131,
        278, 293,
    ];
}
