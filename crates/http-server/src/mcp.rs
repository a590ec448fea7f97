//! `/mcp`: POST brings a message, GET opens a stream, DELETE ends a session.

use std::sync::Arc;

use bytes::Bytes;
use gateway::{
    Announcement, Connection, Opening, Out, ResponseSender, ResponseStream, ServerEvent, Session,
    response_stream, single_response,
};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{
    Response, StatusCode,
    body::Incoming,
    header::{CONTENT_LENGTH, EXPECT, HeaderValue},
    http::request::Parts,
};
use jsonrpc::Message;
use tokio::time::{Duration, timeout};

use super::{
    body::Body,
    entry::SessionUse,
    event_id::LostRequest,
    headers::{self, Accepts, Spoken},
    lease::{RequestLease, StatelessSession},
    peer::Peer,
    places::{Place, Places, State},
    refusal::Refusal,
    reply::{self, Errors, Exchange, Kept},
    resume::TakenUp,
    service::Service,
    sessions::Opened,
};

impl Service {
    pub(super) async fn post(
        self: &Arc<Self>,
        head: &Parts,
        body: Incoming,
        peer: Peer,
    ) -> Result<Response<Body>, Refusal> {
        let reading = self.take_place(&self.reading_places, &peer, State::New)?;
        let accepts = Accepts::of(&head.headers)?;
        headers::check_is_json(&head.headers)?;
        let read = reading.unless_needed(self.read(head, body)).await;
        let line = read.ok_or_else(Refusal::too_slow)??;
        // A message that is not a request does not wait for requests: it may cancel one.
        drop(reading);
        let message = Message::parse(&line).ok_or_else(|| refuse_unreadable(&line))?;
        let id = message.id.map(|id| id.get().to_owned());
        let about = |refusal: Refusal| refusal.about(id.as_deref());
        let spoken = headers::read_spoken(&head.headers, &message).map_err(about)?;
        let asked = Asked {
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
            _ if asked.method == "initialize" && asked.is_request => {
                let announced = Announcement::read(&message);
                self.initialize(asked, &announced, &peer).await
            }
            Some(session) if !asked.spoken.revision.is_stateless() => {
                let used = self.find_session(session, &peer).map_err(about)?;
                self.in_session(asked, used, &peer).await
            }
            _ => self.answer_stateless(asked, &peer).await,
        }
    }

    /// Opens the stream for messages of a session that belong to no request, or resumes a broken one.
    pub(super) fn get(&self, head: &Parts, peer: &Peer) -> Result<Response<Body>, Refusal> {
        if !Accepts::of(&head.headers)?.events {
            return Err(Refusal::mistake(
                StatusCode::NOT_ACCEPTABLE,
                "send `Accept: text/event-stream`",
            ));
        }
        let session = headers::get_once(&head.headers, headers::SESSION)?;
        let Some(session) = session else {
            return Err(Refusal::method("POST; a stream belongs to a session"));
        };
        let used = self.find_session(session, peer)?;
        let last_event = headers::get_once(&head.headers, headers::LAST_EVENT)?;
        let taken_up = last_event.and_then(|id| used.0.resumable.take_up(id));
        match taken_up {
            Some(TakenUp::GoesOn(resumed)) => {
                let body = Body::of_resumed(resumed, RequestLease::of_stream(used));
                return Ok(reply::stream(body));
            }
            Some(TakenUp::Lost(request)) => return Ok(answer_lost(&request, used)),
            None => {}
        }
        let (responses, stream) = response_stream();
        used.0.router.attach(responses);
        let reader = used.0.resumable.begin(stream, None);
        let primes = headers::takes_empty_events(&head.headers);
        let lease = RequestLease::of_stream(used);
        Ok(reply::stream(Body::of_kept(reader, None, primes, lease)))
    }

