//! The only module that sends signals, and the proofs that it requires.
//!
//! The system reuses the ids of processes and groups: within hours, if there are 32,768 of them.
//! So no function here takes an id. A [`Proof`] is made by a scan, and holds the processes it found.

mod table;
#[cfg(test)]
mod tests;

use std::{marker::PhantomData, os::fd::OwnedFd};

use rustix::{
    io::{self, Errno},
    process::{
        Pid, PidfdFlags, Signal, getpgrp, kill_process, kill_process_group, pidfd_open,
        pidfd_send_signal,
    },
};
use tokio::process::Child;
use tracing::debug;

pub(crate) use self::table::{Claim, ClaimedMarks, ProcessTable, SharedScans};
use crate::proc::{Identity, Stat};

/// The reason why a signal reaches only our processes.
#[derive(Debug)]
pub(crate) enum Proof<'a> {
    Group(Unwaited<'a>),
    Process(&'a Ours),
}

/// Sends a signal, after the proof that it reaches only our processes. Nothing else in this crate does.
#[expect(
    clippy::disallowed_methods,
    reason = "everybody else comes here, with a proof"
)]
pub(crate) fn send(proof: &Proof, signal: Signal) {
    let sent = match proof {
        Proof::Group(group) => kill_process_group(group.id, signal),
        Proof::Process(process) => match &process.handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            None => process.look_again().and_then(|id| kill_process(id, signal)),
        },
    };
    if let Err(error) = sent {
        debug!(?proof, %error, "the signalled process has ended");
    }
}

/// The group that a child of ours leads. As long as the child, dead or alive, was not reaped, the
/// system assigns its id to no other process and no other group; and reaping takes the child by
/// `&mut`, which this borrow forbids.
#[derive(Debug)]
pub(crate) struct Unwaited<'a> {
    id: Pid,
    child: PhantomData<&'a Child>,
}

impl<'a> Unwaited<'a> {
    /// `child` was started as the leader of a group.
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

/// One process that a scan has found to be ours. Only a [`ProcessTable`] creates it.
#[derive(Debug)]
pub(crate) struct Ours {
    identity: Identity,
    group: i32,
    /// Never means a later process of this number. Systems older than Linux 5.3 have none.
    handle: Option<OwnedFd>,
}

impl Ours {
    /// Opens a handle to a process, if it is alive and is the one that was seen, in the group in which
    /// it was seen.
    fn hold(seen: &Stat) -> Option<Self> {
        let identity = seen.identity;
        let handle = match pidfd_open(Pid::from_raw(identity.pid)?, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            Err(Errno::SRCH) => return None,
            Err(_) => None,
        };
        // After the handle is open, the values read belong to its process.
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

    /// Without a handle the proof is as fresh as can be.
    fn look_again(&self) -> io::Result<Pid> {
        let is_there = self.identity.read().is_some();
        let id = Pid::from_raw(self.identity.pid).filter(|_| is_there);
        id.ok_or(Errno::SRCH)
    }
}

/// Our own group: no process is signalled because it is a member of it.
fn own_group() -> i32 {
    getpgrp().as_raw_nonzero().get()
}
