//! A server over streamable HTTP.
//!
//! rmcp carries sessions, streams, their recovery and cancellation. Only the answers to
//! requests of clients and lists, and the progress of calls, are taken out below it, as bytes,
//! before its types could lose anything.

mod errors;
mod events;
mod intercept;
mod param_headers;
mod pending;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jsonrpc::mcp::{
    HEADER_MISMATCH, Transport,
    meta::{CLIENT_CAPABILITIES, LOG_LEVEL},
};
use jsonrpc::{Json, ProtocolError};
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
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::{
    intercept::InterceptingClient,
    param_headers::param_headers,
    pending::{Denial, Outcome, PendingCall, TransportError},
};
use super::{
    handshake::{HandshakeError, mirrored_capabilities, open_session},
    http::{Headers, Site},
};
use crate::{
    About, Request, Spoken,
    asking::Asking,
    changes::OnListChanged,
    error::{Denied, RequestError, describe},
    limits::PAGES_MAX,
    request::Listeners,
    updates::Updates,
};

/// A session is ended with a request of its own; nobody waits longer than this for it.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// The stream for what belongs to no request is opened with a session, and waited for so long: some
/// servers begin to answer it when they have something to say.
const LISTEN_WAIT: Duration = Duration::from_millis(300);

/// Posts of one server that wait for an answer's head at one time.
const POSTS_MAX: usize = 256;

/// A stream that broke is opened again after rests that grow up to this.
const RECONNECT_REST_MAX: Duration = Duration::from_secs(30);

/// An open connection over streamable HTTP.
pub(crate) struct Streamable {
    peer: Peer<RoleClient>,
    client: InterceptingClient,
    ended: CancellationToken,
    stop: parking_lot::Mutex<Option<RunningServiceCancellationToken>>,
    /// The list was read for the sake of a call some of whose arguments travel as headers.
    has_learned: AtomicBool,
    is_stateless: bool,
}

impl fmt::Debug for Streamable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamable")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// Why a connection was not opened.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) error: HandshakeError,
    /// It answered as a server that speaks HTTP+SSE only would.
    pub(super) may_be_sse: bool,
}

impl Streamable {
    pub(super) async fn open(
        site: &Site,
        guess: &Spoken,
        on_list_changed: OnListChanged,
        asking: &Arc<Asking>,
    ) -> Result<(Self, About), Refused> {
        let client = InterceptingClient::new(site.clone(), Arc::clone(asking));
        let transport = StreamableHttpClientTransport::with_client(client.clone(), configure(site));
        let spoken = guess.over(Transport::StreamableHttp);
        let opened = open_session(transport, &spoken, on_list_changed, &asking.roots).await;
        let (service, about) = opened.map_err(|error| explain_refusal(error, &client))?;
        let is_stateless = about.spoken.revision.is_stateless();
        if !is_stateless {
            // A request that the server sends before that is lost, and its call waits in vain.
            let _ = timeout(LISTEN_WAIT, client.listening()).await;
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

    pub(super) async fn call(&self, request: &Request) -> Result<Json, RequestError> {
        let headers = param_headers(&request.header_arguments);
        match self.call_once(request, headers).await {
            Err(RequestError::Protocol(error)) if lacks_header(&error) => {
                if self.has_learned.swap(true, Ordering::Relaxed) {
                    return Err(RequestError::Protocol(error));
                }
                self.learn_headers().await?;
                self.call_once(request, Headers::new()).await
            }
            other => other,
        }
    }

    /// Reads the whole list, for rmcp to see which arguments travel as headers by now: our snapshot
    /// is older.
    async fn learn_headers(&self) -> Result<(), RequestError> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(rename = "nextCursor", default)]
            next_cursor: Option<String>,
        }
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let page = self.list("tools/list", cursor.as_deref()).await?;
            let page: Option<Page> = serde_json::from_str(page.as_str()).ok();
            cursor = page.and_then(|page| page.next_cursor);
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn call_once(&self, request: &Request, headers: Headers) -> Result<Json, RequestError> {
        let typed = type_request(request)
            .map_err(|error| RequestError::Failed(format!("`params` are none: {error}")))?;
        let mut options = PeerRequestOptions::no_options();
        options.meta = self.is_stateless.then(|| own_meta(request));
        let call = PendingCall::new(Listeners::of(request)).with_headers(headers);
        self.request(typed, call, options).await
    }

    /// A request of our own, of which nobody else hears.
    pub(super) async fn ask(&self, request: &Request) -> Result<Json, RequestError> {
        let typed = type_request(request)
            .map_err(|error| RequestError::Failed(format!("`params` are none: {error}")))?;
        let options = PeerRequestOptions::no_options();
        let call = PendingCall::new(Listeners::default());
        self.request(typed, call, options).await
    }

    pub(super) fn updates(&self) -> &Updates {
        self.client.updates()
    }

