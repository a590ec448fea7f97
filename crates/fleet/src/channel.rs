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
use jsonrpc::{
    Cap, Json, Line, LineReader, Message, Outbox, SendError, answered_id, frame, messages_in,
};
use printable::Redactor;
use tokio::time::sleep;
use tracing::debug;

use crate::{
    asking::{AnswerSink, Asking, Questions},
    error::RequestError,
    limits::{LAST_LINES_WAIT, LIST_BYTES_MAX},
    pending::{CHANNEL_IDS, PendingRequest, PendingRequests, Routed, read_id},
    request::Listeners,
    unreadable::{HEAD_BYTES_MAX, UnreadableLines, names_protocol, quote_line},
};

/// Receives the messages that the channel leaves.
pub(crate) trait MessageSink: Send + 'static {
    fn take(&mut self, line: &Bytes, message: &Message<'_>);
}

/// The channel to one server.
pub(crate) struct CallChannel {
    pub(crate) outbox: Arc<Outbox>,
    /// Masks secrets in the server's errors and in the lists that the proxy keeps. Results are not masked.
    pub(crate) mask: Arc<Redactor>,
    pub(crate) pending: Arc<PendingRequests>,
    /// The first line of the server that is not a message, truncated.
    stray: Arc<OnceLock<Bytes>>,
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
        mask: Arc<Redactor>,
        asking: &Arc<Asking>,
    ) -> Self {
        let lines = lines.capped(LIST_BYTES_MAX, cap(&pending));
        let stray = Arc::<OnceLock<Bytes>>::default();
        let answers = Arc::clone(&outbox);
        let send: AnswerSink = Arc::new(move |message| {
            let outbox = Arc::clone(&answers);
            // A server that has ended waits for no response.
            async move { _ = outbox.send(&message).await }.boxed()
        });
        let reader = Reader {
            pending: Arc::clone(&pending),
            stray: Arc::clone(&stray),
            mask: Arc::clone(&mask),
            questions: Questions::new(Arc::clone(asking), send),
            unreadable: UnreadableLines::default(),
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
        Some(quote_line(line, &self.mask))
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
    stray: Arc<OnceLock<Bytes>>,
    mask: Arc<Redactor>,
    questions: Questions,
    unreadable: UnreadableLines,
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
                Ok(Some(Line::Whole(line))) => self.route(&line, lines.is_at_end()),
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

    /// Handles a line. A last line without a line end may be cut, so that it ends no call: the end of the
    /// stream does.
    fn route(&mut self, line: &Bytes, may_be_cut: bool) {
        if let Some(message) = Message::parse(line) {
            return self.route_message(line, &message);
        }
        let found = messages_in(line);
        for line in &found {
            if let Some(message) = Message::parse(line) {
                self.route_message(line, &message);
            }
        }
        if !found.is_empty() || line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let bytes = line.len();
        debug!(bytes, "the server wrote a line that is not a message");
        let head = || Bytes::copy_from_slice(&line[..line.len().min(HEAD_BYTES_MAX)]);
        self.stray.get_or_init(head);
        if !may_be_cut {
            self.unreadable.take(&self.pending, line, &self.mask);
        }
    }

    fn route_message(&mut self, line: &Bytes, message: &Message<'_>) {
        let routed = self.pending.route(line, message, None, &self.questions);
        if routed == Routed::Other
            && !(names_protocol(line) && self.pending.take_response_without_id(message))
        {
            self.others.take(line, message);
        }
    }
}

/// Returns the bound on a line, by its beginning: that of the response to the request it names, or,
/// if it names none, the largest of all pending responses.
pub(crate) fn cap(pending: &Arc<PendingRequests>) -> Cap {
    let pending = Arc::clone(pending);
    Arc::new(move |head| {
        let by_id = &pending.by_id;
        let named = answered_id(head)
            .and_then(read_id)
            .and_then(|id| Some(by_id.get(&id)?.bytes_max));
        let longest = || by_id.iter().map(|it| it.bytes_max).max();
        named.or_else(longest).unwrap_or(LIST_BYTES_MAX)
    })
}

/// Fails the request that an over-long line answers.
fn refuse_too_long(pending: &PendingRequests, head: &[u8], bytes: usize) {
    if let Some((_, request)) = pending.remove_too_long(head, bytes) {
        request.respond(Err(RequestError::Failed(format!(
            "its response was one line of {bytes} bytes, which is over the limit"
        ))));
    }
}
