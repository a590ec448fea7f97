//! Requests of clients that accept none from us (from 2026-07-28 on): a question is sent as the
//! response to the request, which continues when its client repeats it with the answers.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use dashmap::DashMap;
use fleet::{ClientAnswer, ServerQuestion};
use jsonrpc::{Fields, Json};
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tool::Digest;

use crate::json_text::write_object;

/// The time for which a call waits for its client: meanwhile the server keeps the call open, and may
/// keep other clients waiting.
const PARKED_TIMEOUT: Duration = Duration::from_mins(10);

/// The most waiting calls of all clients; a further call gets no answer to its questions.
const PARKED_MAX: usize = 1_024;

/// The most queued rounds of questions of one call, which may make several calls at once.
const ROUNDS_WAITING_MAX: usize = 64;

/// One question, for the client to answer with its next call.
#[derive(Debug)]
pub(crate) struct RoundQuestion {
    /// The name that the server gave it, if any.
    pub(crate) key: Option<String>,
    pub(crate) method: &'static str,
    pub(crate) params: Json,
    pub(crate) answer: oneshot::Sender<ClientAnswer>,
}

impl RoundQuestion {
    /// Creates a question, and the receiver of its answer; no answer comes if the call ends before
    /// the question is sent.
    pub(crate) fn new(
        key: Option<String>,
        question: ServerQuestion,
    ) -> (Self, oneshot::Receiver<ClientAnswer>) {
        let (answer, answered) = oneshot::channel();
        let question = Self {
            key,
            method: question.kind.method(),
            params: question.params,
            answer,
        };
        (question, answered)
    }
}

/// The questions that a server asks at once, so that its client is asked at once.
pub(crate) type RoundQuestions = Vec<RoundQuestion>;

/// The sending end of a call's questions, and the receiving one.
pub(crate) fn round_questions() -> (mpsc::Sender<RoundQuestions>, mpsc::Receiver<RoundQuestions>) {
    mpsc::channel(ROUNDS_WAITING_MAX)
}

/// Writes the line of the response to a request; the argument is the id of the last request.
pub(crate) type WriteLine = Box<dyn FnOnce(&Json) -> Vec<Bytes> + Send>;

/// The only owner that may continue a call: the client, by its name and token, with the same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) client: Arc<str>,
    pub(crate) call: Digest,
}

/// A call that continues between the requests of its client. Dropping it cancels it.
pub(crate) struct RoundCall {
    task: AbortOnDropHandle<WriteLine>,
    questions: mpsc::Receiver<RoundQuestions>,
    open: BTreeMap<String, RoundQuestion>,
    /// Answers that arrived before their questions.
    given: BTreeMap<String, Json>,
    asked: usize,
}

/// The next event of such a call.
pub(crate) enum Round {
    /// The call is done; `None`: it failed without a response.
    Done(Option<WriteLine>),
    /// The call asks for more.
    Asks(RoundCall),
}

impl RoundCall {
    /// Starts a call. `given` has answers to questions of these names before they are asked: a
    /// client that repeats a request may omit the state.
    pub(crate) fn start(
        call: impl Future<Output = WriteLine> + Send + 'static,
        questions: mpsc::Receiver<RoundQuestions>,
        given: Option<&str>,
    ) -> Self {
        Self {
            task: AbortOnDropHandle::new(tokio::spawn(call)),
            questions,
            open: BTreeMap::new(),
            given: read_answers(given).collect(),
            asked: 0,
        }
    }

    /// Waits for the end of the call, or for questions that the client has not answered yet.
    pub(crate) async fn go_on(mut self) -> Round {
        loop {
            self.open.retain(|_, question| !question.answer.is_closed());
            if !self.open.is_empty() {
                return Round::Asks(self);
            }
            tokio::select! {
                biased;
                line = &mut self.task => return Round::Done(line.ok()),
                Some(questions) = self.questions.recv() => self.add(questions),
            }
            while let Ok(questions) = self.questions.try_recv() {
                self.add(questions);
            }
        }
    }

