//! The pending requests of one connection, and the messages of the server that belong to them.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use dashmap::DashMap;
use jsonrpc::{Json, Message, ProtocolError, answered_id, canonical_id};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::{
    asking::{Asker, Questions},
    error::RequestError,
    request::{Listeners, bytes_max, find_sole_log},
    updates::Updates,
};

/// The ids of the call channel's requests; rmcp counts its own from zero. They fit into a signed
/// 32-bit integer, because some servers read ids as such.
pub(crate) const CHANNEL_IDS: Range<u64> = 1_000_000_000..2_000_000_000;

/// The result of a request as the server wrote it, or the reason why there is none.
pub(crate) type RequestResult = Result<Json, RequestError>;

/// The requests of one connection that have no response yet, by id. The id is their progress token
/// as well.
#[derive(Default)]
pub(crate) struct PendingRequests {
    pub(crate) by_id: DashMap<u64, Arc<PendingRequest>>,
    /// Cancelled when no more messages of the server are read.
    pub(crate) ended: CancellationToken,
    pub(crate) updates: Updates,
}

pub(crate) struct PendingRequest {
    response: Mutex<Option<oneshot::Sender<RequestResult>>>,
    pub(crate) bytes_max: usize,
    listeners: Listeners,
    /// Cancelled when the request has a response, or when its caller stopped waiting. Only a question needs it.
    over: OnceLock<CancellationToken>,
}

impl PendingRequest {
    pub(crate) fn new(
        method: &str,
        listeners: Listeners,
    ) -> (Arc<Self>, oneshot::Receiver<RequestResult>) {
        let (sender, receiver) = oneshot::channel();
        let request = Self {
            response: Mutex::new(Some(sender)),
            bytes_max: bytes_max(method),
            listeners,
            over: OnceLock::new(),
        };
        (Arc::new(request), receiver)
    }

    /// Passes the response to the caller. Only the first one counts.
    pub(crate) fn respond(&self, response: RequestResult) {
        if let Some(sender) = self.response.lock().take() {
            // The caller may have stopped waiting.
            let _ = sender.send(response);
        }
        self.end_questions();
    }

    /// Passes a response without an id to the caller: its error, or else the reason why its result is not
    /// taken.
    pub(crate) fn respond_without_id(&self, message: &Message<'_>) {
        self.respond(Err(match message.error {
            Some(error) => RequestError::Protocol(ProtocolError::read(error)),
            None => RequestError::Failed("its response has no valid `id`".to_owned()),
        }));
    }

    fn asker(&self) -> Asker {
        let ended = self.over.get_or_init(CancellationToken::new).clone();
        if self.has_response() {
            ended.cancel();
        }
        Asker {
            asks: self.listeners.asks.clone(),
            ended,
        }
    }

    fn has_response(&self) -> bool {
        self.response.lock().is_none()
    }

    fn end_questions(&self) {
        if let Some(over) = self.over.get() {
            over.cancel();
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.end_questions();
    }
}

/// Returns the line of a response whose id is the number that rmcp expects, if it is one in any spelling.
pub(crate) fn with_plain_id(line: &Bytes, message: &Message<'_>) -> Bytes {
    let id = message.id.filter(|_| message.method.is_none());
    match id.and_then(|id| read_id(id.get())) {
        Some(number) => message.with_id(line, &number.to_string()),
        None => line.clone(),
    }
}

/// Returns true for a response whose id is missing, `null`, or neither a string nor a number.
pub(crate) fn is_response_without_id(message: &Message<'_>) -> bool {
    let has_id = message.id.is_some() && !message.has_invalid_id();
    !has_id && message.method.is_none() && message.result.or(message.error).is_some()
}

/// The recipient of a message that a server sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Routed {
    /// It was the response to a pending request, whose caller has it now.
    Response,
    /// It belonged to a request or a question, and was handled.
    Handled,
    /// It is for rmcp.
    Other,
}

impl PendingRequests {
    /// Handles a message unless it is for rmcp. `own` is the request whose own stream carried it.
    pub(crate) fn route(
        &self,
        text: &Bytes,
        message: &Message<'_>,
        own: Option<&PendingRequest>,
        questions: &Questions,
    ) -> Routed {
        let is_handled = match message.method.as_deref() {
            None => return self.take_response(text, message),
            Some("notifications/progress") => self.pass_progress(message),
            Some("notifications/message") => self.pass_log(message, own),
            Some("notifications/resources/updated") => {
                self.updates.pass(message);
                true
            }
            Some(_) => {
                let own = own.map(PendingRequest::asker);
                questions.take(text, message, own, || self.list_askers())
            }
        };
        if is_handled {
            Routed::Handled
        } else {
            Routed::Other
        }
    }

