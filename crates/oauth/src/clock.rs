//! The time of day, in seconds.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970; 0 where the clock stands before that.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
