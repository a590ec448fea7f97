//! The raw lane to a child: requests written and answers read as bytes, beside the protocol
//! engine.
//!
//! A result that passes through typed structs loses what they do not know and costs several
//! times a small call's own time (`docs/decisions/0002`). So the lane takes the answers to our
//! own requests, and progress of our own calls, off the line; the rest is the engine's.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use dashmap::DashMap;
use jsonrpc::{
    Cap, Json, Line, LineReader, Message, Outbox, ProtocolError, answered_id, frame,
    limits::LINE_BYTES_MAX,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{limits::LIST_BYTES_MAX, link::Request, mask::Mask};

/// Receives the `params` of each progress notification of one call.
pub type ProgressSink = Arc<dyn Fn(&RawValue) + Send + Sync>;

/// Receives the `params` of log messages that a server writes while a call is under way. MCP does
/// not tie a message to a call, so each session with a call there hears it, once.
#[derive(Clone)]
pub struct LogSink {
    /// Tells sessions apart.
    pub session: u64,
    pub send: Arc<dyn Fn(&RawValue) + Send + Sync>,
}

impl fmt::Debug for LogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSink")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// Who hears what besides the answer.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    pub(crate) progress: Option<ProgressSink>,
    pub(crate) log: Option<LogSink>,
}

impl Listeners {
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            progress: request.progress.clone(),
            log: request.log.clone(),
        }
    }
}

/// Our request ids start here; the engine counts its own from zero. They stay within what a
/// signed 32-bit integer holds, because some servers read ids so.
const FIRST_ID: u64 = 1_000_000_000;
const IDS: u64 = 1_000_000_000;

/// Takes whatever is not the lane's.
pub(crate) trait Engine: Send + 'static {
    fn take(&mut self, line: &Bytes, message: &Message<'_>);
}

/// The way to one child.
#[derive(Debug)]
pub(crate) struct Lane {
    outbox: Arc<Outbox>,
    /// Takes secrets out of the server's errors; results are its own affair.
    mask: Arc<Mask>,
    calls: Arc<Calls>,
    next: AtomicU64,
}

/// The requests under way on a lane.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pending: DashMap<u64, Pending>,
    /// Cancelled when the child's stdout ended.
    ended: CancellationToken,
}

struct Pending {
    answer: oneshot::Sender<Answer>,
    /// How long its answer may be.
    bytes_max: usize,
    listeners: Listeners,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

#[derive(Debug)]
enum Answer {
    Result(Json),
    Error(ProtocolError),
    TooLong { bytes: usize },
}

/// Why a request on the lane has no result.
#[derive(Debug)]
pub(crate) enum LaneError {
    /// The child is gone, or reads no more.
    Lost,
    Protocol(ProtocolError),
    TooLong {
        bytes: usize,
    },
}

impl Lane {
    /// Starts reading the child's lines on the current runtime.
    pub(crate) fn start(
        lines: LineReader,
        outbox: Arc<Outbox>,
        engine: impl Engine,
        mask: Arc<Mask>,
    ) -> Self {
        Self::start_with(Arc::default(), lines, outbox, engine, mask)
    }

    /// The same with requests that whoever reads before the lane knows of as well.
    pub(crate) fn start_with(
        calls: Arc<Calls>,
        lines: LineReader,
        outbox: Arc<Outbox>,
        engine: impl Engine,
        mask: Arc<Mask>,
    ) -> Self {
        let lines = lines.capped(LIST_BYTES_MAX, Calls::cap(&calls));
        tokio::spawn(read(lines, Arc::clone(&calls), engine));
        Self {
            outbox,
            mask,
            calls,
            next: AtomicU64::new(0),
        }
    }

