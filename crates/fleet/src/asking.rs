//! The questions of one server: whose each is, and which are open.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use bytes::Bytes;
use dashmap::DashMap;
use futures::future::{BoxFuture, join_all};
use jsonrpc::mcp::ADDRESSES_FIRST;
use jsonrpc::{Fields, Json, Message, ProtocolError, text_of};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tool::ServerName;
use tracing::info;

pub(crate) use self::habits::Habits;
use crate::{
    HeldUp, Request,
    changes::Changes,
    limits::{ELICITATIONS_MAX, QUESTION_TIMEOUT, QUESTION_UNDISTURBED, QUESTIONS_MAX},
    question::{Asks, ClientAnswer, QuestionKind, ServerQuestion},
    roots::Roots,
    session_turns::{AskedSession, Entrant, SessionTurn, SessionTurns},
    vitals::WaitingQuestion,
};

mod habits;

/// The notification that a requested visit is complete.
pub(crate) const COMPLETE: &str = "notifications/elicitation/complete";

/// The requests that a server sends to clients, over all its processes.
#[derive(Debug)]
pub(crate) struct Asking {
    server: ServerName,
    /// Notified of a changed list, and of a tool that asks a question for the first time, so that it is
    /// recorded.
    changes: Arc<Changes>,
    pub(crate) roots: Roots,
    turns: SessionTurns,
    /// The tools that ask. Their calls run alone, or beside calls of the same session. All processes of
    /// the server share this.
    pub(crate) habits: Arc<Habits>,
    under_way: DashMap<u64, UnderWay>,
    next: AtomicU64,
    /// The questions that are open, the oldest first, each with its session.
    open: Mutex<BTreeMap<u64, (u64, WaitingQuestion)>>,
    /// The clients that were asked to visit a URL, the most recent last.
    elicitations: Mutex<VecDeque<(String, Arc<dyn Asks>)>>,
}

/// A call that has its turn.
#[derive(Debug)]
struct UnderWay {
    caller: Option<Arc<dyn Asks>>,
    what: String,
    /// Its client answered a question that names no call meanwhile.
    was_asked: bool,
    turn: SessionTurn,
}

/// A call under way, as a question sees it.
pub(crate) struct Asker {
    /// None: its caller cannot be asked anything.
    pub(crate) asks: Option<Arc<dyn Asks>>,
    /// Cancelled when the call has ended.
    pub(crate) ended: CancellationToken,
}

impl Asking {
    pub(crate) fn new(
        server: &ServerName,
        changes: Arc<Changes>,
        roots: Roots,
        habits: Arc<Habits>,
    ) -> Self {
        Self {
            server: server.clone(),
            changes,
            roots,
            turns: SessionTurns::default(),
            habits,
            under_way: DashMap::new(),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            elicitations: Mutex::default(),
        }
    }

    /// Records that the server reported a changed list of its tools, prompts or resources.
    pub(crate) fn note_changed_list(&self) {
        self.changes.note(&self.server);
    }

    /// Records that a client answered a question that names no call, and which of its calls may have
    /// caused it.
    fn note_answer(&self, session: u64) {
        let mut calls = Vec::new();
        for mut call in self.under_way.iter_mut() {
            let of_call = call.caller.as_ref().map(|asks| asks.session());
            if of_call == Some(session) {
                call.was_asked = true;
                calls.push(call.what.clone());
            }
        }
        if self.habits.note_question(&calls) {
            self.note_changed_list();
        }
        // It may ask again.
        for mut call in self.under_way.iter_mut() {
            if call.was_asked && self.habits.asks(&call.what) {
                call.turn.note_question();
            }
        }
    }

    /// Waits until no call of another session is running, if the tool or one that runs asks questions.
    pub(crate) async fn take_turn(self: &Arc<Self>, request: &Request) -> CallTurn {
        let what = habits::describe(request);
        let turn = self.turns.enter(self.entrant(request, &what)).await;
        self.begin_call(request, what, turn)
    }

    /// Returns the turn of a call if it need not wait for one.
    pub(crate) fn try_take_turn(self: &Arc<Self>, request: &Request) -> Option<CallTurn> {
        let what = habits::describe(request);
        let turn = self.turns.try_enter(self.entrant(request, &what))?;
        Some(self.begin_call(request, what, turn))
    }

    fn entrant(&self, request: &Request, what: &str) -> Entrant {
        Entrant {
            session: request.asks.as_ref().map(|asks| asks.session()),
            is_quiet: !self.habits.asks(what),
        }
    }

