//! The HTTP response to one request, built from the messages of a session.
//!
//! An answer that is the first message is sent as JSON. If other messages precede it, or it takes
//! long, the response is a stream of events that ends with it. A call of a client that can resume a
//! stream has one from the beginning: the client comes back for the answer when the connection
//! breaks. A request that ends without an answer, because the daemon ends, is answered with an error.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gateway::{ResponseStream, ServerEvent};
use hyper::{
    Response, StatusCode,
    header::{CACHE_CONTROL, CONNECTION, HeaderValue},
};
use jsonrpc::{Fields, frame};
use tokio::time::timeout;

use super::{
    body::{Body, JSON, RequestLease, unanswered},
    event_id::WaitingRequest,
    headers::Accepts,
    http_error::HttpError,
    resume::ResumableStreams,
};

/// The time without a message after which the response begins as a stream: some clients time out if
/// the response does not begin.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same for a call of the modern era. The Python SDK ends a whole client whose request has no
/// response when the daemon dies, and one call whose stream breaks. The errors that are statuses of
/// HTTP too come sooner: they are found before a server is reached, or by a server that runs.
const MODERN_PATIENCE: Duration = Duration::from_millis(250);

/// One request and the messages that belong to it.
pub(super) struct Exchange {
    /// The id of the request, as it was received.
    pub(super) id: String,
    pub(super) stream: ResponseStream,
    pub(super) accepts: Accepts,
    pub(super) errors: Errors,
    /// True for a call, which may have run although its response is lost.
    pub(super) is_call: bool,
    /// The resumable streams, if the request belongs to a session.
    pub(super) kept: Option<KeptStream>,
}

/// A stream that is kept for its client.
pub(super) struct KeptStream {
    /// The streams of its session.
    pub(super) streams: Arc<ResumableStreams>,
    /// True if the client gets the data to resume the stream at once. A client that can resume needs it
    /// before the connection breaks. Older clients would wait for ever on a broken stream, but get an
    /// error if no response began.
    pub(super) primes: bool,
}

/// The protocol errors that are also sent as an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errors {
    /// None, as in the older revisions.
    InBand,
    /// All, since no session begins.
    All,
    /// Errors as defined by the modern revision.
    Modern { has_whole_meta: bool },
}

impl Exchange {
    /// Waits until it is known if a stream is needed, and returns the response.
    pub(super) async fn respond(mut self, lease: RequestLease) -> Response<Body> {
        if !self.accepts.events {
            return self.json(lease).await;
        }
        match timeout(self.patience(), self.stream.next()).await {
            Err(_) => self.stream(None, lease),
            Ok(None | Some(ServerEvent::GivenUp)) => self.unanswered(lease),
            Ok(Some(ServerEvent::Withdrawn)) => Body::empty(StatusCode::ACCEPTED),
            Ok(Some(ServerEvent::Answer(parts))) => self.answer(parts, lease),
            Ok(Some(note)) => self.stream(Some(note), lease),
        }
    }

    /// Returns how long the response may wait for the answer before it begins as a stream.
    fn patience(&self) -> Duration {
        match (&self.kept, self.errors) {
            _ if !self.is_call => PATIENCE,
            (Some(kept), _) if kept.primes => Duration::ZERO,
            (None, Errors::Modern { has_whole_meta }) if has_whole_meta => MODERN_PATIENCE,
            _ => PATIENCE,
        }
    }

    fn stream(self, first: Option<ServerEvent>, lease: RequestLease) -> Response<Body> {
        let body = match self.kept {
            Some(KeptStream { streams, primes }) => {
                let request = WaitingRequest {
                    id: self.id.clone(),
                    is_call: self.is_call,
                };
                let reader = streams.begin(self.stream, Some(request));
                Body::of_kept(reader, Some(self.id), primes, lease)
            }
            None => Body::of_events(self.stream, self.id, lease),
        };
        stream(body.with_first(first))
    }

    fn unanswered(self, lease: RequestLease) -> Response<Body> {
        let parts = unanswered(&self.id);
        self.answer(parts, lease)
    }

