//! Calls of clients that cannot be sent requests (from 2026-07-28 on): a question is the answer to
//! the call, and the call goes on when its client calls again with what was asked.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use dashmap::DashMap;
use fleet::Answer;
use jsonrpc::{Fields, Json};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tool::Digest;

use crate::reply::Reply;

/// A call that waits for its client goes on waiting for so long: meanwhile the server keeps its
/// side open, and may keep other clients waiting.
const PARKED_TIMEOUT: Duration = Duration::from_mins(10);

/// Calls of all clients that wait so; a further one gets no answer to what it asks.
const PARKED_MAX: usize = 1_024;

/// Questions of one call that wait to be told; a call may make several calls at once.
const QUESTIONS_MAX: usize = 64;

/// One question, for the client to answer with its next call.
#[derive(Debug)]
pub(crate) struct RoundQuestion {
    /// The name that the server gave it, where it did.
    pub(crate) key: Option<String>,
    pub(crate) method: &'static str,
    pub(crate) params: Json,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// The sending end of a call's questions, and the receiving one.
pub(crate) fn round_questions() -> (mpsc::Sender<RoundQuestion>, mpsc::Receiver<RoundQuestion>) {
    mpsc::channel(QUESTIONS_MAX)
}

/// The only one who may go on with a call: the client, by its name and token, with the same call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) client: Arc<str>,
    pub(crate) call: Digest,
}

/// A call that goes on between the requests of its client. Dropping it takes it back.
pub(crate) struct RoundCall {
    task: AbortOnDropHandle<Option<Reply>>,
    questions: mpsc::Receiver<RoundQuestion>,
    open: BTreeMap<String, RoundQuestion>,
    asked: usize,
}

/// What comes next of such a call.
pub(crate) enum Round {
    /// It is done; none: there is no such tool.
    Done(Option<Reply>),
    /// It asks for more.
    Asks(RoundCall),
}

impl RoundCall {
    pub(crate) fn start(
        call: impl Future<Output = Option<Reply>> + Send + 'static,
        questions: mpsc::Receiver<RoundQuestion>,
    ) -> Self {
        Self {
            task: AbortOnDropHandle::new(tokio::spawn(call)),
            questions,
            open: BTreeMap::new(),
            asked: 0,
        }
    }

    /// Waits for the end of the call, or for questions that the client has not answered yet.
    pub(crate) async fn go_on(mut self) -> Round {
        self.open.retain(|_, question| !question.answer.is_closed());
        if !self.open.is_empty() {
            return Round::Asks(self);
        }
        tokio::select! {
            biased;
            reply = &mut self.task => return Round::Done(reply.unwrap_or_default()),
            Some(question) = self.questions.recv() => self.add(question),
        }
        while let Ok(question) = self.questions.try_recv() {
            self.add(question);
        }
        Round::Asks(self)
    }

    fn add(&mut self, question: RoundQuestion) {
        self.asked += 1;
        let named = question
            .key
            .clone()
            .filter(|key| !self.open.contains_key(key));
        let key = named.unwrap_or_else(|| format!("question-{}", self.asked));
        self.open.insert(key, question);
    }

    /// Hands over what the client answered; what it left out is asked once more.
    pub(crate) fn take_answers(&mut self, responses: Option<&str>) {
        let Some(responses) = responses.and_then(Fields::of) else {
            return;
        };
        for (key, response) in &responses.0 {
            if let Ok(answer) = jsonrpc::json(response.get().to_owned())
                && let Some(question) = self.open.remove(key.as_ref())
            {
                let _ = question.answer.send(Answer::Result(answer));
            }
        }
    }

    /// The result that asks the client.
    fn ask(&self, handle: &str) -> Reply {
        let requests = self.open.iter().map(|(key, question)| {
            let (key, method) = (Value::from(key.as_str()), question.method);
            let params = question.params.as_str();
            format!(r#"{key}:{{"method":"{method}","params":{params}}}"#)
        });
        let requests: Vec<String> = requests.collect();
        let requests = requests.join(",");
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{{requests}}},"requestState":"{handle}"}}"#
        );
        Reply::of_server(Json::of_built(result), false)
    }
}

struct Parked {
    owner: Owner,
    call: RoundCall,
    _end: AbortOnDropHandle<()>,
}

/// The calls that wait for their clients, by the state that each client was given.
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
    /// Keeps a call until its client comes back, and answers what the client is to be asked. It is
    /// taken back when the client is `gone`, or does not come. None: there is no room.
    pub(crate) fn park(
        self: &Arc<Self>,
        call: RoundCall,
        owner: Owner,
        gone: CancellationToken,
    ) -> Option<Reply> {
        let mut random = [0; 16];
        if self.0.len() >= PARKED_MAX || getrandom::fill(&mut random).is_err() {
            return None;
        }
        let handle = format!("proxy-{:032x}", u128::from_ne_bytes(random));
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

    /// The call that goes on with this state, once, and for its owner alone.
    pub(crate) fn take(&self, state: &str, owner: &Owner) -> Option<RoundCall> {
        let taken = self.0.remove_if(state, |_, parked| parked.owner == *owner);
        taken.map(|(_, parked)| parked.call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(client: &str) -> Owner {
        Owner {
            client: client.into(),
            call: Digest::of_bytes(b"call"),
        }
    }

    /// A call that asks two things, and tells what it was answered.
    fn curious() -> RoundCall {
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
                sender.try_send(question).expect("there is room");
                answered
            };
            let answers = [ask("a").await, ask("b").await];
            Some(Reply::text(&format!("{answers:?}")))
        };
        RoundCall::start(call, questions)
    }

    fn state_of(reply: &Reply) -> String {
        let value: Value = serde_json::from_str(reply.json().as_str()).expect("JSON");
        assert_eq!(value["resultType"], "input_required");
        value["requestState"].as_str().expect("a text").to_owned()
    }

    #[tokio::test]
    async fn a_call_goes_on_round_by_round_for_its_owner_alone() {
        let parked = Arc::new(ParkedCalls::default());
        let mut call = curious();
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
            // What is left out is asked again.
            call.take_answers(Some(r#"{"other":{}}"#));
            let Round::Asks(asking) = call.go_on().await else {
                panic!("it asks again");
            };
            call = asking;
            call.take_answers(Some(&format!(r#"{{"{key}":{{"n":{value}}}}}"#)));
        }
        let Round::Done(Some(reply)) = call.go_on().await else {
            panic!("it is done");
        };
        assert!(
            reply.json().as_str().contains("\\\"n\\\\\\\":2"),
            "{reply:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_client_does_not_come_back_is_taken_back() {
        let parked = Arc::new(ParkedCalls::default());
        for is_gone in [true, false] {
            let Round::Asks(asking) = curious().go_on().await else {
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