    pub(super) fn delete(&self, head: &Parts, peer: &Peer) -> Result<Response<Body>, Refusal> {
        let session = headers::get_once(&head.headers, headers::SESSION)?;
        let session = session.ok_or_else(Refusal::session_needed)?;
        self.sessions.close(session, peer)?;
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }

    async fn initialize(
        self: &Arc<Self>,
        asked: Asked<'_>,
        announced: &Announcement,
        peer: &Peer,
    ) -> Result<Response<Body>, Refusal> {
        if !self.gives_sessions {
            return self.answer_stateless(asked, peer).await;
        }
        let (id, opened) = self.sessions.begin(announced, peer)?;
        let used = self.use_session(opened);
        let answer = self.in_session(asked, used, peer).await;
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
        asked: Asked<'_>,
        used: SessionUse,
        peer: &Peer,
    ) -> Result<Response<Body>, Refusal> {
        let mut held = None;
        if asked.is_request {
            let in_session = Arc::clone(&used.0.requests).try_acquire_owned();
            let in_session = in_session.map_err(|_| self.too_many_requests())?;
            let of_all = self.take_place(&self.request_places, peer, State::Busy)?;
            held = Some((in_session, of_all));
        }
        let (responses, stream) = open_response(&asked);
        let out = Out::Reply(responses);
        let is_first = asked.method == "initialize";
        let taken = used.0.session.take(asked.line, &out).await;
        drop(out);
        taken.map_err(|_| Refusal::no_session())?;
        let kept = Kept {
            streams: Arc::clone(&used.0.resumable),
            primes: asked.primes,
        };
        let (in_session, place) = held.unzip();
        let lease = RequestLease {
            _place: place,
            _in_session: in_session,
            _session: Some(used),
            _stateless: None,
        };
        if !asked.is_request {
            return Ok(reply::empty(StatusCode::ACCEPTED));
        }
        let exchange = Exchange {
            id: asked.id.to_owned(),
            stream,
            accepts: asked.accepts,
            errors: if is_first {
                Errors::All
            } else {
                Errors::InBand
            },
            is_call: asked.method == "tools/call",
            kept: Some(kept),
        };
        Ok(exchange.respond(lease).await)
    }

    /// A request that belongs to no session: everything it needs it brings, or does without.
    async fn answer_stateless(
        &self,
        asked: Asked<'_>,
        peer: &Peer,
    ) -> Result<Response<Body>, Refusal> {
        if !asked.is_request {
            return Ok(reply::empty(StatusCode::ACCEPTED));
        }
        let Spoken {
            revision,
            has_whole_meta,
        } = &asked.spoken;
        let (opening, errors) = if revision.is_stateless() {
            let has_whole_meta = *has_whole_meta;
            (Opening::Handshake, Errors::Modern { has_whole_meta })
        } else if asked.method == "initialize" {
            (Opening::Handshake, Errors::All)
        } else {
            (Opening::None, Errors::InBand)
        };
        let place = self.take_place(&self.request_places, peer, State::Busy)?;
        let (stream, session) = self.start_stateless(&asked, peer, opening).await;
        let lease = RequestLease {
            _place: Some(place),
            _in_session: None,
            _session: None,
            _stateless: Some(StatelessSession(session)),
        };
        let exchange = Exchange {
            id: asked.id.to_owned(),
            stream,
            accepts: asked.accepts,
            errors,
            is_call: asked.method == "tools/call",
            kept: None,
        };
        Ok(exchange.respond(lease).await)
    }

    fn take_place(
        &self,
        places: &Arc<Places>,
        peer: &Peer,
        state: State,
    ) -> Result<Place, Refusal> {
        let entered = places.enter(peer.who(), state);
        let place = entered.map(|entered| entered.place);
        place.map_err(|_| self.too_many_requests())
    }

    fn too_many_requests(&self) -> Refusal {
        Refusal::too_many_requests(self.limits.requests_max)
    }

