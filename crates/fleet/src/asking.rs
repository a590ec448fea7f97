//! The questions of one server: whose each is, and which are open.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use dashmap::DashMap;
use futures::future::{BoxFuture, join_all};
use jsonrpc::{Fields, Json, Message, ProtocolError, text_of};
use mcp::ADDRESSES_FIRST;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tool::ServerName;
use tracing::info;

use crate::{
    changes::Changes,
    limits::{ELICITATIONS_MAX, QUESTION_TIMEOUT, QUESTION_UNDISTURBED, QUESTIONS_MAX},
    question::{Answer, Asks, Question, QuestionKind},
    roots::Roots,
    session_turns::{SessionTurns, Turn},
};

const COMPLETE: &str = "notifications/elicitation/complete";

/// What a server asks, over all its processes.
#[derive(Debug)]
pub(crate) struct Asking {
    server: ServerName,
    /// Told when it asks so for the first time, for that to be remembered.
    changes: Arc<Changes>,
    /// The roots that it is told.
    pub(crate) roots: Roots,
    /// It has asked where nothing names the call: from then on calls of different sessions go one
    /// after another.
    names_no_call: AtomicBool,
    turns: SessionTurns,
    /// The callers whose calls wait for it or are under way there.
    callers: DashMap<u64, Arc<dyn Asks>>,
    next_caller: AtomicU64,
    /// Who was asked to visit an address, the last ones last.
    elicitations: Mutex<VecDeque<(String, Arc<dyn Asks>)>>,
}

/// A call under way, as a question sees it.
pub(crate) struct Asker {
    /// None: its caller cannot be asked anything.
    pub(crate) asks: Option<Arc<dyn Asks>>,
    /// Cancelled when the call is over.
    pub(crate) ended: CancellationToken,
}

impl Asking {
    pub(crate) fn new(
        server: &ServerName,
        changes: Arc<Changes>,
        roots: Roots,
        asks_clients: bool,
    ) -> Self {
        Self {
            server: server.clone(),
            changes,
            roots,
            names_no_call: AtomicBool::new(asks_clients),
            turns: SessionTurns::default(),
            callers: DashMap::new(),
            next_caller: AtomicU64::new(0),
            elicitations: Mutex::default(),
        }
    }

    /// Whether it has asked where nothing names the call.
    pub(crate) fn names_no_call(&self) -> bool {
        self.names_no_call.load(Ordering::Relaxed)
    }

    fn learn_that_it_names_no_call(&self) {
        if !self.names_no_call.swap(true, Ordering::Relaxed) {
            self.changes.note(&self.server);
        }
    }

    /// Waits until no call of another session is under way, where that decides whose a question is.
    pub(crate) async fn take_turn(self: &Arc<Self>, caller: Option<&Arc<dyn Asks>>) -> CallTurn {
        let session = caller.map(|asks| asks.session());
        let turn = self.turns.enter(session, self.names_no_call()).await;
        let number = self.next_caller.fetch_add(1, Ordering::Relaxed);
        if let Some(caller) = caller {
            self.callers.insert(number, Arc::clone(caller));
        }
        CallTurn {
            asking: Arc::clone(self),
            number,
            _turn: turn,
        }
    }

    /// The roots, asked with a call of the client where there is one: some clients take no question
    /// without.
    async fn list_roots(&self) -> Answer {
        let caller = self.callers.iter().next().map(|it| Arc::clone(it.value()));
        self.roots.list(caller).await
    }

    /// Tells whom it asked that what was to be done at an address is done.
    fn complete(&self, params: Option<&RawValue>) {
        let Some(params) = params else { return };
        let id = Fields::of(params.get()).and_then(|fields| text_of(fields.get("elicitationId")?));
        let Some(id) = id else { return };
        let mut asked = self.elicitations.lock();
        if let Some(at) = asked.iter().position(|(known, _)| *known == id)
            && let Some((_, asks)) = asked.remove(at)
        {
            asks.tell(COMPLETE, params.get());
        }
    }

    /// Remembers who is asked to visit an address.
    pub(crate) fn note_elicitation(&self, params: &str, asks: &Arc<dyn Asks>) {
        let id = Fields::of(params).and_then(|fields| text_of(fields.get("elicitationId")?));
        if let Some(id) = id {
            let mut asked = self.elicitations.lock();
            if asked.len() >= ELICITATIONS_MAX {
                asked.pop_front();
            }
            asked.push_back((id.into_owned(), asks.without_call()));
        }
    }

    /// Remembers who is told by an error which addresses to visit first.
    pub(crate) fn note_refusal(&self, error: &ProtocolError, asks: &Arc<dyn Asks>) {
        if error.code.parse() != Ok(ADDRESSES_FIRST) {
            return;
        }
        let data = error.data.as_deref().and_then(Fields::of);
        let list = data.and_then(|data| data.get("elicitations"));
        let list: Vec<&RawValue> = list
            .and_then(|list| serde_json::from_str(list.get()).ok())
            .unwrap_or_default();
        for params in list {
            self.note_elicitation(params.get(), asks);
        }
    }
}

/// A call that has its turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct CallTurn {
    asking: Arc<Asking>,
    number: u64,
    _turn: Turn,
}

