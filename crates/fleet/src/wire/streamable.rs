//! A server over streamable HTTP.
//!
//! rmcp implements sessions, streams, their recovery and cancellation. The responses to requests and
//! the progress of calls are taken out below it as bytes, before its types could lose anything.

mod errors;
mod events;
mod intercept;
mod param_headers;
mod posted;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::Json;
use jsonrpc::mcp::{
    HEADER_MISMATCH, Transport,
    meta::{CLIENT_CAPABILITIES, LOG_LEVEL},
};
use printable::Redactor;
use rmcp::{
    Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, CustomRequest, GetExtensions as _,
        JsonObject, ListToolsRequest, PaginatedRequestParams, RequestMetaObject,
    },
    service::{PeerRequestOptions, RequestHandle, RunningServiceCancellationToken, ServiceError},
    transport::{
        StreamableHttpClientTransport, common::client_side_sse::ExponentialBackoff,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::{intercept::InterceptingClient, param_headers::param_headers, posted::PostedRequest};
use super::{
    address::Headers,
    handshake::{HandshakeError, mirrored_capabilities, open_session},
    http::Site,
};
use crate::{
    Request, ServerInfo, Spoken,
    asking::Asking,
    connection::Connection,
    error::{Denied, RequestError, describe},
    limits::PAGES_MAX,
    pending::PendingRequest,
    request::Origin,
    updates::Updates,
};

const TOOLS_LIST: &str = "tools/list";

/// The timeout of the request that ends a session.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// The wait for the stream of messages without a request, which is opened with a session. Some servers
/// respond to it only when they have a message.
const LISTEN_WAIT: Duration = Duration::from_millis(300);

/// The most posts to one server that wait for the head of a response.
const POSTS_MAX: usize = 256;

/// The longest rest before a broken stream is opened again.
const RECONNECT_REST_MAX: Duration = Duration::from_secs(30);

pub(crate) struct Streamable {
    peer: Peer<RoleClient>,
    client: InterceptingClient,
    ended: CancellationToken,
    stop: parking_lot::Mutex<Option<RunningServiceCancellationToken>>,
    /// True if the list was read because a call lacked headers.
    has_learned: AtomicBool,
    is_stateless: bool,
}

/// The reason why a connection was not opened.
#[derive(Debug)]
pub(super) struct StreamableError {
    pub(super) error: HandshakeError,
    /// True if the response is typical of a server that speaks only HTTP+SSE.
    pub(super) may_be_sse: bool,
}

impl Streamable {
    pub(super) async fn open(
        site: &Site,
        guess: &Spoken,
        asking: &Arc<Asking>,
    ) -> Result<(Self, ServerInfo), StreamableError> {
        let client = InterceptingClient::new(site.clone(), Arc::clone(asking));
        let transport = StreamableHttpClientTransport::with_client(client.clone(), configure(site));
        let spoken = guess.over(Transport::StreamableHttp);
        let opened = open_session(transport, &spoken, asking).await;
        let (service, about) = opened.map_err(|error| explain_refusal(error, &client))?;
        let is_stateless = about.spoken.revision.is_stateless();
        if !is_stateless && client.notes.has_session.load(Ordering::Relaxed) {
            // A request that the server sends earlier is lost, and its call waits in vain.
            let listening = client.notes.is_listening.cancelled();
            let _ = timeout(LISTEN_WAIT, listening).await;
        }
        let ended = CancellationToken::new();
        let streamable = Self {
            peer: service.running.peer().clone(),
            client,
            stop: parking_lot::Mutex::new(Some(service.running.cancellation_token())),
            ended: ended.clone(),
            has_learned: AtomicBool::new(false),
            is_stateless,
        };
        tokio::spawn(async move {
            let _listener = service.listener;
            let _ = service.running.waiting().await;
            ended.cancel();
        });
        Ok((streamable, about))
    }

    /// Sends the call of a tool; once more if the server says that headers are missing.
    async fn call(&self, request: &Request) -> Result<Json, RequestError> {
        let headers = param_headers(&request.header_arguments);
        match self.send_once(request, Origin::Client, headers).await {
            // The server refused the call before running it, because its headers lack an argument.
            Err(RequestError::Protocol(error)) if error.code.parse() == Ok(HEADER_MISMATCH) => {
                if self.has_learned.swap(true, Ordering::Relaxed) {
                    return Err(RequestError::Protocol(error));
                }
                self.learn_headers().await?;
                self.send_once(request, Origin::Client, Headers::new())
                    .await
            }
            other => other,
        }
    }

    /// Reads the whole list, so that rmcp learns which arguments travel as headers by now: our
    /// snapshot is older.
    async fn learn_headers(&self) -> Result<(), RequestError> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(rename = "nextCursor", default)]
            next_cursor: Option<String>,
        }
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let request = Request::list(TOOLS_LIST, cursor.as_deref());
            let page = self.send_once(&request, Origin::Proxy, Headers::new());
            let page: Option<Page> = serde_json::from_str(page.await?.as_str()).ok();
            cursor = page.and_then(|page| page.next_cursor);
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn send_once(
        &self,
        request: &Request,
        origin: Origin,
        headers: Headers,
    ) -> Result<Json, RequestError> {
        let mut typed = type_request(request)
            .map_err(|error| RequestError::Failed(format!("`params` are malformed: {error}")))?;
        let mut options = PeerRequestOptions::no_options();
        if self.is_stateless && origin == Origin::Client {
            options.meta = Some(own_meta(request));
        }
        let (pending, mut response) =
            PendingRequest::new(request.method, request.listeners(origin));
        let posted = Arc::new(PostedRequest::new(pending, request, headers));
        typed.extensions_mut().insert(Arc::clone(&posted));
        let sent = self.peer.send_cancellable_request(typed, options).await;
        let mut waiting = Waiting(Some(sent.map_err(|error| self.explain(error))?));
        let handle = waiting.0.as_mut().ok_or(RequestError::Lost(None))?;
        let heard = (&mut handle.rx).await;
        waiting.0 = None;
        match (response.try_recv(), heard) {
            (Ok(Err(error)), _) => {
                if matches!(&error, RequestError::Denied(denied) if denied.is_unknown) {
                    // The server would deny the next call like this one.
                    self.cancel();
                }
                Err(error.mask(&self.client.site.mask))
            }
            (Ok(response), _) => response,
            (Err(_), Ok(Err(error))) => Err(self.explain(error)),
            (Err(_), _) => Err(RequestError::Lost(None)),
        }
    }

    /// Explains an error of rmcp itself; those of a server are in the response.
    fn explain(&self, error: ServiceError) -> RequestError {
        let why = match error {
            ServiceError::McpError(error) => error.message.into_owned(),
            // rmcp reports this for the stream of a single response as well.
            ServiceError::TransportClosed if !self.peer.is_transport_closed() => {
                "its response ended early".to_owned()
            }
            ServiceError::TransportClosed => return RequestError::Lost(None),
            ServiceError::TransportSend(error) => describe(error.error.as_ref()),
            other => other.to_string(),
        };
        RequestError::Failed(self.client.mask(&why))
    }

    fn cancel(&self) {
        if let Some(stop) = self.stop.lock().take() {
            stop.cancel();
        }
    }
}

