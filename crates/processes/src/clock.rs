//! The clock of the machine, which all of its processes read alike.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The clock that goes on while the machine sleeps.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The time since the machine was started, with the time for which it slept. [`std::time::Instant`] may stand
/// still meanwhile.
pub fn machine_time() -> Duration {
    let now = clock_gettime(CLOCK);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}
