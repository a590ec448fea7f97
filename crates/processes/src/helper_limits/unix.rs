//! The kernel, or a thread of the helper, enforces the limits; the helper ends with its parent.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod posix;

use std::{io, time::Duration};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};

#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(target_os = "macos")]
use self::macos as system;
use self::posix::set_limit;
use crate::{HelperLimits, limits::PROCESSOR_MORE_S};

impl HelperLimits {
    /// Applies the limits to this process, which then also ends with its parent and leaves no core
    /// file. Fails if one of them cannot be applied, or if the parent has ended: the process must not
    /// continue then.
    pub fn apply(&self) -> io::Result<()> {
        let parent = system::end_with_parent(self.memory_bytes)?;
        if self.parent.is_some_and(|expected| expected != parent) {
            return Err(io::Error::other("the parent process has ended"));
        }
        let soft = self.processor_s + PROCESSOR_MORE_S;
        set_limit(Resource::Core, 0, 0)?;
        set_limit(Resource::Cpu, soft, soft + PROCESSOR_MORE_S)?;
        if let Some(bytes) = self.file_bytes {
            set_limit(Resource::Fsize, bytes, bytes)?;
        }
        system::limit_further(self.memory_bytes)
    }
}

/// Forbids core files, which would contain tokens and secrets. A limit of one byte also applies if
/// dumps are piped to a program, which a limit of zero does not (`man 5 core`).
pub fn forbid_core_dumps() {
    let maximum = getrlimit(Resource::Core).maximum;
    let current = Some(maximum.map_or(1, |maximum| maximum.min(1)));
    // If the system does not allow lowering our own limit, nothing can be done about it.
    let _ = setrlimit(Resource::Core, Rlimit { current, maximum });
}

/// Returns the processor time that this process has used.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or_default(),
        time.tv_nsec.try_into().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::processor_time;
    use crate::HelperLimits;

    /// The process of the tests ends with its parent from then on, and gets no other limit.
    #[test]
    fn a_helper_whose_parent_has_ended_is_refused() {
        let limits = HelperLimits {
            // No process is its own parent.
            parent: Some(std::process::id()),
            memory_bytes: u64::MAX,
            processor_s: 1,
            file_bytes: Some(0),
        };
        let refused = limits.apply().unwrap_err().to_string();
        assert_eq!(refused, "the parent process has ended");
    }

    #[test]
    fn processor_time_grows() {
        let before = processor_time();
        while processor_time() == before {}
        assert!(processor_time() > before);
    }
}
