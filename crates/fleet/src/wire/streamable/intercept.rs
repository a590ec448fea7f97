//! The HTTP client below rmcp.
//!
//! A request of ours carries a [`PostedRequest`] among its extensions down to here. Its response goes
//! to its caller as bytes, and rmcp gets a stand-in.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use futures::{FutureExt as _, Stream, StreamExt as _, stream::BoxStream};
use http::{Method, StatusCode, header};
use http_core::ReadError;
use jsonrpc::{Cap, Message, ProtocolError, events::EventReader};
use parking_lot::Mutex;
use reqwest::{RequestBuilder, Response};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ErrorData, GetExtensions as _, GetMeta as _, JsonRpcMessage,
        ProgressToken, RequestId, ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        AuthRequiredError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Error as SseError, Sse};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::{
    super::{
        address::Headers,
        handshake::HandshakeError,
        http::{HttpRefusal, SendError, Site, header_text, is_event_stream, read_body},
    },
    errors::{HttpError, unexpected, without_url},
    events::read_events,
    param_headers::standard_headers,
    posted::{PostedRequest, Rewrite, intercept, refuse_too_long, write_stand_in},
};
use crate::{
    asking::{AnswerSink, Asking, Questions},
    channel,
    error::{Denied, RequestError, describe},
    limits::LIST_BYTES_MAX,
    obstacle::Obstacle,
    pending::PendingRequests,
    request::bytes_max,
};

/// The HTTP client that takes responses out before rmcp reads them. Clones share their state.
#[derive(Clone)]
pub(super) struct InterceptingClient {
    pub(super) site: Site,
    pub(super) pending: Arc<PendingRequests>,
    pub(super) notes: Arc<Notes>,
    questions: Questions,
}

/// The state of a server that HTTP reported besides its responses.
#[derive(Default)]
pub(super) struct Notes {
    /// The last failure of a request of rmcp itself.
    pub(super) error: Mutex<Option<HandshakeError>>,
    pub(super) denied: Mutex<Option<Denied>>,
    pub(super) may_be_sse: AtomicBool,
    /// True if the server created a session.
    pub(super) has_session: AtomicBool,
    /// Cancelled when the stream of messages without a request is open, or refused.
    pub(super) is_listening: CancellationToken,
    /// The session and the headers of the last request, which answers to questions use.
    head: Mutex<(Option<Arc<str>>, Headers)>,
}

impl InterceptingClient {
    pub(super) fn new(site: Site, asking: Arc<Asking>) -> Self {
        let notes = Arc::<Notes>::default();
        let questions = Questions::new(asking, answer_over(site.clone(), Arc::clone(&notes)));
        Self {
            site,
            pending: Arc::default(),
            notes,
            questions,
        }
    }

    pub(super) fn mask(&self, text: &str) -> String {
        self.site.mask.apply(text)
    }

    /// Records why a request failed: rmcp's errors lack the cause.
    fn note(&self, failed: &Failed, call: Option<&PostedRequest>) {
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
        let denied = Denied {
            why: why.clone(),
            is_unknown,
        };
        if is_unknown {
            *self.notes.denied.lock() = Some(denied.clone());
        }
        let Some(call) = call else {
            *self.notes.error.lock() = Some(if is_unknown || is_forbidden {
                HandshakeError::Denied(denied)
            } else {
                HandshakeError::unreached(why, failed.obstacle)
            });
            return;
        };
        let is_unreached = failed.is_unsent
            || matches!(error, StreamableHttpError::Client(error) if error.is_connect());
        call.request.respond(Err(
            if is_unknown || is_forbidden && self.site.credential.is_some() {
                RequestError::Denied(denied)
            } else if is_unreached {
                RequestError::Unreached(why)
            } else {
                RequestError::Failed(why)
            },
        ));
    }

