//! The clock of the machine.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

/// The time since the first call in this process. It goes on while the machine sleeps.
pub fn machine_time() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}
