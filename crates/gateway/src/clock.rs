//! The time, for what is written to disk.

use std::time::SystemTime;

/// Seconds since 1970, for what is written to disk.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