    /// Responds to a client that accepts no events: messages before the answer are dropped.
    async fn json(mut self, lease: RequestLease) -> Response<Body> {
        loop {
            match self.stream.next().await {
                Some(ServerEvent::Note(_) | ServerEvent::Question(_)) => {}
                Some(ServerEvent::Answer(parts)) => return self.answer(parts, lease),
                Some(ServerEvent::Withdrawn) => return Body::empty(StatusCode::ACCEPTED),
                None | Some(ServerEvent::GivenUp) => return self.unanswered(lease),
            }
        }
    }

    fn answer(self, parts: Vec<Bytes>, lease: RequestLease) -> Response<Body> {
        let status = self.errors.status(&parts);
        if !self.accepts.json && status == StatusCode::OK {
            return self.stream(Some(ServerEvent::Answer(parts)), lease);
        }
        Body::of_parts(parts, Some(lease)).respond(status, JSON)
    }
}

pub(super) fn stream(events: Body) -> Response<Body> {
    let mut response = events.respond(StatusCode::OK, "text/event-stream");
    let caching = HeaderValue::from_static("no-cache, no-transform");
    response.headers_mut().insert(CACHE_CONTROL, caching);
    response
}

/// Builds the response to a refused request.
pub(super) fn refuse(error: HttpError) -> Response<Body> {
    let id = error.id.as_deref().unwrap_or("null");
    let body = frame::error(id, error.code, &error.message);
    let mut response = Body::whole(body).respond(error.status, JSON);
    let headers = response.headers_mut();
    if let Some(header) = error.header {
        let (name, value) = *header;
        // A value built from the configuration was checked to be a valid header.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    if error.closes {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The longest message that is parsed to find an error: a longer one is a result.
const ERROR_BYTES_MAX: usize = 64 * 1024;

impl Errors {
    fn status(self, answer: &[Bytes]) -> StatusCode {
        let bytes: usize = answer.iter().map(Bytes::len).sum();
        if self == Self::InBand || bytes > ERROR_BYTES_MAX {
            return StatusCode::OK;
        }
        match (code(answer), self) {
            (Some(_), Self::All) => StatusCode::BAD_REQUEST,
            (Some(METHOD_NOT_FOUND), _) => StatusCode::NOT_FOUND,
            (Some(code), _) if OF_THE_HEAD.contains(&code) => StatusCode::BAD_REQUEST,
            (Some(INVALID_PARAMS), Self::Modern { has_whole_meta }) if !has_whole_meta => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::OK,
        }
    }
}

const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;

/// A header that does not fit the body, a capability that is missing, a revision not served.
const OF_THE_HEAD: [i64; 3] = [-32_020, -32_021, -32_022];

/// Returns the code of a protocol error.
fn code(parts: &[Bytes]) -> Option<i64> {
    let whole = parts.concat();
    let text = std::str::from_utf8(&whole).unwrap_or_default();
    let error = Fields::of(text)?.get("error")?;
    Fields::of(error.get())?.get("code")?.get().parse().ok()
}

#[cfg(test)]
mod tests {
    use gateway::{Out, response_stream};
    use http_body_util::BodyExt as _;
    use hyper::header::CONTENT_TYPE;
    use tokio::time::Instant;

    use super::*;

    const BOTH: Accepts = Accepts {
        json: true,
        events: true,
    };

    fn exchange(stream: ResponseStream, accepts: Accepts, errors: Errors) -> Exchange {
        Exchange {
            id: "7".to_owned(),
            stream,
            accepts,
            errors,
            is_call: false,
            kept: None,
        }
    }

    async fn body_of(response: Response<Body>) -> String {
        let body = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_ends_without_an_answer_is_told_so() {
        const JSON: Accepts = Accepts {
            json: true,
            events: false,
        };
        for accepts in [BOTH, JSON] {
            let (responses, stream) = response_stream();
            drop(responses);
            let exchange = exchange(stream, accepts, Errors::InBand);
            let response = exchange.respond(Box::new(())).await;
            assert_eq!(response.status(), StatusCode::OK);
            let text = body_of(response).await;
            assert!(text.contains(r#""id":7,"error":{"code":-32603"#), "{text}");
            assert!(text.contains("may have run"), "{text}");
        }
        let (responses, stream) = response_stream();
        let exchange = exchange(stream, BOTH, Errors::InBand);
        let response = exchange.respond(Box::new(())).await;
        // A session that stands alone holds on to it.
        Out::Reply(std::sync::Arc::clone(&responses)).give_up();
        let text = body_of(response).await;
        assert!(
            text.starts_with(r#"data: {"jsonrpc":"2.0","id":7,"error""#),
            "{text}"
        );
        assert!(text.ends_with("}\n\n"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_was_taken_back_gets_no_answer() {
        let (responses, stream) = response_stream();
        Out::Reply(responses).withdraw();
        let exchange = exchange(stream, BOTH, Errors::InBand);
        let response = exchange.respond(Box::new(())).await;
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        assert_eq!(body_of(response).await, "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_takes_long_begins_as_a_stream() {
        let (responses, stream) = response_stream();
        let began = Instant::now();
        let exchange = exchange(stream, BOTH, Errors::InBand);
        let response = exchange.respond(Box::new(())).await;
        assert_eq!(began.elapsed(), PATIENCE);
        assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
        gateway::refuse(&Out::Reply(responses), "1", -32_603, "late").await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(b"data: {") && body.ends_with(b"}\n\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_begins_as_a_stream_before_its_client_would_end_over_no_response() {
        let kept = |primes| KeptStream {
            streams: Arc::default(),
            primes,
        };
        let modern = |has_whole_meta| Errors::Modern { has_whole_meta };
        for (kept, errors, patience) in [
            (Some(kept(true)), Errors::InBand, Duration::ZERO),
            (Some(kept(false)), Errors::InBand, PATIENCE),
            (None, modern(true), MODERN_PATIENCE),
            (None, modern(false), PATIENCE),
            (None, Errors::InBand, PATIENCE),
        ] {
            let (responses, stream) = response_stream();
            let began = Instant::now();
            let is_primed = kept.as_ref().is_some_and(|it| it.primes);
            let exchange = Exchange {
                kept,
                is_call: true,
                ..exchange(stream, BOTH, errors)
            };
            let response = exchange.respond(Box::new(())).await;
            assert_eq!(began.elapsed(), patience);
            assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
            gateway::refuse(&Out::Reply(responses), "7", -32_603, "late").await;
            let text = body_of(response).await;
            let first = text.split("\n\n").next().unwrap();
            let says_only_its_id = first.starts_with("id: ") && first.ends_with("\ndata: ");
            assert_eq!(says_only_its_id, is_primed, "{text}");
            assert!(text.ends_with("}\n\n"), "{text}");
        }
    }

    #[track_caller]
    fn check(errors: Errors, answer: &'static str, expected: u16) {
        let status = errors.status(&[Bytes::from_static(answer.as_bytes())]);
        assert_eq!(status.as_u16(), expected);
    }

    #[test]
    fn an_error_is_one_of_http_where_the_revision_says_so() {
        let unknown = r#"{"id":1,"error":{"code":-32601,"message":""}}"#;
        let params = r#"{"id":1,"error":{"code":-32602,"message":""}}"#;
        let revision = r#"{"id":1,"error":{"code":-32022,"message":""}}"#;
        let result = r#"{"id":1,"result":{"error":{"code":-32601}}}"#;
        let modern = |has_whole_meta| Errors::Modern { has_whole_meta };
        check(Errors::InBand, unknown, 200);
        check(modern(true), unknown, 404);
        check(modern(true), params, 200);
        check(modern(false), params, 400);
        check(modern(true), revision, 400);
        check(modern(true), result, 200);
        check(Errors::All, params, 400);
        check(Errors::All, result, 200);
    }
}
