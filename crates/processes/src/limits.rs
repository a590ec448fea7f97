//! Every bound of this room, with its unit and its reason.

use std::time::Duration;

/// The times of [`Pace::Hurried`](crate::Pace::Hurried): measured servers needed up to 0.8 s on a
/// loaded machine, and clients kill a program that is not gone 2 s after they closed its input.
pub(crate) const HURRIED_AFTER_EOF: Duration = Duration::from_millis(600);
pub(crate) const HURRIED_AFTER_TERM: Duration = Duration::from_millis(700);

/// The times of [`Pace::Orderly`](crate::Pace::Orderly): a server that writes down what it has needs
/// a second or two, and the next one, or a person, waits for the end.
pub(crate) const ORDERLY_AFTER_EOF: Duration = Duration::from_secs(3);
pub(crate) const ORDERLY_AFTER_TERM: Duration = Duration::from_secs(3);

/// The times of [`Pace::Unhurried`](crate::Pace::Unhurried): as long as containers and service
/// managers give.
pub(crate) const UNHURRIED_AFTER_EOF: Duration = Duration::from_secs(10);
pub(crate) const UNHURRIED_AFTER_TERM: Duration = Duration::from_secs(10);

/// Processes that were sent SIGKILL are gone at once, unless the system is busy with them.
pub(crate) const GRACE_AFTER_KILL: Duration = Duration::from_millis(200);

/// The pause between two looks whether a group is gone, since nothing wakes us when its last member
/// leaves: at once, and then ever less often.
pub(crate) const GROUP_POLL: Duration = Duration::from_millis(5);
pub(crate) const GROUP_POLL_MAX: Duration = Duration::from_millis(100);

/// The number of times that an environment that is empty is read. Few have none, our reaper among
/// them, and each costs this much at every look. Whoever is missed all the same is there at the
/// next look.
pub(crate) const ENVIRONMENT_READS: usize = 4;

/// The time that the reaper, and the sweep of a start, leave a group between TERM and KILL: it has
/// lost its client, and nobody waits for its answers.
pub(crate) const REAPER_GRACE: Duration = Duration::from_millis(300);

/// A test waits this long for a process that was told to end, before it fails.
#[cfg(test)]
pub(crate) const TEST_WAIT: Duration = Duration::from_secs(20);
