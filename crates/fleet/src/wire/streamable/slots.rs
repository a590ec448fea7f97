//! Where answers are put that are taken out below the engine.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, Weak},
};

use bytes::Bytes;
use dashmap::DashMap;
use jsonrpc::{Json, Message, ProtocolError};
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ClientRequest, GetMeta as _, JsonRpcRequest};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lane::{Listeners, LogSink, progress_token};

/// Where the answer to one request is put; the first one counts.
pub(super) struct Slot {
    answer: Mutex<Option<Answer>>,
    listeners: Listeners,
    place: OnceLock<Place>,
}

/// Under what a slot is known; it is forgotten with the slot.
struct Place {
    slots: Arc<Slots>,
    id: String,
    token: Option<String>,
}

#[derive(Debug)]
pub(super) enum Answer {
    Result(Json),
    Error(ProtocolError),
    /// It did not get there, or nothing that answers it came back.
    Trouble(Trouble),
}

/// Why HTTP brought no answer, without secrets.
#[derive(Debug, Clone)]
pub(super) struct Trouble {
    pub(super) why: String,
    /// The server wants to know who asks.
    pub(super) is_denial: bool,
}

impl Slot {
    pub(super) fn new(listeners: Listeners) -> Self {
        Self {
            answer: Mutex::default(),
            listeners,
            place: OnceLock::new(),
        }
    }

    pub(super) fn take(&self) -> Option<Answer> {
        self.answer().take()
    }

    pub(super) fn put(&self, answer: Answer) {
        self.answer().get_or_insert(answer);
    }

    fn answer(&self) -> MutexGuard<'_, Option<Answer>> {
        self.answer.lock()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(place) = self.place.get() {
            place.slots.by_id.remove(&place.id);
            if let Some(token) = &place.token {
                place.slots.by_token.remove(token);
            }
        }
    }
}

/// The slots of requests under way: an answer may come on another stream than its own.
#[derive(Default)]
pub(super) struct Slots {
    by_id: DashMap<String, Weak<Slot>>,
    by_token: DashMap<String, Weak<Slot>>,
}

impl Slots {
    /// Known before the request is sent, so neither answer nor progress can come too early.
    pub(super) fn add(self: &Arc<Self>, slot: &Arc<Slot>, request: &JsonRpcRequest<ClientRequest>) {
        let token = request.request.get_meta().get_progress_token();
        let place = slot.place.get_or_init(|| Place {
            slots: Arc::clone(self),
            id: request.id.to_string(),
            token: token.map(|token| token.0.to_string()),
        });
        self.by_id.insert(place.id.clone(), Arc::downgrade(slot));
        if let Some(token) = &place.token {
            self.by_token.insert(token.clone(), Arc::downgrade(slot));
        }
    }
}

fn find(slots: &DashMap<String, Weak<Slot>>, key: &RawValue) -> Option<Arc<Slot>> {
    slots.get(key.get().trim_matches('"'))?.upgrade()
}

/// What the engine reads in place of a message.
pub(super) enum Instead {
    /// The message itself.
    Same,
    Other(String),
    Nothing,
}

impl Slots {
    pub(super) fn tap(&self, text: &Bytes) -> Instead {
        let Some(message) = Message::parse(text) else {
            return Instead::Same;
        };
        match message.method.as_deref() {
            None => self.tap_answer(text, &message),
            Some("notifications/progress") => self.tap_progress(&message),
            Some("notifications/message") => self.tap_log(&message),
            Some(_) => Instead::Same,
        }
    }

    fn tap_answer(&self, text: &Bytes, message: &Message<'_>) -> Instead {
        let Some((slot, id)) = message
            .id
            .and_then(|id| Some((find(&self.by_id, id)?, id.get().trim_matches('"'))))
        else {
            return Instead::Same;
        };
        let tools = message.result.map_or_else(String::new, tools_with_headers);
        slot.put(match (message.result, message.error) {
            (_, Some(error)) => Answer::Error(ProtocolError::read(error)),
            (Some(result), None) => Answer::Result(Json::part_of(text, result)),
            (None, None) => Answer::Error(ProtocolError::empty()),
        });
        Instead::Other(stand_in(id, &tools))
    }

    fn tap_progress(&self, message: &Message<'_>) -> Instead {
        let Some(params) = message.params else {
            return Instead::Same;
        };
        let slot = progress_token(params).and_then(|token| find(&self.by_token, token));
        let Some(slot) = slot else {
            return Instead::Same;
        };
        let is_answered = slot.answer().is_some();
        if let Some(sink) = slot.listeners.progress.as_ref().filter(|_| !is_answered) {
            sink(params);
        }
        Instead::Nothing
    }
}

impl Slots {
    /// Each session with a call under way hears it once.
    fn tap_log(&self, message: &Message<'_>) -> Instead {
        let Some(params) = message.params else {
            return Instead::Same;
        };
        let slots = self.by_id.iter().filter_map(|slot| slot.upgrade());
        let slots: Vec<Arc<Slot>> = slots.collect();
        let sinks = slots.iter().filter_map(|slot| slot.listeners.log.as_ref());
        let sinks: BTreeMap<u64, &LogSink> = sinks.map(|sink| (sink.session, sink)).collect();
        for sink in sinks.values() {
            (sink.send)(params);
        }
        Instead::Nothing
    }
}

pub(super) fn stand_in(id: &str, tools: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tools}]}}}}"#)
}

/// The tools of a list of which the engine must know the schema: some of their arguments travel
/// as headers as well.
fn tools_with_headers(result: &RawValue) -> String {
    const MARK: &[u8] = b"x-mcp-header";
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Tool<'a> {
        #[serde(borrow)]
        name: &'a RawValue,
        #[serde(borrow, rename = "inputSchema")]
        schema: &'a RawValue,
    }
    let is_marked = |text: &str| memchr::memmem::find(text.as_bytes(), MARK).is_some();
    if !is_marked(result.get()) {
        return String::new();
    }
    let list: Option<List<'_>> = serde_json::from_str(result.get()).ok();
    let tools = list.map(|list| list.tools).unwrap_or_default();
    let tool = |raw: &RawValue| {
        let tool: Tool<'_> = serde_json::from_str(raw.get()).ok()?;
        let (name, schema) = (tool.name, tool.schema);
        Some(format!(r#"{{"name":{name},"inputSchema":{schema}}}"#))
    };
    let marked = tools.into_iter().filter(|raw| is_marked(raw.get()));
    marked.filter_map(tool).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, PingRequest, RequestId};

    use super::*;

    #[test]
    fn a_request_that_is_over_leaves_nothing_and_the_first_answer_counts() {
        let slots = Arc::new(Slots::default());
        let slot = Arc::new(Slot::new(Listeners::default()));
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let message = ClientJsonRpcMessage::request(ping, RequestId::Number(7));
        let JsonRpcMessage::Request(request) = &message else {
            panic!("a request");
        };
        slots.add(&slot, request);
        for result in ["1.0", "2"] {
            let text = Bytes::from(format!(r#"{{"id":"7","result":{result}}}"#));
            assert!(matches!(slots.tap(&text), Instead::Other(_)));
        }
        let answer = slot.take();
        assert!(matches!(answer, Some(Answer::Result(json)) if json.as_str() == "1.0"));
        drop(slot);
        assert_eq!((slots.by_id.len(), slots.by_token.len()), (0, 0));
    }
}
