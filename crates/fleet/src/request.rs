//! A request to a server: what a call carries, and who hears what besides its answer.

use std::{fmt, sync::Arc, time::Duration};

use jsonrpc::{Json, limits::LINE_BYTES_MAX};
use serde_json::{Value, value::RawValue};
use tool::ClientId;

use crate::{limits::LIST_BYTES_MAX, question::Asks};

/// One request of a client, and all that it carries.
#[derive(Clone)]
pub struct Request {
    /// Such as `tools/call`.
    pub method: &'static str,
    /// The members of its `params` but for `_meta`, each as the client wrote it.
    pub params: Vec<(String, Json)>,
    /// Members of the client's `_meta` that travel on; the keys of the protocol itself do not,
    /// they belong to one hop.
    pub meta: Vec<(String, Json)>,
    /// Asked for when the client asked for progress.
    pub progress: Option<ProgressSink>,
    /// Receives the server's log meanwhile.
    pub log: Option<LogSink>,
    /// The client that calls, where it can be asked on the server's behalf.
    pub asks: Option<Arc<dyn Asks>>,
    /// The time that the caller waits; the server's own limit when it does not say.
    pub limit: Option<Duration>,
    /// The caller named the limit itself: progress does not extend it.
    pub limit_is_final: bool,
    /// A second call does what one does: the tool is read-only or idempotent.
    pub is_safe: bool,
    /// The arguments that travel as headers too, where the revision says so (`x-mcp-header` in the
    /// tool's schema): names of the schema, and values.
    pub header_arguments: Vec<(String, String)>,
    /// The client that calls; its connection may have servers of its own.
    pub client: Option<ClientId>,
    /// The person of that client may be asked to log in: a browser there comes back to this machine.
    pub may_log_in: bool,
}

impl Request {
    /// A request with the limits of its server, of which nobody hears anything but its answer.
    pub fn new(method: &'static str, params: Vec<(String, Json)>) -> Self {
        Self {
            method,
            params,
            meta: Vec::new(),
            progress: None,
            log: None,
            asks: None,
            limit: None,
            limit_is_final: false,
            is_safe: false,
            header_arguments: Vec::new(),
            client: None,
            may_log_in: false,
        }
    }

    /// The call of a tool by its own name, with a JSON object as arguments.
    pub fn call_tool(name: &str, arguments: Json) -> Self {
        let name = Json::of_built(Value::from(name).to_string());
        Self::new(
            "tools/call",
            vec![
                ("name".to_owned(), name),
                ("arguments".to_owned(), arguments),
            ],
        )
    }

    /// A member of its `params`.
    pub fn param(&self, key: &str) -> Option<&Json> {
        let mut params = self.params.iter();
        params.find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// Receives the `params` of each progress notification of one call.
pub type ProgressSink = Arc<dyn Fn(&RawValue) + Send + Sync>;

/// Receives the `params` of log messages that a server writes because of a call. MCP does not tie a
/// message to a call: it is the call's on whose own stream it comes (HTTP), or the only session's
/// that has calls under way there. Any other is nobody's.
#[derive(Clone)]
pub struct LogSink {
    /// Tells sessions apart.
    pub session: u64,
    /// The least severe level that is heard; told to servers that log for a request that says it
    /// (from 2026-07-28 on).
    pub level: &'static str,
    /// Called on the task that reads from the server, so it must not block.
    pub send: Arc<dyn Fn(&RawValue) + Send + Sync>,
}

impl fmt::Debug for LogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSink")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// The sinks of one request.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    /// It is a client's: what the server logs may be because of it.
    pub(crate) is_of_client: bool,
    pub(crate) progress: Option<ProgressSink>,
    pub(crate) log: Option<LogSink>,
    pub(crate) asks: Option<Arc<dyn Asks>>,
}

impl Listeners {
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            is_of_client: true,
            progress: request.progress.clone(),
            log: request.log.clone(),
            asks: request.asks.clone(),
        }
    }
}

/// The sink of the one session whose calls are under way, of all these requests.
pub(crate) fn find_sole_log(requests: impl IntoIterator<Item = Listeners>) -> Option<LogSink> {
    let mut calls = requests.into_iter().filter(|it| it.is_of_client);
    let first = calls.next()?.log?;
    let is_same = |other: Listeners| other.log.is_some_and(|it| it.session == first.session);
    calls.all(is_same).then_some(first)
}

/// The bound on the answer to a request. What a list says is kept, sent on and indexed; a
/// result is cut.
pub(crate) fn bytes_max(method: &str) -> usize {
    if method.ends_with("/list") {
        LIST_BYTES_MAX
    } else {
        LINE_BYTES_MAX
    }
}
