//! Servers that ask in rounds (from 2026-07-28 on): a result asks for input, the client is asked,
//! and the request is sent again with the answers, until the result is final.

use std::sync::Arc;

use fleet::{Asks as _, CallError, Request, Servers};
use jsonrpc::mcp::ADDRESSES_FIRST;
use jsonrpc::{Fields, Json, text_of};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use super::requested_input::{RequestedInput, RoundError};
use super::server_tasks::{ServerTask, follow};
use crate::elicitation::ServerAsker;

/// The most rounds of one call, so that no server asks without end.
const ROUNDS_MAX: usize = 10;

const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// Sends a request to a server, and again with the input that the server asks for. Each round has
/// the timeout of the request; the time in which a person is asked does not count. A task that answers
/// the request is followed, after `on_task`.
pub(crate) async fn request_in_rounds(
    servers: &Arc<dyn Servers>,
    server: &ServerName,
    mut request: Request,
    asker: Option<&ServerAsker>,
    cancel: &CancellationToken,
    on_task: &(dyn Fn(&ServerTask) + Sync),
) -> Result<Json, RoundError> {
    for _ in 0..ROUNDS_MAX {
        let result = match servers.call(server, &request, cancel).await {
            Err(error) => {
                Box::pin(visit_addresses(error, asker)).await?;
                continue;
            }
            Ok(result) => result,
        };
        let is_asked_for = request.param("task").is_some();
        if let Some(task) = ServerTask::of_answer(&result, is_asked_for) {
            on_task(&task);
            return Box::pin(follow(servers, server, &request, task, asker, cancel)).await;
        }
        let Some(wanted) = RequestedInput::read(&result) else {
            return Ok(result);
        };
        let responses = wanted.ask(asker).await.map_err(RoundError::Unanswered)?;
        let params = &mut request.params;
        params.retain(|(key, _)| *key != RESPONSES && *key != STATE);
        params.push((RESPONSES.into(), responses));
        params.extend(wanted.state.map(|state| (STATE.into(), state)));
    }
    let why = format!("it asked for more {ROUNDS_MAX} times");
    Err(RoundError::Unanswered(why))
}

/// Has a client that supports rounds visit the addresses that a server of an earlier revision wants
/// visited first; the request is then made again. Any other error is returned unchanged.
async fn visit_addresses(error: CallError, asker: Option<&ServerAsker>) -> Result<(), RoundError> {
    let CallError::Protocol { error: said, .. } = &error else {
        return Err(error.into());
    };
    let asker = asker.filter(|it| it.takes_rounds() && said.code.parse() == Ok(ADDRESSES_FIRST));
    let wanted = said
        .data
        .as_deref()
        .and_then(RequestedInput::read_addresses);
    let (Some(asker), Some(wanted)) = (asker, wanted) else {
        return Err(error.into());
    };
    let answers = wanted.ask(Some(asker)).await;
    let answers = answers.map_err(RoundError::Unanswered)?;
    let fields = Fields::of(answers.as_str());
    let is_done = |answer: &RawValue| {
        let action = Fields::of(answer.get()).and_then(|it| text_of(it.get("action")?));
        action.as_deref() == Some("accept")
    };
    if fields.is_some_and(|it| it.0.iter().all(|(_, answer)| is_done(answer))) {
        return Ok(());
    }
    Err(error.into())
}
