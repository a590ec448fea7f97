//! The limits of this crate, with their units and reasons.

use std::time::Duration;

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

/// The time between two looks of the reaper at the deadline of groups: a timer stands still while the machine
/// sleeps.
#[cfg(unix)]
pub(crate) const DEADLINE_POLL: Duration = Duration::from_millis(250);

/// The seconds beyond the processor time of a helper after which the system sends SIGXCPU, if nothing
/// else ended it. After as many more seconds it sends SIGKILL. There are two limits because SIGKILL alone
/// could also mean that the system is out of memory.
pub(crate) const PROCESSOR_MORE_S: u64 = 2;

/// The time that a test waits for a process to end before it fails.
#[cfg(all(test, unix))]
pub(crate) const TEST_WAIT: Duration = Duration::from_secs(20);
