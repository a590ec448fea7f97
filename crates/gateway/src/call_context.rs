//! A call's client, and what it brings along.

use std::{borrow::Cow, fmt, sync::Arc};

use fleet::{LogSink, ProgressSink, Request};
use jsonrpc::Json;
use telemetry::otlp::TraceContext;
use tokio_util::sync::CancellationToken;
use tool::{ClientId, ServerName};

use crate::{
    allowed::Arrival, asks::CallAsker, caller::Caller, error::Audience, forward::UriLedger,
    instructions_told::InstructionsTold, policy::ClientPolicy, recent_searches::RecentSearches,
    script_caller::ScriptCaller, trace_parent::with_parent,
};

/// Everything that comes with a call beside its tool and arguments; the default is a person's.
#[derive(Clone, Default)]
pub struct CallContext {
    /// The rules for the client that calls.
    pub policy: Arc<ClientPolicy>,
    /// Whose workspace its scripts have.
    pub(crate) caller: Caller,
    /// The client; none for a person at the command line, who may see everything.
    pub client: Option<ClientId>,
    /// The reader of its error.
    pub audience: Audience,
    /// The token or subject that admitted the client over HTTP, for the audit log; see
    /// [`Connection::caller`].
    ///
    /// [`Connection::caller`]: crate::Connection::caller
    pub admitted_as: Option<Arc<str>>,
    /// Members of the request's `_meta` that travel on to the server.
    pub meta: Vec<(String, Json)>,
    /// Hears progress, where the client asked for it.
    pub progress: Option<ProgressSink>,
    /// Hears what the server logs meanwhile.
    pub log: Option<LogSink>,
    /// Takes what servers ask of the client meanwhile; none: nobody can be asked.
    pub asks: Option<CallAsker>,
    /// Its person sits at this machine, and may be asked to log in.
    pub is_here: bool,
    /// Cancelled when the client takes its call back, or is gone.
    pub cancel: CancellationToken,
    /// The last searches of this session; none: nothing is learned from the call.
    pub searches: Option<Arc<RecentSearches>>,
    /// The servers whose instructions this session's model was told; none: nobody's are told.
    pub(crate) told: Option<Arc<InstructionsTold>>,
    /// When it came, and the answers of its person so far; none: nobody is asked anything.
    pub(crate) arrival: Option<Arc<Arrival>>,
    /// The script that makes it.
    pub(crate) script: Option<ScriptCaller>,
    /// The URIs that passed to this client.
    pub(crate) uris: Option<Arc<UriLedger>>,
    /// The span that what is called belongs to; none: none is made, or its client says.
    pub(crate) trace: Option<TraceContext>,
}

impl CallContext {
    /// The request with what its caller brings along.
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

    /// The same for what is called within a span.
    pub(crate) fn below(&self, trace: Option<TraceContext>) -> Cow<'_, Self> {
        if trace.is_none() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            trace,
            ..self.clone()
        })
    }

    /// Remembers the links in what a server sent.
    pub(crate) fn note_uris(&self, server: &ServerName, result: &str) {
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
