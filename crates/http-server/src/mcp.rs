//! `/mcp`: POST sends a message, GET opens a stream, DELETE ends a session.

use std::sync::Arc;

use bytes::Bytes;
use gateway::{
    Announcement, Connection, INVALID_ID, Opening, Out, ResponseSender, ResponseStream,
    ServerEvent, Session, response_stream, single_response,
};
use http_core::{BodyError, HeldPlace, HolderState, Places, check_is_json, read_body};
use hyper::{Response, StatusCode, body::Incoming, header::HeaderValue, http::request::Parts};
use jsonrpc::{Message, frame, one_line};

use super::{
    body::Body,
    headers::{self, Accepts, Spoken},
    http_error::HttpError,
    open_session::SessionUse,
    peer::ClientIdentity,
    reply::{self, Errors, Exchange, KeptStream},
    resume::ResumeOutcome,
    service::Service,
};

impl Service {
    pub(super) async fn post(
        &self,
        head: &Parts,
        body: Incoming,
        peer: ClientIdentity,
    ) -> Result<Response<Body>, HttpError> {
        let reading = self.take_place(&self.reading_places, &peer, HolderState::New)?;
        let accepts = Accepts::of(&head.headers)?;
        check_is_json(&head.headers)?;
        let read = reading.unless_needed(self.read(head, body)).await;
        let line = read.ok_or_else(HttpError::too_slow)??;
        // A message that is not a request does not wait for requests: it may cancel one.
        drop(reading);
        let message = Message::parse(&line).ok_or_else(|| refuse_unreadable(&line))?;
        if message.is_request_without_valid_id() {
            return Err(HttpError::unreadable(frame::INVALID_REQUEST, INVALID_ID));
        }
        let id = message.id.map(|id| id.get().to_owned());
        let about = |error: HttpError| error.about(id.as_deref());
        let spoken = headers::read_spoken(&head.headers, &message).map_err(about)?;
        let request = McpRequest {
            primes: headers::takes_empty_events(&head.headers),
            method: message.method.as_deref().unwrap_or_default(),
            is_request: message.id.is_some() && message.method.is_some(),
            id: id.as_deref().unwrap_or("null"),
            accepts,
            spoken,
            line: &line,
        };
        let session = headers::get_once(&head.headers, headers::SESSION)?;
        match session {
            _ if request.method == "initialize" && request.is_request => {
                let announced = Announcement::read(&message);
                self.initialize(request, &announced, &peer).await
            }
            Some(session) if !request.spoken.revision.is_stateless() => {
                let used = self.sessions.find(session, &peer).map_err(about)?;
                self.in_session(request, used, &peer).await
            }
            _ => self.answer_stateless(request, &peer).await,
        }
    }

    /// Opens the stream for messages of a session that belong to no request, or resumes a broken one.
    pub(super) fn get(
        &self,
        head: &Parts,
        peer: &ClientIdentity,
    ) -> Result<Response<Body>, HttpError> {
        if !Accepts::of(&head.headers)?.events {
            return Err(HttpError::mistake(
                StatusCode::NOT_ACCEPTABLE,
                "send `Accept: text/event-stream`",
            ));
        }
        let session = headers::get_once(&head.headers, headers::SESSION)?;
        let Some(session) = session else {
            return Err(HttpError::method("POST; a stream belongs to a session"));
        };
        let used = self.sessions.find(session, peer)?;
        let last_event = headers::get_once(&head.headers, headers::LAST_EVENT)?;
        let outcome = last_event.and_then(|id| used.0.resumable.resume(id));
        match outcome {
            Some(ResumeOutcome::Resumed(resumed)) => {
                let body = Body::of_resumed(resumed, Box::new(used));
                return Ok(reply::stream(body));
            }
            Some(ResumeOutcome::Lost(answer)) => return Ok(answer_lost(answer, used)),
            None => {}
        }
        let (responses, stream) = response_stream();
        used.0.router.attach(responses);
        let reader = used.0.resumable.begin(stream, None);
        let primes = headers::takes_empty_events(&head.headers);
        let body = Body::of_kept(reader, None, primes, Box::new(used));
        Ok(reply::stream(body))
    }

    pub(super) fn delete(
        &self,
        head: &Parts,
        peer: &ClientIdentity,
    ) -> Result<Response<Body>, HttpError> {
        let session = headers::get_once(&head.headers, headers::SESSION)?;
        let session = session.ok_or_else(HttpError::session_needed)?;
        self.sessions.close(session, peer)?;
        Ok(Body::empty(StatusCode::NO_CONTENT))
    }

    async fn initialize(
        &self,
        request: McpRequest<'_>,
        announced: &Announcement,
        peer: &ClientIdentity,
    ) -> Result<Response<Body>, HttpError> {
        let (id, used) = self.sessions.begin(announced, peer)?;
        let answer = self.in_session(request, used, peer).await;
        match answer {
            Ok(mut response) if response.status().is_success() => {
                let value = HeaderValue::from_str(&id).expect("it is base64url and dots");
                response.headers_mut().insert(headers::SESSION, value);
                Ok(response)
            }
            other => {
                self.sessions.end(&id);
                other
            }
        }
    }