    fn find_session(&self, id: &str, peer: &Peer) -> Result<SessionUse, Refusal> {
        let opened = self.sessions.find(id, peer)?;
        Ok(self.use_session(opened))
    }

    fn use_session(&self, opened: Opened) -> SessionUse {
        if opened.has_replaced {
            self.complaints.of_sessions(self.limits.sessions_max);
        }
        opened.used
    }

    async fn start_stateless(
        &self,
        asked: &Asked<'_>,
        peer: &Peer,
        opening: Opening,
    ) -> (ResponseStream, Arc<Session>) {
        let (responses, stream) = open_response(asked);
        let out = Out::Reply(responses);
        let connection = Connection {
            transport: "http",
            token: peer.token.clone(),
            caller: peer.caller.clone(),
            rule: peer.rule.clone(),
            is_here: peer.is_here,
            is_stateless: true,
            ..Connection::default()
        };
        let gone = self.stopping.child_token();
        let gateway = Arc::clone(&self.gateway);
        let session = Session::until(gone, gateway, connection, out.clone(), opening);
        // An rmcp that has ended has closed the stream; there the exchange finds out.
        let _ = session.take(asked.line, &out).await;
        (stream, session)
    }

    /// One message on one line, of bounded size, in bounded time.
    async fn read(&self, head: &Parts, body: Incoming) -> Result<Bytes, Refusal> {
        let max = self.limits.body_bytes_max;
        let announced = head.headers.get(CONTENT_LENGTH);
        let announced = announced.and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|bytes| bytes > max) {
            if !head.headers.contains_key(EXPECT) {
                linger(body).await;
            }
            return Err(Refusal::too_large(max));
        }
        let read = timeout(
            self.limits.receive_timeout,
            Limited::new(body, max).collect(),
        );
        match read.await {
            Err(_) => Err(Refusal::too_slow()),
            Ok(Ok(read)) => Ok(on_one_line(read.to_bytes())),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::too_large(max)),
            Ok(Err(error)) => {
                let why = format!("the body ended early: {error}");
                Err(Refusal::mistake(StatusCode::BAD_REQUEST, why))
            }
        }
    }
}

/// A message, and how it came.
struct Asked<'a> {
    /// True if a stream begins with an event that has only an id.
    primes: bool,
    method: &'a str,
    is_request: bool,
    /// As it came.
    id: &'a str,
    accepts: Accepts,
    spoken: Spoken,
    line: &'a Bytes,
}

/// The stream of a request whose answer is lost: it has nothing but the answer in place of that.
fn answer_lost(request: &LostRequest, used: SessionUse) -> Response<Body> {
    tracing::debug!("a client came back for an answer that is lost");
    let (_, stream) = response_stream();
    let reader = used.0.resumable.begin(stream, None);
    let body = Body::of_kept(reader, None, false, RequestLease::of_stream(used));
    let answer = ServerEvent::Answer(vec![request.answer()]);
    reply::stream(body.with_first(Some(answer)))
}

fn open_response(asked: &Asked<'_>) -> (Arc<ResponseSender>, ResponseStream) {
    if asked.accepts.events {
        response_stream()
    } else {
        single_response()
    }
}

/// The time for which a body that is refused may go on arriving. A client that still writes when
/// the connection closes may never see why.
const LINGER: Duration = Duration::from_secs(1);

async fn linger(mut body: Incoming) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = timeout(LINGER, rest).await;
}

/// Servers get messages line by line. Between its values JSON may hold line ends, in its texts
/// it cannot.
fn on_one_line(body: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &body).is_none() {
        return body;
    }
    let flat = body.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        other => *other,
    });
    flat.collect()
}

fn refuse_unreadable(line: &Bytes) -> Refusal {
    match serde_json::from_slice::<serde::de::IgnoredAny>(line) {
        Ok(_) => Refusal::unreadable(-32_600, "Invalid Request: expected one object"),
        Err(error) => Refusal::unreadable(-32_700, format!("Parse error: {error}")),
    }
}
