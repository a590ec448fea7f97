//! An open connection to one server, of either kind.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use jsonrpc::{Json, ProtocolError};
use tokio::time::timeout;

use crate::{
    Caller, Launch, ServerSpec,
    activity::Activity,
    child::{Pipes, Running, Surroundings},
    error::Failure,
    lane::{Lane, LaneError, Listeners, LogSink, ProgressSink},
    wire::{
        About, EngineTransport, Era, OnListChanged, Remote, Service, ShakeError, denial,
        modern_meta, shake_in,
    },
};

/// What one `tools/call` carries.
#[derive(Clone)]
pub struct Request {
    /// The tool's own name.
    pub tool: String,
    /// The arguments, a JSON object as the client wrote it.
    pub arguments: Json,
    /// Members of the client's `_meta` that travel on; the keys of the protocol itself do not,
    /// they belong to one hop.
    pub meta: Vec<(String, Json)>,
    /// Asked for when the client asked for progress.
    pub progress: Option<ProgressSink>,
    /// Who hears the server's log meanwhile.
    pub log: Option<LogSink>,
    /// How long the caller waits; the server's own limit when it does not say.
    pub limit: Option<Duration>,
    /// The caller named the limit itself: progress does not extend it.
    pub limit_is_final: bool,
    /// Whether a second call does what one does: the tool is read-only or idempotent.
    pub is_safe: bool,
    /// Who calls, for servers that each client has for itself.
    pub caller: Option<Caller>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

/// Why a request brought no result.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// The connection is gone; the request may have been acted on.
    Lost,
    /// The request failed although the connection may live.
    Failed(String),
    Protocol(ProtocolError),
}

