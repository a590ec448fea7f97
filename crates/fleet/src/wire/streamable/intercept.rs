//! The HTTP client below rmcp.
//!
//! A request of ours carries a [`PendingCall`] among its extensions down to here. Its answer is
//! put there as bytes, and rmcp is handed a stand-in.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use futures::{FutureExt as _, Stream, StreamExt as _, stream::BoxStream};
use http::{Method, StatusCode, header};
use jsonrpc::{Message, ProtocolError};
use parking_lot::Mutex;
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorData, GetExtensions as _, JsonRpcMessage,
        RequestId, ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Error as SseError, Sse};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{
    super::{
        http::{Headers, Refusal, SendError, Site, header_text, is_event_stream, read_body},
        obstacle::Obstacle,
    },
    errors::{HttpError, explain_unread, explain_unsent, unexpected, without_address},
    events::read_events,
    param_headers::standard_headers,
    pending::{
        Denial, Outcome, PendingCall, PendingCalls, Rewrite, TransportError, write_stand_in,
    },
};
use crate::{
    asking::{AnswerSink, Asking, Questions},
    error::{Denied, describe},
    mask::Mask,
    request::bytes_max,
    updates::Updates,
};

/// The HTTP client that takes answers out before rmcp reads them; its clones are one.
#[derive(Clone)]
pub(super) struct InterceptingClient {
    site: Site,
    calls: Arc<PendingCalls>,
    notes: Arc<Notes>,
    questions: Questions,
}

/// Notes of what HTTP said of the server beside its answers.
#[derive(Default)]
struct Notes {
    /// Why a request of rmcp's own failed last.
    error: Mutex<Option<TransportError>>,
    denied: Mutex<Option<Denied>>,
    may_be_sse: AtomicBool,
    /// The server has given a session.
    has_session: AtomicBool,
    /// The stream for what belongs to no request is open, or there is none.
    is_listening: CancellationToken,
    /// The session and the headers of the last request: those of answers to questions.
    head: Mutex<(Option<Arc<str>>, Headers)>,
}

impl InterceptingClient {
    pub(super) fn new(site: Site, asking: Arc<Asking>) -> Self {
        let notes = Arc::<Notes>::default();
        let questions = Questions::new(asking, answer_over(site.clone(), Arc::clone(&notes)));
        Self {
            site,
            calls: Arc::default(),
            notes,
            questions,
        }
    }

    pub(super) fn take_error(&self) -> Option<TransportError> {
        let mut error = self.notes.error.lock();
        error.take()
    }

    pub(super) fn denied(&self) -> Option<Denied> {
        let denied = self.notes.denied.lock();
        denied.clone()
    }

    /// Waits until the stream for what belongs to no request was asked for; one without a session has
    /// none.
    pub(super) async fn listening(&self) {
        if self.notes.has_session.load(Ordering::Relaxed) {
            self.notes.is_listening.cancelled().await;
        }
    }

    pub(super) fn may_be_sse(&self) -> bool {
        self.notes.may_be_sse.load(Ordering::Relaxed)
    }

    /// The subscribers to changes of resources.
    pub(super) fn updates(&self) -> &Updates {
        &self.calls.updates
    }

    pub(super) fn secrets(&self) -> &Mask {
        &self.site.mask
    }

    pub(super) fn mask(&self, text: &str) -> String {
        self.site.mask.apply(text)
    }

    /// Keeps why a request failed: rmcp's errors leave out the cause.
    fn note(&self, failed: &Failed, call: Option<&PendingCall>) {
        let error = &failed.error;
        let why = match error {
            StreamableHttpError::SessionExpired => return,
            StreamableHttpError::Client(error) => describe(error),
            StreamableHttpError::UnexpectedServerResponse(why) => why.clone().into_owned(),
            other => describe(other),
        };
        let why = self.mask(&why);
        let is_unknown = failed.status == Some(StatusCode::UNAUTHORIZED);
        let is_forbidden = failed.status == Some(StatusCode::FORBIDDEN);
        let is_unreached = failed.is_unsent
            || matches!(error, StreamableHttpError::Client(error) if error.is_connect());
        let obstacle = failed.obstacle;
        if is_unknown {
            let why = why.clone();
            *self.notes.denied.lock() = Some(Denied { why, is_unknown });
        }
        match call {
            Some(call) => {
                let is_step_up = is_forbidden && self.site.has_login();
                let denial = if is_unknown {
                    Some(Denial::Stranger)
                } else {
                    is_step_up.then_some(Denial::StepUp)
                };
                call.put(Outcome::Failed(TransportError {
                    why,
                    denial,
                    is_unknown,
                    is_unreached,
                    obstacle,
                }));
            }
            None => {
                let is_denial = is_unknown || is_forbidden;
                let denial = is_denial.then_some(Denial::Stranger);
                let mut error = self.notes.error.lock();
                *error = Some(TransportError {
                    why,
                    denial,
                    is_unknown,
                    is_unreached,
                    obstacle,
                });
            }
        }
    }

