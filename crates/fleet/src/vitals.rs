//! Counts of a server, over all its processes.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::SystemTime,
};

use jsonrpc::mcp::Revision;
use parking_lot::{Mutex, MutexGuard};
use tool::ServerName;

use crate::{CallError, ServerSpec};

/// The state of a server, as a person looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No process and no connection; its next call starts it.
    Stopped,
    /// Its process was started or its connection is being opened; calls wait.
    Starting,
    /// It takes calls.
    Ready,
    /// It failed, and is not started again for a while.
    Resting,
}

/// A server as a person looks at it.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// Its key in the configuration.
    pub name: ServerName,
    /// The clients whose own it is; none if it is everybody's.
    pub clients: Vec<u64>,
    /// The current state.
    pub state: State,
    /// The revision of the protocol that this process speaks, as far as is known.
    pub revision: Option<Revision>,
    /// None for a remote server, and for one that does not run.
    pub pid: Option<u32>,
    /// Of the process and all that it started.
    pub memory_bytes: Option<u64>,
    /// Starts that ended ready.
    pub starts: u32,
    /// Calls, those without a result too.
    pub calls: u64,
    /// Calls that brought no result; a tool that says no has answered.
    pub errors: u64,
    /// The last of these errors, and when it was.
    pub last_error: Option<(SystemTime, String)>,
    /// The questions of the server that clients have not answered, the oldest first.
    pub questions: Vec<WaitingQuestion>,
}

/// A question of a server that waits for its client's answer.
#[derive(Debug, Clone)]
pub struct WaitingQuestion {
    /// The name that the client gave itself, on one line.
    pub client: String,
    /// Such as `elicitation/create`.
    pub method: &'static str,
    /// When it was asked.
    pub since: SystemTime,
    /// True if calls of other clients wait for the answer.
    pub holds_up_others: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Vitals {
    /// 0: none.
    pid: AtomicU32,
    starts: AtomicU32,
    calls: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<(SystemTime, String)>>,
}

impl Vitals {
    /// Counts a start; answers how many there were, this one included.
    pub(crate) fn started(&self, pid: Option<u32>) -> u32 {
        self.pid.store(pid.unwrap_or(0), Ordering::Relaxed);
        self.starts.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn starts(&self) -> u32 {
        self.starts.load(Ordering::Relaxed)
    }

    pub(crate) fn ended(&self) {
        self.pid.store(0, Ordering::Relaxed);
    }

    /// Counts a call; one that its client took back is no error.
    pub(crate) fn count(&self, error: Option<&CallError>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(error) = error.filter(|it| !matches!(it, CallError::Cancelled)) {
            self.errors.fetch_add(1, Ordering::Relaxed);
            *self.last_error() = Some((SystemTime::now(), error.to_string()));
        }
    }

    pub(crate) fn state(
        &self,
        spec: &ServerSpec,
        state: State,
        revision: Option<Revision>,
        clients: Vec<u64>,
        memory: &HashMap<i32, u64>,
        questions: Vec<WaitingQuestion>,
    ) -> ServerState {
        let pid = Some(self.pid.load(Ordering::Relaxed)).filter(|pid| *pid > 0);
        // It leads a group of its own.
        let group = pid.and_then(|pid| i32::try_from(pid).ok());
        ServerState {
            name: spec.name.clone(),
            clients,
            state,
            revision,
            pid,
            memory_bytes: group.and_then(|group| memory.get(&group).copied()),
            starts: self.starts(),
            calls: self.calls.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            last_error: self.last_error().clone(),
            questions,
        }
    }

    fn last_error(&self) -> MutexGuard<'_, Option<(SystemTime, String)>> {
        self.last_error.lock()
    }
}
