//! Confinement of a process to what a script needs.

use std::{fs, io};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::limits::{ADDRESS_BYTES_MAX, PROCESSOR_MAX, PROCESSOR_S_MORE};

/// Confines this process: it can no longer open files or sockets or start processes, and it ends when
/// its parent ends. On a system without a filter for system calls, the limits still apply, and the
/// engine offers no function for any of this.
pub(crate) fn confine() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    end_with_parent()?;
    // If the system runs out of memory, this process is killed first.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let processor = PROCESSOR_MAX.as_secs() + PROCESSOR_S_MORE;
    let limits = [
        (Resource::Core, 0, 0),
        (Resource::Fsize, 0, 0),
        (Resource::As, ADDRESS_BYTES_MAX, ADDRESS_BYTES_MAX),
        (Resource::Cpu, processor, processor + PROCESSOR_S_MORE),
    ];
    for (resource, soft, hard) in limits {
        let (current, maximum) = (Some(soft), Some(hard));
        setrlimit(resource, Rlimit { current, maximum })?;
    }
    filter_calls()
}

#[cfg(target_os = "linux")]
fn end_with_parent() -> io::Result<()> {
    use rustix::process::{
        DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
    };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
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
