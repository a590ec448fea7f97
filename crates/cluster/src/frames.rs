//! The messages between nodes. A request goes to `to.NODE.BOOT` and has a number; what belongs to it comes
//! back as frames at `in.BOOT.NUMBER`, and goes on to the other node at `up.NODE.BOOT`.

use std::time::Duration;

use fleet::{CallError, Failure, HeldUp, LogHead, Ran, Request, RunState};
use jsonrpc::{Json, ProtocolError, mcp::LOG_LEVELS};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tool::{ClientId, ServerName};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NodeRequest {
    /// The number of the request at its sender: frames go to `in.BOOT.NUMBER`.
    pub(crate) number: u64,
    /// The time on the receiver's clock. It refuses a request that is old, and so one that is sent again.
    pub(crate) clock_ms: u64,
    /// The server that it is about, if it is about one.
    pub(crate) instance: Option<Instance>,
    pub(crate) op: Op,
}

/// A server, as the sender of a request knows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Instance {
    pub(crate) server: ServerName,
    /// The epoch of its owner, if it has one owner.
    pub(crate) epoch: Option<u64>,
}

impl Instance {
    pub(crate) fn new(server: &ServerName, epoch: Option<u64>) -> Self {
        Self {
            server: server.clone(),
            epoch,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Op {
    Call(Box<CallOp>),
    /// Reports each change of a resource until it is cancelled.
    Watch(String),
    /// Surveys the server, and publishes its list.
    Survey,
    /// Restarts the server. The body of the answer is the time until it was ready, in milliseconds.
    Restart,
    /// The same, after the running calls. Nodes of earlier versions do not know it.
    RestartWaiting,
    /// Reads a kept result by its handle.
    Result(String),
    /// Returns the newest head of this node's audit log that the other node has.
    Head(String),
    /// Answers at once: the process is there.
    Ping,
}

/// A call of a tool, or another request to a server.
#[derive(Debug, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a member of the message between nodes"
)]
pub(crate) struct CallOp {
    pub(crate) method: String,
    pub(crate) params: Vec<(String, Box<RawValue>)>,
    pub(crate) meta: Vec<(String, Box<RawValue>)>,
    pub(crate) wants_progress: bool,
    /// The session and the least level of its log.
    pub(crate) log: Option<(u64, String)>,
    pub(crate) asker: Option<Asker>,
    pub(crate) limit_ms: Option<u64>,
    pub(crate) limit_is_final: bool,
    pub(crate) is_safe: bool,
    pub(crate) header_arguments: Vec<(String, String)>,
    /// The name of the client; its connection is another node's.
    pub(crate) client: Option<String>,
    /// True if the sender checks its rules again before the call starts. Nodes of earlier versions do not
    /// say it.
    #[serde(default)]
    pub(crate) checks_start: bool,
}

/// A client that can be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Asker {
    pub(crate) session: u64,
    pub(crate) client: String,
    pub(crate) capabilities: Box<RawValue>,
    pub(crate) takes_rounds: bool,
}

/// A frame to the node that sent a request. Frames count from 0, without a gap; signs of life do not count.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub(crate) nth: u32,
    pub(crate) kind: FrameKind,
}

/// The kind of a frame. JSON of a server is its body.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FrameKind {
    /// The request is being worked on.
    Alive,
    Progress,
    Log,
    /// A question to the client, with its number.
    Ask {
        question: u64,
        method: String,
    },
    /// The question is not needed any more.
    Unask {
        question: u64,
    },
    /// The clock of the call stops, or goes on.
    Clock {
        stands: bool,
    },
    /// A notification to the client.
    Tell {
        method: String,
    },
    /// The call can start, and waits for [`UpKind::Start`]: the rules of its client are those of its node.
    CheckStart,
    /// The watch has begun.
    Watching,
    /// The resource that is watched has changed.
    Changed,
    /// The result is the body.
    End,
    Failed(WireError),
    /// Nothing was done: the server is not here, or the request is old. The time on this node's clock.
    NotHere {
        clock_ms: u64,
    },
}