    fn take_response(&self, text: &Bytes, message: &Message<'_>) -> Routed {
        let Some(id) = message.id.and_then(|id| read_id(id.get())) else {
            return Routed::Other;
        };
        let Some((_, request)) = self.by_id.remove(&id) else {
            if !CHANNEL_IDS.contains(&id) {
                return Routed::Other;
            }
            debug!(id, "the response was late or repeated");
            return Routed::Handled;
        };
        request.respond(match (message.result, message.error) {
            (_, Some(error)) => Err(RequestError::Protocol(ProtocolError::read(error))),
            (Some(result), None) => Ok(Json::part_of_message(text, result, message)),
            (None, None) => Err(RequestError::Protocol(ProtocolError::empty())),
        });
        Routed::Response
    }

    fn pass_progress(&self, message: &Message<'_>) -> bool {
        #[derive(Deserialize)]
        struct Progress<'a> {
            #[serde(borrow, rename = "progressToken")]
            token: &'a RawValue,
        }
        let params = message.params;
        let progress = params.and_then(|it| serde_json::from_str(it.get()).ok());
        let Some(id) = progress.and_then(|it: Progress<'_>| read_id(it.token.get())) else {
            return false;
        };
        let progress = self.by_id.get(&id).map(|it| it.listeners.progress.clone());
        let is_ours = progress.is_some() || CHANNEL_IDS.contains(&id);
        if let (Some(Some(sink)), Some(params)) = (progress, message.params) {
            sink(params);
        }
        is_ours
    }

    fn pass_log(&self, message: &Message<'_>, own: Option<&PendingRequest>) -> bool {
        let Some(params) = message.params else {
            return false;
        };
        let sink = match own {
            Some(own) => own.listeners.log.clone(),
            None => find_sole_log(self.by_id.iter().map(|it| it.listeners.clone())),
        };
        match sink {
            Some(sink) => (sink.send)(params),
            None => debug!("a log message of the server belongs to no session"),
        }
        true
    }

    /// Removes the request that a message of so many bytes, which is over the limit, answers: its id comes
    /// early, or no other is waited for that could not be so long.
    pub(crate) fn remove_too_long(
        &self,
        head: &[u8],
        bytes: usize,
    ) -> Option<(u64, Arc<PendingRequest>)> {
        let only = || {
            let mut short = self.by_id.iter().filter(|it| it.bytes_max < bytes);
            let first = short.next().map(|it| *it.key());
            first.filter(|_| short.next().is_none())
        };
        let id = answered_id(head).and_then(read_id).or_else(only);
        self.by_id.remove(&id?)
    }

    /// Returns the id of the only pending request.
    pub(crate) fn sole(&self) -> Option<u64> {
        let mut ids = self.by_id.iter().map(|it| *it.key());
        let first = ids.next()?;
        ids.next().is_none().then_some(first)
    }

    /// Ends the only pending request by a response that has no id, such as the error of a server that did not
    /// read the id. Returns false if the message is none, or more than one request is pending.
    pub(crate) fn take_response_without_id(&self, message: &Message<'_>) -> bool {
        if !is_response_without_id(message) {
            return false;
        }
        let Some((_, request)) = self.sole().and_then(|id| self.by_id.remove(&id)) else {
            return false;
        };
        request.respond_without_id(message);
        true
    }

    /// Lists the pending calls of clients, the oldest first.
    fn list_askers(&self) -> Vec<Asker> {
        let calls = self.by_id.iter();
        let calls = calls.filter(|it| it.listeners.is_of_client && !it.has_response());
        let mut askers: Vec<(u64, Asker)> = calls.map(|it| (*it.key(), it.asker())).collect();
        askers.sort_by_key(|(id, _)| *id);
        askers.into_iter().map(|(_, asker)| asker).collect()
    }

    /// Fails every pending request at once: the sender of its response is dropped.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        self.by_id.clear();
    }
}

/// Reads the number of an id or a progress token, in every spelling and even if the server returns it as a
/// string.
pub(crate) fn read_id(id: &str) -> Option<u64> {
    canonical_id(id.trim_matches('"'))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::read_id;

    #[test]
    fn ids_are_read_in_every_spelling() {
        for id in ["3", "3.0", "\"3\"", "3e0", "0.3E1", "\"3.0\""] {
            assert_eq!(read_id(id), Some(3), "{id}");
        }
        for other in ["3.5", "-3", "null", "\"a\"", "[3]", "1e30"] {
            assert_eq!(read_id(other), None, "{other}");
        }
    }
}