impl From<LaneError> for LinkError {
    fn from(error: LaneError) -> Self {
        match error {
            LaneError::Lost => Self::Lost,
            LaneError::Protocol(error) => Self::Protocol(error),
            LaneError::TooLong { bytes } => Self::Failed(format!(
                "its answer was one line of {bytes} bytes, over the cap"
            )),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Link {
    about: About,
    activity: Arc<Activity>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Child {
        lane: Lane,
        modern: Vec<(String, String)>,
        _engine: Service,
    },
    Remote(Remote),
}

impl Link {
    fn new(about: About, kind: Kind) -> Self {
        let activity = Activity::new();
        Self {
            about,
            activity,
            kind,
        }
    }

    /// Starts or connects a server; with it comes its process, if it has one. The era is a
    /// guess: where the server refuses it, the other one is tried on a fresh connection.
    pub(crate) async fn open(
        spec: &ServerSpec,
        surroundings: &Arc<Surroundings>,
        on_list_changed: &OnListChanged,
        era: Era,
    ) -> Result<(Self, Option<Running>), Failure> {
        match Self::open_in(spec, surroundings, on_list_changed, era).await {
            Err(OpenError::WrongEra(first)) => {
                let other = match era {
                    Era::Older | Era::Legacy => Era::Modern,
                    Era::Modern => Era::Legacy,
                };
                Self::open_in(spec, surroundings, on_list_changed, other)
                    .await
                    .map_err(|error| match error {
                        OpenError::WrongEra(_) => Failure::new(format!(
                            "it refused both ways to open a connection: {first}"
                        )),
                        OpenError::Failed(failure) => failure,
                    })
            }
            Err(OpenError::Failed(failure)) => Err(failure),
            Ok(open) => Ok(open),
        }
    }

    async fn open_in(
        spec: &ServerSpec,
        surroundings: &Arc<Surroundings>,
        on_list_changed: &OnListChanged,
        era: Era,
    ) -> Result<(Self, Option<Running>), OpenError> {
        match &spec.launch {
            Launch::Child { .. } => {
                let (link, running) = open_child(spec, surroundings, on_list_changed, era).await?;
                Ok((link, Some(running)))
            }
            Launch::Remote { url, headers } => {
                let opening = Remote::open(url, headers, era, Arc::clone(on_list_changed));
                let (remote, about) = timeout(spec.start_timeout, opening)
                    .await
                    .map_err(|_| silent(spec))?
                    .map_err(|error| match error {
                        ShakeError::WrongEra(why) => OpenError::WrongEra(why),
                        ShakeError::Closed => Failure::new("it closed the connection").into(),
                        ShakeError::Denied(why) => denial(why).into(),
                        ShakeError::Other(why) => Failure::new(why).into(),
                    })?;
                let kind = Kind::Remote(remote);
                Ok((Self::new(about, kind), None))
            }
        }
    }

    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    pub(crate) async fn call(&self, request: &Request) -> Result<Json, LinkError> {
        match &self.kind {
            Kind::Child { lane, modern, .. } => {
                let params = |id| call_params(request, modern, id);
                let listeners = Listeners {
                    progress: request.progress.clone(),
                    log: request.log.clone(),
                };
                Ok(lane.request("tools/call", params, listeners).await?)
            }
            Kind::Remote(remote) => remote.call(request).await,
        }
    }

    /// One page of `tools/list`.
    pub(crate) async fn list_tools(&self, cursor: Option<&str>) -> Result<Json, LinkError> {
        match &self.kind {
            Kind::Child { lane, modern, .. } => {
                let params = |_| vec![Bytes::from(list_params(cursor, modern))];
                Ok(lane
                    .request("tools/list", params, Listeners::default())
                    .await?)
            }
            Kind::Remote(remote) => remote.list_tools(cursor).await,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        match &self.kind {
            Kind::Child { lane, .. } => lane.has_ended(),
            Kind::Remote(remote) => remote.has_ended(),
        }
    }

    pub(crate) async fn ended(&self) {
        match &self.kind {
            Kind::Child { lane, .. } => lane.ended().await,
            Kind::Remote(remote) => remote.ended().await,
        }
    }

    /// Why a connection without a process ended by itself.
    pub(crate) fn exit_reason(&self) -> Failure {
        match &self.kind {
            Kind::Child { .. } => Failure::new("the connection ended"),
            Kind::Remote(remote) => remote.exit_reason(),
        }
    }

    /// Asks the server to end: closes a child's stdin, ends a remote session.
    pub(crate) async fn close(&self) {
        match &self.kind {
            Kind::Child { lane, .. } => lane.close(),
            Kind::Remote(remote) => remote.close().await,
        }
    }
}

enum OpenError {
    WrongEra(String),
    Failed(Failure),
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

async fn open_child(
    spec: &ServerSpec,
    surroundings: &Arc<Surroundings>,
    on_list_changed: &OnListChanged,
    era: Era,
) -> Result<(Link, Running), OpenError> {
    let (mut running, pipes) = Running::spawn(spec, surroundings)?;
    let Pipes { lines, outbox } = pipes;
    let (transport, feed) = EngineTransport::new(outbox.clone(), Arc::clone(on_list_changed));
    let lane = Lane::start(lines, outbox, feed, running.mask());
    let folder = spec.client_folder.as_deref();
    let shaking = shake_in(transport, era, Arc::clone(on_list_changed), folder);
    match timeout(spec.start_timeout, shaking).await {
        Ok(Ok((engine, about))) => {
            let modern = match about.era() {
                Era::Modern => modern_meta(&about.protocol),
                Era::Older | Era::Legacy => Vec::new(),
            };
            let kind = Kind::Child {
                lane,
                modern,
                _engine: engine,
            };
            Ok((Link::new(about, kind), running))
        }
        failed => {
            let error = match failed {
                Ok(Err(ShakeError::WrongEra(why))) => OpenError::WrongEra(why),
                Ok(Err(ShakeError::Closed)) => running.exit_reason().await.into(),
                Ok(Err(ShakeError::Denied(why) | ShakeError::Other(why))) => {
                    running.with_stderr(Failure::new(why)).into()
                }
                Ok(Ok(_)) | Err(_) => running.with_stderr(silent(spec)).into(),
            };
            lane.close();
            running.stop().await;
            Err(error)
        }
    }
}

fn silent(spec: &ServerSpec) -> Failure {
    let seconds = spec.start_timeout.as_secs();
    let why = format!("it did not answer the handshake within {seconds} s");
    Failure::new(why).hint(format!("raise `servers.{}.start_timeout_s`", spec.name))
}

/// The `params` of a `tools/call`, the arguments byte for byte as they came.
pub(crate) fn call_params(request: &Request, modern: &[(String, String)], id: u64) -> Vec<Bytes> {
    let name = serde_json::Value::from(request.tool.as_str());
    let head = format!(r#"{{"name":{name},"arguments":"#);
    let passed = request
        .meta
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let modern = modern
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let token = request.progress.is_some().then(|| id.to_string());
    let token = token.as_deref().map(|token| ("progressToken", token));
    let meta = members(passed.chain(modern).chain(token));
    let tail = if meta.is_empty() {
        "}".to_owned()
    } else {
        format!(r#","_meta":{{{meta}}}}}"#)
    };
    vec![
        Bytes::from(head),
        request.arguments.bytes(),
        Bytes::from(tail),
    ]
}

pub(crate) fn list_params(cursor: Option<&str>, modern: &[(String, String)]) -> String {
    let meta = members(
        modern
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str())),
    );
    let cursor = cursor.map(|cursor| format!(r#""cursor":{}"#, serde_json::Value::from(cursor)));
    let meta = (!meta.is_empty()).then(|| format!(r#""_meta":{{{meta}}}"#));
    let params: Vec<String> = cursor.into_iter().chain(meta).collect();
    format!("{{{}}}", params.join(","))
}

fn members<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let member = |(key, value)| format!("{}:{value}", serde_json::Value::from(key));
    pairs.map(member).collect::<Vec<_>>().join(",")
}
