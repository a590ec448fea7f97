//! Outgoing messages of a session: to stdout, or to the HTTP response that asked.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use jsonrpc::{Message, Outbox, SendError, canonical_id, replace_lone_surrogates};
use parking_lot::Mutex;
use tokio::sync::{Notify, futures::Notified, mpsc, watch};

/// The output to a client. A message is one line of JSON in parts, its line end included. Here half a
/// surrogate pair becomes U+FFFD; what is kept of a result stays exact.
#[derive(Debug, Clone)]
pub enum Out {
    /// A stream of lines that every message of the session shares.
    Line(Arc<Outbox>),
    /// The messages in response to one request over HTTP.
    Reply(Arc<ResponseSender>),
    /// A session over HTTP: a response is sent to the request that it belongs to, and a message that
    /// belongs to no request to a stream that the client keeps open for such messages.
    Router(Arc<StreamRouter>),
}

impl Out {
    /// Sends the last message about a request.
    pub(super) async fn answer(&self, parts: Vec<Bytes>) -> Result<(), SendError> {
        let parts = replace_lone_surrogates(parts);
        match self {
            Self::Line(outbox) => outbox.send(&parts).await,
            Self::Reply(responses) => responses.send(ServerEvent::Answer(parts)).await,
            Self::Router(router) => {
                router.answer(parts).await;
                Ok(())
            }
        }
    }

    /// Sends a message that is no response and must not be lost.
    pub(super) async fn tell(&self, parts: Vec<Bytes>) -> Result<(), SendError> {
        let parts = replace_lone_surrogates(parts);
        match self {
            Self::Line(outbox) => outbox.send(&parts).await,
            Self::Reply(responses) => responses.send(ServerEvent::Note(parts)).await,
            Self::Router(router) => match router.stream() {
                Some(stream) => stream.send(ServerEvent::Note(parts)).await,
                None => Err(SendError::Closed),
            },
        }
    }

    /// Sends a question to the client on this output; fails if the output accepts no questions.
    pub(super) async fn ask(&self, parts: Vec<Bytes>) -> Result<(), SendError> {
        let parts = replace_lone_surrogates(parts);
        match self {
            Self::Reply(responses) => responses.send(ServerEvent::Question(parts)).await,
            other => other.tell(parts).await,
        }
    }

    /// Returns when the client no longer reads from this output.
    pub(super) async fn gone(&self) {
        match self {
            Self::Line(outbox) => outbox.gone().await,
            Self::Reply(responses) => responses.closed().await,
            // Streams of the session open and close.
            Self::Router(_) => std::future::pending().await,
        }
    }

    /// Closes the output after the client cancelled its request.
    pub fn withdraw(&self) {
        if let Self::Reply(responses) = self {
            responses.end(ServerEvent::Withdrawn);
        }
    }

    /// Closes the output, since its request will get no response.
    pub fn give_up(&self) {
        if let Self::Reply(responses) = self {
            responses.end(ServerEvent::GivenUp);
        }
    }

    /// Waits until there is room for a response. Over HTTP each response has its own buffer.
    pub(super) async fn room(&self) {
        if let Self::Line(outbox) = self {
            outbox.room().await;
        }
    }

    /// Sends a notification, which is dropped if the client does not keep up.
    pub(super) fn offer(&self, parts: Vec<Bytes>) {
        let parts = replace_lone_surrogates(parts);
        match self {
            Self::Line(outbox) => drop(outbox.offer(&parts)),
            Self::Reply(responses) => responses.offer(parts),
            Self::Router(router) => {
                if let Some(stream) = router.stream() {
                    stream.offer(parts);
                }
            }
        }
    }
}

/// The most messages that wait in a stream, and the most bytes of notifications in it. Messages that
/// a reader does not read in time are dropped, except for the response.
const MESSAGES_MAX: usize = 64;
const NOTIFICATION_BYTES_MAX: usize = 256 * 1024;

/// The sending end of a response: all messages about one request, until its client has read them.
#[derive(Debug)]
pub struct ResponseSender {
    sender: mpsc::Sender<ServerEvent>,
    shared: Arc<ResponseState>,
    /// The client accepts the response and no other message.
    is_single: bool,
}

/// The state of a response, shared by both ends.
#[derive(Debug)]
struct ResponseState {
    /// The bytes of notifications that were not read yet.
    waiting_bytes: AtomicUsize,
    /// The response was read, and so was every message before it.
    is_answered: AtomicBool,
    /// A client reads the response now. False for a while if the client may resume the stream.
    is_read: watch::Sender<bool>,
}

/// A message about a request.
#[derive(Debug)]
pub enum ServerEvent {
    /// Progress or a log line; more messages follow.
    Note(Vec<Bytes>),
    /// A question to the client; more messages follow, after a person's answer.
    Question(Vec<Bytes>),
    /// The response; nothing follows.
    Answer(Vec<Bytes>),
    /// The client cancelled its request: nothing more is sent, and no response is missing.
    Withdrawn,
    /// We gave up the request before there was a response.
    GivenUp,
}

