//! The pending requests of a channel, and the server's messages that belong to them.

use std::{fmt, sync::OnceLock};

use bytes::Bytes;
use dashmap::DashMap;
use jsonrpc::{Json, Message, ProtocolError};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use crate::{
    asking::Asker,
    params::read_progress_token,
    request::{Listeners, find_sole_log},
    updates::Updates,
};

/// Our request ids start here; rmcp counts its own from zero. They stay within what a signed
/// 32-bit integer holds, because some servers read ids so.
pub(super) const FIRST_ID: u64 = 1_000_000_000;
pub(super) const IDS: u64 = 1_000_000_000;

/// The requests under way on a channel.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    pub(super) by_id: DashMap<u64, PendingRequest>,
    /// Cancelled when the server's lines ended.
    pub(super) ended: CancellationToken,
    pub(super) updates: Updates,
    /// The server's first line that is not a message, truncated.
    pub(super) stray: OnceLock<String>,
}

/// One request that was not answered yet.
pub(super) struct PendingRequest {
    pub(super) answer: oneshot::Sender<Answer>,
    /// Of its answer.
    pub(super) bytes_max: usize,
    pub(super) listeners: Listeners,
    /// The request has ended when this is dropped.
    pub(super) over: DropGuard,
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingRequest")
    }
}

#[derive(Debug)]
pub(super) enum Answer {
    Result(Json),
    Error(ProtocolError),
    TooLong { bytes: usize },
}

impl PendingRequests {
    pub(super) fn note_stray(&self, line: &[u8]) {
        if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
            let start = &line[..line.len().min(STRAY_BYTES_MAX)];
            self.stray
                .get_or_init(|| String::from_utf8_lossy(start).into_owned());
        }
    }
}

/// The number of bytes kept of a line that is not a message: more than is shown, so that a secret
/// in it is complete when it is masked.
const STRAY_BYTES_MAX: usize = 4096;

/// Each method returns true if the message was for the channel.
impl PendingRequests {
    /// Handles a response to a request of the channel, even if no caller waits for it any more.
    pub(super) fn take_answer(&self, line: &Bytes, message: &Message<'_>) -> bool {
        let Some(id) = message.id.and_then(read_own_id) else {
            return false;
        };
        let answer = match (message.result, message.error) {
            (_, Some(error)) => Answer::Error(ProtocolError::read(error)),
            (Some(result), None) => Answer::Result(Json::part_of(line, result)),
            (None, None) => Answer::Error(ProtocolError::empty()),
        };
        match self.by_id.remove(&id) {
            Some((_, request)) => drop(request.answer.send(answer)),
            None => debug!(id, "an answer came late or twice"),
        }
        true
    }

    pub(super) fn pass_progress(&self, message: &Message<'_>) -> bool {
        let Some(params) = message.params else {
            return false;
        };
        let Some(id) = read_progress_token(params).and_then(read_own_id) else {
            return false;
        };
        let sink = self
            .by_id
            .get(&id)
            .and_then(|request| request.listeners.progress.clone());
        if let Some(sink) = sink {
            sink(params);
        }
        true
    }

    pub(super) fn pass_log(&self, message: &Message<'_>) -> bool {
        let Some(params) = message.params else {
            return false;
        };
        let requests = self.by_id.iter();
        match find_sole_log(requests.map(|request| request.listeners.clone())) {
            Some(sink) => (sink.send)(params),
            None => debug!("a log message of the server belongs to no one session"),
        }
        true
    }
}

impl PendingRequests {
    /// The calls under way, the oldest first.
    pub(super) fn askers(&self) -> Vec<Asker> {
        let calls = self.by_id.iter().filter(|it| it.listeners.is_of_client);
        let asker = |request: &PendingRequest| Asker {
            asks: request.listeners.asks.clone(),
            ended: request.over.token().clone(),
        };
        let mut askers: Vec<(u64, Asker)> =
            calls.map(|it| (*it.key(), asker(it.value()))).collect();
        askers.sort_by_key(|(id, _)| *id);
        askers.into_iter().map(|(_, asker)| asker).collect()
    }

    /// Every request under way fails at once: its sender is dropped.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.by_id.clear();
    }
}

/// Returns the number of one of our ids, even if the server returns it as a string.
fn read_own_id(id: &RawValue) -> Option<u64> {
    let id: u64 = id.get().trim_matches('"').parse().ok()?;
    (FIRST_ID..FIRST_ID + IDS).contains(&id).then_some(id)
}