    /// Sends one request and waits for its answer. Dropping the future tells the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: impl FnOnce(u64) -> Vec<Bytes>,
        listeners: Listeners,
    ) -> Result<Json, LaneError> {
        let id = FIRST_ID + self.next.fetch_add(1, Ordering::Relaxed) % IDS;
        let (answer, answered) = oneshot::channel();
        let pending = Pending {
            answer,
            bytes_max: bytes_max(method),
            listeners,
        };
        self.calls.pending.insert(id, pending);
        let mut abandoned = Abandoned {
            lane: self,
            id,
            armed: true,
        };
        if self.calls.ended.is_cancelled() {
            abandoned.armed = false;
            return Err(LaneError::Lost);
        }
        self.outbox
            .send(&frame::request(id, method, params(id)))
            .await
            .map_err(|_| LaneError::Lost)?;
        let answer = answered.await;
        abandoned.armed = false;
        match answer {
            Ok(Answer::Result(json)) => Ok(json),
            Ok(Answer::Error(error)) => Err(LaneError::Protocol(self.mask.error(error))),
            Ok(Answer::TooLong { bytes }) => Err(LaneError::TooLong { bytes }),
            Err(_) => Err(LaneError::Lost),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.calls.ended.is_cancelled()
    }

    /// Returns when the child's stdout has ended.
    pub(crate) async fn ended(&self) {
        self.calls.ended.cancelled().await;
    }

    /// Closes the child's stdin, once what is queued has been written.
    pub(crate) fn close(&self) {
        self.outbox.close();
    }
}

/// Forgets a request, and tells the server unless it was answered.
struct Abandoned<'a> {
    lane: &'a Lane,
    id: u64,
    armed: bool,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.lane.calls.pending.remove(&self.id);
        if self.armed {
            let id = self.id;
            let params = format!(r#"{{"requestId":{id},"reason":"the caller stopped waiting"}}"#);
            let cancelled = frame::notification("notifications/cancelled", &params);
            self.lane.outbox.offer(&[cancelled]);
        }
    }
}

async fn read(mut lines: LineReader, calls: Arc<Calls>, mut engine: impl Engine) {
    loop {
        match lines.next().await {
            Ok(Some(Line::Whole(line))) => route(&line, &calls, &mut engine),
            Ok(Some(Line::TooLong { head, bytes })) => calls.too_long(&head, bytes),
            Ok(None) => break,
            Err(error) => {
                debug!(%error, "reading from the server failed");
                break;
            }
        }
    }
    calls.end();
}

fn route(line: &Bytes, calls: &Calls, engine: &mut impl Engine) {
    let Some(message) = Message::parse(line) else {
        debug!(
            bytes = line.len(),
            "the server wrote a line that is no message"
        );
        return;
    };
    let handled = match message.method.as_deref() {
        None => calls.answer(line, &message),
        Some("notifications/progress") => calls.progress(&message),
        Some("notifications/message") => calls.log(&message),
        Some(_) => false,
    };
    if !handled {
        engine.take(line, &message);
    }
}

/// How long the answer to a request may be. What a list says is kept, sent on and indexed; a
/// result is cut.
pub(crate) fn bytes_max(method: &str) -> usize {
    if method == "tools/list" {
        LIST_BYTES_MAX
    } else {
        LINE_BYTES_MAX
    }
}

impl Calls {
    /// How long a line may be that begins so: as long as the answer to the request it names, and
    /// where it names none, as any answer that is waited for.
    pub(crate) fn cap(calls: &Arc<Self>) -> Cap {
        let calls = Arc::clone(calls);
        Arc::new(move |head| {
            let named = id_in(head).and_then(|id| Some(calls.pending.get(&id)?.bytes_max));
            let longest = || calls.pending.iter().map(|it| it.bytes_max).max();
            named.or_else(longest).unwrap_or(LIST_BYTES_MAX)
        })
    }

    /// Whether the message answers a request of the lane, also one that nobody waits for now.
    fn answer(&self, line: &Bytes, message: &Message<'_>) -> bool {
        let Some(id) = message.id.and_then(own_id) else {
            return false;
        };
        let answer = match (message.result, message.error) {
            (_, Some(error)) => Answer::Error(ProtocolError::read(error)),
            (Some(result), None) => Answer::Result(Json::part_of(line, result)),
            (None, None) => Answer::Error(ProtocolError::empty()),
        };
        match self.pending.remove(&id) {
            Some((_, pending)) => drop(pending.answer.send(answer)),
            None => debug!(id, "an answer came late or twice"),
        }
        true
    }

