//! A request to a server, and the sinks for its progress and log.

use std::{borrow::Cow, error::Error, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use jsonrpc::{Json, limits::LINE_BYTES_MAX, quote};
use serde_json::value::RawValue;
use tool::ClientId;

use crate::{limits::LIST_BYTES_MAX, question::Asks};

/// The members of the `params` of a request.
pub type Params = Vec<(Cow<'static, str>, Json)>;

/// One request to a server.
#[derive(Clone, Default)]
pub struct Request {
    /// The method, such as `tools/call`.
    pub method: &'static str,
    /// The members of its `params` but for `_meta`, each as the client wrote it.
    pub params: Params,
    /// The members of the client's `_meta`, without the keys of the protocol itself, which belong to one
    /// hop.
    pub meta: Vec<(String, Json)>,
    /// Receives progress, if the client requested it.
    pub progress: Option<ProgressSink>,
    /// Receives the log messages of the server during the call.
    pub log: Option<LogSink>,
    /// The client, if the server can ask it questions.
    pub asks: Option<Arc<dyn Asks>>,
    /// The timeout; `None` for the server's own.
    pub timeout: Option<Duration>,
    /// True if the caller set the timeout: progress does not extend it.
    pub timeout_is_final: bool,
    /// True if the tool is read-only or idempotent, so that a second call does no harm.
    pub is_safe: bool,
    /// The arguments that are sent as headers as well (`x-mcp-header` in the tool's schema): names of
    /// the schema, and values.
    pub header_arguments: Vec<(String, String)>,
    /// The client, whose connection may have servers of its own.
    pub client: Option<ClientId>,
    /// True if the client's user may be asked to log in: a browser there can redirect to this machine.
    pub may_log_in: bool,
    /// Checks immediately before the request is sent that the rules still allow it; `None` if no rules
    /// apply.
    pub start_check: Option<Arc<dyn StartCheck>>,
}

/// Checks the rules for a request again when it starts: it may have waited for a place, a turn or the
/// start of its server since it was authorized.
pub trait StartCheck: Send + Sync {
    /// Returns the reason why the request may no longer start.
    fn check(&self) -> BoxFuture<'_, Result<(), Refusal>>;
}

/// The reason why the rules of a caller refuse its request.
pub type Refusal = Box<dyn Error + Send + Sync>;

impl Request {
    /// Creates a request with the limits of its server and without sinks.
    pub fn new(method: &'static str, params: Params) -> Self {
        Self {
            method,
            params,
            ..Self::default()
        }
    }

    /// Creates the call of a tool by its own name, with a JSON object as arguments.
    pub fn call_tool(name: &str, arguments: Json) -> Self {
        let name = Json::of_built(quote(name));
        let params = vec![("name".into(), name), ("arguments".into(), arguments)];
        Self::new("tools/call", params)
    }

    /// Creates the request of one page of a list, such as `tools/list`.
    pub(crate) fn list(method: &'static str, cursor: Option<&str>) -> Self {
        let cursor = cursor.map(|it| Json::of_built(quote(it)));
        let params = cursor.map(|it| ("cursor".into(), it));
        Self::new(method, params.into_iter().collect())
    }

    /// Returns the sinks for messages that belong to this request. Only clients have some.
    pub(crate) fn listeners(&self, origin: Origin) -> Listeners {
        match origin {
            Origin::Proxy => Listeners::default(),
            Origin::Client => Listeners {
                is_of_client: true,
                progress: self.progress.clone(),
                log: self.log.clone(),
                asks: self.asks.clone(),
            },
        }
    }

    /// Writes the `params` of this request as pieces of one JSON object. `own` is added to the client's
    /// `_meta`, and `id` is the progress token if the client asked for progress. Members of the client
    /// stay byte for byte the same.
    pub(crate) fn write_params(&self, own: &[OwnMember], id: u64) -> Vec<Bytes> {
        let token = self.progress.is_some().then(|| id.to_string());
        let token = token.as_deref().map(|token| ("progressToken", token));
        let own = own.iter().map(|(key, value)| (*key, value.as_str()));
        let passed = self.meta.iter();
        let passed = passed.map(|(key, value)| (key.as_str(), value.as_str()));
        write_params(&self.params, passed.chain(own).chain(token))
    }

    /// Checks that the request may still start.
    pub async fn check_start(&self) -> Result<(), Refusal> {
        match &self.start_check {
            Some(rules) => rules.check().await,
            None => Ok(()),
        }
    }

    /// Returns a member of the `params`.
    pub fn param(&self, key: &str) -> Option<&Json> {
        let mut params = self.params.iter();
        params.find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

/// A member that the proxy adds to the `_meta` of a request, as its key and JSON text; there is none
/// before revision 2026-07-28.
pub(crate) type OwnMember = (&'static str, String);

/// Writes `params` as pieces of one JSON object, the members of `meta` as its `_meta`. The JSON texts of both stay
/// byte for byte the same.
pub(crate) fn write_params<'a>(
    params: &Params,
    meta: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<Bytes> {
    let mut parts = Vec::with_capacity(2 * params.len() + 1);
    let mut before = "{";
    for (key, value) in params {
        parts.push(Bytes::from([before, &quote(key), ":"].concat()));
        parts.push(value.bytes());
        before = ",";
    }
    let meta = write_members(meta);
    parts.push(match (meta.is_empty(), params.is_empty()) {
        (true, true) => Bytes::from_static(b"{}"),
        (true, false) => Bytes::from_static(b"}"),
        (false, _) => Bytes::from(format!(r#"{before}"_meta":{{{meta}}}}}"#)),
    });
    parts
}

fn write_members<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let member = |(key, value)| [&quote(key), ":", value].concat();
    pairs.map(member).collect::<Vec<_>>().join(",")
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

/// Receives the `params` of log messages that a server writes because of a call. MCP does not assign a
/// message to a call: it belongs to the call whose own stream carries it (HTTP), or to the only session
/// with running calls. Other messages are dropped.
#[derive(Clone)]
pub struct LogSink {
    /// The number of the session.
    pub session: u64,
    /// The least severe level. It is sent to servers that log only for requests with a level (from
    /// 2026-07-28 on).
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

#[derive(Clone, Default)]
pub(crate) struct Listeners {
    /// True for a request of a client: log messages and questions may belong to it.
    pub(crate) is_of_client: bool,
    pub(crate) progress: Option<ProgressSink>,
    pub(crate) log: Option<LogSink>,
    pub(crate) asks: Option<Arc<dyn Asks>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Client,
    Proxy,
}

/// Returns the sink of the only session that has a call among these requests.
pub(crate) fn find_sole_log(requests: impl IntoIterator<Item = Listeners>) -> Option<LogSink> {
    let mut calls = requests.into_iter().filter(|it| it.is_of_client);
    let first = calls.next()?.log?;
    let is_same = |other: Listeners| other.log.is_some_and(|it| it.session == first.session);
    calls.all(is_same).then_some(first)
}

/// Returns the limit of the response to a request. Lists have a lower one, because they are stored and
/// indexed.
pub(crate) fn bytes_max(method: &str) -> usize {
    if method.ends_with("/list") {
        LIST_BYTES_MAX
    } else {
        LINE_BYTES_MAX
    }
}
