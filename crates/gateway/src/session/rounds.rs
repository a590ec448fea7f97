//! Calls of clients that are asked by the answer to their call.

use std::sync::Arc;

use bytes::Bytes;
use jsonrpc::{Fields, Json, frame};
use serde_json::value::RawValue;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use tool::Digest;

use crate::{
    call_context::CallContext,
    gateway::Gateway,
    parked::{Owner, Round, RoundCall, RoundQuestion},
    reply::Reply,
};

/// What a call says beside its arguments when it goes on.
#[derive(Debug, Default)]
pub(super) struct Continuation {
    pub(super) state: Option<Json>,
    pub(super) responses: Option<Json>,
}

impl Continuation {
    pub(super) fn read(line: &Bytes, params: &Fields<'_>) -> Self {
        let part = |key| params.filled(key).map(|it| Json::part_of(line, it));
        Self {
            state: part("requestState"),
            responses: part("inputResponses"),
        }
    }
}

/// One request of a call that goes in rounds.
pub(super) struct RoundRequest {
    pub(super) name: String,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) continuation: Continuation,
    /// Whose it is, by name and token.
    pub(super) client: Arc<str>,
    /// Cancelled when the client is gone.
    pub(super) gone: CancellationToken,
}

/// The end of one request.
pub(super) enum Outcome {
    Reply(Reply),
    NoSuchTool(String),
    /// It is refused, with this code and for this reason.
    Refused(i32, &'static str),
}

impl Outcome {
    /// The line that answers the request of this id.
    pub(super) fn line(&self, id: &Json) -> Vec<Bytes> {
        let id = id.as_str();
        match self {
            Self::Reply(reply) => frame::result(id, reply.parts(true)),
            Self::NoSuchTool(name) => vec![refuse_unknown(id, name)],
            Self::Refused(code, why) => vec![frame::error(id, *code, why)],
        }
    }
}

pub(super) fn refuse_unknown(id: &str, name: &str) -> Bytes {
    frame::error(id, frame::INVALID_PARAMS, &format!("Unknown tool: {name}"))
}

const NO_SUCH_STATE: &str = "requestState: no call of this client with these arguments waits under \
                             it. It counts once and for ten minutes; call again without it";

const TOO_MANY: &str = "too many calls wait for their clients";

impl RoundRequest {
    /// Makes the call, or goes on with one, until it is done or asks for more.
    pub(super) async fn answer(
        self,
        gateway: &Arc<Gateway>,
        context: CallContext,
        questions: Receiver<RoundQuestion>,
    ) -> Outcome {
        let owner = Owner {
            client: Arc::clone(&self.client),
            call: self.digest(),
        };
        let under_way = match &self.continuation.state {
            None => self.start(Arc::clone(gateway), context, questions),
            Some(state) => {
                let state = serde_json::from_str::<String>(state.as_str()).unwrap_or_default();
                let Some(mut under_way) = gateway.parked.take(&state, &owner) else {
                    return Outcome::Refused(frame::INVALID_PARAMS, NO_SUCH_STATE);
                };
                let responses = self.continuation.responses.as_ref();
                under_way.take_answers(responses.map(Json::as_str));
                under_way
            }
        };
        match under_way.go_on().await {
            Round::Done(Some(reply)) => Outcome::Reply(reply),
            Round::Done(None) => Outcome::NoSuchTool(self.name),
            Round::Asks(asking) => match gateway.parked.park(asking, owner, self.gone) {
                Some(asks) => Outcome::Reply(asks),
                None => Outcome::Refused(frame::INTERNAL_ERROR, TOO_MANY),
            },
        }
    }

    fn start(
        &self,
        gateway: Arc<Gateway>,
        context: CallContext,
        questions: Receiver<RoundQuestion>,
    ) -> RoundCall {
        let (name, arguments) = (self.name.clone(), self.arguments.clone());
        let calling = async move {
            gateway
                .call_tool(&name, arguments.as_deref(), context)
                .await
        };
        RoundCall::start(calling, questions)
    }

    fn digest(&self) -> Digest {
        let arguments = self.arguments.as_deref().map_or("{}", RawValue::get);
        let name = serde_json::Value::from(self.name.as_str());
        Digest::of_json(&format!("[{name},{arguments}]"))
    }
}