impl Connection for Streamable {
    fn request<'a>(
        &'a self,
        request: &'a Request,
        origin: Origin,
    ) -> BoxFuture<'a, Result<Json, RequestError>> {
        match origin {
            Origin::Client => self.call(request).boxed(),
            Origin::Proxy => self.send_once(request, origin, Headers::new()).boxed(),
        }
    }

    fn updates(&self) -> &Updates {
        &self.client.pending.updates
    }

    fn redactor(&self) -> Option<&Redactor> {
        Some(&self.client.site.mask)
    }

    /// Returns true also for a connection that is about to end after a refusal.
    fn has_ended(&self) -> bool {
        self.ended.is_cancelled() || self.stop.lock().is_none()
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        self.ended.cancelled().boxed()
    }

    fn tell_roots_changed(&self) -> BoxFuture<'_, ()> {
        // A server that has ended needs no roots.
        self.peer.notify_roots_list_changed().map(drop).boxed()
    }

    fn denied(&self) -> Option<Denied> {
        self.client.notes.denied.lock().clone()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            self.cancel();
            let _ = timeout(CLOSE_WAIT, self.ended.cancelled()).await;
        }
        .boxed()
    }
}

fn configure(site: &Site) -> StreamableHttpClientTransportConfig {
    let mut backoff = ExponentialBackoff::default();
    backoff.max_delay = Some(RECONNECT_REST_MAX);
    let mut config = StreamableHttpClientTransportConfig::with_uri(site.url().as_str())
        .max_concurrent_requests(POSTS_MAX);
    config.retry_config = Arc::new(backoff);
    config
}

fn explain_refusal(error: HandshakeError, client: &InterceptingClient) -> StreamableError {
    let error = match (error, client.notes.error.lock().take()) {
        (HandshakeError::Other(_), Some(http)) => http,
        (HandshakeError::Other(why), None) => HandshakeError::Other(client.mask(&why)),
        (error, _) => error,
    };
    StreamableError {
        error,
        may_be_sse: client.notes.may_be_sse.load(Ordering::Relaxed),
    }
}

/// A running request. If it is dropped early, it is cancelled at the server.
struct Waiting(Option<RequestHandle<RoleClient>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            tokio::spawn(handle.cancel(Some("the caller stopped waiting".to_owned())));
        }
    }
}

/// Converts a request to the types of rmcp, which must know the arguments of a tool: some are sent as
/// headers. The body has the request itself ([`PostedRequest::write`]).
fn type_request(request: &Request) -> serde_json::Result<ClientRequest> {
    let params: JsonObject = request
        .params
        .iter()
        .filter_map(|(key, value)| Some((key.to_string(), type_value(value.as_str())?)))
        .collect();
    if request.method == "tools/call" {
        let params: CallToolRequestParams = serde_json::from_value(params.into())?;
        return Ok(ClientRequest::CallToolRequest(CallToolRequest::new(params)));
    }
    if request.method == TOOLS_LIST {
        let params: PaginatedRequestParams = serde_json::from_value(params.into())?;
        return Ok(ClientRequest::ListToolsRequest(
            ListToolsRequest::with_param(params),
        ));
    }
    let custom = CustomRequest::new(request.method, Some(params.into()));
    Ok(ClientRequest::CustomRequest(custom))
}

/// Reads a JSON text without the members that the types of rmcp cannot have: numbers such as `1e400`, and
/// texts with a lone surrogate.
fn type_value(json: &str) -> Option<Value> {
    serde_json::from_str(json).ok().or_else(|| {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
        let typed = members
            .into_iter()
            .filter_map(|(key, value)| Some((key, type_value(value.get())?)));
        Some(Value::Object(typed.collect()))
    })
}

/// Returns the `_meta` that replaces rmcp's own: exactly the capabilities of the client, and its log
/// level.
fn own_meta(request: &Request) -> RequestMetaObject {
    let mut own = RequestMetaObject::default();
    let capabilities = serde_json::from_str(&mirrored_capabilities(request)).unwrap_or_default();
    own.0.0.insert(CLIENT_CAPABILITIES.to_owned(), capabilities);
    if let Some(log) = &request.log {
        own.0.0.insert(LOG_LEVEL.to_owned(), json!(log.level));
    }
    own
}