impl Drop for CallTurn {
    fn drop(&mut self) {
        self.asking.callers.remove(&self.number);
    }
}

/// Takes an answer to the server.
pub(crate) type AnswerSink = Arc<dyn Fn(Vec<Bytes>) -> BoxFuture<'static, ()> + Send + Sync>;

/// The questions of one connection.
#[derive(Clone)]
pub(crate) struct Questions {
    asking: Arc<Asking>,
    /// By the text of the request's id; cancelled when the server takes one back.
    open: Arc<DashMap<String, CancellationToken>>,
    send: AnswerSink,
}

impl Questions {
    pub(crate) fn new(asking: Arc<Asking>, send: AnswerSink) -> Self {
        Self {
            asking,
            open: Arc::default(),
            send,
        }
    }

    /// Takes what belongs to questions; whether it did. `own` is the call that the message names by
    /// its way, `all` are those under way.
    pub(crate) fn take(
        &self,
        line: &Bytes,
        message: &Message<'_>,
        own: Option<Asker>,
        all: impl FnOnce() -> Vec<Asker>,
    ) -> bool {
        let Some(method) = message.method.as_deref() else {
            return false;
        };
        match (QuestionKind::of(method), message.id) {
            (Some(kind), Some(id)) => {
                let params = message.params.map_or_else(
                    || Json::of_built("{}".to_owned()),
                    |params| Json::part_of(line, params),
                );
                self.begin(id.get(), Question { kind, params }, own, all);
                true
            }
            (None, None) if method == COMPLETE => {
                self.asking.complete(message.params);
                true
            }
            (None, None) if method == "notifications/cancelled" => self.cancel(message),
            _ => false,
        }
    }

    fn cancel(&self, message: &Message<'_>) -> bool {
        let id = message
            .params
            .and_then(|params| Fields::of(params.get())?.get("requestId"));
        let question = id.and_then(|id| self.open.remove(id.get()));
        question
            .inspect(|(_, taken_back)| taken_back.cancel())
            .is_some()
    }

    fn begin(
        &self,
        id: &str,
        question: Question,
        own: Option<Asker>,
        all: impl FnOnce() -> Vec<Asker>,
    ) {
        let id = id.to_owned();
        let (questions, send) = (self.clone(), Arc::clone(&self.send));
        if self.open.len() >= QUESTIONS_MAX {
            let refusal = Answer::refuse(&format!("more than {QUESTIONS_MAX} questions are open"));
            tokio::spawn(async move { send(refusal.frame(&id)).await });
            return;
        }
        if question.kind != QuestionKind::Roots && own.is_none() {
            self.asking.learn_that_it_names_no_call();
        }
        let askers = own.map_or_else(all, |own| vec![own]);
        let taken_back = CancellationToken::new();
        self.open.insert(id.clone(), taken_back.clone());
        tokio::spawn(async move {
            let answering = questions.answer(question, askers);
            let answer = taken_back.run_until_cancelled(answering).await;
            questions.open.remove(&id);
            if let Some(answer) = answer {
                send(answer.frame(&id)).await;
            }
        });
    }

    async fn answer(&self, question: Question, askers: Vec<Asker>) -> Answer {
        if question.kind == QuestionKind::Roots {
            return self.asking.list_roots().await;
        }
        let method = question.kind.method();
        let asks = match find_sole(&askers) {
            Ok(asks) => asks,
            Err(why) => {
                info!(method, why, "a question of the server is refused");
                return Answer::refuse(&format!("{method}: {why}"));
            }
        };
        self.asking
            .note_elicitation(question.params.as_str(), &asks);
        let over = join_all(askers.iter().map(|asker| asker.ended.cancelled()));
        tokio::select! {
            biased;
            _ = over => Answer::refuse(&format!("{method}: the call is over that this was asked for")),
            () = self.until_in_the_way(&asks) => {
                let why = "the client has not come back with an answer, and others wait";
                Answer::refuse(&format!("{method}: {why}"))
            }
            answer = timeout(QUESTION_TIMEOUT, asks.ask(question)) => answer.unwrap_or_else(|_| {
                let minutes = QUESTION_TIMEOUT.as_secs() / 60;
                Answer::refuse(&format!("{method}: no answer within {minutes} min"))
            }),
        }
    }
}

impl Questions {
    /// Waits until a question keeps others out for a client of which nobody knows whether it will
    /// come back with the answer.
    async fn until_in_the_way(&self, asks: &Arc<dyn Asks>) {
        if !asks.takes_rounds() || !self.asking.names_no_call() {
            return std::future::pending().await;
        }
        sleep(QUESTION_UNDISTURBED).await;
        self.asking.turns.until_wanted().await;
    }
}

/// The one session whose calls are under way, by its oldest call.
fn find_sole(askers: &[Asker]) -> Result<Arc<dyn Asks>, &'static str> {
    let [first, others @ ..] = askers else {
        return Err("no call is under way, so it is nobody's to answer");
    };
    let session = |asker: &Asker| asker.asks.as_ref().map(|asks| asks.session());
    if others.iter().any(|other| session(other) != session(first)) {
        return Err("calls of several clients are under way, and nothing says whose this is");
    }
    let asks = first.asks.clone();
    asks.ok_or("the caller cannot be asked anything")
}

#[cfg(test)]
mod tests;
