//! Ends a child and all its descendants reliably.
//!
//! Each signal requires a proof about its target. Until the child is reaped, its group id certainly
//! belongs to its group, so a stop reaps the child last. Scans find all other processes: those that
//! moved to another group, and those that remain after the child was reaped.

mod exit;
#[cfg(test)]
mod tests;

use std::{io, process::ExitStatus, sync::Arc};

use rustix::process::Signal;
use tokio::{
    net::unix::pipe,
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
    pipes::{PipeReader, PipeWriter, enlarge},
    proof::{Claim, ClaimedMarks, Ours, ProcessTable, Proof, Unwaited, send},
};

/// A child and all its descendants, except those that moved to a session of their own. The child
/// leads a process group, so that wrappers (`npx`, `sh -c`) and their children are ended together.
/// Dropping the tree kills them.
#[derive(Debug)]
pub struct Tree {
    child: Child,
    /// The group, until it has ended.
    group: Option<Group>,
    /// The mark that identifies all of these processes.
    mark: Option<Mark>,
    /// True if no process is left.
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

    /// Returns the pid of the child; `None` once it was reaped.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns the pipe on the first call; the caller closes it before [`Tree::stop`].
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Returns the pipe on the first call, if the command pipes stdout.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns the ends of stdin and stdout on the first call, without threads. Asks the system to
    /// buffer this many bytes of output.
    pub fn take_pipes(&mut self, buffer_bytes: usize) -> io::Result<(PipeReader, PipeWriter)> {
        let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdin = self.take_stdin().ok_or_else(missing)?.into_owned_fd()?;
        let stdout = self.take_stdout().ok_or_else(missing)?.into_owned_fd()?;
        enlarge(&stdout, buffer_bytes);
        let input = PipeWriter::Pipe(pipe::Sender::from_owned_fd(stdin)?);
        Ok((pipe::Receiver::from_owned_fd(stdout)?, input))
    }

    /// Returns the pipe on the first call, if the command pipes stderr.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits until the child itself has exited, and reaps it; other members of its group may still
    /// run. From then on these members identify the group. If there are none, the group has ended.
    pub async fn reap_leader(&mut self) {
        if self.child.id().is_none() || self.wait_for_exit().await.is_err() {
            let _ = self.child.wait().await;
            return;
        }
        let table = self.groups.scans.scan().await;
        if let Some(group) = self.group.take() {
            let others = table.led_by(group.id());
            if others.is_empty() {
                self.groups.forget(&group);
            } else {
                let group = group.known_by(others);
                self.groups.watch(&group, self.mark.as_ref());
                self.group = Some(group);
            }
        }
        let _ = self.child.wait().await;
    }

    /// Returns true if the child process itself has exited.
    pub fn has_left(&mut self) -> bool {
        look(&self.child).map_or(true, |status| status.is_some())
    }

    /// Waits until the child has exited, without reaping it, so that its pid stays in use.
    pub async fn wait_for_exit(&mut self) -> io::Result<ExitStatus> {
        match exit(&self.child).await {
            Ok(status) => Ok(status),
            Err(_) => self.child.wait().await,
        }
    }

    /// Ends the child and all its descendants, except those that moved to a session of their own:
    /// end of input, then TERM, then KILL. The caller has closed the child's stdin. Each step waits
    /// for all of these processes, since a leader often exits before its children. A stop that was
    /// dropped can be restarted at another pace.
    pub async fn stop(&mut self, pace: Pace) {
        let [after_eof, after_term] = pace.waits();
        let steps = [
            (after_eof, None),
            (after_term, Some(Signal::TERM)),
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

    /// Sends the signal, and waits until no process is left. Repeats KILL, since a process may
    /// start others between a scan and its own end.
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
        // Kills processes that the scans missed, or all of them if the system does not support
        // scans.
        self.signal_all(Signal::KILL, &[]);
        self.is_over = true;
    }

    async fn others(&mut self) -> Vec<Ours> {
        let table = self.groups.scans.scan().await;
        let others = self.find_in(&table);
        if let Some(group) = &mut self.group {
            group.learn(&others);
        }
        others
    }

    /// Returns the live members of our group, and all processes with our mark in any group.
    fn find_in(&self, table: &ProcessTable) -> Vec<Ours> {
        table.find(&Claim {
            groups: self.group.as_slice(),
            marks: self
                .mark
                .as_ref()
                .map_or(ClaimedMarks::None, ClaimedMarks::Child),
        })
    }

    /// Kills the processes at once. Blocks for one scan. On a busy system, the earlier scans may
    /// have used the whole grace period.
    fn kill_now(&self) {
        self.signal_all(Signal::KILL, &self.find_in(&ProcessTable::near()));
    }

    /// Signals the whole group at once if possible, so that a process started meanwhile is
    /// included.
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

/// Kills the processes when a start is abandoned or a runtime ends.
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
