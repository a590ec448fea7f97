//! The calls under way over streamable HTTP, whose answers are taken out below rmcp.

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use dashmap::DashMap;
use jsonrpc::{Json, Message, ProtocolError, frame};
use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ClientRequest, GetMeta as _, JsonRpcRequest};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::super::{http::Headers, obstacle::Obstacle};
use crate::{
    asking::{Asker, Questions},
    error::Denied,
    params::read_progress_token,
    request::{Listeners, find_sole_log},
    updates::Updates,
};

/// One call, or list, under way: takes its answer, the first one that comes.
pub(super) struct PendingCall {
    outcome: Mutex<Option<Outcome>>,
    listeners: Listeners,
    /// Those that rmcp would have to know the tool for.
    headers: Headers,
    names: OnceLock<Names>,
    over: CancellationToken,
}

/// The names under which a call is known; they are forgotten with the call.
struct Names {
    calls: Arc<PendingCalls>,
    id: String,
    token: Option<String>,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Result(Json),
    Error(ProtocolError),
    /// It did not get there, or nothing that answers it came back.
    Failed(TransportError),
}

/// Why HTTP brought no answer, without secrets.
#[derive(Debug, Clone)]
pub(super) struct TransportError {
    pub(super) why: String,
    /// The server did not want to serve us.
    pub(super) denial: Option<Denial>,
    /// It does not know who asks (HTTP 401).
    pub(super) is_unknown: bool,
    /// No connection could be had: the server was sent nothing.
    pub(super) is_unreached: bool,
    /// The reason, where it is a known one.
    pub(super) obstacle: Option<Obstacle>,
}

impl TransportError {
    /// The denial that it is.
    pub(super) fn denied(self) -> Denied {
        Denied {
            why: self.why,
            is_unknown: self.is_unknown,
        }
    }
}

/// Why a server does not want to serve us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial {
    /// It does not know who asks.
    Stranger,
    /// It knows, and wants more than that.
    StepUp,
}

impl PendingCall {
    pub(super) fn new(listeners: Listeners) -> Self {
        Self {
            outcome: Mutex::default(),
            listeners,
            headers: Headers::new(),
            names: OnceLock::new(),
            over: CancellationToken::new(),
        }
    }

    /// Sent beside rmcp's own.
    pub(super) fn with_headers(mut self, headers: Headers) -> Self {
        self.headers = headers;
        self
    }

    pub(super) fn headers(&self) -> &Headers {
        &self.headers
    }

    pub(super) fn take(&self) -> Option<Outcome> {
        self.lock().take()
    }

    pub(super) fn put(&self, outcome: Outcome) {
        self.lock().get_or_insert(outcome);
        self.over.cancel();
    }

