//! The raw call channel to a server: requests written and answers read as bytes, beside rmcp.
//!
//! A result that passes through typed structs loses the fields unknown to them and costs several
//! times a small call's own time (`docs/decisions/0002`). So the channel handles the responses to our
//! own requests, and progress of our own calls; the other messages are passed to rmcp.

#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use futures::FutureExt as _;
use jsonrpc::{Cap, Json, Line, LineReader, Message, Outbox, SendError, answered_id, frame};
use tokio::time::sleep;
use tracing::debug;

use crate::{
    asking::{AnswerSink, Asking, Questions},
    error::RequestError,
    limits::{LAST_LINES_WAIT, LIST_BYTES_MAX},
    mask::Mask,
    pending::{CHANNEL_IDS, PendingRequest, PendingRequests, Routed},
    request::Listeners,
};

/// The number of characters shown of a line that is not a message.
const STRAY_CHARS_MAX: usize = 120;

/// The number of bytes kept of a line that is not a message: more than is shown, so that a secret
/// in it is complete when it is masked.
const STRAY_BYTES_MAX: usize = 4096;

/// Receives the messages that the channel leaves.
pub(crate) trait MessageSink: Send + 'static {
    fn take(&mut self, line: &Bytes, message: &Message<'_>);
}

/// The channel to one server.
pub(crate) struct CallChannel {
    pub(crate) outbox: Arc<Outbox>,
    /// Takes secrets out of the server's errors; results are its own affair.
    mask: Arc<Mask>,
    pub(crate) pending: Arc<PendingRequests>,
    /// The first line of the server that is not a message, truncated.
    stray: Arc<OnceLock<String>>,
    next: AtomicU64,
}

impl CallChannel {
    /// Starts reading the server's lines on the current runtime. A reader in front of the channel may share
    /// the requests.
    pub(crate) fn start(
        pending: Arc<PendingRequests>,
        lines: LineReader,
        outbox: Arc<Outbox>,
        others: impl MessageSink,
        mask: Arc<Mask>,
        asking: &Arc<Asking>,
    ) -> Self {
        let lines = lines.capped(LIST_BYTES_MAX, cap(&pending));
        let stray = Arc::<OnceLock<String>>::default();
        let answers = Arc::clone(&outbox);
        let send: AnswerSink = Arc::new(move |message| {
            let outbox = Arc::clone(&answers);
            // A server that has ended waits for no response.
            async move { _ = outbox.send(&message).await }.boxed()
        });
        let reader = Reader {
            pending: Arc::clone(&pending),
            stray: Arc::clone(&stray),
            questions: Questions::new(Arc::clone(asking), send),
            others,
        };
        tokio::spawn(reader.read(lines));
        Self {
            outbox,
            mask,
            pending,
            stray,
            next: AtomicU64::new(0),
        }
    }

    /// Sends one request and waits for its response. Dropping the future cancels it at the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: impl FnOnce(u64) -> Vec<Bytes>,
        listeners: Listeners,
    ) -> Result<Json, RequestError> {
        let count = CHANNEL_IDS.end - CHANNEL_IDS.start;
        let id = CHANNEL_IDS.start + self.next.fetch_add(1, Ordering::Relaxed) % count;
        let (request, response) = PendingRequest::new(method, listeners);
        self.pending.by_id.insert(id, request);
        let mut abandoned = Abandoned {
            channel: self,
            id,
            armed: true,
        };
        if self.has_ended() {
            abandoned.armed = false;
            return Err(RequestError::Unsent);
        }
        let line = frame::request(id, method, params(id));
        let sent = self.outbox.send_after(&line).await;
        let before = sent.map_err(|error| match error {
            SendError::Closed => RequestError::Unsent,
            SendError::SeveralLines => RequestError::Failed(error.to_string()),
        })?;
        let response = response.await;
        abandoned.armed = false;
        response
            .unwrap_or(Err(RequestError::Lost(Some(before))))
            .map_err(|error| error.mask(&self.mask))
    }

    /// True if the server no longer writes, or was found to have stopped reading.
    pub(crate) fn has_ended(&self) -> bool {
        self.pending.ended.is_cancelled() || self.outbox.is_gone()
    }

    /// Returns when the server's output has ended; or shortly after it was found to have stopped
    /// reading, even if its output has not ended.
    pub(crate) async fn ended(&self) {
        let lines_end = self.pending.ended.cancelled();
        let reads_no_more = async {
            self.outbox.gone().await;
            sleep(LAST_LINES_WAIT).await;
        };
        tokio::select! {
            () = lines_end => {}
            () = reads_no_more => {}
        }
    }

    /// Returns the first line of the server that is not a message, if there is one, shortened.
    pub(crate) fn stray_line(&self) -> Option<String> {
        let line = self.stray.get()?;
        let line = self.mask.apply(line);
        Some(printable::one_line_of(&line, STRAY_CHARS_MAX))
    }

    /// Ends the requests under way, and reads and writes no more.
    pub(crate) fn give_up(&self) {
        self.pending.end();
        self.outbox.give_up();
    }
}

