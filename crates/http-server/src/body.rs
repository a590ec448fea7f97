//! The body of a response: bytes, or a stream of server-sent events.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use gateway::{ResponseStream, ServerEvent};
use http_body::{Frame, SizeHint};
use hyper::{Response, StatusCode};
use jsonrpc::{
    events::{write_comment, write_event},
    frame,
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::resume::{Resumed, StreamReader};

/// The interval of comments on an idle stream, so that no intermediary considers it dead; writing
/// is also how we detect that the client is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The interval while the client is asked a question: callers may wait for its answer, so a disconnect
/// has to be detected soon.
const KEEP_ALIVE_ASKED: Duration = Duration::from_secs(1);

/// The content type of most responses.
pub(super) const JSON: &str = "application/json";

/// The places and the session that a request holds until its response is sent; all are released when it is
/// dropped.
pub(super) type RequestLease = Box<dyn Send>;

/// The body of a response. Each part is sent before the next one is read; only short events are
/// copied.
pub(super) struct Body {
    parts: VecDeque<Bytes>,
    events: Option<Events>,
    /// The ended stream, which is kept until everything is sent.
    ended: Option<Events>,
    _lease: Option<RequestLease>,
}

#[derive(Debug)]
struct Events {
    source: MessageSource,
    /// The id of the request that waits for its response here, as it was received; `None` for the
    /// stream of messages that belong to no request.
    request: Option<String>,
    keep_alive: Interval,
}

/// The messages of a session.
#[derive(Debug)]
enum MessageSource {
    /// A stream that cannot be resumed.
    Once(ResponseStream),
    /// A stream that can be resumed.
    Kept(StreamReader),
}

impl MessageSource {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<ServerEvent>> {
        match self {
            Self::Once(stream) => stream.poll_next(context),
            Self::Kept(reader) => reader.poll_next(context),
        }
    }
}

impl Body {
    /// Returns a response without a body.
    pub(super) fn empty(status: StatusCode) -> Response<Self> {
        let mut response = Response::new(Self::of_parts(Vec::new(), None));
        *response.status_mut() = status;
        response
    }

    pub(super) fn whole(bytes: Bytes) -> Self {
        Self::of_parts(vec![bytes], None)
    }

    /// Creates the body of one message, in the parts that the session built.
    pub(super) fn of_parts(parts: Vec<Bytes>, lease: Option<RequestLease>) -> Self {
        let filled = parts.into_iter().filter(|part| !part.is_empty());
        Self {
            parts: filled.collect(),
            events: None,
            ended: None,
            _lease: lease,
        }
    }

    /// Creates the body of all events up to the response.
    pub(super) fn of_events(stream: ResponseStream, request: String, lease: RequestLease) -> Self {
        Self::events(MessageSource::Once(stream), Some(request), lease)
    }

    /// Creates a body that the client can resume, also for messages that belong to no request.
    /// `primes`: the first event has only an id, with which the client can resume at once.
    pub(super) fn of_kept(
        reader: StreamReader,
        request: Option<String>,
        primes: bool,
        lease: RequestLease,
    ) -> Self {
        let first = primes.then(|| reader.first_event());
        let mut body = Self::events(MessageSource::Kept(reader), request, lease);
        body.parts.extend(first);
        body
    }

    /// Creates the body of a resumed stream.
    pub(super) fn of_resumed(resumed: Resumed, lease: RequestLease) -> Self {
        let source = MessageSource::Kept(resumed.reader);
        let mut body = Self::events(source, resumed.request, lease);
        body.parts.extend(resumed.missed);
        body
    }

    /// Returns the response with this body.
    pub(super) fn respond(self, status: StatusCode, kind: &'static str) -> Response<Self> {
        http_core::respond(status, kind, self)
    }

    /// Queues an event that was already read before the others.
    pub(super) fn with_first(mut self, first: Option<ServerEvent>) -> Self {
        if let Some(first) = first {
            self.queue(first);
        }
        self
    }

    fn events(source: MessageSource, request: Option<String>, lease: RequestLease) -> Self {
        Self {
            parts: VecDeque::new(),
            events: Some(Events {
                source,
                request,
                keep_alive: tick_every(KEEP_ALIVE),
            }),
            ended: None,
            _lease: Some(lease),
        }
    }

    /// Reports to the caller that waits for an answer here that there is none, unless the client
    /// continues to read in another response.
    fn give_up(&mut self) {
        let is_elsewhere = matches!(&self.events, Some(Events { source: MessageSource::Kept(reader), .. })
            if !reader.is_current());
        let request = self
            .events
            .as_mut()
            .and_then(|events| events.request.take());
        match request.filter(|_| !is_elsewhere) {
            Some(id) => self.write(unanswered(&id), true),
            None => self.events = None,
        }
    }

    fn queue(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Note(parts) => self.write(parts, false),
            ServerEvent::Question(parts) => {
                self.write(parts, false);
                if let Some(events) = &mut self.events {
                    events.keep_alive = tick_every(KEEP_ALIVE_ASKED);
                }
            }
            ServerEvent::Answer(parts) => self.write(parts, true),
            ServerEvent::Withdrawn => self.events = None,
            ServerEvent::GivenUp => self.give_up(),
        }
    }

    fn write(&mut self, message: Vec<Bytes>, is_last: bool) {
        let event = write_event(message);
        if let Some(Events {
            source: MessageSource::Kept(reader),
            ..
        }) = &self.events
        {
            self.parts.push_back(reader.keep(&event, is_last));
        }
        self.parts.extend(event);
        if is_last {
            self.ended = self.events.take();
        }
    }
}