    fn progress(&self, message: &Message<'_>) -> bool {
        let Some(params) = message.params else {
            return false;
        };
        let Some(id) = progress_token(params).and_then(own_id) else {
            return false;
        };
        let sink = self
            .pending
            .get(&id)
            .and_then(|pending| pending.listeners.progress.clone());
        if let Some(sink) = sink {
            sink(params);
        }
        true
    }

    fn log(&self, message: &Message<'_>) -> bool {
        let Some(params) = message.params else {
            return false;
        };
        let sinks = self.pending.iter();
        let sinks = sinks.filter_map(|pending| pending.listeners.log.clone());
        let sinks: BTreeMap<u64, LogSink> = sinks.map(|sink| (sink.session, sink)).collect();
        for sink in sinks.values() {
            (sink.send)(params);
        }
        true
    }

    /// Finds the call that an over-long line answers: its id comes early, or no other is waited
    /// for that could not be so long.
    fn too_long(&self, head: &[u8], bytes: usize) {
        let only = || {
            let mut short = self.pending.iter().filter(|it| it.bytes_max < bytes);
            let first = short.next().map(|it| *it.key());
            first.filter(|_| short.next().is_none())
        };
        let id = id_in(head).or_else(only);
        if let Some((_, pending)) = id.and_then(|id| self.pending.remove(&id)) {
            let _ = pending.answer.send(Answer::TooLong { bytes });
        }
    }

    /// Every request in flight fails at once: its sender is dropped.
    fn end(&self) {
        self.ended.cancel();
        self.pending.clear();
    }
}

/// The id of ours that a line answers, where the line names it at its beginning.
fn id_in(head: &[u8]) -> Option<u64> {
    answered_id(head)?.trim_matches('"').parse().ok()
}

/// The number in an id of ours, also where the server gives it back as text.
fn own_id(id: &RawValue) -> Option<u64> {
    let id: u64 = id.get().trim_matches('"').parse().ok()?;
    (FIRST_ID..FIRST_ID + IDS).contains(&id).then_some(id)
}

pub(crate) fn progress_token(params: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Progress<'a> {
        #[serde(borrow, rename = "progressToken")]
        token: &'a RawValue,
    }
    serde_json::from_str::<Progress<'_>>(params.get())
        .ok()
        .map(|progress| progress.token)
}

#[cfg(test)]
mod tests {

    use jsonrpc::Sink;
    use parking_lot::Mutex;
    use tokio::{
        io::{
            AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines, ReadHalf, WriteHalf, split,
        },
        net::UnixStream,
    };

    use super::*;

    fn hears(progress: ProgressSink) -> Listeners {
        Listeners {
            progress: Some(progress),
            log: None,
        }
    }

    /// Notes what the lane leaves to the engine.
    #[derive(Clone, Default)]
    struct Left(Arc<Mutex<Vec<String>>>);

    impl Engine for Left {
        fn take(&mut self, line: &Bytes, _: &Message<'_>) {
            let text = String::from_utf8_lossy(line).into_owned();
            self.0.lock().push(text);
        }
    }

    /// The server's side of a lane, played by the test.
    struct Peer {
        lane: Arc<Lane>,
        left: Left,
        requests: Lines<BufReader<ReadHalf<UnixStream>>>,
        answers: WriteHalf<UnixStream>,
    }

    impl Peer {
        fn new() -> Self {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (input, output) = ours.into_split();
            let outbox = Outbox::new(Sink::stream(output));
            let left = Left::default();
            let lane = Lane::start(LineReader::new(input), outbox, left.clone(), mask());
            let (requests, answers) = split(theirs);
            let requests = BufReader::new(requests).lines();
            Self {
                lane: Arc::new(lane),
                left,
                requests,
                answers,
            }
        }