/// The receiving end of a response. Dropping it closes the stream.
#[derive(Debug)]
pub struct ResponseStream {
    receiver: mpsc::Receiver<ServerEvent>,
    shared: Arc<ResponseState>,
}

/// Both ends of a stream.
pub fn response_stream() -> (Arc<ResponseSender>, ResponseStream) {
    open_response(false)
}

/// Both ends of a stream for a client that accepts no events: it cannot be asked anything.
pub fn single_response() -> (Arc<ResponseSender>, ResponseStream) {
    open_response(true)
}

fn open_response(is_single: bool) -> (Arc<ResponseSender>, ResponseStream) {
    let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
    let shared = Arc::new(ResponseState {
        waiting_bytes: AtomicUsize::new(0),
        is_answered: AtomicBool::new(false),
        is_read: watch::Sender::new(true),
    });
    let responses = ResponseSender {
        sender,
        shared: Arc::clone(&shared),
        is_single,
    };
    (Arc::new(responses), ResponseStream { receiver, shared })
}

impl ResponseSender {
    async fn send(&self, event: ServerEvent) -> Result<(), SendError> {
        if self.is_single && !matches!(event, ServerEvent::Answer(_)) {
            return Err(SendError::Closed);
        }
        if let ServerEvent::Note(parts) = &event {
            let waiting_bytes = &self.shared.waiting_bytes;
            waiting_bytes.fetch_add(size(parts), Ordering::Relaxed);
        }
        self.sender.send(event).await.map_err(|_| SendError::Closed)
    }

