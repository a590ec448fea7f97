//! Time limits that are not configurable.

use std::time::Duration;

/// The pause after a failure to accept, such as too many open files.
pub(super) const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Requests in flight may take this long to end when we stop.
pub(super) const STOP_WAIT: Duration = Duration::from_millis(800);