    fn add(&mut self, questions: RoundQuestions) {
        for question in questions {
            self.asked += 1;
            let named = question.key.clone();
            let given = named.as_ref().and_then(|key| self.given.remove(key));
            if let Some(answer) = given {
                let _ = question.answer.send(ClientAnswer::Result(answer));
                continue;
            }
            let named = named.filter(|key| !self.open.contains_key(key));
            let key = named.unwrap_or_else(|| format!("question-{}", self.asked));
            self.open.insert(key, question);
        }
    }

    /// Passes on the client's answers; a question without an answer is asked again.
    pub(crate) fn take_answers(&mut self, responses: Option<&str>) {
        for (key, answer) in read_answers(responses) {
            if let Some(question) = self.open.remove(&key) {
                let _ = question.answer.send(ClientAnswer::Result(answer));
            }
        }
    }

    /// The open questions, as a JSON object.
    pub(crate) fn requests(&self) -> String {
        let requests = self.open.iter().map(|(key, question)| {
            let (method, params) = (question.method, question.params.as_str());
            (key, format!(r#"{{"method":"{method}","params":{params}}}"#))
        });
        write_object(requests)
    }

    /// The result that asks the client.
    fn ask(&self, handle: &str) -> Json {
        let requests = self.requests();
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{requests},"requestState":"{handle}"}}"#
        );
        Json::of_built(result)
    }
}

/// The answers by the names of their questions; text that is no object has no answers.
fn read_answers(responses: Option<&str>) -> impl Iterator<Item = (String, Json)> {
    let fields = responses.and_then(Fields::of);
    let members = fields.into_iter().flat_map(|fields| fields.0);
    members.filter_map(|(key, value)| {
        Fields::of(value.get())?;
        let answer = jsonrpc::json(value.get().to_owned()).ok()?;
        Some((key.into_owned(), answer))
    })
}

/// Returns an id that cannot be guessed; `None` if the system has no random numbers.
pub(crate) fn random_id(prefix: &str) -> Option<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    Some(format!("{prefix}{:032x}", u128::from_ne_bytes(random)))
}

struct Parked {
    owner: Owner,
    call: RoundCall,
    _end: AbortOnDropHandle<()>,
}

/// The calls that wait for their clients, by the state that was sent to each client.
#[derive(Default)]
pub(crate) struct ParkedCalls(DashMap<String, Parked>);

impl fmt::Debug for ParkedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkedCalls")
            .field("calls", &self.0.len())
            .finish()
    }
}

impl ParkedCalls {
    /// Keeps a call until its client returns, and returns the questions for the client. The call is
    /// cancelled when the client is `gone`, or does not return. `None`: there is no room.
    pub(crate) fn park(
        self: &Arc<Self>,
        call: RoundCall,
        owner: Owner,
        gone: CancellationToken,
    ) -> Option<Json> {
        if self.0.len() >= PARKED_MAX {
            return None;
        }
        let handle = random_id("proxy-")?;
        let asks = call.ask(&handle);
        let end = {
            let (parked, handle) = (Arc::downgrade(self), handle.clone());
            tokio::spawn(async move {
                gone.run_until_cancelled(sleep(PARKED_TIMEOUT)).await;
                if let Some(parked) = parked.upgrade() {
                    parked.0.remove(&handle);
                }
            })
        };
        let parked = Parked {
            owner,
            call,
            _end: AbortOnDropHandle::new(end),
        };
        self.0.insert(handle, parked);
        Some(asks)
    }

