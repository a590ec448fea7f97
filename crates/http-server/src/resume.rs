//! Streams of a session that their client can resume where they broke (`Last-Event-ID`).

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use gateway::{ResponseStream, ServerEvent};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::event_id::{EventId, StreamNumber, WaitingRequest};

/// The time for which a broken stream is kept. Until then, questions on it stay open and messages are
/// buffered.
const RESUME_WAIT: Duration = Duration::from_secs(30);

/// The number of resumable streams of one session; beyond it, the oldest cannot be resumed.
const STREAMS_MAX: usize = 16;

/// The number of these streams that may be complete: each call has a stream, and quick calls must not
/// evict the stream of a long one.
const ANSWERED_MAX: usize = 4;

/// The most recent events of a stream that are kept: their number, and their total size. A larger event
/// is sent but not kept.
const EVENTS_MAX: usize = 64;
const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// The milliseconds after which a client should reconnect. The SDKs try twice and then fail, and a
/// killed daemon takes up to two seconds to be replaced on a busy machine. A client that is asked
/// reconnects before waiting callers cancel its question.
const RETRY_MS: u32 = 1_000;

/// The streams of one session, the oldest first.
#[derive(Debug, Default)]
pub(super) struct ResumableStreams(Mutex<VecDeque<Arc<ResumableStream>>>);

/// A stream, independent of the response that reads it.
#[derive(Debug)]
pub(super) struct ResumableStream {
    number: StreamNumber,
    home: Weak<ResumableStreams>,
    state: Mutex<StreamState>,
}

#[derive(Debug)]
struct StreamState {
    /// The events still to come; none at the end.
    rest: Option<ResponseStream>,
    /// The request that waits for its response here.
    request: Option<WaitingRequest>,
    /// The time at which its client read the answer, or left before that.
    ended_at: Option<Instant>,
    /// The most recent events, with their numbers.
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
        request: Option<WaitingRequest>,
    ) -> StreamReader {
        let mut kept = self.0.lock();
        let stream = Arc::new(ResumableStream {
            number: StreamNumber::next(),
            home: Arc::downgrade(self),
            state: Mutex::new(StreamState {
                rest: Some(rest),
                request,
                ended_at: None,
                sent: VecDeque::new(),
                last: 0,
                reader: 0,
            }),
        });
        make_room(&mut kept);
        kept.push_back(Arc::clone(&stream));
        StreamReader { stream, number: 0 }
    }

    /// Resumes a stream after the event of this id; none if there is no such stream.
    pub(super) fn resume(&self, last_event: &str) -> Option<ResumeOutcome> {
        let id = EventId::read(last_event)?;
        match self.find(&id) {
            Some(resumed) => Some(ResumeOutcome::Resumed(resumed)),
            None => id.answer_lost().map(ResumeOutcome::Lost),
        }
    }

    fn find(&self, id: &EventId) -> Option<Resumed> {
        let kept = self.0.lock();
        let stream = kept
            .iter()
            .find(|it| id.is_ours() && it.number == id.stream)?;
        let mut state = stream.state.lock();
        state.reader += 1;
        state.note_read(true);
        let missed = state.sent.iter().filter(|(event, _)| *event > id.event);
        Some(Resumed {
            missed: missed.flat_map(|(_, parts)| parts.clone()).collect(),
            request: state.request.as_ref().map(|it| it.id.clone()),
            reader: StreamReader {
                stream: Arc::clone(stream),
                number: state.reader,
            },
        })
    }

    /// Removes the streams whose clients received the response a while ago.
    pub(super) fn forget_answered(&self) {
        self.0.lock().retain(|it| !it.is_over());
    }

    /// Removes all streams.
    pub(super) fn close(&self) {
        self.0.lock().clear();
    }

    fn keeps(&self, stream: &Arc<ResumableStream>) -> bool {
        self.0.lock().iter().any(|it| Arc::ptr_eq(it, stream))
    }

    fn forget(&self, stream: &Arc<ResumableStream>) {
        self.0.lock().retain(|it| !Arc::ptr_eq(it, stream));
    }
}

