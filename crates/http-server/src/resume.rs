//! Streams of a session that their client takes up again where they broke off (`Last-Event-ID`).

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use gateway::{ResponseStream, ServerEvent};
use parking_lot::Mutex;
use tokio::time::sleep;

/// A stream that broke off is kept for so long. Meanwhile who is asked something on it is waited for,
/// and what is said waits in it.
const RESUME_WAIT: Duration = Duration::from_secs(30);

/// Streams of one session that can be taken up again; of more the oldest cannot.
const STREAMS_MAX: usize = 16;

/// The last events of a stream are kept, so many and so large at most; a larger one is sent once.
const EVENTS_MAX: usize = 64;
const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// After so many milliseconds a client should come back.
const RETRY_MS: u32 = 500;

/// The streams of one session.
#[derive(Debug, Default)]
pub(super) struct ResumableStreams {
    streams: Mutex<Streams>,
}

#[derive(Debug, Default)]
struct Streams {
    begun: u64,
    /// The oldest first.
    kept: VecDeque<Arc<ResumableStream>>,
}

/// A stream, whoever reads it.
#[derive(Debug)]
pub(super) struct ResumableStream {
    number: u64,
    home: Weak<ResumableStreams>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What will be said; none when all is.
    rest: Option<ResponseStream>,
    /// The request that waits for its answer here.
    request: Option<String>,
    /// The last events, with their numbers.
    sent: VecDeque<(u64, Vec<Bytes>)>,
    last: u64,
    /// The response that reads it, counted.
    reader: u64,
}

/// One response that reads a stream, until the next one does.
#[derive(Debug)]
pub(super) struct StreamReader {
    stream: Arc<ResumableStream>,
    number: u64,
}

impl ResumableStreams {
    /// Keeps a stream that begins.
    pub(super) fn begin(
        self: &Arc<Self>,
        rest: ResponseStream,
        request: Option<String>,
    ) -> StreamReader {
        let mut streams = self.streams.lock();
        streams.begun += 1;
        let stream = Arc::new(ResumableStream {
            number: streams.begun,
            home: Arc::downgrade(self),
            state: Mutex::new(State {
                rest: Some(rest),
                request,
                sent: VecDeque::new(),
                last: 0,
                reader: 0,
            }),
        });
        if streams.kept.len() >= STREAMS_MAX {
            streams.kept.pop_front();
        }
        streams.kept.push_back(Arc::clone(&stream));
        StreamReader { stream, number: 0 }
    }

    /// Takes a stream up behind the event of this id; none where it is not kept. Also answers what was
    /// sent since, and what request waits for its answer.
    pub(super) fn take_up(&self, last_event: &str) -> Option<Resumed> {
        let (number, seen) = last_event.split_once('-')?;
        let (number, seen): (u64, u64) = (number.parse().ok()?, seen.parse().ok()?);
        let streams = self.streams.lock();
        let stream = streams.kept.iter().find(|it| it.number == number)?;
        let mut state = stream.state.lock();
        state.reader += 1;
        state.note_read(true);
        let missed = state.sent.iter().filter(|(event, _)| *event > seen);
        Some(Resumed {
            missed: missed.flat_map(|(_, parts)| parts.clone()).collect(),
            request: state.request.clone(),
            reader: StreamReader {
                stream: Arc::clone(stream),
                number: state.reader,
            },
        })
    }

    /// Nothing is kept from here on.
    pub(super) fn close(&self) {
        self.streams.lock().kept.clear();
    }

    fn keeps(&self, stream: &Arc<ResumableStream>) -> bool {
        let streams = self.streams.lock();
        streams.kept.iter().any(|it| Arc::ptr_eq(it, stream))
    }

    fn forget(&self, stream: &Arc<ResumableStream>) {
        let mut streams = self.streams.lock();
        streams.kept.retain(|it| !Arc::ptr_eq(it, stream));
    }
}

/// A stream that goes on.
#[derive(Debug)]
pub(super) struct Resumed {
    /// The events that its client missed, as they were sent.
    pub(super) missed: Vec<Bytes>,
    pub(super) request: Option<String>,
    pub(super) reader: StreamReader,
}

impl State {
    /// A client that is asked on it is waited for no longer than it reads it, where others wait.
    fn note_read(&self, is_read: bool) {
        if let Some(rest) = &self.rest {
            rest.set_read(is_read);
        }
    }
}

impl StreamReader {
    /// The event with which a stream begins: it says nothing but its id.
    pub(super) fn first_event(&self) -> Bytes {
        let id = self.stream.number;
        Bytes::from(format!("id: {id}-0\nretry: {RETRY_MS}\ndata: \n\n"))
    }

