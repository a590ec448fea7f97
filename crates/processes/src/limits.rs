//! The limits of this crate, with their units and reasons.

use std::time::Duration;

/// The timeouts of [`Pace::Hurried`](crate::Pace::Hurried): measured servers needed up to 0.8 s on
/// a loaded machine, and clients kill a program that still runs 2 s after they closed its input.
pub(crate) const HURRIED_AFTER_EOF: Duration = Duration::from_millis(600);
#[cfg(unix)]
pub(crate) const HURRIED_AFTER_TERM: Duration = Duration::from_millis(700);

/// The timeouts of [`Pace::Orderly`](crate::Pace::Orderly): a server that saves its state needs a
/// second or two, while the next server, or the user, waits.
pub(crate) const ORDERLY_AFTER_EOF: Duration = Duration::from_secs(3);
#[cfg(unix)]
pub(crate) const ORDERLY_AFTER_TERM: Duration = Duration::from_secs(3);

/// The timeouts of [`Pace::Unhurried`](crate::Pace::Unhurried): the same as those of containers and
/// service managers.
pub(crate) const UNHURRIED_AFTER_EOF: Duration = Duration::from_secs(10);
#[cfg(unix)]
pub(crate) const UNHURRIED_AFTER_TERM: Duration = Duration::from_secs(10);

/// The time for processes to disappear after SIGKILL. They end at once unless the system is busy.
pub(crate) const GRACE_AFTER_KILL: Duration = Duration::from_millis(200);

/// The first interval between two scans for the end of a group, since no event signals the exit of
/// its last member. The interval doubles each time.
pub(crate) const GROUP_POLL: Duration = Duration::from_millis(5);
pub(crate) const GROUP_POLL_MAX: Duration = Duration::from_millis(100);

/// The time that the reaper, and the sweep at a start, leave a group between TERM and KILL: the
/// group has lost its client, and no caller waits for its responses.
#[cfg(unix)]
pub(crate) const REAPER_GRACE: Duration = Duration::from_millis(300);

/// The time that a test waits for a process to end before it fails.
#[cfg(all(test, unix))]
pub(crate) const TEST_WAIT: Duration = Duration::from_secs(20);
