//! A process that has taken everything from itself that a script does not need.

use std::{fs, io};

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::limits::{ADDRESS_BYTES_MAX, PROCESSOR_MAX, PROCESSOR_S_MORE};

/// From here on this process opens no file and no socket, starts nothing, and ends with whoever
/// started it. Where the system has no filter for calls, the limits remain, and that the engine
/// has no word for any of it.
pub(crate) fn confine() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    end_with_parent()?;
    // Where memory runs short, we are the one to go.
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

/// Every call of the system that is not named here is refused.
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

/// Numbers of calls: the kernel's own, which never change.
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
    /// The same.
    pub(super) const ALLOWED: [i64; 21] = [
        63, 64, 222, 226, 215, 214, 134, 135, 139, 216, 233, 172, 93, 178, 98, 132, 113, 94, 131,
        278, 293,
    ];
}