    /// What is said next. None: nothing more, or another response reads it now.
    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<ServerEvent>> {
        let mut state = self.stream.state.lock();
        if state.reader != self.number {
            return Poll::Ready(None);
        }
        match &mut state.rest {
            Some(rest) => rest.poll_next(context),
            None => Poll::Ready(None),
        }
    }

    /// Whether this response is the one that reads the stream.
    pub(super) fn is_current(&self) -> bool {
        self.stream.state.lock().reader == self.number
    }

    /// Keeps an event, and answers the line of its id. `is_last`: nothing follows.
    pub(super) fn keep(&self, event: &[Bytes], is_last: bool) -> Bytes {
        let mut state = self.stream.state.lock();
        state.last += 1;
        let id = format!("id: {}-{}\n", self.stream.number, state.last);
        let id = Bytes::from(id);
        let number = state.last;
        let parts = [std::slice::from_ref(&id), event].concat();
        state.sent.push_back((number, parts));
        let bytes = |parts: &[Bytes]| parts.iter().map(Bytes::len).sum::<usize>();
        let mut sum: usize = state.sent.iter().map(|(_, parts)| bytes(parts)).sum();
        while state.sent.len() > EVENTS_MAX || sum > EVENT_BYTES_MAX {
            let Some((_, parts)) = state.sent.pop_front() else {
                break;
            };
            sum -= bytes(&parts);
        }
        if is_last {
            state.rest = None;
            state.request = None;
        }
        id
    }
}

/// The client read it all, or is gone: it has a while to come back.
impl Drop for StreamReader {
    fn drop(&mut self) {
        let (stream, number) = (Arc::clone(&self.stream), self.number);
        let Some(home) = stream.home.upgrade().filter(|_| self.is_current()) else {
            return;
        };
        if !home.keeps(&stream) {
            stream.state.lock().rest = None;
            return;
        }
        stream.state.lock().note_read(false);
        let home = Arc::downgrade(&home);
        tokio::spawn(async move {
            sleep(RESUME_WAIT).await;
            let mut state = stream.state.lock();
            if state.reader != number {
                return;
            }
            state.rest = None;
            drop(state);
            if let Some(home) = home.upgrade() {
                home.forget(&stream);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use gateway::{ResponseSender, response_stream};

    use super::*;

    fn streams() -> (Arc<ResumableStreams>, Arc<ResponseSender>, StreamReader) {
        let streams = Arc::new(ResumableStreams::default());
        let (sender, rest) = response_stream();
        let reader = streams.begin(rest, Some("7".to_owned()));
        (streams, sender, reader)
    }

    fn event(text: &str) -> Vec<Bytes> {
        vec![Bytes::from(format!("data: {text}\n\n"))]
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_missed_comes_again_and_one_response_reads_at_a_time() {
        let (streams, sender, reader) = streams();
        assert_eq!(reader.keep(&event("a"), false), "id: 1-1\n");
        reader.keep(&event("b"), false);
        let resumed = streams.take_up("1-1").unwrap();
        assert_eq!(resumed.missed.concat(), b"id: 1-2\ndata: b\n\n");
        assert_eq!(resumed.request.as_deref(), Some("7"));
        assert!(poll_fn(|context| reader.poll_next(context)).await.is_none());
        drop(reader);
        sleep(RESUME_WAIT * 2).await;
        gateway::refuse(&gateway::Out::Reply(sender), "7", 1, "late").await;
        let next = poll_fn(|context| resumed.reader.poll_next(context)).await;
        assert!(matches!(next, Some(ServerEvent::Answer(_))));
        for unknown in ["2-1", "1", "", "1-x", "-"] {
            assert!(streams.take_up(unknown).is_none(), "{unknown}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_come_back_is_gone() {
        let (streams, sender, reader) = streams();
        reader.keep(&event("a"), true);
        drop(reader);
        sleep(RESUME_WAIT / 2).await;
        assert!(streams.take_up("1-0").is_some(), "it was read to its end");
        sleep(RESUME_WAIT * 2).await;
        assert!(streams.take_up("1-0").is_none());
        drop(sender);
    }

    #[tokio::test]
    async fn no_more_is_kept_than_the_limits_say() {
        let (streams, _sender, reader) = streams();
        for _ in 0..=EVENTS_MAX {
            reader.keep(&event("a"), false);
        }
        assert_eq!(reader.stream.state.lock().sent.len(), EVENTS_MAX);
        reader.keep(&event(&"x".repeat(EVENT_BYTES_MAX)), false);
        assert!(reader.stream.state.lock().sent.is_empty());
        for _ in 0..STREAMS_MAX {
            let (_, rest) = response_stream();
            streams.begin(rest, None);
        }
        assert!(streams.take_up("1-0").is_none());
        streams.close();
        assert!(streams.take_up("17-0").is_none());
    }
}
