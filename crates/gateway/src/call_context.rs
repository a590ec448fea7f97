//! The client of a call, and everything else that the call carries.

use std::{borrow::Cow, fmt, sync::Arc};

use fleet::{LogSink, ProgressSink, Request};
use jsonrpc::Json;
use results::Origin;
use telemetry::otlp::TraceContext;
use tokio_util::sync::CancellationToken;
use tool::{ClientId, ServerName};

use crate::{
    authorize::permissions::Arrival, caller::Caller, clients::CallCounter, elicitation::CallAsker,
    elicitation::server_tasks::TaskNote, error::Audience, forward::UriLedger, policy::ClientPolicy,
    recent_searches::RecentSearches, running_calls::RunningCall, script_caller::ScriptCaller,
    sent_instructions::SentInstructions, trace_parent::with_parent,
};

/// Everything that a call carries besides its tool and arguments. The default is that of a person.
#[derive(Clone, Default)]
pub struct CallContext {
    /// The rules for the client that calls.
    pub policy: Arc<ClientPolicy>,
    /// The owner of the workspace of its scripts.
    pub(crate) caller: Caller,
    /// The client; none for a person at the command line, who may see everything.
    pub client: Option<ClientId>,
    /// Counts the calls of the client; none for a person at the command line.
    pub(crate) counter: Option<CallCounter>,
    /// The reader of its error.
    pub audience: Audience,
    /// The token or subject that admitted the client over HTTP, for the audit log; see
    /// [`Connection::caller`].
    ///
    /// [`Connection::caller`]: crate::Connection::caller
    pub admitted_as: Option<Arc<str>>,
    /// `stdio`, `http` or `shell`, for the audit log.
    pub transport: &'static str,
    /// Members of the request's `_meta` that are passed on to the server.
    pub meta: Vec<(String, Json)>,
    /// Receives progress, if the client asked for it.
    pub progress: Option<ProgressSink>,
    /// Receives log messages of the server during the call.
    pub log: Option<LogSink>,
    /// Receives questions of servers to the client during the call; `None`: the client cannot be
    /// asked.
    pub asks: Option<CallAsker>,
    /// Its person sits at this machine, and may be asked to log in.
    pub is_here: bool,
    /// Cancelled when the client cancels its call, or is gone.
    pub cancel: CancellationToken,
    /// The last searches of this session; `None`: nothing is learned from the call.
    pub searches: Option<Arc<RecentSearches>>,
    /// The servers whose instructions this session's model has received; `None`: instructions are
    /// not sent.
    pub(crate) sent_instructions: Option<Arc<SentInstructions>>,
    /// The arrival of the call, and the answers of its person so far; `None`: the person is not
    /// asked.
    pub(crate) arrival: Option<Arc<Arrival>>,
    /// The script that makes it.
    pub(crate) script: Option<ScriptCaller>,
    /// The call itself, once it is in flight.
    pub(crate) call: Option<Arc<RunningCall>>,
    /// The URIs that were sent to this client.
    pub(crate) uris: Option<Arc<UriLedger>>,
    /// Receives the task with which a server answers, if the client may take the call as a task.
    pub(crate) task_note: Option<TaskNote>,
    /// The parent span of the called tool; `None`: there is none, or the client names it.
    pub(crate) trace: Option<TraceContext>,
}

impl CallContext {
    /// The context of a call by a person: the rules for calls apply, the tables of clients do not.
    pub fn of_person(transport: &'static str, cancel: CancellationToken) -> Self {
        Self {
            policy: Arc::new(ClientPolicy::of_command_line()),
            audience: Audience::Person,
            transport,
            cancel,
            ..Self::default()
        }
    }

    /// Completes a request with the context of its caller.
    pub(crate) fn complete(&self, request: Request) -> Request {
        Request {
            meta: match self.trace {
                Some(trace) => with_parent(&self.meta, trace),
                None => self.meta.clone(),
            },
            progress: self.progress.clone(),
            log: self.log.clone(),
            client: self.client.clone(),
            may_log_in: self.is_here,
            ..request
        }
    }

    /// The same context for calls within a span.
    pub(crate) fn below(&self, trace: Option<TraceContext>) -> Cow<'_, Self> {
        if trace.is_none() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            trace,
            ..self.clone()
        })
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin {
            client: self.client.clone(),
            reads_on: self.policy.sees_ours(),
        }
    }

    pub(crate) fn shows_apps(&self) -> bool {
        self.asks.as_ref().is_some_and(CallAsker::shows_apps)
    }

    /// Remembers the links in a result of a server.
    pub(crate) fn note_uris(&self, server: &ServerName, result: &Json) {
        if let Some(uris) = &self.uris {
            uris.note_result(server, result);
        }
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").finish_non_exhaustive()
    }
}
