use std::{
    os::unix::process::CommandExt as _,
    process::{Child, Command},
};

use rustix::process::Signal;

use super::{Claim, ClaimedMarks, Ours, ProcessTable};
use crate::{
    group::wait_until,
    limits::TEST_WAIT,
    mark::{Mark, VARIABLE},
    proc::read_process,
};

/// A process that is killed at the end of the test, even if it fails.
struct Sleeper(Child);

impl Sleeper {
    /// Starts the process in a group of its own (0), or in an existing group.
    fn start(group: u32, mark: Option<&Mark>) -> Self {
        let mut sleeps = Command::new("sleep");
        sleeps.arg("1000").process_group(group.cast_signed());
        if let Some(mark) = mark {
            sleeps.env(VARIABLE, mark.to_string());
        }
        let sleeper = Self(sleeps.spawn().unwrap());
        // Between fork and exec the process has no environment yet.
        assert!(wait_until(TEST_WAIT, || sleeper.mark().as_ref() == mark));
        sleeper
    }

    fn mark(&self) -> Option<Mark> {
        Mark::of(&read_process(self.id().cast_signed())?)
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}

/// Returns the pids of the processes that are found by the mark.
fn found(mark: &Mark) -> Vec<u32> {
    let claim = Claim {
        groups: &[],
        marks: ClaimedMarks::Child(mark),
    };
    let found = ProcessTable::near().find(&claim);
    found
        .iter()
        .map(|it| it.identity.pid.cast_unsigned())
        .collect()
}

fn mark() -> Mark {
    Mark::next("test").unwrap()
}

#[test]
fn a_group_is_ours_that_one_of_ours_leads_and_no_other() {
    let (mark, other) = (mark(), mark());
    let ours = Sleeper::start(0, Some(&mark));
    let without = Sleeper::start(ours.id(), None);
    let theirs = Sleeper::start(0, None);
    let guest = Sleeper::start(theirs.id(), Some(&mark));
    let of_another_child = Sleeper::start(0, Some(&other));

    let mut expected = [ours.id(), without.id(), guest.id()];
    let mut seen = found(&mark);
    expected.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, expected);
    assert_eq!(found(&other), [of_another_child.id()]);
}

#[test]
fn a_group_whose_leader_is_gone_is_ours_while_one_of_ours_lives_in_it() {
    let mark = mark();
    let leader = Sleeper::start(0, None);
    let marked = Sleeper::start(leader.id(), Some(&mark));
    let without = Sleeper::start(leader.id(), None);
    drop(leader);

    assert_eq!(found(&mark).len(), 2);
    drop(marked);
    assert_eq!(found(&mark).len(), 0);
    drop(without);
}

#[test]
fn nobody_in_our_own_group_is_ended_for_its_sake() {
    let mark = mark();
    let group = super::own_group().cast_unsigned();
    let marked = Sleeper::start(group, Some(&mark));
    assert_eq!(found(&mark), [marked.id()]);
}

/// Tests processes with a handle, if the system has them, and without one.
#[test]
fn a_process_that_is_held_is_signalled_and_nobody_after_it() {
    let look = |mark: &Mark| {
        let marks = ClaimedMarks::Child(mark);
        ProcessTable::near()
            .find(&Claim { groups: &[], marks })
            .remove(0)
    };
    let ways: &[bool] = if cfg!(target_os = "linux") {
        &[true, false]
    } else {
        &[false]
    };
    for &has_handle in ways {
        let mark = mark();
        let mut sleeper = Sleeper::start(0, Some(&mark));
        let held = look(&mark);
        let held = Ours {
            handle: held.handle.filter(|_| has_handle),
            ..held
        };
        assert_eq!(held.handle.is_some(), has_handle);
        held.signal(Signal::KILL);
        sleeper.0.wait().unwrap();
        // The pid is free, so another process may have it: the check must fail.
        assert!(held.look_again().is_err());
        held.signal(Signal::KILL);
    }
}