    /// The headers of a request that rmcp makes by itself, with the token among them.
    async fn with_token(&self, method: &Method, mut headers: Headers) -> Headers {
        headers.extend(self.site.bearer_headers(method).await);
        headers
    }

    async fn post_request(
        &self,
        message: &ClientJsonRpcMessage,
        asked: &Asked,
        request: reqwest::RequestBuilder,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let sent = self.site.send(request.json(message)).await;
        let response = sent.map_err(Failed::of_unsent)?;
        let session = header_text(&response, "mcp-session-id");
        if session.is_some() {
            self.notes.has_session.store(true, Ordering::Relaxed);
        }
        let status = response.status();
        if !status.is_success() {
            return self.refused(&Refusal::read(response).await, asked);
        }
        if [StatusCode::ACCEPTED, StatusCode::NO_CONTENT].contains(&status) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if is_event_stream(&response) {
            let events = read_events(response, asked.call.clone(), asked.bytes_max);
            let events = self.intercept(events, asked.call.clone());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = read_body(response, asked.bytes_max).await;
        let body = body.map_err(|error| explain_unread(error, asked.bytes_max))?;
        let answer = self.read_answer(&body, asked)?;
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    /// A body that is one answer.
    fn read_answer(&self, body: &Bytes, asked: &Asked) -> Result<ServerJsonRpcMessage, Failed> {
        if let Rewrite::Replace(text) =
            self.calls
                .intercept(body, asked.call.as_deref(), &self.questions)
        {
            return Ok(serde_json::from_str(&text).map_err(HttpError::from)?);
        }
        if let Some(error) = read_error(body, asked) {
            return Ok(error);
        }
        match serde_json::from_slice(body) {
            Ok(message) if asked.call.is_none() => Ok(message),
            Ok(_) => Err(unexpected("its answer is for another request").into()),
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let head = printable::one_line_of(&text, 200);
                let why = format!("its answer is no JSON-RPC: {}", self.mask(&head));
                Err(Failed {
                    error: unexpected(why),
                    status: None,
                    is_unsent: false,
                    obstacle: Some(Obstacle::NoEndpoint),
                })
            }
        }
    }

    /// A refusal, as rmcp wants to hear of it: a lost session is opened anew, an error of
    /// the protocol is an answer, everything else fails the request.
    fn refused(
        &self,
        refusal: &Refusal,
        asked: &Asked,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        if asked.has_session && is_lost_session(refusal) {
            return Err(StreamableHttpError::SessionExpired.into());
        }
        if asked.kind == Kind::Initialize && refusal.may_be_sse() {
            self.notes.may_be_sse.store(true, Ordering::Relaxed);
        }
        let is_answer = refusal.status.is_client_error()
            && !refusal.is_denial()
            && refusal.status != StatusCode::TOO_MANY_REQUESTS;
        if is_answer && let Some(error) = read_error(&refusal.body, asked) {
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        if is_answer && asked.kind == Kind::Discover {
            // Whatever stands before a server of an earlier revision refuses so what it cannot read.
            let error = ErrorData::invalid_request(self.mask(&refusal.to_string()), None);
            let error = ServerJsonRpcMessage::error(error, Some(asked.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        Err(Failed {
            error: unexpected(self.mask(&refusal.to_string())),
            status: Some(refusal.status),
            is_unsent: false,
            obstacle: Obstacle::of_status(refusal.status),
        })
    }

    fn intercept(
        &self,
        events: impl Stream<Item = Result<Sse, SseError>> + Send + 'static,
        of: Option<Arc<PendingCall>>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let calls = Arc::clone(&self.calls);
        let questions = self.questions.clone();
        let rewrite = move |event: Result<Sse, SseError>| {
            event.map(|mut event| {
                let data = event.data.take().map(Bytes::from);
                event.data =
                    data.and_then(
                        |text| match calls.intercept(&text, of.as_deref(), &questions) {
                            Rewrite::Keep => String::from_utf8(text.into()).ok(),
                            Rewrite::Replace(stand_in) => Some(stand_in),
                            Rewrite::Drop => None,
                        },
                    );
                event
            })
        };
        events.map(rewrite).boxed()
    }
}

/// Posts what is said to the server beside rmcp.
fn answer_over(site: Site, notes: Arc<Notes>) -> AnswerSink {
    Arc::new(move |message| {
        let (session, headers) = notes.head.lock().clone();
        let mut post = site
            .client
            .post(site.url.clone())
            .header(header::ACCEPT, "text/event-stream, application/json")
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            post = post.header(name, value);
        }
        if let Some(session) = session {
            post = post.header("mcp-session-id", session.as_ref());
        }
        let (site, post) = (site.clone(), post.body(message.concat()));
        async move {
            if let Err(error) = site.send(post).await {
                let error = error.explain();
                debug!(error, "an answer to a question did not get there");
            }
        }
        .boxed()
    })
}

/// An error that answers this request without naming it, as some do when they read no id.
fn read_error(body: &Bytes, asked: &Asked) -> Option<ServerJsonRpcMessage> {
    let error = Message::parse(body)?.error?;
    let id = asked.id.to_string();
    if let Some(call) = &asked.call {
        call.put(Outcome::Error(ProtocolError::read(error)));
        return serde_json::from_str(&write_stand_in(&id, "")).ok();
    }
    let error: ErrorData = serde_json::from_str(error.get()).ok()?;
    Some(ServerJsonRpcMessage::error(error, Some(asked.id.clone())))
}

/// A request that failed, and the status with which the server refused it, if it did.
struct Failed {
    error: HttpError,
    status: Option<StatusCode>,
    /// There was no token to send it with, so that nothing ran.
    is_unsent: bool,
    obstacle: Option<Obstacle>,
}

impl Failed {
    fn of_unsent(error: SendError) -> Self {
        Self {
            is_unsent: matches!(error, SendError::NoToken(_)),
            ..explain_unsent(error).into()
        }
    }
}

impl From<HttpError> for Failed {
    fn from(error: HttpError) -> Self {
        let obstacle = match &error {
            StreamableHttpError::Client(error) => Obstacle::of_error(error),
            _ => None,
        };
        Self {
            error,
            status: None,
            is_unsent: false,
            obstacle,
        }
    }
}

/// One request that is being posted.
struct Asked {
    id: RequestId,
    kind: Kind,
    /// Of a request whose answer is taken out here.
    call: Option<Arc<PendingCall>>,
    has_session: bool,
    /// Of its answer.
    bytes_max: usize,
}

#[derive(PartialEq, Eq)]
enum Kind {
    Initialize,
    Discover,
    Other,
}

impl Kind {
    fn of(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::InitializeRequest(_) => Self::Initialize,
            ClientRequest::DiscoverRequest(_) => Self::Discover,
            _ => Self::Other,
        }
    }
}

/// 404 by the specification; servers written after a widespread example say 400.
fn is_lost_session(refusal: &Refusal) -> bool {
    let says_session = || {
        let body = refusal.body.to_ascii_lowercase();
        [b"session".as_slice(), b"not initialized"]
            .iter()
            .any(|words| memchr::memmem::find(&body, words).is_some())
    };
    refusal.status == StatusCode::NOT_FOUND
        || refusal.status == StatusCode::BAD_REQUEST && says_session()
}

impl StreamableHttpClient for InterceptingClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        mut custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        for (name, value) in standard_headers(&message) {
            custom_headers.entry(name).or_insert(value);
        }
        let JsonRpcMessage::Request(request) = &message else {
            let custom_headers = self.with_token(&Method::POST, custom_headers).await;
            let client = &self.site.client;
            let posting =
                client.post_message(uri, message, session_id, auth_header, custom_headers);
            return posting.await.map_err(without_address);
        };
        let asked = Asked {
            id: request.id.clone(),
            kind: Kind::of(&request.request),
            call: request
                .request
                .extensions()
                .get::<Arc<PendingCall>>()
                .cloned(),
            has_session: session_id.is_some(),
            bytes_max: bytes_max(request.request.method()),
        };
        if let Some(call) = &asked.call {
            self.calls.add(call, request);
            *self.notes.head.lock() = (session_id.clone(), custom_headers.clone());
            let own = call.headers().iter();
            custom_headers.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        }
        let mut post = self
            .site
            .client
            .post(uri.as_ref())
            .header(header::ACCEPT, "text/event-stream, application/json");
        for (name, value) in custom_headers {
            post = post.header(name, value);
        }
        if let Some(session_id) = session_id {
            post = post.header("mcp-session-id", session_id.as_ref());
        }
        let posting = self.post_request(&message, &asked, post);
        posting
            .await
            .inspect_err(|failed| self.note(failed, asked.call.as_deref()))
            .map_err(|failed| failed.error)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), HttpError> {
        let custom_headers = self.with_token(&Method::DELETE, custom_headers).await;
        let client = &self.site.client;
        let deleting = client.delete_session(uri, session_id, auth_header, custom_headers);
        deleting.await.map_err(without_address)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let custom_headers = self.with_token(&Method::GET, custom_headers).await;
        let client = &self.site.client;
        let getting =
            client.get_stream(uri, session_id, last_event_id, auth_header, custom_headers);
        let stream = getting.await.map_err(without_address);
        self.notes.is_listening.cancel();
        Ok(self.intercept(stream?, None))
    }
}
