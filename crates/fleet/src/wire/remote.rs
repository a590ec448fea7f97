//! A server over streamable HTTP.
//!
//! The engine carries sessions, streams, their recovery and cancellation. Only the results of
//! `tools/call` and `tools/list` are taken out below it, as bytes, before its types could lose
//! anything: each is put aside under its request id, and the engine is handed a stand-in.

use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use dashmap::DashMap;
use futures::{Stream, StreamExt, stream::BoxStream};
use http::{HeaderName, HeaderValue, StatusCode, header};
use reqwest::Response;
use rmcp::{
    Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest,
        JsonRpcMessage, ListToolsRequest, PaginatedRequestParams, RequestId, RequestMetaObject,
        ServerJsonRpcMessage,
    },
    service::{PeerRequestOptions, RequestHandle, RunningServiceCancellationToken, ServiceError},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, StreamableHttpClient,
            StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};
use sse_stream::{Error as SseError, Sse, SseStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{About, Era, ShakeError, causes, shake};
use crate::{
    Template,
    child::expand,
    limits::LINE_BYTES_MAX,
    link::{LinkError, Request},
    mask::Mask,
    message::{Json, Message, ProtocolError},
};

/// A session is ended with a request of its own; nobody waits longer than this for it.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Connecting a socket, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An open connection to a remote server.
pub(crate) struct Remote {
    peer: Peer<RoleClient>,
    aside: Arc<Aside>,
    ended: CancellationToken,
    stop: std::sync::Mutex<Option<RunningServiceCancellationToken>>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl Remote {
    pub(crate) async fn open(
        url: &Template,
        headers: &[(String, Template)],
        era: Era,
    ) -> Result<(Self, About), ShakeError> {
        let other = |why: String| ShakeError::Other(why);
        let mask = Arc::new(mask(url, headers));
        let url = expand(url).map_err(|failure| other(failure.why))?;
        let headers = read_headers(headers).map_err(other)?;
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(|error| other(causes(&error)))?;
        let aside = Arc::new(Aside {
            mask: Arc::clone(&mask),
            ..Aside::default()
        });
        let tap = Tap {
            http,
            aside: Arc::clone(&aside),
        };
        let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
        let transport = StreamableHttpClientTransport::with_client(tap, config);
        let shaken = shake(transport, era).await;
        let (service, about) = shaken.map_err(|error| aside.explain_shake(error))?;
        let ended = CancellationToken::new();
        let remote = Self {
            peer: service.peer().clone(),
            aside,
            stop: std::sync::Mutex::new(Some(service.cancellation_token())),
            ended: ended.clone(),
        };
        tokio::spawn(async move {
            let _ = service.waiting().await;
            ended.cancel();
        });
        Ok((remote, about))
    }

    pub(crate) async fn call(&self, request: &Request) -> Result<Json, LinkError> {
        let arguments = serde_json::from_str(request.arguments.as_str())
            .map_err(|error| LinkError::Failed(format!("arguments are no object: {error}")))?;
        let mut params = CallToolRequestParams::new(request.tool.clone());
        params.arguments = Some(arguments);
        params.meta = (!request.meta.is_empty()).then(|| meta(&request.meta));
        self.request(ClientRequest::CallToolRequest(CallToolRequest::new(params)))
            .await
    }

    pub(crate) async fn list_tools(&self, cursor: Option<&str>) -> Result<Json, LinkError> {
        let params = PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned));
        let request = ListToolsRequest::with_param(params);
        self.request(ClientRequest::ListToolsRequest(request)).await
    }

    async fn request(&self, request: ClientRequest) -> Result<Json, LinkError> {
        let options = PeerRequestOptions::no_options();
        let sent = self.peer.send_cancellable_request(request, options).await;
        let mut waiting = Waiting {
            handle: Some(sent.map_err(|error| self.link_error(error))?),
            aside: &self.aside,
        };
        let handle = waiting.handle.as_mut().ok_or(LinkError::Lost)?;
        let answer = (&mut handle.rx).await;
        let id = handle.id.clone();
        waiting.handle = None;
        let result = self.aside.take(&id);
        match answer {
            Ok(Ok(_)) => result.ok_or(LinkError::Lost),
            Ok(Err(error)) => Err(self.link_error(error)),
            Err(_) => Err(LinkError::Lost),
        }
    }

    fn link_error(&self, error: ServiceError) -> LinkError {
        match error {
            ServiceError::McpError(error) => LinkError::Protocol(ProtocolError {
                code: error.code.0.to_string(),
                message: error.message.into_owned(),
                data: error.data.map(|data| data.to_string()),
            }),
            ServiceError::TransportClosed => LinkError::Lost,
            ServiceError::TransportSend(error) => {
                LinkError::Failed(self.aside.explain(&causes(error.error.as_ref())))
            }
            other => LinkError::Failed(other.to_string()),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(crate) async fn close(&self) {
        let stop = self
            .stop
            .lock()
            .expect("nothing panics while it holds the token")
            .take();
        if let Some(stop) = stop {
            stop.cancel();
        }
        let _ = timeout(CLOSE_WAIT, self.ended.cancelled()).await;
    }
}

/// A request under way; dropped early, it is cancelled at the server.
struct Waiting<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    aside: &'a Aside,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.aside.take(&handle.id);
            tokio::spawn(handle.cancel(Some("the caller stopped waiting".to_owned())));
        }
    }
}