fn tick_every(period: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// The message of an error to a request that ends without an answer.
const UNANSWERED: &str = "the proxy is stopping and abandoned this request, so it may have run. \
                          Look whether it did before you send it again";

/// Builds the error response to a request that gets no answer.
pub(super) fn unanswered(id: &str) -> Vec<Bytes> {
    vec![frame::error(id, frame::INTERNAL_ERROR, UNANSWERED)]
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
            let Some(events) = &mut self.events else {
                return Poll::Ready(None);
            };
            match events.source.poll_next(context) {
                Poll::Ready(Some(event)) => {
                    if events.keep_alive.period() == KEEP_ALIVE_ASKED {
                        events.keep_alive = tick_every(KEEP_ALIVE);
                    }
                    events.keep_alive.reset();
                    self.queue(event);
                }
                Poll::Ready(None) => self.give_up(),
                Poll::Pending => {
                    ready!(events.keep_alive.poll_tick(context));
                    self.parts.push_back(write_comment("still here"));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty() && self.events.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.events.is_some() {
            return SizeHint::default();
        }
        let bytes: usize = self.parts.iter().map(Bytes::len).sum();
        SizeHint::with_exact(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use gateway::response_stream;
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_says_that_it_is_alive_and_ends_with_the_answer() {
        let (responses, stream) = response_stream();
        let note = ServerEvent::Note(vec![Bytes::from_static(b"{\"n\":1}\n")]);
        let id = "1".to_owned();
        let body = Body::of_events(stream, id, Box::new(()));
        let mut body = body.with_first(Some(note));
        let mut next = async || match body.frame().await {
            Some(Ok(frame)) => frame.into_data().ok(),
            _ => None,
        };
        assert_eq!(next().await.unwrap(), "data: {\"n\":1}\n\n");
        assert_eq!(next().await.unwrap(), ": still here\n\n");
        drop(responses);
        assert!(next().await.unwrap().starts_with(b"data: {"));
        assert_eq!(next().await, None);
        let answer = ServerEvent::Answer(vec![Bytes::from(vec![b'x'; 20_000]), "\n".into()]);
        let (_open, stream) = gateway::response_stream();
        let whole = Body::of_events(stream, "1".to_owned(), Box::new(()));
        let whole = whole.with_first(Some(answer));
        let bytes = whole.collect().await.unwrap().to_bytes();
        assert!(bytes.starts_with(b"data: xx") && bytes.ends_with(b"x\n\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_death_of_a_client_that_is_asked_is_soon_seen() {
        let (responses, stream) = response_stream();
        let body = Body::of_events(stream, "1".to_owned(), Box::new(()));
        let asked = ServerEvent::Question(vec![Bytes::from_static(b"{\"n\":1}\n")]);
        let mut body = body.with_first(Some(asked));
        body.frame().await.unwrap().unwrap();
        let began = Instant::now();
        for _ in 0..3 {
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), ": still here\n\n");
        }
        assert_eq!(began.elapsed(), KEEP_ALIVE_ASKED * 3);
        drop(responses);
    }
}