    /// The call that continues with this state, once, and for its owner alone.
    pub(crate) fn take(&self, state: &str, owner: &Owner) -> Option<RoundCall> {
        let taken = self.0.remove_if(state, |_, parked| parked.owner == *owner);
        taken.map(|(_, parked)| parked.call)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn owner(client: &str) -> Owner {
        Owner {
            client: client.into(),
            call: Digest::of_bytes(b"call"),
        }
    }

    /// A call that asks two things, and tells what it was answered.
    fn curious(given: Option<&str>) -> RoundCall {
        let (sender, questions) = round_questions();
        let call = async move {
            let ask = |key: &str| {
                let (answer, answered) = oneshot::channel();
                let question = RoundQuestion {
                    key: Some(key.to_owned()),
                    method: "elicitation/create",
                    params: Json::of_built("{}".to_owned()),
                    answer,
                };
                sender.try_send(vec![question]).expect("there is room");
                answered
            };
            let answers = [ask("a").await, ask("b").await];
            let line = Bytes::from(format!("{answers:?}"));
            Box::new(move |_: &Json| vec![line]) as WriteLine
        };
        RoundCall::start(call, questions, given)
    }

    fn state_of(asks: &Json) -> String {
        let value: Value = serde_json::from_str(asks.as_str()).expect("JSON");
        assert_eq!(value["resultType"], "input_required");
        value["requestState"].as_str().expect("a text").to_owned()
    }

    #[tokio::test]
    async fn a_call_goes_on_round_by_round_for_its_owner_alone() {
        let parked = Arc::new(ParkedCalls::default());
        let mut call = curious(None);
        for (key, value) in [("a", "1"), ("b", "2")] {
            let Round::Asks(asking) = call.go_on().await else {
                panic!("it asks");
            };
            let asks = parked.park(asking, owner("me"), CancellationToken::new());
            let state = state_of(&asks.expect("there is room"));
            assert!(parked.take(&state, &owner("you")).is_none());
            assert!(parked.take("proxy-0", &owner("me")).is_none());
            call = parked.take(&state, &owner("me")).expect("it is mine");
            assert!(
                parked.take(&state, &owner("me")).is_none(),
                "a state counts once"
            );
            // A question without an answer is asked again.
            call.take_answers(Some(r#"{"other":{}}"#));
            let Round::Asks(asking) = call.go_on().await else {
                panic!("it asks again");
            };
            call = asking;
            call.take_answers(Some(&format!(r#"{{"{key}":{{"n":{value}}}}}"#)));
        }
        assert!(told(call).await.contains("\\\"n\\\":2"));
    }

    async fn told(call: RoundCall) -> String {
        let Round::Done(Some(line)) = call.go_on().await else {
            panic!("it is done");
        };
        let line = line(&Json::of_built("1".to_owned())).concat();
        String::from_utf8(line).expect("it is text")
    }

    #[tokio::test]
    async fn an_answer_that_came_first_is_no_question_and_what_is_no_object_no_answer() {
        let both = r#"{"a":{"n":1},"b":{"n":2},"other":{}}"#;
        assert!(told(curious(Some(both))).await.contains("\\\"n\\\":2"));
        let Round::Asks(mut asking) = curious(Some(r#"{"a":{"n":1},"b":7}"#)).go_on().await else {
            panic!("it asks for b");
        };
        asking.take_answers(Some(r#"{"b":12345}"#));
        let Round::Asks(asking) = asking.go_on().await else {
            panic!("it asks for b again");
        };
        assert_eq!(asking.open.keys().collect::<Vec<_>>(), ["b"]);
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_any_more_is_not_in_the_way_of_the_result() {
        let (sender, questions) = round_questions();
        let (end, over) = oneshot::channel::<()>();
        let call = async move {
            let (answer, answered) = oneshot::channel();
            let question = RoundQuestion {
                key: None,
                method: "elicitation/create",
                params: Json::of_built("{}".to_owned()),
                answer,
            };
            sender.try_send(vec![question]).expect("there is room");
            let _ = over.await;
            drop(answered);
            Box::new(|_: &Json| vec![Bytes::from("done")]) as WriteLine
        };
        let Round::Asks(asking) = RoundCall::start(call, questions, None).go_on().await else {
            panic!("it asks");
        };
        end.send(()).expect("it waits");
        tokio::task::yield_now().await;
        assert_eq!(told(asking).await, "done");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_client_does_not_come_back_is_over() {
        let parked = Arc::new(ParkedCalls::default());
        for is_gone in [true, false] {
            let Round::Asks(asking) = curious(None).go_on().await else {
                panic!("it asks");
            };
            let gone = CancellationToken::new();
            let asks = parked.park(asking, owner("me"), gone.clone());
            let state = state_of(&asks.expect("there is room"));
            if is_gone {
                gone.cancel();
                tokio::task::yield_now().await;
            } else {
                sleep(PARKED_TIMEOUT + Duration::from_secs(1)).await;
            }
            assert!(parked.take(&state, &owner("me")).is_none());
            assert!(parked.0.is_empty());
        }
    }
}
