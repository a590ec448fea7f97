//! The certain end of a child and all it started.
//!
//! Whom a signal may meet is proven each time. While the child was not waited for, its group is
//! surely its own, so a stop waits for it last. Everybody else is looked for: who left for
//! another group, and who stayed after the child was waited for.

mod exit;
#[cfg(test)]
mod tests;

use std::{io, process::ExitStatus, sync::Arc};

use rustix::process::Signal;
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::{sleep, timeout},
};

use self::exit::{exit, look};
use crate::{
    group::Group,
    group_watch::GroupWatch,
    limits::{GRACE_AFTER_KILL, GROUP_POLL, GROUP_POLL_MAX},
    mark::Mark,
    pace::Pace,
    proof::{Claim, Meant, Ours, Proof, Table, Unwaited, send},
};

/// A child and all it started, but for what left for a session of its own. The child leads a
/// process group, so that wrappers (`npx`, `sh -c`) and what they started are ended together.
/// Dropping it kills them.
#[derive(Debug)]
pub struct Tree {
    child: Child,
    /// Until it is over.
    group: Option<Group>,
    /// The mark by which all of them can be known.
    mark: Option<Mark>,
    /// Nobody is left.
    is_over: bool,
    groups: Arc<GroupWatch>,
}

impl Tree {
    pub(crate) fn new(
        child: Child,
        group: Option<Group>,
        mark: Option<Mark>,
        groups: Arc<GroupWatch>,
    ) -> Self {
        Self {
            child,
            group,
            mark,
            is_over: false,
            groups,
        }
    }

    /// Of the child, until it was waited for.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Once; the caller closes it before [`Tree::stop`].
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Once, and where the command pipes it.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Once, and where the command pipes it.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Returns when the child itself has left, and waits for it; others of its group may live on.
    /// From then on the group is known by them. If there are none, it is over.
    pub async fn reap_leader(&mut self) {
        if self.child.id().is_none() || self.wait_for_exit().await.is_err() {
            let _ = self.child.wait().await;
            return;
        }
        let table = self.groups.looks.look().await;
        if let Some(group) = self.group.take() {
            let others = table.led_by(group.id());
            if others.is_empty() {
                self.groups.forget(&group);
            } else {
                let group = group.known_by(others);
                self.groups.watch(&group);
                self.group = Some(group);
            }
        }
        let _ = self.child.wait().await;
    }

    /// Whether the child itself has left by now.
    pub fn has_left(&self) -> bool {
        look(&self.child).map_or(true, |status| status.is_some())
    }

    /// Returns when the child has left, and leaves its number to it.
    pub async fn wait_for_exit(&mut self) -> io::Result<ExitStatus> {
        match exit(&self.child).await {
            Ok(status) => Ok(status),
            Err(_) => self.child.wait().await,
        }
    }

    /// Ends the child and all it started, but for who left for a session of his own: end of
    /// input, then TERM, then KILL. The caller has closed the child's stdin. Each step waits for
    /// all of them, since a leader often leaves before those it started. A stop that is dropped may
    /// be begun again at another pace.
    pub async fn stop(&mut self, pace: Pace) {
        let steps = [
            (pace.after_eof(), None),
            (pace.after_term(), Some(Signal::TERM)),
            (GRACE_AFTER_KILL, Some(Signal::KILL)),
        ];
        for (grace, signal) in steps {
            if timeout(grace, self.end_with(signal)).await.is_ok() {
                break;
            }
        }
        if !self.is_over {
            self.kill_now();
        } else if let Some(group) = self.group.take() {
            self.groups.forget(&group);
        }
        let _ = timeout(GRACE_AFTER_KILL, self.child.wait()).await;
    }

    /// Signals, and waits until nobody is left; KILL again and again, since one that starts others
    /// may do so between a look and its end.
    async fn end_with(&mut self, signal: Option<Signal>) {
        if let Some(signal) = signal {
            let others = self.others().await;
            self.signal_all(signal, &others);
        }
        let _ = self.wait_for_exit().await;
        let mut rest = GROUP_POLL;
        loop {
            let others = self.others().await;
            if others.is_empty() {
                break;
            }
            if signal == Some(Signal::KILL) {
                self.signal_all(Signal::KILL, &others);
            }
            sleep(rest).await;
            rest = (rest * 2).min(GROUP_POLL_MAX);
        }
        // Whoever the looks have missed, or all where the system does not let us look.
        self.signal_all(Signal::KILL, &[]);
        self.is_over = true;
    }

    async fn others(&mut self) -> Vec<Ours> {
        let table = self.groups.looks.look().await;
        let others = self.find_in(&table);
        if let Some(group) = &mut self.group {
            group.learn(&others);
        }
        others
    }

    /// The living of our group, and all who have our mark wherever they are.
    fn find_in(&self, table: &Table) -> Vec<Ours> {
        table.find(&Claim {
            groups: self.group.as_slice(),
            meant: self.mark.as_ref().map_or(Meant::Nobody, Meant::Child),
        })
    }

    /// Blocks for the moment of a look. On a busy system, looks may have taken all the time there
    /// was.
    fn kill_now(&self) {
        self.signal_all(Signal::KILL, &self.find_in(&Table::near()));
    }

    /// The group at once, if that can be, so that nobody slips away who is started meanwhile.
    fn signal_all(&self, signal: Signal, others: &[Ours]) {
        let group = Unwaited::of(&self.child);
        let id = group.as_ref().map(Unwaited::id);
        if let Some(group) = group {
            send(&Proof::Group(group), signal);
        }
        for other in others {
            if id != Some(other.group()) {
                other.signal(signal);
            }
        }
    }
}

/// A start that is given up half-way, or a runtime that ends, leaves no process either.
impl Drop for Tree {
    fn drop(&mut self) {
        if !self.is_over {
            self.kill_now();
        }
        if let Some(group) = &self.group {
            self.groups.forget(group);
        }
    }
}