fn meta(members: &[(String, Json)]) -> RequestMetaObject {
    let mut meta = RequestMetaObject::default();
    for (key, value) in members {
        if let Ok(value) = serde_json::from_str(value.as_str()) {
            meta.0.0.insert(key.clone(), value);
        }
    }
    meta
}

/// What must not show in a message: values of variables, and of every header.
fn mask(url: &Template, headers: &[(String, Template)]) -> Mask {
    let variables = url.variables().filter_map(|name| std::env::var(name).ok());
    let values = headers.iter().filter_map(|(_, value)| expand(value).ok());
    // `Bearer TOKEN`: the token alone is the secret.
    let values = values.flat_map(|value| {
        let words: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
        words.into_iter().chain([value])
    });
    Mask::new(variables.chain(values))
}

fn read_headers(
    headers: &[(String, Template)],
) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    headers
        .iter()
        .map(|(name, value)| {
            let text = expand(value).map_err(|failure| failure.why)?;
            let header = HeaderName::try_from(name.as_str())
                .map_err(|_| format!("`{name}` is no name of a header"))?;
            let mut value = HeaderValue::try_from(text)
                .map_err(|_| format!("the value of header `{name}` cannot be sent"))?;
            value.set_sensitive(true);
            Ok((header, value))
        })
        .collect()
}

/// Results put aside, by the id of their request. Only requests announced here are tapped.
#[derive(Debug, Default)]
struct Aside {
    results: DashMap<String, Option<Json>>,
    /// Why HTTP itself failed last: the engine's errors leave out the cause.
    trouble: std::sync::Mutex<Option<String>>,
    mask: Arc<Mask>,
}

impl Aside {
    fn note(&self, error: &HttpError) {
        if let StreamableHttpError::Client(error) = error {
            *self.trouble() = Some(causes(error));
        }
    }

    /// The text of a failure, with its cause, without secrets.
    fn explain(&self, text: &str) -> String {
        let cause = self.trouble().take();
        let text = cause.as_deref().unwrap_or(text);
        self.mask.apply(text)
    }

    fn explain_shake(&self, error: ShakeError) -> ShakeError {
        match error {
            ShakeError::Other(text) => ShakeError::Other(self.explain(&text)),
            other => other,
        }
    }

    fn trouble(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.trouble
            .lock()
            .expect("nothing panics while it holds the text")
    }

    fn expect(&self, id: &RequestId) {
        self.results.insert(id.to_string(), None);
    }

    fn take(&self, id: &RequestId) -> Option<Json> {
        self.results.remove(&id.to_string())?.1
    }

    /// Puts the result in `text` aside and gives what the engine reads in its place; `None` when
    /// the message is the engine's own.
    fn tap(&self, text: &Bytes) -> Option<String> {
        let message = Message::parse(text)?;
        let (id, result) = (message.id?, message.result?);
        let mut place = self.results.get_mut(id.get().trim_matches('"'))?;
        *place = Some(Json::part_of(text, result));
        Some(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"tools":[]}}}}"#
        ))
    }
}