        fn call(&self) -> tokio::task::JoinHandle<Result<Json, LaneError>> {
            let lane = Arc::clone(&self.lane);
            let params = |_| vec![Bytes::from_static(b"{}")];
            tokio::spawn(async move {
                lane.request("tools/call", params, Listeners::default())
                    .await
            })
        }

        async fn read(&mut self) -> serde_json::Value {
            let line = self.requests.next_line().await.unwrap().unwrap();
            serde_json::from_str(&line).unwrap()
        }

        async fn read_id(&mut self) -> u64 {
            self.read().await["id"].as_u64().unwrap()
        }

        async fn write(&mut self, bytes: &[u8]) {
            self.answers.write_all(bytes).await.unwrap();
        }
    }

    /// What the call answers after the server wrote these bytes; `ID` stands for its id.
    async fn answered(written: &[u8]) -> Result<Json, LaneError> {
        let mut peer = Peer::new();
        let call = peer.call();
        let id = peer.read_id().await.to_string();
        let text: Vec<u8> = match String::from_utf8(written.to_vec()) {
            Ok(text) => text.replace("ID", &id).into_bytes(),
            Err(_) => [
                written,
                format!("{{\"id\":{id},\"result\":1}}\n").as_bytes(),
            ]
            .concat(),
        };
        peer.write(&text).await;
        call.await.unwrap()
    }

    #[track_caller]
    fn check(answer: &Result<Json, LaneError>, expected: &str) {
        assert_eq!(answer.as_ref().expect("an answer").as_str(), expected);
    }

