//! A process group: a child and what it started, ended together.

use std::{
    fmt,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, getpgrp, kill_process_group, test_kill_process_group};
use tracing::debug;

use crate::{
    limits::{GROUP_POLL, GROUP_POLL_MAX, GUARD_GRACE},
    processes::living_groups,
};

/// The group of a child, never our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Group(Pid);

impl Group {
    /// `None` for a number that a signal would not take for one group of others: 0 means the
    /// sender's own, 1 every process there is.
    pub(crate) fn new(id: i32) -> Option<Self> {
        let id = Pid::from_raw(id.max(0)).filter(|_| id > 1)?;
        (id != getpgrp()).then_some(Self(id))
    }

    /// Whether anybody lives in it, also when the leader is gone.
    pub(crate) fn lives(self) -> bool {
        !living(&[self]).is_empty()
    }

    /// Whether its number is taken, were it only by the dead.
    pub(crate) fn exists(self) -> bool {
        test_kill_process_group(self.0).is_ok()
    }

    pub(crate) fn signal(self, signal: Signal) {
        if let Err(error) = kill_process_group(self.0, signal) {
            debug!(group = %self, %error, "the process group was gone");
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_raw_nonzero().fmt(f)
    }
}

/// Those that somebody lives in. The dead who wait for process 1 to take note of them do not
/// count: in many containers it is slow at it, or never does it.
fn living(groups: &[Group]) -> Vec<Group> {
    let mut left: Vec<Group> = groups.iter().copied().filter(|it| it.exists()).collect();
    if !left.is_empty()
        && let Some(living) = living_groups()
    {
        left.retain(|group| living.contains(&group.0.as_raw_nonzero().get()));
    }
    left
}

/// Ends groups whose owner is gone: TERM, a short grace, KILL. Blocks its thread.
pub(crate) fn end(groups: &[Group]) {
    for group in groups {
        group.signal(Signal::TERM);
    }
    wait_until(GUARD_GRACE, || living(groups).is_empty());
    for group in groups.iter().filter(|group| group.exists()) {
        group.signal(Signal::KILL);
    }
}

/// Whether it came true within the limit. Blocks its thread.
pub(crate) fn wait_until(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    let mut rest = GROUP_POLL;
    while !is_true() {
        if began.elapsed() >= limit {
            return false;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the guard has no event loop, and nothing wakes it when a group is gone"
        )]
        std::thread::sleep(rest);
        rest = (rest * 2).min(GROUP_POLL_MAX);
    }
    true
}

#[cfg(test)]
mod tests {
    use rustix::process::getpgrp;

    use super::Group;

    #[test]
    fn a_signal_never_goes_to_ourselves_or_to_everybody() {
        for id in [i32::MIN, -1, 0, 1, getpgrp().as_raw_nonzero().get()] {
            assert_eq!(Group::new(id), None, "{id}");
        }
    }
}