    fn begin_call(
        self: &Arc<Self>,
        request: &Request,
        what: String,
        turn: SessionTurn,
    ) -> CallTurn {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let call = UnderWay {
            caller: request.asks.clone(),
            what,
            was_asked: false,
            turn,
        };
        self.under_way.insert(number, call);
        CallTurn {
            asking: Arc::clone(self),
            number,
            is_answered: false,
        }
    }

    /// The number of calls that wait for calls of other sessions.
    pub(crate) fn count_waiting(&self) -> usize {
        self.turns.count_waiting()
    }

    /// The reason why a call of this session does not get its turn.
    pub(crate) fn explain_wait(&self, session: Option<u64>) -> HeldUp {
        let open = self.open.lock();
        let mut others = open.values().filter(|(of, _)| Some(*of) != session);
        others.next().map_or(HeldUp::OtherClients, |(_, it)| {
            let client = it.client.clone();
            HeldUp::Question { client }
        })
    }

    pub(crate) fn list_open(&self) -> Vec<WaitingQuestion> {
        let open = self.open.lock();
        let waiting = open.values().map(|(session, it)| WaitingQuestion {
            holds_up_others: self.turns.is_wanted(Some(*session)),
            ..it.clone()
        });
        waiting.collect()
    }

    /// Registers an open question to a client, until the returned value is dropped.
    fn begin_question(
        self: &Arc<Self>,
        kind: QuestionKind,
        asks: &Arc<dyn Asks>,
        names_no_call: bool,
    ) -> impl Drop + Send + use<> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let question = WaitingQuestion {
            client: asks.client(),
            method: kind.method(),
            since: SystemTime::now(),
            holds_up_others: false,
        };
        let session = asks.session();
        self.open.lock().insert(number, (session, question));
        BegunQuestion {
            asking: Arc::clone(self),
            number,
            _asked: self.turns.note_asked(Some(session), names_no_call),
        }
    }

    /// Returns the roots, requested over a call of the client if there is one: some clients accept no
    /// request without.
    async fn list_roots(&self) -> ClientAnswer {
        let caller = self.under_way.iter().find_map(|it| it.caller.clone());
        self.roots.list(caller).await
    }

    /// Notifies the client that was asked to visit a URL that the visit is complete.
    fn complete(&self, params: Option<&RawValue>) {
        let Some(params) = params else { return };
        let Some(id) = read_elicitation_id(params.get()) else {
            return;
        };
        let mut asked = self.elicitations.lock();
        if let Some(at) = asked.iter().position(|(known, _)| *known == id)
            && let Some((_, asks)) = asked.remove(at)
        {
            asks.tell(COMPLETE, params.get());
        }
    }

    /// Records the client that is asked to visit a URL.
    pub(crate) fn note_elicitation(&self, params: &str, asks: &Arc<dyn Asks>) {
        if let Some(id) = read_elicitation_id(params) {
            let mut asked = self.elicitations.lock();
            if asked.len() >= ELICITATIONS_MAX {
                asked.pop_front();
            }
            asked.push_back((id.into_owned(), asks.without_call()));
        }
    }

    /// Records the client that an error asks to visit URLs first.
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

fn read_elicitation_id(params: &str) -> Option<Cow<'_, str>> {
    text_of(Fields::of(params)?.get("elicitationId")?)
}

/// A call that has its turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct CallTurn {
    asking: Arc<Asking>,
    number: u64,
    pub(crate) is_answered: bool,
}

impl Drop for CallTurn {
    fn drop(&mut self) {
        let call = self.asking.under_way.remove(&self.number);
        if let Some((_, call)) = call
            && self.is_answered
            && !call.was_asked
        {
            self.asking.habits.note_quiet_call(call.what);
        }
    }
}

/// A question that was put to a client, until it is dropped.
struct BegunQuestion {
    asking: Arc<Asking>,
    number: u64,
    _asked: AskedSession,
}