    #[tokio::test]
    async fn a_result_comes_back_byte_for_byte() {
        let answer =
            answered(b"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"n\": 1.0, \"x\":1e400}}\n")
                .await;
        check(&answer, r#"{"n": 1.0, "x":1e400}"#);
        check(&answered(b"{\"result\":[2],\"id\":\"ID\"}\n").await, "[2]");
    }

    #[tokio::test]
    async fn a_list_may_not_be_as_long_as_a_result() {
        let body = "x".repeat(LIST_BYTES_MAX);
        // Wherever its id stands, and also while a call is under way that may be answered so.
        for (is_early, has_call) in [(true, false), (false, false), (true, true)] {
            let mut peer = Peer::new();
            let lane = Arc::clone(&peer.lane);
            let params = |_| vec![Bytes::from_static(b"{}")];
            let list = tokio::spawn(async move {
                let nobody = Listeners::default();
                lane.request("tools/list", params, nobody).await
            });
            let id = peer.read_id().await;
            let call = has_call.then(|| peer.call());
            let written = if is_early {
                format!("{{\"id\":{id},\"result\":\"{body}\"}}\n")
            } else {
                format!("{{\"result\":\"{body}\",\"id\":{id}}}\n")
            };
            peer.write(written.as_bytes()).await;
            let Err(LaneError::TooLong { bytes }) = list.await.unwrap() else {
                panic!("a list of {} bytes was taken", body.len());
            };
            assert!(bytes > LIST_BYTES_MAX);
            let call = call.unwrap_or_else(|| peer.call());
            let id = peer.read_id().await;
            let written = format!("{{\"id\":{id},\"result\":\"{body}\"}}\n");
            peer.write(written.as_bytes()).await;
            assert!(call.await.unwrap().unwrap().len() > LIST_BYTES_MAX);
        }
    }

    #[tokio::test]
    async fn garbage_before_an_answer_is_passed_over() {
        let noise = "\u{1b}[32mstarting\u{1b}[0m\n\n{\"half\":\n[1]\n{\"id\":999,\"result\":0}\n";
        let written = format!("{noise}{{\"id\":ID,\"result\":1}}\n");
        check(&answered(written.as_bytes()).await, "1");
        check(&answered(b"\xff\xfe not UTF-8\n").await, "1");
    }

    #[tokio::test]
    async fn an_error_of_any_shape_ends_the_call() {
        let cases = [
            (
                r#"{"code":-32000,"message":"no","data":{"a":1}}"#,
                "-32000",
                "no",
            ),
            (r#"{"code":"E_NO","message":"no"}"#, "E_NO", "no"),
            (
                r#"{"code":99999999999999999999,"message":5}"#,
                "99999999999999999999",
                "5",
            ),
            (r#""just text""#, "none", r#""just text""#),
            (
                "null",
                "none",
                "its answer has neither a result nor an error",
            ),
        ];
        for (error, code, message) in cases {
            let written = format!("{{\"id\":ID,\"error\":{error}}}\n");
            let Err(LaneError::Protocol(read)) = answered(written.as_bytes()).await else {
                panic!("{error} is an error");
            };
            assert_eq!((read.code.as_str(), read.message.as_str()), (code, message));
        }
    }

    /// As a server may have been given it.
    const SECRET: &str = "sk-live-5f1e9c0b7a";

    fn mask() -> Arc<Mask> {
        Arc::new(Mask::new([SECRET.to_owned()]))
    }

    #[tokio::test]
    async fn an_error_tells_no_secret_and_a_result_is_left_alone() {
        let error = format!(
            "{{\"id\":ID,\"error\":{{\"code\":\"{SECRET}\",\"message\":\"no {SECRET}\",\"data\":{{\"is\":\"{SECRET}\"}}}}}}\n"
        );
        let Err(LaneError::Protocol(read)) = answered(error.as_bytes()).await else {
            panic!("an error");
        };
        assert_eq!(
            (read.code.as_str(), read.message.as_str()),
            ("***", "no ***")
        );
        assert_eq!(read.data.as_deref(), Some(r#"{"is":"***"}"#));
        let result = format!("{{\"id\":ID,\"result\":\"{SECRET}\"}}\n");
        check(&answered(result.as_bytes()).await, &format!("\"{SECRET}\""));
    }

    #[tokio::test]
    async fn calls_in_flight_fail_at_once_when_the_server_ends() {
        let mut peer = Peer::new();
        let calls = [peer.call(), peer.call()];
        peer.read_id().await;
        peer.read_id().await;
        peer.write(b"{\"id\":1000000000,\"resu").await;
        peer.answers.shutdown().await.unwrap();
        for call in calls {
            assert!(matches!(call.await.unwrap(), Err(LaneError::Lost)));
        }
        assert!(matches!(peer.call().await.unwrap(), Err(LaneError::Lost)));
    }

    #[tokio::test]
    async fn a_dropped_call_is_cancelled_and_its_late_answer_harms_nobody() {
        let mut peer = Peer::new();
        let dropped = peer.call();
        let id = peer.read_id().await;
        dropped.abort();
        let notice = peer.read().await;
        assert_eq!(notice["method"], "notifications/cancelled");
        assert_eq!(notice["params"]["requestId"], id);

        let call = peer.call();
        let next = peer.read_id().await;
        let both = format!("{{\"id\":{id},\"result\":\"late\"}}\n{{\"id\":{next},\"result\":1}}\n");
        peer.write(both.as_bytes()).await;
        check(&call.await.unwrap(), "1");
        assert_eq!(peer.lane.calls.pending.len(), 0);
    }

    #[tokio::test]
    async fn progress_goes_to_its_call_and_the_rest_to_the_engine() {
        let mut peer = Peer::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink: ProgressSink = {
            let seen = Arc::clone(&seen);
            Arc::new(move |params: &RawValue| seen.lock().push(params.get().to_owned()))
        };
        let lane = Arc::clone(&peer.lane);
        let params = |_| vec![Bytes::from_static(b"{}")];
        let call = tokio::spawn(async move { lane.request("x", params, hears(sink)).await });
        let id = peer.read_id().await;
        let ours = format!(r#"{{"progressToken":{id},"progress":1}}"#);
        let ping = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
        let lines = format!(
            "{{\"method\":\"notifications/progress\",\"params\":{ours}}}\n{ping}\n{{\"id\":{id},\"result\":1}}\n"
        );
        peer.write(lines.as_bytes()).await;
        check(&call.await.unwrap(), "1");
        assert_eq!(*seen.lock(), [ours]);
        assert_eq!(*peer.left.0.lock(), [ping]);
    }
}