fn make_room(kept: &mut VecDeque<Arc<ResumableStream>>) {
    let answered = kept.iter().filter(|it| it.is_answered()).count();
    let oldest = kept.iter().position(|it| it.is_answered());
    if let Some(oldest) = oldest.filter(|_| answered >= ANSWERED_MAX) {
        kept.remove(oldest);
    }
    if kept.len() >= STREAMS_MAX {
        kept.pop_front();
    }
}

impl ResumableStream {
    fn is_answered(&self) -> bool {
        self.state.lock().rest.is_none()
    }

    fn is_over(&self) -> bool {
        let state = self.state.lock();
        let is_old = |at: Instant| at.elapsed() >= RESUME_WAIT;
        state.rest.is_none() && state.ended_at.is_some_and(is_old)
    }
}

/// The outcome of a client's request to resume a stream.
#[derive(Debug)]
pub(super) enum ResumeOutcome {
    Resumed(Resumed),
    /// The stream is not kept. The answer to the request that waited on it.
    Lost(Bytes),
}

/// A resumed stream.
#[derive(Debug)]
pub(super) struct Resumed {
    /// The events that its client missed, as they were sent.
    pub(super) missed: Vec<Bytes>,
    pub(super) request: Option<String>,
    pub(super) reader: StreamReader,
}

impl StreamState {
    /// Records if the stream is read: while others wait, a client that is asked on it is awaited only as
    /// long as it reads.
    fn note_read(&self, is_read: bool) {
        if let Some(rest) = &self.rest {
            rest.set_read(is_read);
        }
    }
}

impl StreamReader {
    /// Returns the first event of a stream, which has only an id.
    pub(super) fn first_event(&self) -> Bytes {
        let state = self.stream.state.lock();
        let id = EventId::new(self.stream.number, 0, state.request.as_ref());
        Bytes::from(format!("id: {id}\nretry: {RETRY_MS}\ndata: \n\n"))
    }

    /// Polls the next event. None: the stream has ended, or another response reads it now.
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

    /// Returns true if this response is the one that reads the stream.
    pub(super) fn is_current(&self) -> bool {
        self.stream.state.lock().reader == self.number
    }

    /// Stores an event, and returns the line of its id. `is_last`: no event follows.
    pub(super) fn keep(&self, event: &[Bytes], is_last: bool) -> Bytes {
        let mut state = self.stream.state.lock();
        state.last += 1;
        if is_last {
            state.rest = None;
            state.request = None;
        }
        let number = state.last;
        let id = EventId::new(self.stream.number, number, state.request.as_ref());
        let id = Bytes::from(format!("id: {id}\n"));
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
        id
    }
}