    async fn post_request(
        &self,
        context: &PostContext<'_>,
        post: RequestBuilder,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let response = self.site.send(post).await?;
        let session = header_text(&response, "mcp-session-id");
        if session.is_some() {
            self.notes.has_session.store(true, Ordering::Relaxed);
        }
        let status = response.status();
        if !status.is_success() {
            return self.refused(&HttpRefusal::read(response).await, context);
        }
        if [StatusCode::ACCEPTED, StatusCode::NO_CONTENT].contains(&status) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let bytes_max = bytes_max(context.method);
        if is_event_stream(&response) {
            let cap = Arc::new(move |_: &[u8]| bytes_max);
            let events = self.read_events(response, (bytes_max, cap), context.call.clone());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = read_body(response, bytes_max).await;
        let body = body.map_err(|error| match error {
            ReadError::TooLong => StreamableHttpError::ResponseBodyTooLarge {
                max_size: bytes_max,
            },
            ReadError::Http(error) => without_url(error),
        })?;
        let answer = self.read_answer(&body, context)?;
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    /// Posts a notification, or a response to a request of rmcp. The server has accepted it with any
    /// success: some answer with an empty stream of events, or with a body, in place of HTTP 202.
    async fn post_other(
        &self,
        post: RequestBuilder,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let response = match self.site.send(post).await {
            Ok(response) if response.status().is_success() => {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            Ok(response) => response,
            Err(error) => return Err(Failed::from(error).error),
        };
        let refusal = HttpRefusal::read(response).await;
        if has_session && is_lost_session(&refusal) {
            return Err(StreamableHttpError::SessionExpired);
        }
        let why = self.mask(&refusal.to_string());
        if let Some(denied) = refusal.denied(&why).filter(|it| it.is_unknown) {
            *self.notes.denied.lock() = Some(denied);
        }
        Err(unexpected(why))
    }

    /// Reads a body that is a single response.
    fn read_answer(
        &self,
        body: &Bytes,
        context: &PostContext<'_>,
    ) -> Result<ServerJsonRpcMessage, Failed> {
        let own = context.call.as_deref();
        if let Rewrite::Replace(text) =
            intercept(&self.pending, body, own, &self.questions, &self.site.mask)
        {
            return Ok(serde_json::from_str(&text).map_err(HttpError::from)?);
        }
        if let Some(error) = read_error(body, context) {
            return Ok(error);
        }
        match serde_json::from_slice(body) {
            Ok(message) if context.call.is_none() => Ok(message),
            Ok(_) => Err(unexpected("its response is for another request").into()),
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let head = printable::one_line_of(&text, 200);
                let why = format!("its response is not JSON-RPC: {}", self.mask(&head));
                Err(Failed {
                    obstacle: Some(Obstacle::NoEndpoint),
                    ..unexpected(why).into()
                })
            }
        }
    }

    /// Converts a refusal for rmcp: a lost session is opened again, a protocol error is a response, and
    /// anything else fails the request.
    fn refused(
        &self,
        refusal: &HttpRefusal,
        context: &PostContext<'_>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        if context.has_session && is_lost_session(refusal) {
            return Err(StreamableHttpError::SessionExpired.into());
        }
        if context.method == "initialize" && refusal.may_be_sse() {
            self.notes.may_be_sse.store(true, Ordering::Relaxed);
        }
        let is_answer = refusal.status.is_client_error()
            && !refusal.is_denial()
            && refusal.status != StatusCode::TOO_MANY_REQUESTS;
        if is_answer && let Some(error) = read_error(&refusal.body, context) {
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        let refuses_revision = match context.method {
            // Gateways before servers of earlier revisions refuse unknown methods in this way.
            "server/discover" => is_answer,
            // Some servers refuse a revision that they do not know, instead of naming one that they do.
            "initialize" => refusal.status == StatusCode::BAD_REQUEST,
            _ => false,
        };
        if refuses_revision {
            let error = ErrorData::invalid_request(self.mask(&refusal.to_string()), None);
            let error = ServerJsonRpcMessage::error(error, Some(context.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        Err(Failed {
            status: Some(refusal.status),
            obstacle: Obstacle::of_status(refusal.status),
            ..unexpected(self.mask(&refusal.to_string())).into()
        })
    }

    /// Reads the events of a response within the limits of `cap`; `of` is the request whose own stream it is.
    fn read_events(
        &self,
        response: Response,
        (bytes, cap): (usize, Cap),
        of: Option<Arc<PostedRequest>>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let (pending, own) = (Arc::clone(&self.pending), of.clone());
        let events = read_events(response, EventReader::new(bytes, cap), move |error| {
            refuse_too_long(&pending, own.as_deref(), error)
        });
        self.intercept(events, of)
    }

    fn intercept(
        &self,
        events: impl Stream<Item = Result<Sse, SseError>> + Send + 'static,
        of: Option<Arc<PostedRequest>>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let pending = Arc::clone(&self.pending);
        let questions = self.questions.clone();
        let mask = Arc::clone(&self.site.mask);
        let rewrite = move |event: Result<Sse, SseError>| {
            event.map(|mut event| {
                let data = event.data.take().map(Bytes::from);
                event.data = data.and_then(|text| {
                    match intercept(&pending, &text, of.as_deref(), &questions, &mask) {
                        // rmcp ends the connection at a text that it cannot read as a message.
                        Rewrite::Keep => String::from_utf8(text.into())
                            .ok()
                            .filter(|text| is_message(text)),
                        Rewrite::Replace(stand_in) => Some(stand_in),
                        Rewrite::Drop => None,
                    }
                });
                event
            })
        };
        events.map(rewrite).boxed()
    }
}

/// Returns true if rmcp can read a text as a message of a server.
fn is_message(text: &str) -> bool {
    serde_json::from_str::<ServerJsonRpcMessage>(text).is_ok()
}

fn build_post(site: &Site, headers: Headers, session: Option<&Arc<str>>) -> RequestBuilder {
    let post = site.request(Method::POST, site.url());
    let post = post.header(header::ACCEPT, "text/event-stream, application/json");
    add_headers(post, headers, session)
}

fn with_json(post: RequestBuilder, body: Vec<u8>) -> RequestBuilder {
    let post = post.header(header::CONTENT_TYPE, "application/json");
    post.body(body)
}

fn add_headers(
    request: RequestBuilder,
    headers: Headers,
    session: Option<&Arc<str>>,
) -> RequestBuilder {
    let request = request.headers(headers.into_iter().collect());
    match session {
        Some(session) => request.header("mcp-session-id", session.as_ref()),
        None => request,
    }
}

/// Returns a sink that posts answers to questions without rmcp.
fn answer_over(site: Site, notes: Arc<Notes>) -> AnswerSink {
    Arc::new(move |message| {
        let (session, headers) = notes.head.lock().clone();
        let post = build_post(&site, headers, session.as_ref());
        let (site, post) = (site.clone(), with_json(post, message.concat()));
        async move {
            if let Err(error) = site.send(post).await {
                let error = error.explain();
                debug!(error, "an answer to a question did not reach the server");
            }
        }
        .boxed()
    })
}

/// Reads an error without the id of this request: some servers do not read the id.
fn read_error(body: &Bytes, context: &PostContext<'_>) -> Option<ServerJsonRpcMessage> {
    let error = Message::parse(body)?.error?;
    let id = context.id.to_string();
    if let Some(call) = &context.call {
        let error = ProtocolError::read(error);
        call.request.respond(Err(RequestError::Protocol(error)));
        return serde_json::from_str(&write_stand_in(&id, "")).ok();
    }
    let error: ErrorData = serde_json::from_str(error.get()).ok()?;
    Some(ServerJsonRpcMessage::error(error, Some(context.id.clone())))
}

/// A failed request, and the status if the server refused it.
struct Failed {
    error: HttpError,
    status: Option<StatusCode>,
    /// True if there was no token, so that the request was not sent.
    is_unsent: bool,
    obstacle: Option<Obstacle>,
}

impl From<SendError> for Failed {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Http(error) => without_url(error).into(),
            SendError::NoToken(why) => Self {
                is_unsent: true,
                ..unexpected(why).into()
            },
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

struct PostContext<'a> {
    id: RequestId,
    method: &'a str,
    /// The request of ours, whose response is taken out here.
    call: Option<Arc<PostedRequest>>,
    has_session: bool,
}

/// Makes the id of a request its progress token as well, so that one table finds both.
fn name_progress_by_id(message: &mut ClientJsonRpcMessage) {
    if let JsonRpcMessage::Request(request) = message
        && request.request.get_meta().get_progress_token().is_some()
    {
        let token = ProgressToken(request.id.clone());
        request.request.get_meta_mut().set_progress_token(token);
    }
}

/// Returns true if the session is lost: 404 by the specification, but 400 in a widespread example.
fn is_lost_session(refusal: &HttpRefusal) -> bool {
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
        _: Arc<str>,
        mut message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        mut custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        name_progress_by_id(&mut message);
        for (name, value) in standard_headers(&message) {
            custom_headers.entry(name).or_insert(value);
        }
        let JsonRpcMessage::Request(request) = &message else {
            let post = build_post(&self.site, custom_headers, session_id.as_ref());
            return self
                .post_other(post.json(&message), session_id.is_some())
                .await;
        };
        let context = PostContext {
            id: request.id.clone(),
            method: request.request.method(),
            call: request
                .request
                .extensions()
                .get::<Arc<PostedRequest>>()
                .cloned(),
            has_session: session_id.is_some(),
        };
        if let Some(call) = &context.call {
            call.register(&self.pending, &request.id);
            *self.notes.head.lock() = (session_id.clone(), custom_headers.clone());
            let own = call.headers.iter();
            custom_headers.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        }
        let post = build_post(&self.site, custom_headers, session_id.as_ref());
        let post = match &context.call {
            Some(call) => with_json(
                post,
                call.write(&context.id, context.method, request.request.get_meta()),
            ),
            None => post.json(&message),
        };
        self.post_request(&context, post)
            .await
            .inspect_err(|failed| self.note(failed, context.call.as_deref()))
            .map_err(|failed| failed.error)
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), HttpError> {
        let delete = self.site.request(Method::DELETE, self.site.url());
        let delete = add_headers(delete, custom_headers, Some(&session_id));
        let response = self.site.send_once(delete).await.map_err(Failed::from);
        let status = response.map_err(|failed| failed.error)?.status();
        // Some servers do not let a client end its session.
        if status.is_success() || status == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        Err(unexpected(format!("HTTP {status}")))
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let get = self.site.request(Method::GET, self.site.url());
        let get = get.header(header::ACCEPT, "text/event-stream");
        let get = add_headers(get, custom_headers, session_id.as_ref());
        let get = match last_event_id {
            Some(id) => get.header("last-event-id", id),
            None => get,
        };
        let sent = self.site.send(get).await.map_err(Failed::from);
        self.notes.is_listening.cancel();
        let response = sent.map_err(|failed| failed.error)?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let challenge = header_text(&response, header::WWW_AUTHENTICATE.as_str());
        if let Some(challenge) = challenge
            && [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status)
        {
            // rmcp asks for this stream no more.
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
                self.mask(&challenge),
            )));
        }
        if !status.is_success() {
            let refusal = HttpRefusal::read(response).await;
            return Err(unexpected(self.mask(&refusal.to_string())));
        }
        if !is_event_stream(&response) {
            let kind = header_text(&response, header::CONTENT_TYPE.as_str());
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let cap = channel::cap(&self.pending);
        Ok(self.read_events(response, (LIST_BYTES_MAX, cap), None))
    }
}