/// A message that follows a request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UpFrame {
    pub(crate) request: u64,
    pub(crate) kind: UpKind,
}

/// The kind of such a message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum UpKind {
    Cancel,
    /// The rules still allow the call: it may start.
    Start,
    /// The answer to a question is the body.
    Answer {
        question: u64,
        is_error: bool,
    },
}

/// The presence of a node, sent every few seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) node: String,
    /// The time on the clock of this process.
    pub(crate) clock_ms: u64,
    pub(crate) version: String,
    /// The state of each server that it runs, if it is not stopped.
    pub(crate) running: Vec<(ServerName, RunState)>,
    /// The servers with one owner that it owns, in any state. Earlier versions do not say it.
    #[serde(default)]
    pub(crate) owned: Vec<ServerName>,
    /// False for a process that only calls.
    pub(crate) is_member: bool,
    pub(crate) is_leaving: bool,
    /// True for a process that does not know the others yet.
    pub(crate) is_new: bool,
    /// The revision of the shared configuration that is in effect there.
    pub(crate) shared_revision: u64,
    /// The newest call in its audit log.
    pub(crate) log_head: Option<LogHead>,
}

/// A [`CallError`] between nodes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WireError {
    UnknownServer,
    Unavailable {
        why: String,
        stderr: Option<String>,
        hint: Option<String>,
        is_lasting: bool,
        is_denied: bool,
        #[serde(default)]
        is_restart: bool,
        tries: u32,
        may_have_run: bool,
    },
    TimedOut {
        limit_ms: u64,
        may_have_run: bool,
        held_up_by: Option<String>,
        is_held_up: bool,
    },
    Cancelled,
    Protocol {
        code: String,
        message: String,
        data: Option<String>,
    },
}

impl From<&CallError> for WireError {
    fn from(error: &CallError) -> Self {
        match error {
            CallError::UnknownServer(_) => Self::UnknownServer,
            CallError::Unavailable {
                failure,
                tries,
                ran,
                ..
            } => Self::Unavailable {
                why: failure.why.clone(),
                stderr: failure.stderr.clone(),
                hint: failure.hint.clone(),
                is_lasting: failure.is_lasting,
                is_denied: failure.is_denied,
                is_restart: failure.is_restart,
                tries: *tries,
                may_have_run: *ran == Ran::Maybe,
            },
            CallError::TimedOut {
                limit,
                ran,
                held_up,
                ..
            } => Self::TimedOut {
                limit_ms: millis(*limit),
                may_have_run: *ran == Ran::Maybe,
                held_up_by: match held_up {
                    Some(HeldUp::Question { client }) => Some(client.clone()),
                    _ => None,
                },
                is_held_up: held_up.is_some(),
            },
            // The rules of a client are those of its own node.
            CallError::Refused(_) | CallError::Cancelled => Self::Cancelled,
            CallError::Protocol { error, .. } => Self::Protocol {
                code: error.code.clone(),
                message: error.message.clone(),
                data: error.data.clone(),
            },
        }
    }
}

impl WireError {
    /// Returns the error of this server at this node.
    pub(crate) fn into_error(self, server: &ServerName, node: &str) -> CallError {
        let ran = |maybe: bool| if maybe { Ran::Maybe } else { Ran::No };
        match self {
            Self::UnknownServer => {
                let hint = "`proxy cluster status` shows the configuration of each node";
                let why = format!("the configuration of node `{node}` does not have it");
                let failure = Failure {
                    hint: Some(hint.to_owned()),
                    ..Failure::new(why)
                };
                unavailable(server, failure, Ran::No)
            }
            Self::Unavailable {
                why,
                stderr,
                hint,
                is_lasting,
                is_denied,
                is_restart,
                tries,
                may_have_run,
            } => CallError::Unavailable {
                server: server.clone(),
                failure: Failure {
                    stderr,
                    hint: hint.map(|hint| format!("on node `{node}`: {hint}")),
                    is_lasting,
                    is_denied,
                    is_restart,
                    ..Failure::new(why)
                },
                tries,
                ran: ran(may_have_run),
            },
            Self::TimedOut {
                limit_ms,
                may_have_run,
                held_up_by,
                is_held_up,
            } => CallError::TimedOut {
                server: server.clone(),
                limit: Duration::from_millis(limit_ms),
                ran: ran(may_have_run),
                held_up: match held_up_by {
                    Some(client) => Some(HeldUp::Question { client }),
                    None => is_held_up.then_some(HeldUp::OtherClients),
                },
            },
            Self::Cancelled => CallError::Cancelled,
            Self::Protocol {
                code,
                message,
                data,
            } => CallError::Protocol {
                server: server.clone(),
                error: ProtocolError {
                    code,
                    message,
                    data,
                },
            },
        }
    }
}