/// The client has read everything, or disconnected: it has a limited time to come back.
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
        let mut state = stream.state.lock();
        state.note_read(false);
        state.ended_at = Some(Instant::now());
        if state.rest.is_none() {
            return;
        }
        drop(state);
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

    fn call() -> WaitingRequest {
        WaitingRequest {
            id: "7".to_owned(),
            is_call: true,
        }
    }

    fn streams() -> (Arc<ResumableStreams>, Arc<ResponseSender>, StreamReader) {
        let streams = Arc::new(ResumableStreams::default());
        let (sender, rest) = response_stream();
        let reader = streams.begin(rest, Some(call()));
        (streams, sender, reader)
    }

    fn event(text: &str) -> Vec<Bytes> {
        vec![Bytes::from(format!("data: {text}\n\n"))]
    }

    /// The id that stands in the first line.
    fn id_of(line: &Bytes) -> String {
        let text = str::from_utf8(line).unwrap();
        let id = text.lines().next().and_then(|it| it.strip_prefix("id: "));
        id.unwrap().to_owned()
    }

    fn first_id(reader: &StreamReader) -> String {
        id_of(&reader.first_event())
    }

    fn resumed(streams: &ResumableStreams, last_event: &str) -> Option<Resumed> {
        match streams.resume(last_event) {
            Some(ResumeOutcome::Resumed(resumed)) => Some(resumed),
            _ => None,
        }
    }

    #[track_caller]
    fn check_lost(streams: &ResumableStreams, last_event: &str) {
        let outcome = streams.resume(last_event);
        assert!(
            matches!(outcome, Some(ResumeOutcome::Lost(_))),
            "{outcome:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_missed_comes_again_and_one_response_reads_at_a_time() {
        let (streams, sender, reader) = streams();
        let first = id_of(&reader.keep(&event("a"), false));
        let second = id_of(&reader.keep(&event("b"), false));
        let resumed = resumed(&streams, &first).unwrap();
        let missed = format!("id: {second}\ndata: b\n\n");
        assert_eq!(resumed.missed.concat(), missed.as_bytes());
        assert_eq!(resumed.request.as_deref(), Some("7"));
        assert!(poll_fn(|context| reader.poll_next(context)).await.is_none());
        drop(reader);
        sleep(RESUME_WAIT * 2).await;
        gateway::refuse(&gateway::Out::Reply(sender), "7", 1, "late").await;
        let next = poll_fn(|context| resumed.reader.poll_next(context)).await;
        assert!(matches!(next, Some(ServerEvent::Answer(_))));
        for unknown in ["2-1", "1", "", "1-x", "-", "1-1-1"] {
            assert!(streams.resume(unknown).is_none(), "{unknown}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_two_events_share_an_id_when_a_session_is_outcome_again() {
        let mut seen = std::collections::HashSet::new();
        let mut last: Option<String> = None;
        // Each time the session was closed, and the next request opens it again.
        for _ in 0..3 {
            let (streams, _sender, reader) = streams();
            if let Some(last) = last {
                check_lost(&streams, &last);
            }
            let first = first_id(&reader);
            let second = id_of(&reader.keep(&event("a"), false));
            let answer = id_of(&reader.keep(&event("answer"), true));
            last = Some(second.clone());
            for id in [first, second, answer] {
                assert!(seen.insert(id.clone()), "{id}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_come_back_is_gone() {
        let (streams, sender, reader) = streams();
        let first = first_id(&reader);
        let before = id_of(&reader.keep(&event("a"), false));
        let answer = id_of(&reader.keep(&event("b"), true));
        drop(reader);
        sleep(RESUME_WAIT / 2).await;
        streams.forget_answered();
        let missed = resumed(&streams, &first).expect("it was read to its end");
        drop(missed);
        sleep(RESUME_WAIT * 2).await;
        streams.forget_answered();
        check_lost(&streams, &before);
        let behind = streams.resume(&answer);
        assert!(behind.is_none(), "the client has the answer: {behind:?}");
        drop(sender);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_client_stays_away_is_lost() {
        let (streams, sender, reader) = streams();
        let first = first_id(&reader);
        drop(reader);
        sleep(RESUME_WAIT * 2).await;
        check_lost(&streams, &first);
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
        // Any number of calls that are answered at once leave a long one its place.
        for _ in 0..STREAMS_MAX * 2 {
            let (_, rest) = response_stream();
            streams.begin(rest, Some(call())).keep(&event("done"), true);
        }
        let first = first_id(&reader);
        assert!(resumed(&streams, &first).is_some());
        assert_eq!(streams.0.lock().len(), 1 + ANSWERED_MAX);
        for _ in 0..STREAMS_MAX {
            let (_, rest) = response_stream();
            streams.begin(rest, None);
        }
        check_lost(&streams, &first);
        let (_, rest) = response_stream();
        let last = streams.begin(rest, None);
        streams.close();
        assert!(streams.resume(&first_id(&last)).is_none());
    }
}
