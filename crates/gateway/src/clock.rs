//! The time, for what is written to disk.

use std::time::SystemTime;

/// Seconds since 1970, for what is written to disk.
pub(crate) fn now() -> u64 {
    millis(SystemTime::now()) / 1_000
}

/// Milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