/// The error of a call whose server did not start in vain.
pub(crate) fn unavailable(server: &ServerName, failure: Failure, ran: Ran) -> CallError {
    CallError::Unavailable {
        server: server.clone(),
        failure,
        tries: 0,
        ran,
    }
}

/// The requests that are passed to servers of other nodes.
const METHODS: [&str; 10] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "completion/complete",
    "skills/get",
    "tasks/get",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
    "tasks/list",
];

impl CallOp {
    /// Copies a request, without its sinks.
    pub(crate) fn of(request: &Request) -> Result<Self, serde_json::Error> {
        let asker = request.asks.as_ref().map(|asks| {
            Ok(Asker {
                session: asks.session(),
                client: asks.client(),
                capabilities: raw(&asks.capabilities())?,
                takes_rounds: asks.takes_rounds(),
            })
        });
        let log = request.log.as_ref();
        Ok(Self {
            method: request.method.to_owned(),
            params: raw_members(&request.params)?,
            meta: raw_members(&request.meta)?,
            wants_progress: request.progress.is_some(),
            log: log.map(|log| (log.session, log.level.to_owned())),
            asker: asker.transpose()?,
            limit_ms: request.timeout.map(millis),
            limit_is_final: request.timeout_is_final,
            is_safe: request.is_safe,
            header_arguments: request.header_arguments.clone(),
            client: request.client.as_ref().map(|it| it.name.to_string()),
            checks_start: request.start_check.is_some(),
        })
    }

    /// Returns the request without sinks; `None` if its method is not one that nodes send.
    pub(crate) fn to_request(&self) -> Option<Request> {
        let method = METHODS.into_iter().find(|it| *it == self.method)?;
        let json = |(key, raw): &(String, Box<RawValue>)| (key.clone(), Json::from(raw.clone()));
        let params = self.params.iter().map(json);
        let params = params.map(|(key, value)| (key.into(), value));
        Some(Request {
            meta: self.meta.iter().map(json).collect(),
            timeout: self.limit_ms.map(Duration::from_millis),
            timeout_is_final: self.limit_is_final,
            is_safe: self.is_safe,
            header_arguments: self.header_arguments.clone(),
            client: self.client.as_ref().map(|name| ClientId {
                connection: None,
                folder: None,
                name: name.as_str().into(),
                caller: None,
            }),
            ..Request::new(method, params.collect())
        })
    }

    /// The bytes of its parameters.
    pub(crate) fn len(&self) -> usize {
        self.params.iter().map(|(_, raw)| raw.get().len()).sum()
    }

    /// The least level of the log that the client wants.
    pub(crate) fn log_level(&self) -> Option<&'static str> {
        let (_, level) = self.log.as_ref()?;
        LOG_LEVELS.into_iter().find(|it| it == level)
    }
}

fn raw_members(
    members: &[(impl AsRef<str>, Json)],
) -> Result<Vec<(String, Box<RawValue>)>, serde_json::Error> {
    let members = members.iter();
    members
        .map(|(key, value)| Ok((key.as_ref().to_owned(), raw(value)?)))
        .collect()
}

fn raw(json: &Json) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(json.as_str().to_owned())
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
