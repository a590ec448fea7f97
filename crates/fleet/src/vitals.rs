//! The starts and failures of a server's process, over its restarts.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU32, Ordering},
    time::SystemTime,
};

use jsonrpc::mcp::Revision;
use parking_lot::Mutex;
use tool::ServerName;

use crate::CallError;

/// The run state of a process of a server; [`Availability`](crate::Availability) has the words for it.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// No process and no connection; its next call starts it.
    #[default]
    Stopped,
    /// It failed, and was not started since. Nodes of a cluster send it as `resting`.
    #[serde(rename = "resting")]
    Down,
    /// Its process was started or its connection is being opened; calls wait.
    Starting,
    /// It accepts calls.
    Ready,
}

impl RunState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Stopped, Self::Down, Self::Starting, Self::Ready];
}

/// The state of a server, for people.
#[derive(Debug, Clone)]
pub struct ServerState {
    /// Its key in the configuration.
    pub name: ServerName,
    /// The clients that have it for themselves; empty if it is shared.
    pub clients: Vec<u64>,
    /// The caller over HTTP that has it for itself.
    pub caller: Option<String>,
    /// The other node of the cluster that runs it, or that would.
    pub node: Option<String>,
    /// The current state.
    pub state: RunState,
    /// The protocol revision of this process, if it is known.
    pub revision: Option<Revision>,
    /// The process id; `None` for a remote server, and for one that is not running.
    pub pid: Option<u32>,
    /// The memory of the process and its descendants.
    pub memory_bytes: Option<u64>,
    /// The number of successful starts.
    pub starts: u32,
    /// The reason why the last request without a result had none, and its time. A result with `isError`
    /// is a result, and a cancelled request has no reason.
    pub last_failure: Option<(SystemTime, String)>,
    /// The open questions of the server, the oldest first.
    pub questions: Vec<WaitingQuestion>,
    /// Calls that wait for calls of other clients to end.
    pub waiting_calls: usize,
}

impl ServerState {
    /// The state of a server that another node of the cluster runs.
    pub fn of_node(name: ServerName, node: String, state: RunState) -> Self {
        Self {
            node: Some(node),
            ..Vitals::default().state(name, state, &HashMap::new())
        }
    }
}

/// An open question of a server.
#[derive(Debug, Clone)]
pub struct WaitingQuestion {
    /// The client's name for itself, on one line.
    pub client: String,
    /// The method, such as `elicitation/create`.
    pub method: &'static str,
    /// The time of the question.
    pub since: SystemTime,
    /// True if calls of other clients wait for the answer.
    pub holds_up_others: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Vitals {
    /// Zero if there is no process.
    pid: AtomicU32,
    starts: AtomicU32,
    last_failure: Mutex<Option<(SystemTime, String)>>,
}

impl Vitals {
    /// Counts a start. Returns the number of starts, this one included.
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

    /// Notes why a request has no result, unless its caller cancelled it or the rules refuse it.
    pub(crate) fn note_failure(&self, error: &CallError) {
        if !matches!(error, CallError::Cancelled | CallError::Refused(_)) {
            *self.last_failure.lock() = Some((SystemTime::now(), error.to_string()));
        }
    }

    /// Returns these facts as the state of a server, of which nothing else is known.
    pub(crate) fn state(
        &self,
        name: ServerName,
        state: RunState,
        memory: &HashMap<i32, u64>,
    ) -> ServerState {
        let pid = Some(self.pid.load(Ordering::Relaxed)).filter(|pid| *pid > 0);
        // Each child leads a process group.
        let group = pid.and_then(|pid| i32::try_from(pid).ok());
        ServerState {
            name,
            clients: Vec::new(),
            caller: None,
            node: None,
            state,
            revision: None,
            pid,
            memory_bytes: group.and_then(|group| memory.get(&group).copied()),
            starts: self.starts(),
            last_failure: self.last_failure.lock().clone(),
            questions: Vec::new(),
            waiting_calls: 0,
        }
    }
}