    async fn in_session(
        &self,
        request: McpRequest<'_>,
        used: SessionUse,
        peer: &ClientIdentity,
    ) -> Result<Response<Body>, HttpError> {
        let mut held = None;
        if request.is_request {
            let in_session = Arc::clone(&used.0.requests).try_acquire_owned();
            let in_session = in_session.map_err(|_| self.too_many_requests())?;
            let of_all = self.take_place(&self.request_places, peer, HolderState::Busy)?;
            held = Some((of_all, in_session));
        }
        let (responses, stream) = open_response(&request);
        let out = Out::Reply(responses);
        used.0.note_caller(peer);
        let taken = used.0.session.take(request.line, &out).await;
        drop(out);
        taken.map_err(|_| HttpError::no_session())?;
        if !request.is_request {
            return Ok(Body::empty(StatusCode::ACCEPTED));
        }
        let kept = KeptStream {
            streams: Arc::clone(&used.0.resumable),
            primes: request.primes,
        };
        let errors = if request.method == "initialize" {
            Errors::All
        } else {
            Errors::InBand
        };
        let exchange = request.exchange(stream, errors, Some(kept));
        Ok(exchange.respond(Box::new((held, used))).await)
    }

    /// Answers a request that belongs to no session.
    async fn answer_stateless(
        &self,
        request: McpRequest<'_>,
        peer: &ClientIdentity,
    ) -> Result<Response<Body>, HttpError> {
        if !request.is_request {
            return Ok(Body::empty(StatusCode::ACCEPTED));
        }
        let Spoken {
            revision,
            has_whole_meta,
        } = &request.spoken;
        let (opening, errors) = if revision.is_stateless() {
            let has_whole_meta = *has_whole_meta;
            (Opening::Handshake, Errors::Modern { has_whole_meta })
        } else if request.method == "initialize" {
            (Opening::Handshake, Errors::All)
        } else {
            (Opening::None, Errors::InBand)
        };
        let place = self.take_place(&self.request_places, peer, HolderState::Busy)?;
        let (stream, session) = self.start_stateless(&request, peer, opening).await;
        let lease = Box::new((place, StatelessSession(session)));
        let exchange = request.exchange(stream, errors, None);
        Ok(exchange.respond(lease).await)
    }

    fn take_place(
        &self,
        places: &Arc<Places>,
        peer: &ClientIdentity,
        state: HolderState,
    ) -> Result<HeldPlace, HttpError> {
        let entered = places.enter(peer.who(), state);
        let place = entered.map(|entered| entered.place);
        place.map_err(|_| self.too_many_requests())
    }

    fn too_many_requests(&self) -> HttpError {
        HttpError::too_many_requests(self.endpoint.limits.requests_max)
    }

    async fn start_stateless(
        &self,
        request: &McpRequest<'_>,
        peer: &ClientIdentity,
        opening: Opening,
    ) -> (ResponseStream, Arc<Session>) {
        let (responses, stream) = open_response(request);
        let out = Out::Reply(responses);
        let connection = Connection {
            is_stateless: true,
            ..peer.connection.clone()
        };
        let gone = self.stopping.child_token();
        let gateway = Arc::clone(&self.gateway);
        let session = Session::until(gone, gateway, connection, out.clone(), opening);
        // If rmcp has ended, it has closed the stream, which the exchange notices.
        let _ = session.take(request.line, &out).await;
        (stream, session)
    }

    /// Reads one message, limited in size and time, and puts it on one line.
    async fn read(&self, head: &Parts, body: Incoming) -> Result<Bytes, HttpError> {
        let limits = &self.endpoint.limits;
        let max = limits.body_bytes_max;
        let read = read_body(head, body, max, limits.receive_timeout).await;
        read.map(one_line).map_err(|error| match error {
            BodyError::TooSlow => HttpError::too_slow(),
            BodyError::TooLarge => HttpError::too_large(max),
            BodyError::Cut(why) => {
                let why = format!("the body ended early: {why}");
                HttpError::mistake(StatusCode::BAD_REQUEST, why)
            }
        })
    }
}

/// A received message, with the facts from its headers.
struct McpRequest<'a> {
    /// True if a stream begins with an event that has only an id.
    primes: bool,
    method: &'a str,
    is_request: bool,
    /// The id as it was received.
    id: &'a str,
    accepts: Accepts,
    spoken: Spoken,
    line: &'a Bytes,
}

impl McpRequest<'_> {
    fn exchange(
        &self,
        stream: ResponseStream,
        errors: Errors,
        kept: Option<KeptStream>,
    ) -> Exchange {
        Exchange {
            id: self.id.to_owned(),
            stream,
            accepts: self.accepts,
            errors,
            is_call: self.method == "tools/call",
            kept,
        }
    }
}

/// A session for one request. When its client disconnects, the call is cancelled.
struct StatelessSession(Arc<Session>);

impl Drop for StatelessSession {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Returns the stream of a request whose response is lost: an error in place of that response.
fn answer_lost(answer: Bytes, used: SessionUse) -> Response<Body> {
    tracing::debug!("a client reconnected for an answer that is lost");
    let (_, stream) = response_stream();
    let reader = used.0.resumable.begin(stream, None);
    let body = Body::of_kept(reader, None, false, Box::new(used));
    let answer = ServerEvent::Answer(vec![answer]);
    reply::stream(body.with_first(Some(answer)))
}

fn open_response(request: &McpRequest<'_>) -> (Arc<ResponseSender>, ResponseStream) {
    if request.accepts.events {
        response_stream()
    } else {
        single_response()
    }
}

fn refuse_unreadable(line: &Bytes) -> HttpError {
    match serde_json::from_slice::<serde::de::IgnoredAny>(line) {
        Ok(_) => HttpError::unreadable(-32_600, "Invalid Request: expected one object"),
        Err(error) => HttpError::unreadable(-32_700, format!("Parse error: {error}")),
    }
}
