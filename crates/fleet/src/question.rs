//! Questions: what a server asks of the client for whom it works (elicitation, sampling, roots).

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::{Json, frame};
use serde_json::{Value, json};

/// The kinds of questions that MCP knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuestionKind {
    /// Something is asked of the person: a form, or a visit to an address.
    Elicitation,
    /// The client's model is to write something.
    Sampling,
    /// The folders that the client works in.
    Roots,
}

impl QuestionKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Elicitation, Self::Sampling, Self::Roots];

    /// The method by which it is asked.
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Reads a method; `None` for one that asks the client nothing.
    pub fn of(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }
}

/// One question, as the server wrote it.
#[derive(Debug, Clone)]
pub struct Question {
    /// The kind of the question.
    pub kind: QuestionKind,
    /// Its `params`, a JSON object.
    pub params: Json,
}

/// The answer to a question, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The `result`.
    Result(Json),
    /// The `error`: the client's own, or why there is no other answer.
    Error(Json),
}

impl Answer {
    /// A refusal with its reason: nobody was asked.
    pub fn refuse(why: &str) -> Self {
        Self::error(frame::METHOD_NOT_FOUND, why)
    }

    /// An error that ends a question that was asked.
    pub fn error(code: i32, why: &str) -> Self {
        let error = json!({"code": code, "message": why});
        Self::Error(Json::of_built(error.to_string()))
    }

    /// A result that we know ourselves.
    pub fn result(result: &Value) -> Self {
        Self::Result(Json::of_built(result.to_string()))
    }

    /// The message that answers the request of this id.
    pub(crate) fn frame(&self, id: &str) -> Vec<Bytes> {
        match self {
            Self::Result(result) => frame::result(id, [result.bytes()]),
            Self::Error(error) => frame::error_of(id, [error.bytes()]),
        }
    }
}

/// A client that can be asked, for as long as one call of it lasts.
pub trait Asks: Send + Sync {
    /// Tells sessions apart: their questions never mix.
    fn session(&self) -> u64;

    /// The name that the client gave itself, on one line, for people who wait for its answer.
    fn client(&self) -> String {
        "a client".to_owned()
    }

    /// The capabilities that the client announced: the JSON object of the protocol.
    fn capabilities(&self) -> Json;

    /// Returns true if the client is asked in the response to its call: then it is not known whether
    /// the client comes back.
    fn takes_rounds(&self) -> bool;

    /// Asks, and waits for the answer. A question that the client does not support is refused at once.
    /// Dropping the future cancels the question.
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;

    /// Returns when the client has been away for so long that it may not come back: it does not read
    /// the questions that it was asked. Never returns for a client for which this cannot be detected.
    fn until_away(&self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    /// Pauses the clock of the call until the returned value is dropped.
    fn stop_clock(&self) -> ClockStop {
        ClockStop::default()
    }

    /// The same client for a question of which nobody knows to which of its calls it belongs; none:
    /// as for its call.
    fn in_session(&self) -> Option<Arc<dyn Asks>> {
        None
    }

    /// Tells the client something that belongs to a question of before.
    fn tell(&self, method: &str, params: &str);

    /// The same client where no call is under way.
    fn without_call(&self) -> Arc<dyn Asks>;
}

/// Stops clocks of a call until it is dropped.
#[derive(Default)]
pub struct ClockStop(Vec<Box<dyn Send>>);

impl ClockStop {
    /// One more clock that stands as long as this guard is kept.
    #[must_use]
    pub fn and(mut self, guard: impl Send + 'static) -> Self {
        self.0.push(Box::new(guard));
        self
    }
}

impl fmt::Debug for ClockStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClockStop({})", self.0.len())
    }
}

impl fmt::Debug for dyn Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asks({})", self.session())
    }
}

#[cfg(test)]
pub(crate) mod fake {
    use super::*;

    struct Client {
        takes_rounds: bool,
    }

    /// A client that announces nothing and refuses every question.
    pub(crate) fn client(takes_rounds: bool) -> Arc<dyn Asks> {
        Arc::new(Client { takes_rounds })
    }

    impl Asks for Client {
        fn session(&self) -> u64 {
            u64::from(self.takes_rounds)
        }

        fn capabilities(&self) -> Json {
            Json::of_built("{}".to_owned())
        }

        fn takes_rounds(&self) -> bool {
            self.takes_rounds
        }

        fn ask(&self, _: Question) -> BoxFuture<'_, Answer> {
            std::future::ready(Answer::refuse("no")).boxed()
        }

        fn tell(&self, _: &str, _: &str) {}

        fn without_call(&self) -> Arc<dyn Asks> {
            client(self.takes_rounds)
        }
    }
}