/// The HTTP client below the engine.
#[derive(Debug, Clone)]
struct Tap {
    http: reqwest::Client,
    aside: Arc<Aside>,
}

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl Tap {
    fn tap_events(
        &self,
        events: impl Stream<Item = Result<Sse, SseError>> + Send + 'static,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let aside = Arc::clone(&self.aside);
        let tap = move |event: Result<Sse, SseError>| {
            event.map(|mut event| {
                if let Some(data) = event.data.take() {
                    let text = Bytes::from(data);
                    let stand_in = aside.tap(&text);
                    event.data = stand_in.or_else(|| String::from_utf8(text.into()).ok());
                }
                event
            })
        };
        events.map(tap).boxed()
    }

    async fn post_tapped(
        &self,
        message: ClientJsonRpcMessage,
        id: &RequestId,
        request: reqwest::RequestBuilder,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.aside.expect(id);
        let response = request.json(&message).send().await?;
        let session = header_text(&response, "mcp-session-id");
        if !response.status().is_success() {
            return refused(response, has_session).await;
        }
        let kind = header_text(&response, header::CONTENT_TYPE.as_str()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            let events = SseStream::from_bytes_stream(bounded(response));
            return Ok(StreamableHttpPostResponse::Sse(
                self.tap_events(events),
                session,
            ));
        }
        let body = read_body(response).await?;
        let stand_in = self.aside.tap(&body).map_or(body, Bytes::from);
        Ok(StreamableHttpPostResponse::Json(
            serde_json::from_slice(&stand_in)?,
            session,
        ))
    }
}

impl StreamableHttpClient for Tap {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let Some(id) = tapped_id(&message) else {
            let posting =
                self.http
                    .post_message(uri, message, session_id, auth_header, custom_headers);
            return posting.await.inspect_err(|error| self.aside.note(error));
        };
        let mut post = self
            .http
            .post(uri.as_ref())
            .header(header::ACCEPT, "text/event-stream, application/json");
        for (name, value) in custom_headers {
            post = post.header(name, value);
        }
        let has_session = session_id.is_some();
        if let Some(session_id) = session_id {
            post = post.header("mcp-session-id", session_id.as_ref());
        }
        let posting = self.post_tapped(message, &id, post, has_session);
        posting.await.inspect_err(|error| self.aside.note(error))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), HttpError> {
        self.http
            .delete_session(uri, session_id, auth_header, custom_headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let events = self
            .http
            .get_stream(uri, session_id, last_event_id, auth_header, custom_headers)
            .await?;
        Ok(self.tap_events(events))
    }
}

/// The id of a request whose result is taken out below the engine.
fn tapped_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => match request.request {
            ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_) => {
                Some(request.id.clone())
            }
            _ => None,
        },
        _ => None,
    }
}

/// A refusal of a request, as the engine wants to hear of it: an expired session is opened anew,
/// everything else fails the call.
async fn refused(
    response: Response,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let status = response.status();
    if status == StatusCode::NOT_FOUND && has_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    if status == StatusCode::UNAUTHORIZED {
        let challenge = header_text(&response, header::WWW_AUTHENTICATE.as_str());
        let error = AuthRequiredError::new(challenge.unwrap_or_default());
        return Err(StreamableHttpError::AuthRequired(error));
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        let after = header_text(&response, header::RETRY_AFTER.as_str());
        return Err(HttpStatusError::new(status.as_u16(), after).into());
    }
    let body = read_body(response).await?;
    match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(error @ JsonRpcMessage::Error(_)) => Ok(StreamableHttpPostResponse::Json(error, None)),
        _ => {
            let text: String = String::from_utf8_lossy(&body).chars().take(200).collect();
            let why = Cow::Owned(format!("HTTP {status}: {text}"));
            Err(StreamableHttpError::UnexpectedServerResponse(why))
        }
    }
}

fn header_text(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

async fn read_body(response: Response) -> Result<Bytes, HttpError> {
    let mut body = BytesMut::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk?);
        if body.len() > LINE_BYTES_MAX {
            return Err(StreamableHttpError::ResponseBodyTooLarge {
                max_size: LINE_BYTES_MAX,
            });
        }
    }
    Ok(body.freeze())
}

/// The body of a stream, ended where one call's answer grows past the cap.
fn bounded(response: Response) -> impl Stream<Item = Result<Bytes, reqwest::Error>> + Send {
    let mut room = LINE_BYTES_MAX;
    response.bytes_stream().take_while(move |chunk| {
        let bytes = chunk.as_ref().map_or(0, Bytes::len);
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        std::future::ready(fits)
    })
}
