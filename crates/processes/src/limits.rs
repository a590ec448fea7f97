//! Every bound of this room, with its unit and its reason.

use std::time::Duration;

/// A child that was asked to end by closing its stdin may take this long.
pub(crate) const GRACE_AFTER_EOF: Duration = Duration::from_millis(600);

/// Processes that were sent SIGTERM may take this long; measured servers needed up to
/// 0.8 s on a loaded machine, and the whole program must be gone within 2 s.
pub(crate) const GRACE_AFTER_TERM: Duration = Duration::from_millis(700);

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