/// The outbox must not outlive a channel that was not closed.
impl Drop for CallChannel {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

/// A request until its response: if dropped early, it is removed and cancelled at the server.
struct Abandoned<'a> {
    channel: &'a CallChannel,
    id: u64,
    armed: bool,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.channel.pending.by_id.remove(&self.id);
        if self.armed {
            let id = self.id;
            let params = format!(r#"{{"requestId":{id},"reason":"the caller stopped waiting"}}"#);
            let cancelled = frame::notification("notifications/cancelled", &params);
            self.channel.outbox.offer(&[cancelled]);
        }
    }
}

/// Reads the lines of a server.
struct Reader<S> {
    pending: Arc<PendingRequests>,
    stray: Arc<OnceLock<String>>,
    questions: Questions,
    others: S,
}

impl<S: MessageSink> Reader<S> {
    async fn read(mut self, mut lines: LineReader) {
        let ended = self.pending.ended.clone();
        let mut given_up = std::pin::pin!(ended.cancelled());
        loop {
            let line = tokio::select! {
                biased;
                line = lines.next() => line,
                // A process other than the server may hold the other end for ever.
                () = &mut given_up => break,
            };
            match line {
                Ok(Some(Line::Whole(line))) => self.route(&line),
                Ok(Some(Line::TooLong { head, bytes })) => {
                    refuse_too_long(&self.pending, &head, bytes);
                }
                Ok(None) => break,
                Err(error) => {
                    debug!(%error, "reading from the server failed");
                    break;
                }
            }
        }
        self.pending.end();
    }

    fn route(&mut self, line: &Bytes) {
        let Some(message) = Message::parse(line) else {
            let bytes = line.len();
            debug!(bytes, "the server wrote a line that is not a message");
            if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                let start = &line[..line.len().min(STRAY_BYTES_MAX)];
                let text = || String::from_utf8_lossy(start).into_owned();
                self.stray.get_or_init(text);
            }
            return;
        };
        let routed = self.pending.route(line, &message, None, &self.questions);
        if routed == Routed::Other {
            self.others.take(line, &message);
        }
    }
}

/// Returns the bound on a line, by its beginning: that of the response to the request it names, or,
/// if it names none, the largest of all pending responses.
pub(crate) fn cap(pending: &Arc<PendingRequests>) -> Cap {
    let pending = Arc::clone(pending);
    Arc::new(move |head| {
        let by_id = &pending.by_id;
        let named = read_id(head).and_then(|id| Some(by_id.get(&id)?.bytes_max));
        let longest = || by_id.iter().map(|it| it.bytes_max).max();
        named.or_else(longest).unwrap_or(LIST_BYTES_MAX)
    })
}

/// Fails the request that an over-long line answers: its id comes early, or no other is waited
/// for that could not be so long.
fn refuse_too_long(pending: &PendingRequests, head: &[u8], bytes: usize) {
    let only = || {
        let mut short = pending.by_id.iter().filter(|it| it.bytes_max < bytes);
        let first = short.next().map(|it| *it.key());
        first.filter(|_| short.next().is_none())
    };
    let id = read_id(head).or_else(only);
    if let Some((_, request)) = id.and_then(|id| pending.by_id.remove(&id)) {
        request.respond(Err(RequestError::Failed(format!(
            "its response was one line of {bytes} bytes, which is over the limit"
        ))));
    }
}

/// Returns the id of our request that a line answers, if the line has it at its beginning.
fn read_id(head: &[u8]) -> Option<u64> {
    answered_id(head)?.trim_matches('"').parse().ok()
}
