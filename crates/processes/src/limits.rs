//! Every limit of this crate, with its unit and its reason.

use std::time::Duration;

/// The times of [`Pace::Hurried`](crate::Pace::Hurried): measured servers needed up to 0.8 s on a
/// loaded machine, and clients kill a program that is not gone 2 s after they closed its input.
pub(crate) const HURRIED_AFTER_EOF: Duration = Duration::from_millis(600);
pub(crate) const HURRIED_AFTER_TERM: Duration = Duration::from_millis(700);

/// The times of [`Pace::Orderly`](crate::Pace::Orderly): a server that saves its state needs a second
/// or two, and the next server, or a person, waits for the end.
pub(crate) const ORDERLY_AFTER_EOF: Duration = Duration::from_secs(3);
pub(crate) const ORDERLY_AFTER_TERM: Duration = Duration::from_secs(3);

/// The times of [`Pace::Unhurried`](crate::Pace::Unhurried): as long as containers and service
/// managers give.
pub(crate) const UNHURRIED_AFTER_EOF: Duration = Duration::from_secs(10);
pub(crate) const UNHURRIED_AFTER_TERM: Duration = Duration::from_secs(10);

/// Processes that were sent SIGKILL are gone at once, unless the system is busy with them.
pub(crate) const GRACE_AFTER_KILL: Duration = Duration::from_millis(200);

/// The first interval between two scans for the end of a group, since no event signals that its last
/// member exits. The interval doubles each time.
pub(crate) const GROUP_POLL: Duration = Duration::from_millis(5);
pub(crate) const GROUP_POLL_MAX: Duration = Duration::from_millis(100);

/// The number of times that an empty environment is read. Few processes have none, our reaper among
/// them, and each costs this many reads in every scan. A process that is missed nevertheless is
/// found by the next scan.
pub(crate) const ENVIRONMENT_READS: usize = 4;

/// The time that the reaper, and the sweep of a start, leave a group between TERM and KILL: it has
/// lost its client, and no caller waits for its answers.
pub(crate) const REAPER_GRACE: Duration = Duration::from_millis(300);

/// The time that a test waits for a process to end before it fails.
#[cfg(test)]
pub(crate) const TEST_WAIT: Duration = Duration::from_secs(20);