impl Drop for BegunQuestion {
    fn drop(&mut self) {
        self.asking.open.lock().remove(&self.number);
    }
}

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

    /// Handles messages that belong to questions. Returns true if it did. `own` is the call whose stream
    /// carried the message, `all` are the running calls.
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
                self.begin(id.get(), ServerQuestion { kind, params }, own, all);
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
            .map(|(_, taken_back)| taken_back.cancel())
            .is_some()
    }

    fn begin(
        &self,
        id: &str,
        question: ServerQuestion,
        own: Option<Asker>,
        all: impl FnOnce() -> Vec<Asker>,
    ) {
        let id = id.to_owned();
        let (questions, send) = (self.clone(), Arc::clone(&self.send));
        if self.open.len() >= QUESTIONS_MAX {
            let refusal =
                ClientAnswer::refuse(&format!("more than {QUESTIONS_MAX} questions are open"));
            tokio::spawn(async move { send(refusal.frame(&id)).await });
            return;
        }
        let names_no_call = own.is_none();
        let askers = own.map_or_else(all, |own| vec![own]);
        let taken_back = CancellationToken::new();
        self.open.insert(id.clone(), taken_back.clone());
        tokio::spawn(async move {
            let answering = questions.answer(question, askers, names_no_call);
            let answer = taken_back.run_until_cancelled(answering).await;
            questions.open.remove(&id);
            if let Some(answer) = answer {
                send(answer.frame(&id)).await;
            }
        });
    }

    async fn answer(
        &self,
        question: ServerQuestion,
        askers: Vec<Asker>,
        names_no_call: bool,
    ) -> ClientAnswer {
        if question.kind == QuestionKind::Roots {
            return self.asking.list_roots().await;
        }
        let method = question.kind.method();
        let asks = match find_sole(&askers) {
            Ok(asks) => asks,
            Err(why) => {
                info!(method, why, "a question of the server is refused");
                return ClientAnswer::refuse(&format!("{method}: {why}"));
            }
        };
        self.asking
            .note_elicitation(question.params.as_str(), &asks);
        let _begun = self
            .asking
            .begin_question(question.kind, &asks, names_no_call);
        // Any of the calls may be the one that asks.
        let callers = askers.iter().filter_map(|asker| asker.asks.as_ref());
        let _stopped: Vec<_> = callers.map(|asks| asks.stop_clock()).collect();
        let over = join_all(askers.iter().map(|asker| asker.ended.cancelled()));
        tokio::select! {
            biased;
            _ = over => ClientAnswer::refuse(&format!("{method}: the call is over that this was asked for")),
            () = self.until_in_the_way(&asks) => {
                let client = asks.client();
                info!(method, client, "a question is taken back, since other clients wait");
                let why = "the client has not answered, and others wait for this server";
                ClientAnswer::refuse(&format!("{method}: {why}"))
            }
            answer = timeout(QUESTION_TIMEOUT, asks.ask(question)) => match answer {
                Ok(answer) => {
                    if names_no_call && matches!(answer, ClientAnswer::Result(_)) {
                        self.asking.note_answer(asks.session());
                    }
                    answer
                }
                Err(_) => {
                    let minutes = QUESTION_TIMEOUT.as_secs() / 60;
                    ClientAnswer::refuse(&format!("{method}: no answer within {minutes} min"))
                }
            },
        }
    }

    /// Waits until a question keeps calls of other sessions out, and its client has had its time to
    /// answer, or is away.
    async fn until_in_the_way(&self, asks: &Arc<dyn Asks>) {
        let (turns, session) = (&self.asking.turns, Some(asks.session()));
        let undisturbed = sleep(QUESTION_UNDISTURBED);
        let mut undisturbed = std::pin::pin!(undisturbed);
        loop {
            turns.until_wanted(session).await;
            tokio::select! {
                () = &mut undisturbed => break,
                () = asks.until_away() => {}
            }
            if turns.is_wanted(session) {
                return;
            }
        }
        turns.until_wanted(session).await;
    }
}

/// Returns the client of the only session that has running calls. A question is assigned to its call
/// if there is only one, or else to the session.
fn find_sole(askers: &[Asker]) -> Result<Arc<dyn Asks>, &'static str> {
    let [first, others @ ..] = askers else {
        return Err("no call is under way, so it is nobody's to answer");
    };
    let session = |asker: &Asker| asker.asks.as_ref().map(|asks| asks.session());
    if others.iter().any(|other| session(other) != session(first)) {
        return Err("calls of several clients are under way, and nothing says whose this is");
    }
    let Some(asks) = &first.asks else {
        return Err("the caller cannot be asked anything");
    };
    let in_session = (!others.is_empty()).then(|| asks.in_session()).flatten();
    Ok(in_session.unwrap_or_else(|| Arc::clone(asks)))
}

#[cfg(test)]
mod tests;
