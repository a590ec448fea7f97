//! The ids of events: `PROCESS-STREAM-EVENT`, and `PROCESS-STREAM-EVENT-REQUEST` while a request
//! waits for its answer on the stream.
//!
//! Sessions outlive the process, so an id says which process sent the event and which request
//! waits. The next process recognizes an id that is not its own and answers that request.

use std::{
    fmt,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use bytes::Bytes;
use gateway::{LOST_CALL, answer_lost_call};
use jsonrpc::{canonical_id, frame};

/// The longest id of a request that an event id repeats, in bytes. Clients count or send a UUID;
/// the answer to a request with a longer id is lost with the process.
const REQUEST_ID_BYTES_MAX: usize = 256;

/// Random, so that no two processes share it.
static PROCESS: LazyLock<u64> = LazyLock::new(|| {
    let mut random = [0; 8];
    getrandom::fill(&mut random).expect("the system has randomness");
    u64::from_be_bytes(random)
});

/// Counts the streams of all sessions, since a session may be closed and resumed.
static STREAMS: AtomicU64 = AtomicU64::new(1);

/// A stream of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamNumber(u64);

/// The id of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventId {
    process: u64,
    pub(super) stream: StreamNumber,
    pub(super) event: u64,
    /// `None` after the response was sent.
    request: Option<WaitingRequest>,
}

/// A request that waits for its answer on a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaitingRequest {
    /// The id as it was received.
    pub(super) id: String,
    /// True for a call, which may have run although its response is lost.
    pub(super) is_call: bool,
}

impl StreamNumber {
    pub(super) fn next() -> Self {
        Self(STREAMS.fetch_add(1, Ordering::Relaxed))
    }
}

impl EventId {
    pub(super) fn new(stream: StreamNumber, event: u64, request: Option<&WaitingRequest>) -> Self {
        let fits = |it: &&WaitingRequest| it.id.len() <= REQUEST_ID_BYTES_MAX;
        Self {
            process: *PROCESS,
            stream,
            event,
            request: request.filter(fits).cloned(),
        }
    }

    /// Parses an id that a client sent; `None` if it does not have the form of ours.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '-');
        let process = u64::from_str_radix(parts.next()?, 16).ok()?;
        let stream = StreamNumber(parts.next()?.parse().ok()?);
        let event = parts.next()?.parse().ok()?;
        let request = match parts.next() {
            None => None,
            Some(request) => Some(WaitingRequest::read(request)?),
        };
        Some(Self {
            process,
            stream,
            event,
            request,
        })
    }

    pub(super) fn is_ours(&self) -> bool {
        self.process == *PROCESS
    }

    /// Builds the response to the request that waited on the stream, which is not kept.
    pub(super) fn answer_lost(&self) -> Option<Bytes> {
        let WaitingRequest { id, is_call } = self.request.as_ref()?;
        Some(match (is_call, self.is_ours()) {
            // Streams are resumed only in sessions, which the modern era does not have.
            (true, false) => answer_lost_call(id, false, LOST_CALL),
            (true, true) => answer_lost_call(id, false, NOT_KEPT),
            (false, _) => frame::error(id, frame::INTERNAL_ERROR, ASK_AGAIN),
        })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}-{}", self.process, self.stream.0, self.event)?;
        match &self.request {
            None => Ok(()),
            Some(request) => write!(f, "-{request}"),
        }
    }
}

const CALL: char = 'c';
const OTHER: char = 'o';

impl WaitingRequest {
    fn read(text: &str) -> Option<Self> {
        let is_call = match text.chars().next()? {
            CALL => true,
            OTHER => false,
            _ => return None,
        };
        let id = BASE64.decode(&text[1..]).ok()?;
        let id = String::from_utf8(id).ok()?;
        // It is written on a line of its own.
        let fits = id.len() <= REQUEST_ID_BYTES_MAX && !id.contains(['\n', '\r']);
        (fits && canonical_id(&id).is_some()).then_some(Self { id, is_call })
    }
}

impl fmt::Display for WaitingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_call { CALL } else { OTHER };
        write!(f, "{kind}{}", BASE64.encode(&self.id))
    }
}

/// The text for a call whose stream this process does not keep any more.
const NOT_KEPT: &str = "error server_unavailable: the response to this call broke off and is not kept \
                        any more, so the call may have run. Look whether it did before you call \
                        again.";

/// The text for any other request: it changes nothing.
const ASK_AGAIN: &str = "the response to this request is lost: the proxy's daemon ended, or the client \
                         stayed away too long. Send the request again";

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn waiting(id: &str, is_call: bool) -> WaitingRequest {
        WaitingRequest {
            id: id.to_owned(),
            is_call,
        }
    }

    /// Of an event that a former process sent while this request waited.
    fn former(request: Option<&WaitingRequest>) -> String {
        let mut id = EventId::new(StreamNumber(1), 0, request);
        id.process ^= 1;
        id.to_string()
    }

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let long = format!("{:?}", "x".repeat(REQUEST_ID_BYTES_MAX - 2));
        for id in ["7", r#""a-b""#, r#""\u00fc \"""#, "\"ü\"", "-1", &long] {
            let request = waiting(id, true);
            let event = EventId::new(StreamNumber(12), 3, Some(&request));
            let text = event.to_string();
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            assert_eq!(EventId::read(&text), Some(event));
        }
        let longer = waiting(&format!("{long} "), true);
        let event = EventId::new(StreamNumber(1), 1, Some(&longer));
        assert_eq!(event.request, None);
        for strange in ["", "1", "1-1", "x-1-1", "1-1-x", "1-1-1-", "1-1-1-xNw"] {
            assert_eq!(EventId::read(strange), None, "{strange}");
        }
        for no_id in ["{}", "7\n", "7\n\ndata: 8", &longer.id] {
            let text = format!("1-1-1-c{}", BASE64.encode(no_id));
            assert_eq!(EventId::read(&text), None, "{no_id}");
        }
    }

    #[track_caller]
    fn check_answer(event: &str, id: &Value) -> Value {
        let lost = EventId::read(event).and_then(|it| it.answer_lost());
        let answer = lost.expect("a request waits");
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["id"], *id);
        answer
    }

    #[test]
    fn a_call_of_a_former_process_is_answered_that_it_may_have_run() {
        for (text, id) in [("7", Value::from(7)), (r#""a""#, Value::from("a"))] {
            let answer = check_answer(&former(Some(&waiting(text, true))), &id);
            assert_eq!(answer["result"]["isError"], true);
            assert_eq!(answer["result"]["content"][0]["text"], LOST_CALL);
        }
        let answer = check_answer(&former(Some(&waiting("7", false))), &Value::from(7));
        assert_eq!(answer["error"]["code"], -32_603);
        let id = EventId::new(StreamNumber(0), 1, Some(&waiting("7", true)));
        let answer = check_answer(&id.to_string(), &Value::from(7));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("may have run") && text != LOST_CALL, "{text}");
        assert_eq!(EventId::read(&former(None)).unwrap().answer_lost(), None);
    }
}
