//! A process group: a child and its descendants, which are ended together.

use std::{
    collections::BTreeSet,
    fmt,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    limits::{GRACE_AFTER_KILL, GROUP_POLL, GROUP_POLL_MAX, REAPER_GRACE},
    proc::Identity,
    proof::Ours,
};

/// A group that a child of ours created, and the members that identify it: as long as one of them
/// is in a group with this id, the id refers to the same group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    id: i32,
    known: Vec<Identity>,
}

impl Group {
    /// Returns the group led by a child that was not reaped.
    pub(crate) fn led_by(child: u32) -> Option<Self> {
        let id = i32::try_from(child).ok()?;
        let known = Identity::of(id).into_iter().collect();
        Some(Self { id, known })
    }

    /// Parses the form in which a group is written.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let id = words.next()?.parse().ok()?;
        let known = words.map(Identity::parse).collect::<Option<_>>()?;
        Some(Self { id, known })
    }

    /// Returns the same group, identified by other members.
    pub(crate) fn known_by(&self, known: Vec<Identity>) -> Self {
        Self { id: self.id, known }
    }

    /// Adds members that identify the group: the earlier ones may exit first.
    pub(crate) fn learn(&mut self, found: &[Ours]) {
        let members = found.iter().filter(|it| it.group() == self.id);
        self.known.extend(members.map(Ours::identity));
        self.known.sort_unstable();
        self.known.dedup();
    }

    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    pub(crate) fn knows(&self, member: Identity) -> bool {
        self.known.contains(&member)
    }
}

/// Formats the group as `ID PID:START PID:START`.
impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)?;
        self.known
            .iter()
            .try_for_each(|known| write!(f, " {known}"))
    }
}

/// Ends processes whose owner has exited: TERM, a short grace period, KILL. Returns the number of
/// their groups. Blocks its thread.
pub(crate) fn end(mut look: impl FnMut() -> Vec<Ours>) -> usize {
    let found = look();
    for process in &found {
        process.signal(Signal::TERM);
    }
    let groups: BTreeSet<i32> = found.iter().map(Ours::group).collect();
    if !groups.is_empty() && !wait_until(REAPER_GRACE, || look().is_empty()) {
        // KILL is repeated: a process may start others between a scan and its own end.
        wait_until(GRACE_AFTER_KILL, || {
            let left = look();
            for process in &left {
                process.signal(Signal::KILL);
            }
            left.is_empty()
        });
    }
    groups.len()
}

/// Waits until the condition is true. Returns false if the limit was reached first. Blocks its
/// thread.
pub(crate) fn wait_until(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    let mut rest = GROUP_POLL;
    while !is_true() {
        if began.elapsed() >= limit {
            return false;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the reaper has no event loop, so the end of a process group does not wake it"
        )]
        std::thread::sleep(rest);
        rest = (rest * 2).min(GROUP_POLL_MAX);
    }
    true
}
