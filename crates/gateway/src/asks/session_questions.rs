//! The questions that one session has open, as requests to its client.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use dashmap::DashMap;
use fleet::{Answer, QuestionKind};
use jsonrpc::{Fields, Json, Message, canonical_id, frame};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tracing::debug;

use super::capabilities::Capabilities;
use crate::out::Out;

pub(super) const GONE: &str = "the client is gone, or takes no requests";

/// The questions that one session has open.
#[derive(Debug)]
pub(crate) struct SessionQuestions {
    /// Tells sessions apart.
    pub(super) session: u64,
    /// Where what belongs to no request goes.
    home: Out,
    /// What the client announced when the session began.
    pub(super) capabilities: Mutex<Arc<Capabilities>>,
    /// An id begins with it: one that answers a question of an earlier process answers none of ours.
    prefix: String,
    next: AtomicU64,
    /// By id, as JSON text.
    open: DashMap<String, oneshot::Sender<Answer>>,
    /// The ways to the client of the calls under way, the newest last.
    calls: Mutex<Vec<(u64, Out)>>,
}

impl SessionQuestions {
    pub(crate) fn new(session: u64, home: Out) -> Arc<Self> {
        let mut random = [0; 8];
        // Without randomness an answer that comes late could be taken for another.
        let _ = getrandom::fill(&mut random);
        Arc::new(Self {
            session,
            home,
            capabilities: Mutex::default(),
            prefix: format!("proxy-{:016x}", u64::from_ne_bytes(random)),
            next: AtomicU64::new(0),
            open: DashMap::new(),
            calls: Mutex::default(),
        })
    }

    /// Takes what the client says of itself in `initialize`.
    pub(crate) fn know_client(&self, message: &Message<'_>) {
        if message.method.as_deref() != Some("initialize") {
            return;
        }
        if let Some(announced) = read_announced(message) {
            *self.capabilities.lock() = Arc::new(announced);
        }
    }

    /// Takes what is known of a client that has come back.
    pub(crate) fn recall(&self, letters: &str) {
        *self.capabilities.lock() = Arc::new(Capabilities::of_letters(letters));
    }

    /// Takes the client's answer to a question; one that nobody waits for is dropped.
    pub(crate) fn take_answer(&self, line: &Bytes, message: &Message<'_>) {
        let id = message.id.and_then(|id| canonical_id(id.get()));
        let Some((_, answer)) = id.and_then(|id| self.open.remove(&id)) else {
            debug!("an answer of the client answers no question");
            return;
        };
        let _ = answer.send(match (message.result, message.error) {
            (_, Some(error)) => Answer::Error(Json::part_of(line, error)),
            (Some(result), None) => Answer::Result(Json::part_of(line, result)),
            (None, None) => Answer::refuse("the client's answer has neither a result nor an error"),
        });
    }

    /// Takes note of a call under way, until what is returned is dropped.
    pub(crate) fn begin_call(self: &Arc<Self>, out: &Out) -> impl Drop + use<> {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        self.calls.lock().push((call, out.clone()));
        CallUnderWay {
            questions: Arc::clone(self),
            call,
        }
    }

    /// The way to a client for which no call is named.
    pub(super) fn way_home(&self) -> Option<Out> {
        match &self.home {
            Out::Router(router) => {
                let stream = router.stream().map(Out::Reply);
                stream.or_else(|| self.calls.lock().last().map(|(_, out)| out.clone()))
            }
            other => Some(other.clone()),
        }
    }

    pub(super) async fn ask(
        self: &Arc<Self>,
        out: &Out,
        kind: QuestionKind,
        params: Bytes,
    ) -> Answer {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = Value::from(format!("{}-{number}", self.prefix)).to_string();
        let (answer, answered) = oneshot::channel();
        let key = canonical_id(&id).unwrap_or_else(|| id.clone());
        self.open.insert(key.clone(), answer);
        let request = frame::request(&id, kind.method(), [params]);
        let _open = OpenQuestion {
            questions: Arc::clone(self),
            key,
            id,
            out: out.clone(),
        };
        if out.tell(request).await.is_err() {
            return Answer::refuse(GONE);
        }
        tokio::select! {
            biased;
            answer = answered => answer.unwrap_or_else(|_| Answer::refuse(GONE)),
            () = out.gone() => Answer::refuse(GONE),
        }
    }
}

/// What a client announces that it can be asked, in an `initialize`.
pub(crate) fn read_announced(message: &Message<'_>) -> Option<Capabilities> {
    let params = message.params.and_then(|it| Fields::of(it.get()))?;
    let announced = params.get("capabilities")?.get().to_owned();
    jsonrpc::json(announced).ok().map(Capabilities::read)
}

struct CallUnderWay {
    questions: Arc<SessionQuestions>,
    call: u64,
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        let mut calls = self.questions.calls.lock();
        calls.retain(|(call, _)| *call != self.call);
    }
}

/// A question until its answer; dropped before, it is taken back.
struct OpenQuestion {
    questions: Arc<SessionQuestions>,
    key: String,
    id: String,
    out: Out,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if self.questions.open.remove(&self.key).is_some() {
            let why = "nobody waits for the answer any more";
            let params = format!(r#"{{"requestId":{},"reason":"{why}"}}"#, self.id);
            let cancelled = frame::notification("notifications/cancelled", &params);
            self.out.offer(vec![cancelled]);
        }
    }
}