    pub(super) async fn list(
        &self,
        method: &'static str,
        cursor: Option<&str>,
    ) -> Result<Json, RequestError> {
        let list = if method == "tools/list" {
            let params = PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned));
            ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params))
        } else {
            let params = cursor.map(|cursor| json!({"cursor": cursor}));
            ClientRequest::CustomRequest(CustomRequest::new(method, params))
        };
        let options = PeerRequestOptions::no_options();
        let call = PendingCall::new(Listeners::default());
        self.request(list, call, options).await
    }

    async fn request(
        &self,
        mut request: ClientRequest,
        call: PendingCall,
        options: PeerRequestOptions,
    ) -> Result<Json, RequestError> {
        let call = Arc::new(call);
        request.extensions_mut().insert(Arc::clone(&call));
        let sent = self.peer.send_cancellable_request(request, options).await;
        let mut waiting = Waiting(Some(sent.map_err(|error| self.explain(error))?));
        let handle = waiting.0.as_mut().ok_or(RequestError::Lost(None))?;
        let heard = (&mut handle.rx).await;
        waiting.0 = None;
        match (call.take(), heard) {
            (Some(Outcome::Result(result)), _) => Ok(result),
            (Some(Outcome::Error(error)), _) => {
                Err(RequestError::Protocol(self.client.secrets().error(error)))
            }
            (Some(Outcome::Failed(error)), _) => Err(self.fail(error)),
            (None, Ok(Err(error))) => Err(self.explain(error)),
            (None, _) => Err(RequestError::Lost(None)),
        }
    }

    /// A server that no longer knows us is left: the next call would be denied like this one.
    fn fail(&self, error: TransportError) -> RequestError {
        match error.denial {
            Some(Denial::Stranger) => self.cancel(),
            Some(Denial::StepUp) => {}
            None if error.is_unreached => return RequestError::Unreached(error.why),
            None => return RequestError::Failed(error.why),
        }
        RequestError::Denied(error.denied())
    }

    /// An error of rmcp's own; a server's are in the pending call.
    fn explain(&self, error: ServiceError) -> RequestError {
        match error {
            ServiceError::McpError(error) => RequestError::Failed(self.client.mask(&error.message)),
            // rmcp says so also of one answer's stream.
            ServiceError::TransportClosed if !self.peer.is_transport_closed() => {
                RequestError::Failed("its answer broke off".to_owned())
            }
            ServiceError::TransportClosed => RequestError::Lost(None),
            ServiceError::TransportSend(error) => {
                RequestError::Failed(self.client.mask(&describe(error.error.as_ref())))
            }
            other => RequestError::Failed(self.client.mask(&other.to_string())),
        }
    }

    pub(super) async fn tell_roots_changed(&self) {
        // A server that is gone has no roots.
        let _ = self.peer.notify_roots_list_changed().await;
    }

    /// Returns true if it has ended or is about to: after a refusal it is not used any more.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled() || self.stop.lock().is_none()
    }

    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// The refusal with which the server denied us, if it did.
    pub(super) fn denied(&self) -> Option<Denied> {
        self.client.denied()
    }

    pub(super) async fn close(&self) {
        self.cancel();
        let _ = timeout(CLOSE_WAIT, self.ended.cancelled()).await;
    }

    fn cancel(&self) {
        let mut stop = self.stop.lock();
        if let Some(stop) = stop.take() {
            stop.cancel();
        }
    }
}

/// Tells whether a server refused, before it ran anything, a call whose headers lack an argument.
fn lacks_header(error: &ProtocolError) -> bool {
    error.code.parse() == Ok(HEADER_MISMATCH)
}

fn configure(site: &Site) -> StreamableHttpClientTransportConfig {
    let mut backoff = ExponentialBackoff::default();
    backoff.max_delay = Some(RECONNECT_REST_MAX);
    let mut config = StreamableHttpClientTransportConfig::with_uri(site.url.as_str())
        .custom_headers(site.headers.clone())
        .max_concurrent_requests(POSTS_MAX);
    config.retry_config = Arc::new(backoff);
    config
}

fn explain_refusal(error: HandshakeError, client: &InterceptingClient) -> Refused {
    let error = match (error, client.take_error()) {
        (HandshakeError::Other(_), Some(http)) if http.denial.is_some() => {
            HandshakeError::Denied(http.denied())
        }
        (HandshakeError::Other(_), Some(http)) => {
            HandshakeError::unreached(http.why, http.obstacle)
        }
        (HandshakeError::Other(why), None) => HandshakeError::Other(client.mask(&why)),
        (error, _) => error,
    };
    Refused {
        error,
        may_be_sse: client.may_be_sse(),
    }
}

/// A request under way; dropped early, it is cancelled at the server.
struct Waiting(Option<RequestHandle<RoleClient>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            tokio::spawn(handle.cancel(Some("the caller stopped waiting".to_owned())));
        }
    }
}

/// The request as rmcp sends it. It has to know the arguments of a tool: some travel as headers.
fn type_request(request: &Request) -> serde_json::Result<ClientRequest> {
    let meta = (!request.meta.is_empty()).then(|| typed_meta(&request.meta));
    let mut params = JsonObject::new();
    for (key, value) in &request.params {
        params.insert(key.clone(), serde_json::from_str(value.as_str())?);
    }
    if request.method == "tools/call" {
        let mut params: CallToolRequestParams = serde_json::from_value(params.into())?;
        params.meta = meta;
        return Ok(ClientRequest::CallToolRequest(CallToolRequest::new(params)));
    }
    let mut custom = CustomRequest::new(request.method, Some(params.into()));
    if let Some(meta) = meta {
        custom.extensions.insert(meta);
    }
    Ok(ClientRequest::CustomRequest(custom))
}

/// In place of what rmcp gives each request: the client's own capabilities, no more and no fewer, and
/// the level of the log that it hears.
fn own_meta(request: &Request) -> RequestMetaObject {
    let mut own = RequestMetaObject::default();
    let capabilities = serde_json::from_str(&mirrored_capabilities(request)).unwrap_or_default();
    own.0.0.insert(CLIENT_CAPABILITIES.to_owned(), capabilities);
    if let Some(log) = &request.log {
        own.0.0.insert(LOG_LEVEL.to_owned(), json!(log.level));
    }
    own
}

fn typed_meta(members: &[(String, Json)]) -> RequestMetaObject {
    let mut meta = RequestMetaObject::default();
    for (key, value) in members {
        if let Ok(value) = serde_json::from_str(value.as_str()) {
            meta.0.0.insert(key.clone(), value);
        }
    }
    meta
}
