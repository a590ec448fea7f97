//! The raw lane to a child: requests written and answers read as bytes, beside the protocol
//! engine.
//!
//! A result that passes through typed structs loses what they do not know and costs several
//! times a small call's own time (`docs/decisions/0002`). So the lane takes the answers to our
//! own requests, and progress of our own calls, off the line; the rest is the engine's.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use dashmap::DashMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{
    line::{Line, LineReader, Outbox},
    message::{Json, Message, ProtocolError},
};

/// Receives the `params` of each progress notification of one call.
pub type ProgressSink = Arc<dyn Fn(&RawValue) + Send + Sync>;

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
    calls: Arc<Calls>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Calls {
    pending: DashMap<u64, Pending>,
    /// Cancelled when the child's stdout ended.
    ended: CancellationToken,
}

struct Pending {
    answer: oneshot::Sender<Answer>,
    progress: Option<ProgressSink>,
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
    pub(crate) fn start(lines: LineReader, outbox: Arc<Outbox>, engine: impl Engine) -> Self {
        let calls = Arc::new(Calls::default());
        tokio::spawn(read(lines, Arc::clone(&calls), engine));
        Self {
            outbox,
            calls,
            next: AtomicU64::new(0),
        }
    }

    /// Sends one request and waits for its answer. Dropping the future tells the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: impl FnOnce(u64) -> Vec<Bytes>,
        progress: Option<ProgressSink>,
    ) -> Result<Json, LaneError> {
        let id = FIRST_ID + self.next.fetch_add(1, Ordering::Relaxed) % IDS;
        let (answer, answered) = oneshot::channel();
        self.calls.pending.insert(id, Pending { answer, progress });
        let mut abandoned = Abandoned {
            lane: self,
            id,
            armed: true,
        };
        if self.calls.ended.is_cancelled() {
            abandoned.armed = false;
            return Err(LaneError::Lost);
        }
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#);
        let mut parts = vec![Bytes::from(head)];
        parts.extend(params(id));
        parts.push(Bytes::from_static(b"}\n"));
        self.outbox
            .send(&parts)
            .await
            .map_err(|_| LaneError::Lost)?;
        let answer = answered.await;
        abandoned.armed = false;
        match answer {
            Ok(Answer::Result(json)) => Ok(json),
            Ok(Answer::Error(error)) => Err(LaneError::Protocol(error)),
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
            let cancelled = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the caller stopped waiting"}}}}"#
            );
            self.lane.outbox.offer(&[Bytes::from(cancelled + "\n")]);
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
        Some(_) => false,
    };
    if !handled {
        engine.take(line, &message);
    }
}

impl Calls {
    /// Whether the message answers a request of the lane, also one that nobody waits for now.
    fn answer(&self, line: &Bytes, message: &Message<'_>) -> bool {
        let Some(id) = message.id.and_then(own_id) else {
            return false;
        };
        let answer = match (message.result, message.error) {
            (_, Some(error)) => Answer::Error(ProtocolError::read(error)),
            (Some(result), None) => Answer::Result(Json::part_of(line, result)),
            (None, None) => Answer::Result(Json::null()),
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
            .and_then(|pending| pending.progress.clone());
        if let Some(sink) = sink {
            sink(params);
        }
        true
    }

    /// Finds the call that an over-long line answers, where its id comes early.
    fn too_long(&self, head: &[u8], bytes: usize) {
        let text = String::from_utf8_lossy(head);
        let id = text.split_once(r#""id":"#).and_then(|(_, rest)| {
            let digits: String = rest
                .trim_start()
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse::<u64>().ok()
        });
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

/// The number in an id of ours, also where the server gives it back as text.
fn own_id(id: &RawValue) -> Option<u64> {
    let id: u64 = id.get().trim_matches('"').parse().ok()?;
    (FIRST_ID..FIRST_ID + IDS).contains(&id).then_some(id)
}

fn progress_token(params: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Progress<'a> {
        #[serde(borrow, rename = "progressToken")]
        token: &'a RawValue,
    }
    serde_json::from_str::<Progress<'_>>(params.get())
        .ok()
        .map(|progress| progress.token)
}
