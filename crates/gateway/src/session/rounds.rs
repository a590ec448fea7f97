//! Requests of clients that get questions in the response to their request.

use std::sync::Arc;

use bytes::Bytes;
use jsonrpc::{Json, frame, quote};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use tool::Digest;

use super::{
    refuse::respond,
    request::{Continuation, Wants},
};
use crate::{
    call_context::CallContext,
    client_tasks::{TakenCall, Waited},
    elicitation::parked_calls::{Owner, Round, RoundCall, RoundQuestions, WriteLine},
    forward::Method,
    gateway::Gateway,
};

/// Returns true for a request whose server may ask the client something before it has a result.
pub(super) fn goes_in_rounds(wants: &Wants) -> bool {
    match wants {
        Wants::Tool { .. } => true,
        Wants::Other(method, _) => matches!(method, Method::GetPrompt | Method::ReadResource),
        _ => false,
    }
}

pub(super) struct RoundRequest {
    pub(super) wants: Wants,
    pub(super) continuation: Continuation,
    /// Set if the client may take the call as a task.
    pub(super) taking: Option<TakenCall>,
    /// Its owner, by name and token.
    pub(super) client: Arc<str>,
    /// Cancelled when the client is gone.
    pub(super) gone: CancellationToken,
}

pub(super) fn refuse_unknown(id: &str, name: &str) -> Bytes {
    frame::error(id, frame::INVALID_PARAMS, &format!("Unknown tool: {name}"))
}

const NO_SUCH_STATE: &str = "requestState: no pending request of this client with these arguments \
                             has it. It is valid once and for ten minutes; call again without it";

const BROKEN: &str = "the request was aborted by an error in the proxy";

const TOO_MANY: &str = "too many requests are waiting for their clients";

impl RoundRequest {
    /// Starts the request, or continues it, until it is done or asks for more.
    pub(super) async fn answer(
        self,
        id: &Json,
        gateway: &Arc<Gateway>,
        context: CallContext,
        questions: Receiver<RoundQuestions>,
    ) -> Vec<Bytes> {
        let refuse = |code, why| vec![frame::error(id.as_str(), code, why)];
        let owner = Owner {
            client: Arc::clone(&self.client),
            call: digest(&self.wants),
        };
        let responses = self.continuation.responses.as_ref().map(Json::as_str);
        let under_way = match &self.continuation.state {
            None => {
                let call = answer_wanted(Arc::clone(gateway), self.wants, context);
                RoundCall::start(call, questions, responses)
            }
            Some(state) => {
                let state = serde_json::from_str::<String>(state.as_str()).unwrap_or_default();
                let Some(mut under_way) = gateway.parked.take(&state, &owner) else {
                    return refuse(frame::INVALID_PARAMS, NO_SUCH_STATE);
                };
                under_way.take_answers(responses);
                under_way
            }
        };
        let round = match self.taking {
            Some(taking) => {
                let waiting = gateway.client_tasks.wait(under_way, &self.client, taking);
                match waiting.await {
                    Waited::Round(round) => round,
                    Waited::Task(created) => return frame::result(id.as_str(), [created.bytes()]),
                }
            }
            None => under_way.go_on().await,
        };
        match round {
            Round::Done(Some(line)) => line(id),
            Round::Done(None) => refuse(frame::INTERNAL_ERROR, BROKEN),
            Round::Asks(asking) => match gateway.parked.park(asking, owner, self.gone) {
                Some(asks) => frame::result(id.as_str(), [asks.bytes()]),
                None => refuse(frame::INTERNAL_ERROR, TOO_MANY),
            },
        }
    }
}

async fn answer_wanted(gateway: Arc<Gateway>, wants: Wants, context: CallContext) -> WriteLine {
    match wants {
        Wants::Tool { name, arguments } => {
            let calling = gateway.call_tool(&name, arguments.as_deref(), context);
            let reply = calling.await;
            Box::new(move |id: &Json| match reply {
                Some(reply) => reply.line(id.as_str(), true),
                None => vec![refuse_unknown(id.as_str(), &name)],
            })
        }
        Wants::Other(method, params) => {
            let forwarding = gateway.forwarder.forward(method, &params, &context, true);
            let answer = forwarding.await;
            Box::new(move |id: &Json| respond(id.as_str(), answer, true))
        }
        _ => {
            let why = "this request cannot ask for input";
            Box::new(move |id: &Json| vec![frame::error(id.as_str(), frame::INTERNAL_ERROR, why)])
        }
    }
}

/// The digest of a request, which does not depend on the answers of its client.
fn digest(wants: &Wants) -> Digest {
    match wants {
        Wants::Tool { name, arguments } => {
            let arguments = arguments.as_deref().map_or("{}", |it| it.get());
            Digest::of_json(&format!("[{},{arguments}]", quote(name)))
        }
        Wants::Other(method, params) => {
            let pairs = params.iter();
            let pairs = pairs.map(|(key, value)| format!("[{},{}]", quote(key), value.as_str()));
            let pairs: Vec<String> = pairs.collect();
            Digest::of_json(&format!("[\"{method:?}\",{}]", pairs.join(",")))
        }
        _ => Digest::of_bytes(&[]),
    }
}
