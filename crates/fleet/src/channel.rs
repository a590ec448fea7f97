//! The raw call channel to a server: requests written and answers read as bytes, beside rmcp.
//!
//! A result that passes through typed structs loses the fields unknown to them and costs several
//! times a small call's own time (`docs/decisions/0002`). So the channel handles the responses to our
//! own requests, and progress of our own calls; the other messages are passed to rmcp.

mod length;
mod pending;
#[cfg(test)]
mod tests;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use futures::FutureExt as _;
use jsonrpc::{Closed, Json, Line, LineReader, Message, Outbox, ProtocolError, frame};
use tokio::{sync::oneshot, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::debug;

pub(crate) use self::{length::cap, pending::PendingRequests};
use self::{
    length::refuse_too_long,
    pending::{Answer, FIRST_ID, IDS, PendingRequest},
};
use crate::{
    asking::{AnswerSink, Asking, Questions},
    error::RequestError,
    limits::{LAST_LINES_WAIT, LIST_BYTES_MAX},
    mask::Mask,
    request::{Listeners, bytes_max},
    updates::Updates,
};

/// The number of characters shown of a line that is not a message.
const STRAY_CHARS_MAX: usize = 120;

/// Receives the messages that the channel leaves.
pub(crate) trait MessageSink: Send + 'static {
    fn take(&mut self, line: &Bytes, message: &Message<'_>);
}

/// The channel to one server.
#[derive(Debug)]
pub(crate) struct CallChannel {
    outbox: Arc<Outbox>,
    /// Takes secrets out of the server's errors; results are its own affair.
    mask: Arc<Mask>,
    pending: Arc<PendingRequests>,
    next: AtomicU64,
}

/// Why a request on the channel has no result.
#[derive(Debug)]
pub(crate) enum ChannelError {
    /// The server has ended and no longer reads: the request did not reach it.
    Unsent,
    /// The server has ended. This many bytes were sent to it before the request.
    Lost(u64),
    Protocol(ProtocolError),
    TooLong {
        bytes: usize,
    },
}

impl From<ChannelError> for RequestError {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Unsent => Self::Unsent,
            ChannelError::Lost(before) => Self::Lost(Some(before)),
            ChannelError::Protocol(error) => Self::Protocol(error),
            ChannelError::TooLong { bytes } => Self::Failed(format!(
                "its answer was one line of {bytes} bytes, over the cap"
            )),
        }
    }
}

impl CallChannel {
    /// Starts reading the server's lines on the current runtime.
    pub(crate) fn start(
        lines: LineReader,
        outbox: Arc<Outbox>,
        others: impl MessageSink,
        mask: Arc<Mask>,
        asking: Arc<Asking>,
    ) -> Self {
        Self::start_with(Arc::default(), lines, outbox, others, mask, asking)
    }

    /// The same with requests that are shared with a reader in front of the channel.
    pub(crate) fn start_with(
        pending: Arc<PendingRequests>,
        lines: LineReader,
        outbox: Arc<Outbox>,
        others: impl MessageSink,
        mask: Arc<Mask>,
        asking: Arc<Asking>,
    ) -> Self {
        let lines = lines.capped(LIST_BYTES_MAX, cap(&pending));
        let questions = Questions::new(asking, answer_over(&outbox));
        tokio::spawn(read(lines, Arc::clone(&pending), questions, others));
        Self {
            outbox,
            mask,
            pending,
            next: AtomicU64::new(0),
        }
    }

    /// Sends one request and waits for its response. Dropping the future cancels it at the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: impl FnOnce(u64) -> Vec<Bytes>,
        listeners: Listeners,
    ) -> Result<Json, ChannelError> {
        let id = FIRST_ID + self.next.fetch_add(1, Ordering::Relaxed) % IDS;
        let (answer, answered) = oneshot::channel();
        let request = PendingRequest {
            answer,
            bytes_max: bytes_max(method),
            listeners,
            over: CancellationToken::new().drop_guard(),
        };
        self.pending.by_id.insert(id, request);
        let mut abandoned = Abandoned {
            channel: self,
            id,
            armed: true,
        };
        if self.has_ended() {
            abandoned.armed = false;
            return Err(ChannelError::Unsent);
        }
        let line = frame::request(id, method, params(id));
        let sent = self.outbox.send_after(&line).await;
        let before = sent.map_err(|Closed| ChannelError::Unsent)?;
        let answer = answered.await;
        abandoned.armed = false;
        match answer {
            Ok(Answer::Result(json)) => Ok(json),
            Ok(Answer::Error(error)) => Err(ChannelError::Protocol(self.mask.error(error))),
            Ok(Answer::TooLong { bytes }) => Err(ChannelError::TooLong { bytes }),
            Err(_) => Err(ChannelError::Lost(before)),
        }
    }

    /// Returns true if it is certain that the server, which has ended, did not read the request that
    /// was sent after this many bytes.
    pub(crate) fn is_unread(&self, before: u64) -> bool {
        self.outbox.is_unread(before)
    }

    /// The subscribers to changes of resources.
    pub(crate) fn updates(&self) -> &Updates {
        &self.pending.updates
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
        let line = self.pending.stray.get()?;
        Some(printable::one_line_of(
            &self.mask.apply(line),
            STRAY_CHARS_MAX,
        ))
    }

    /// Closes the output to the server, once the queued lines have been written.
    pub(crate) fn close(&self) {
        self.outbox.close();
    }

    /// Ends the requests under way, and reads and writes no more.
    pub(crate) fn give_up(&self) {
        self.pending.end();
        self.outbox.give_up();
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

fn answer_over(outbox: &Arc<Outbox>) -> AnswerSink {
    let outbox = Arc::clone(outbox);
    Arc::new(move |message| {
        let outbox = Arc::clone(&outbox);
        // A server that has ended waits for no response.
        async move { _ = outbox.send(&message).await }.boxed()
    })
}

async fn read(
    mut lines: LineReader,
    pending: Arc<PendingRequests>,
    questions: Questions,
    mut others: impl MessageSink,
) {
    let ended = pending.ended.clone();
    let mut given_up = std::pin::pin!(ended.cancelled());
    loop {
        let line = tokio::select! {
            biased;
            line = lines.next() => line,
            // A process other than the server may hold the other end for ever.
            () = &mut given_up => break,
        };
        match line {
            Ok(Some(Line::Whole(line))) => route(&line, &pending, &questions, &mut others),
            Ok(Some(Line::TooLong { head, bytes })) => refuse_too_long(&pending, &head, bytes),
            Ok(None) => break,
            Err(error) => {
                debug!(%error, "reading from the server failed");
                break;
            }
        }
    }
    pending.end();
}

fn route(
    line: &Bytes,
    pending: &PendingRequests,
    questions: &Questions,
    others: &mut impl MessageSink,
) {
    let Some(message) = Message::parse(line) else {
        debug!(
            bytes = line.len(),
            "the server wrote a line that is no message"
        );
        pending.note_stray(line);
        return;
    };
    let is_handled = match message.method.as_deref() {
        None => pending.take_answer(line, &message),
        Some("notifications/progress") => pending.pass_progress(&message),
        Some("notifications/message") => pending.pass_log(&message),
        Some("notifications/resources/updated") => {
            pending.updates.pass(&message);
            true
        }
        Some(_) => questions.take(line, &message, None, || pending.askers()),
    };
    if !is_handled {
        others.take(line, &message);
    }
}