    pub(super) fn asker(&self) -> Asker {
        Asker {
            asks: self.listeners.asks.clone(),
            ended: self.over.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outcome>> {
        self.outcome.lock()
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.over.cancel();
        if let Some(names) = self.names.get() {
            names.calls.by_id.remove(&names.id);
            if let Some(token) = &names.token {
                names.calls.by_token.remove(token);
            }
        }
    }
}

/// The calls under way by their names: an answer may come on another stream than its own.
#[derive(Default)]
pub(super) struct PendingCalls {
    by_id: DashMap<String, Weak<PendingCall>>,
    by_token: DashMap<String, Weak<PendingCall>>,
    pub(super) updates: Updates,
}

impl PendingCalls {
    /// Known before the request is sent, so neither answer nor progress can come too early.
    pub(super) fn add(
        self: &Arc<Self>,
        call: &Arc<PendingCall>,
        request: &JsonRpcRequest<ClientRequest>,
    ) {
        let token = request.request.get_meta().get_progress_token();
        let names = call.names.get_or_init(|| Names {
            calls: Arc::clone(self),
            id: request.id.to_string(),
            token: token.map(|token| token.0.to_string()),
        });
        self.by_id.insert(names.id.clone(), Arc::downgrade(call));
        if let Some(token) = &names.token {
            self.by_token.insert(token.clone(), Arc::downgrade(call));
        }
    }
}

fn get(calls: &DashMap<String, Weak<PendingCall>>, key: &RawValue) -> Option<Arc<PendingCall>> {
    calls.get(key.get().trim_matches('"'))?.upgrade()
}

/// A change to a message before rmcp reads it.
pub(super) enum Rewrite {
    Keep,
    /// By a stand-in that it takes for the message.
    Replace(String),
    Drop,
}

impl PendingCalls {
    /// Takes out what is ours. `of` is the call whose own stream the message came on.
    pub(super) fn intercept(
        &self,
        text: &Bytes,
        of: Option<&PendingCall>,
        questions: &Questions,
    ) -> Rewrite {
        let Some(message) = Message::parse(text) else {
            return Rewrite::Keep;
        };
        match message.method.as_deref() {
            None => self.take_answer(text, &message),
            Some("notifications/progress") => self.pass_progress(&message),
            Some("notifications/message") => self.pass_log(&message, of),
            Some("notifications/resources/updated") => {
                self.updates.pass(&message);
                Rewrite::Drop
            }
            Some(_) => {
                let own = of.map(PendingCall::asker);
                if questions.take(text, &message, own, || self.askers()) {
                    Rewrite::Drop
                } else {
                    Rewrite::Keep
                }
            }
        }
    }

    /// The calls under way; which is the oldest is not known.
    fn askers(&self) -> Vec<Asker> {
        let calls = self.by_id.iter().filter_map(|call| call.upgrade());
        let calls = calls.filter(|call| call.listeners.is_of_client && !call.over.is_cancelled());
        calls.map(|call| call.asker()).collect()
    }

    fn take_answer(&self, text: &Bytes, message: &Message<'_>) -> Rewrite {
        let Some((call, id)) = message
            .id
            .and_then(|id| Some((get(&self.by_id, id)?, id.get().trim_matches('"'))))
        else {
            return Rewrite::Keep;
        };
        let tools = message
            .result
            .map_or_else(String::new, write_tools_with_headers);
        call.put(match (message.result, message.error) {
            (_, Some(error)) => Outcome::Error(ProtocolError::read(error)),
            (Some(result), None) => Outcome::Result(Json::part_of(text, result)),
            (None, None) => Outcome::Error(ProtocolError::empty()),
        });
        Rewrite::Replace(write_stand_in(id, &tools))
    }

    fn pass_progress(&self, message: &Message<'_>) -> Rewrite {
        let Some(params) = message.params else {
            return Rewrite::Keep;
        };
        let call = read_progress_token(params).and_then(|token| get(&self.by_token, token));
        let Some(call) = call else {
            return Rewrite::Keep;
        };
        let is_answered = call.lock().is_some();
        if let Some(sink) = call.listeners.progress.as_ref().filter(|_| !is_answered) {
            sink(params);
        }
        Rewrite::Drop
    }
}

impl PendingCalls {
    fn pass_log(&self, message: &Message<'_>, of: Option<&PendingCall>) -> Rewrite {
        let Some(params) = message.params else {
            return Rewrite::Keep;
        };
        let own = of.map(|call| call.listeners.log.clone());
        let sink = own.unwrap_or_else(|| {
            let calls = self.by_id.iter().filter_map(|call| call.upgrade());
            let listeners: Vec<Listeners> = calls.map(|call| call.listeners.clone()).collect();
            find_sole_log(listeners)
        });
        match sink {
            Some(sink) => (sink.send)(params),
            None => debug!("a log message of the server belongs to no one session"),
        }
        Rewrite::Drop
    }
}

/// A result in place of the one that was taken out: nobody but rmcp reads it.
pub(super) fn write_stand_in(id: &str, tools: &str) -> String {
    let result = Bytes::from(format!(r#"{{"tools":[{tools}]}}"#));
    let line = frame::result(id, [result]).concat();
    String::from_utf8(line).expect("it was put together from texts")
}

/// The tools of a list of which rmcp must know the schema: some of their arguments travel
/// as headers as well.
fn write_tools_with_headers(result: &RawValue) -> String {
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
        let calls = Arc::new(PendingCalls::default());
        let questions = Questions::new(Arc::default(), Arc::new(|_| Box::pin(async {})));
        let call = Arc::new(PendingCall::new(Listeners::default()));
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let message = ClientJsonRpcMessage::request(ping, RequestId::Number(7));
        let JsonRpcMessage::Request(request) = &message else {
            panic!("a request");
        };
        calls.add(&call, request);
        for result in ["1.0", "2"] {
            let text = Bytes::from(format!(r#"{{"id":"7","result":{result}}}"#));
            let taken = calls.intercept(&text, None, &questions);
            assert!(matches!(taken, Rewrite::Replace(_)));
        }
        let answer = call.take();
        assert!(matches!(answer, Some(Outcome::Result(json)) if json.as_str() == "1.0"));
        drop(call);
        assert_eq!((calls.by_id.len(), calls.by_token.len()), (0, 0));
    }
}
