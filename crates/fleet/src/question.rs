//! Questions of a server to a client: elicitation, sampling and roots.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::{Json, frame};
use serde_json::{Value, json};

/// The kinds of questions that MCP knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuestionKind {
    /// The person fills in a form, or visits a URL.
    Elicitation,
    /// The client's model writes something.
    Sampling,
    /// The client reports its folders.
    Roots,
}

impl QuestionKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Elicitation, Self::Sampling, Self::Roots];

    /// Returns the method of the request.
    pub fn method(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Returns the kind of a method, if it is a question.
    pub fn of(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }
}

/// One question, as the server wrote it.
#[derive(Debug, Clone)]
pub struct ServerQuestion {
    /// The kind of the question.
    pub kind: QuestionKind,
    /// Its `params`, a JSON object.
    pub params: Json,
}

/// The answer to a question, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientAnswer {
    /// The `result`.
    Result(Json),
    /// The `error`, from the client or from the proxy.
    Error(Json),
}

impl ClientAnswer {
    /// Refuses a question without asking anybody.
    pub fn refuse(why: &str) -> Self {
        Self::error(frame::METHOD_NOT_FOUND, why)
    }

    /// Ends a question with an error.
    pub fn error(code: i32, why: &str) -> Self {
        let error = json!({"code": code, "message": why});
        Self::Error(Json::of_built(error.to_string()))
    }

    /// Answers a question without the client.
    pub fn result(result: &Value) -> Self {
        Self::Result(Json::of_built(result.to_string()))
    }

    /// Writes the response to the request of this id.
    pub(crate) fn frame(&self, id: &str) -> Vec<Bytes> {
        match self {
            Self::Result(result) => frame::result(id, [result.bytes()]),
            Self::Error(error) => frame::error_of(id, [error.bytes()]),
        }
    }
}

/// A client that can be asked during one of its calls.
pub trait Asks: Send + Sync {
    /// Returns the number of the session. Questions of different sessions never mix.
    fn session(&self) -> u64;

    /// Returns the client's name for itself, on one line, for other users who wait for its answer.
    fn client(&self) -> String {
        "a client".to_owned()
    }

    /// Returns the capabilities that the client announced, as the JSON object of the protocol.
    fn capabilities(&self) -> Json;

    /// Returns true if the client is asked in the response to its call. Such a client may never send
    /// the answer.
    fn takes_rounds(&self) -> bool;

    /// Asks and waits for the answer. A question that the client does not support is refused at once.
    /// Dropping the future cancels the question.
    fn ask(&self, question: ServerQuestion) -> BoxFuture<'_, ClientAnswer>;

    /// Waits until the client has not read its questions for a long time and may not return. Never
    /// returns for a client for which this cannot be detected.
    fn until_away(&self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    /// Stops the clock of the call until the returned value is dropped.
    fn stop_clock(&self) -> ClockStop {
        ClockStop::default()
    }

    /// Returns the same client for a question that may belong to any of its calls; `None` if that makes
    /// no difference.
    fn in_session(&self) -> Option<Arc<dyn Asks>> {
        None
    }

    /// Sends the client a notification about an earlier question.
    fn tell(&self, method: &str, params: &str);

    /// Returns the same client outside of a call.
    fn without_call(&self) -> Arc<dyn Asks>;
}

/// Stops clocks of a call until it is dropped.
#[derive(Default)]
pub struct ClockStop(Vec<Box<dyn Send>>);

impl ClockStop {
    /// Adds a clock, which is stopped as long as this guard is kept.
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

    struct FakeClient {
        takes_rounds: bool,
    }

    /// A client that announces nothing and refuses every question.
    pub(crate) fn client(takes_rounds: bool) -> Arc<dyn Asks> {
        Arc::new(FakeClient { takes_rounds })
    }

    impl Asks for FakeClient {
        fn session(&self) -> u64 {
            u64::from(self.takes_rounds)
        }

        fn capabilities(&self) -> Json {
            Json::of_built("{}".to_owned())
        }

        fn takes_rounds(&self) -> bool {
            self.takes_rounds
        }

        fn ask(&self, _: ServerQuestion) -> BoxFuture<'_, ClientAnswer> {
            std::future::ready(ClientAnswer::refuse("no")).boxed()
        }

        fn tell(&self, _: &str, _: &str) {}

        fn without_call(&self) -> Arc<dyn Asks> {
            client(self.takes_rounds)
        }
    }
}
