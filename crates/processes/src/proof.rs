//! Sends signals, and requires a proof for each. No other module sends signals.
//!
//! The system reuses the ids of processes and groups, within hours if there are only 32,768 of
//! them. So no function here takes an id. A scan makes a [`Proof`], which refers to the processes
//! that it found.

mod table;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use rustix::{
    io::{self, Errno},
    process::{Pid, Signal, getpgrp, kill_process, kill_process_group},
};
use tokio::process::Child;
use tracing::debug;

pub(crate) use self::table::{Claim, ClaimedMarks, ProcessTable, SharedScans};
use crate::proc::{Identity, ProcessHandle, Stat, open_handle};

/// The reason why a signal reaches only our processes.
#[derive(Debug)]
pub(crate) enum Proof<'a> {
    Group(Unwaited<'a>),
    Process(&'a Ours),
}

/// Sends a signal, given the proof that it reaches only our processes. No other function of this
/// crate sends signals.
#[expect(
    clippy::disallowed_methods,
    reason = "everybody else comes here, with a proof"
)]
pub(crate) fn send(proof: &Proof, signal: Signal) {
    let sent = match proof {
        Proof::Group(group) => kill_process_group(group.id, signal),
        Proof::Process(process) => match &process.handle {
            Some(handle) => handle.send(signal),
            None => process.look_again().and_then(|id| kill_process(id, signal)),
        },
    };
    if let Err(error) = sent {
        debug!(?proof, %error, "the signalled process has ended");
    }
}

/// The group that a child of ours leads. Until the child is reaped, whether it runs or not, the
/// system assigns its id to no other process and no other group. Reaping takes the child by `&mut`,
/// which this borrow forbids.
#[derive(Debug)]
pub(crate) struct Unwaited<'a> {
    id: Pid,
    child: PhantomData<&'a Child>,
}

impl<'a> Unwaited<'a> {
    /// Returns the group of a child that was started as a group leader; `None` if it was reaped.
    pub(crate) fn of(child: &'a Child) -> Option<Self> {
        let id = Pid::from_raw(i32::try_from(child.id()?).ok()?)?;
        Some(Self {
            id,
            child: PhantomData,
        })
    }

    pub(crate) fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }
}

/// One process that a scan identified as ours. Only a [`ProcessTable`] creates it.
#[derive(Debug)]
pub(crate) struct Ours {
    identity: Identity,
    group: i32,
    /// `None` if the system has no handles of processes.
    handle: Option<ProcessHandle>,
}

impl Ours {
    /// Opens a handle to a process. Returns `None` unless it is alive, the same process that the
    /// scan saw, and in the same group.
    fn hold(seen: &Stat) -> Option<Self> {
        let identity = seen.identity;
        let handle = open_handle(identity.pid).ok()?;
        // Read after the handle was opened, so the values belong to the process of the handle.
        let now = identity.read()?;
        (!now.is_dead && now.group == seen.group).then_some(Self {
            identity,
            group: now.group,
            handle,
        })
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    pub(crate) fn group(&self) -> i32 {
        self.group
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(&Proof::Process(self), signal);
    }

    /// Returns the pid if it still belongs to this process. Without a handle, this check directly
    /// before the signal is the best available proof.
    fn look_again(&self) -> io::Result<Pid> {
        let is_there = self.identity.read().is_some();
        let id = Pid::from_raw(self.identity.pid).filter(|_| is_there);
        id.ok_or(Errno::SRCH)
    }
}

/// Returns our own group: membership in it is never a reason to signal a process.
fn own_group() -> i32 {
    getpgrp().as_raw_nonzero().get()
}