    fn offer(&self, parts: Vec<Bytes>) {
        let waiting_bytes = &self.shared.waiting_bytes;
        if waiting_bytes.load(Ordering::Relaxed) >= NOTIFICATION_BYTES_MAX {
            return;
        }
        // Counted before it is sent, since it may be read at once.
        let bytes = size(&parts);
        waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.sender.try_send(ServerEvent::Note(parts)).is_err() {
            waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// A reader that has not kept up finds out when the stream closes.
    fn end(&self, how: ServerEvent) {
        let _ = self.sender.try_send(how);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Returns when the client no longer reads the response.
    pub(super) async fn closed(&self) {
        self.sender.closed().await;
    }

    /// Returns true if a question to the client can be sent here.
    pub(super) fn takes_questions(&self) -> bool {
        !self.is_single && !self.is_closed()
    }

    /// Returns true if the client has read all messages, the answer last.
    pub(super) fn is_read_to_its_end(&self) -> bool {
        self.shared.is_answered.load(Ordering::Acquire)
    }

    pub(super) fn is_read(&self) -> bool {
        !self.is_closed() && *self.shared.is_read.borrow()
    }

    /// Returns when a client stops reading the response, or resumes it.
    pub(super) async fn read_changes(&self) {
        let mut is_read = self.shared.is_read.subscribe();
        let before = *is_read.borrow_and_update();
        tokio::select! {
            () = self.sender.closed() => {}
            _ = is_read.wait_for(|now| *now != before) => {}
        }
    }
}

impl ResponseStream {
    /// The next message. `None` means that nothing follows; before the response, that there will be
    /// none.
    pub fn poll_next(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<ServerEvent>> {
        self.receiver.poll_recv(context).map(|event| {
            match &event {
                Some(ServerEvent::Note(parts)) => {
                    let waiting_bytes = &self.shared.waiting_bytes;
                    waiting_bytes.fetch_sub(size(parts), Ordering::Relaxed);
                }
                Some(ServerEvent::Answer(_)) => {
                    self.shared.is_answered.store(true, Ordering::Release);
                }
                _ => {}
            }
            event
        })
    }

    /// Sets whether a client reads the response now, if it can be resumed.
    pub fn set_read(&self, is_read: bool) {
        self.shared.is_read.send_replace(is_read);
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<ServerEvent> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }
}

fn size(parts: &[Bytes]) -> usize {
    parts.iter().map(Bytes::len).sum()
}

/// The most streams that one client keeps open for messages that belong to no request.
const STREAMS_MAX: usize = 4;

/// The HTTP responses to which messages of a session are sent.
#[derive(Debug, Default)]
pub struct StreamRouter {
    /// By the key of the request's id.
    waiting: Mutex<HashMap<String, Arc<ResponseSender>>>,
    /// The newest last.
    streams: Mutex<Vec<Arc<ResponseSender>>>,
    /// Notified when a stream or a request arrives.
    came: Notify,
}

impl StreamRouter {
    /// Sends the response with this id to this stream.
    pub(super) fn expect(&self, id: &str, responses: &Arc<ResponseSender>) {
        self.waiting.lock().insert(key(id), Arc::clone(responses));
    }

    /// Ends the stream of a cancelled request without a response.
    pub(super) fn forget(&self, id: &str) {
        let responses = self.waiting.lock().remove(&key(id));
        if let Some(responses) = responses {
            responses.end(ServerEvent::Withdrawn);
        }
    }

    /// Adds a stream; if there are too many, the oldest ends.
    pub fn attach(&self, stream: Arc<ResponseSender>) {
        let mut streams = self.streams.lock();
        streams.retain(|stream| !stream.is_closed());
        if streams.len() >= STREAMS_MAX {
            streams.remove(0);
        }
        streams.push(stream);
        drop(streams);
        self.came.notify_waiters();
    }

    /// The streams that are open, the newest first.
    pub(super) fn open_streams(&self) -> Vec<Arc<ResponseSender>> {
        let streams = self.streams.lock();
        let open = streams.iter().rev().filter(|stream| !stream.is_closed());
        open.cloned().collect()
    }

    /// Waits for the next stream or request that arrives from now on.
    pub(super) fn next(&self) -> Notified<'_> {
        self.came.notified()
    }

    /// Notes the arrival of a request, whose response can carry messages to the client.
    pub(super) fn note_request(&self) {
        self.came.notify_waiters();
    }

    /// Ends every stream and every request without a response.
    pub fn close(&self) {
        self.streams.lock().clear();
        self.waiting.lock().clear();
    }

    /// Sends a response; one that no caller expects any more is dropped.
    async fn answer(&self, parts: Vec<Bytes>) {
        let line = parts.concat();
        let id = Message::parse(&line).and_then(|message| Some(key(message.id?.get())));
        let responses = id.and_then(|id| self.waiting.lock().remove(&id));
        if let Some(responses) = responses {
            // A disconnected client of one request does not end the session.
            let _ = responses.send(ServerEvent::Answer(parts)).await;
        }
    }

    /// The newest stream that is open.
    pub(super) fn stream(&self) -> Option<Arc<ResponseSender>> {
        self.open_streams().into_iter().next()
    }
}

/// Returns the key of a request's id, which is the same for every spelling of it.
pub(crate) fn key(id: &str) -> String {
    canonical_id(id).unwrap_or_else(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &'static str) -> Vec<Bytes> {
        vec![Bytes::from_static(text.as_bytes())]
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_holds_little_and_gets_its_answer() {
        let (responses, mut stream) = response_stream();
        let big = Bytes::from(vec![b'x'; NOTIFICATION_BYTES_MAX / 2]);
        for _ in 0..MESSAGES_MAX {
            responses.offer(vec![big.clone()]);
        }
        let answer = ServerEvent::Answer(line("answer\n"));
        responses.send(answer).await.expect("room");
        let mut notes = 0;
        loop {
            match stream.next().await.expect("the answer comes") {
                ServerEvent::Note(_) => notes += 1,
                ServerEvent::Answer(parts) => break assert_eq!(parts, line("answer\n")),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(notes, 2);
        responses.offer(line("taken again\n"));
        assert!(matches!(stream.next().await, Some(ServerEvent::Note(_))));
    }

    #[tokio::test]
    async fn half_a_surrogate_pair_is_replaced_in_every_kind_of_message() {
        let (responses, mut stream) = response_stream();
        let out = Out::Reply(responses);
        let half = || line("{\"text\":\"\\ud83d\"}\n");
        out.tell(half()).await.expect("room");
        out.ask(half()).await.expect("room");
        out.offer(half());
        out.answer(half()).await.expect("room");
        for _ in 0..4 {
            match stream.next().await.expect("four messages were sent") {
                ServerEvent::Note(parts)
                | ServerEvent::Question(parts)
                | ServerEvent::Answer(parts) => {
                    assert_eq!(parts, line("{\"text\":\"\\ufffd\"}\n"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn an_answer_finds_its_request_and_the_rest_the_newest_stream() {
        let router = Arc::new(StreamRouter::default());
        let out = Out::Router(Arc::clone(&router));
        let (first, mut of_first) = response_stream();
        let (second, mut of_second) = response_stream();
        router.expect("1", &first);
        router.expect(r#""\u0061""#, &second);
        let answer = line("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n");
        out.answer(answer.clone()).await.expect("it is expected");
        assert!(
            matches!(of_second.next().await, Some(ServerEvent::Answer(parts)) if parts == answer)
        );
        assert_eq!(out.answer(answer).await, Ok(()));
        out.offer(line("to nobody\n"));
        router.attach(Arc::clone(&first));
        out.offer(line("note\n"));
        assert!(matches!(of_first.next().await, Some(ServerEvent::Note(_))));
        drop(first);
        router.close();
        assert!(of_first.next().await.is_none());
    }
}
