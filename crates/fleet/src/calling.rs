//! One call of one server: its turn, and its handling if the server dies.

use std::sync::Arc;

use futures::FutureExt as _;
use jsonrpc::Json;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tool::ServerName;
use tracing::{debug, info};

use crate::{
    CallError, Failure, Ran, Request,
    asking::CallTurn,
    error::RequestError,
    limits::{SENDS_MAX, TURN_WAIT_MAX},
    roster::Roster,
    server::{NotReady, Server},
};

/// The progress of a call, for the error of one whose limit ran out.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) server: Server,
    pub(crate) ran: Ran,
    /// It waits until the calls of other sessions are over.
    pub(crate) waits_for_turn: bool,
}

/// Calls in the caller's turn, and retries once if the server died and the call is safe to repeat.
pub(crate) async fn call(
    roster: &Roster,
    request: &Request,
    progress: &mut Progress,
) -> Result<Json, CallError> {
    let first = progress.server.clone();
    let retired = first.retired.clone();
    let queued = async {
        let turn = take_turn(roster, request, progress).await;
        let places = Arc::clone(&progress.server.places);
        (turn, places.acquire_owned().await)
    };
    let (mut turn, _place) = tokio::select! {
        biased;
        admitted = queued => admitted,
        () = retired.cancelled() => {
            // It is the one that is replaced; its spares end with it.
            progress.server = first.clone();
            return Err(NotReady::stopping().into_error(&first.spec.name));
        }
    };
    let server = &progress.server.clone();
    let may_retry = server.spec.retries_safe_calls && request.is_safe;
    let answer = match call_ready(server, request, progress).await {
        // After a restart by a person, the call may have been its reason.
        Err(CallError::Unavailable {
            ran: Ran::Maybe,
            failure,
            ..
        }) if may_retry && !failure.is_restart => call_ready(server, request, progress).await,
        answer => answer,
    };
    turn.is_answered = answer.is_ok();
    answer
}

/// Waits for the turn of a call; from [`TURN_WAIT_MAX`] on in every process of its server. The client is
/// notified that it waits. The progress names the server of the turn. If a further process does not
/// start, the call goes on waiting: it may be that only one can run.
async fn take_turn(roster: &Roster, request: &Request, progress: &mut Progress) -> CallTurn {
    progress.waits_for_turn = false;
    let first = progress.server.clone();
    let mut turn = std::pin::pin!(first.asking.take_turn(request));
    if let Some(turn) = (&mut turn).now_or_never() {
        return turn;
    }
    progress.waits_for_turn = true;
    let name = &first.spec.name;
    debug!(server = %name, "a call waits for calls of other clients");
    report_wait(request, name);
    let admitted = loop {
        if let Ok(turn) = timeout(TURN_WAIT_MAX, &mut turn).await {
            break turn;
        }
        let Some((spare, turn_of_spare)) = roster.find_spare(&first, request) else {
            continue;
        };
        tokio::select! {
            biased;
            turn = &mut turn => break turn,
            ready = spare.ready() => match ready {
                Ok(_) => {
                    info!(server = %name, "a call runs in another process, since it waited for other clients");
                    progress.server = spare.clone();
                    break turn_of_spare;
                }
                Err(not_ready) => {
                    debug!(server = %name, why = %not_ready.failure, "there is no other process for a call");
                }
            },
        }
    };
    progress.waits_for_turn = false;
    admitted
}

fn report_wait(request: &Request, server: &ServerName) {
    let Some(progress) = &request.progress else {
        return;
    };
    let message = format!("waits at {server} for the call of another client");
    let report = serde_json::json!({"progress": 0, "message": message}).to_string();
    if let Ok(report) = RawValue::from_string(report) {
        progress(&report);
    }
}

/// Calls; retries if the call did not reach the server, because it was dead before.
async fn call_ready(
    server: &Server,
    request: &Request,
    progress: &mut Progress,
) -> Result<Json, CallError> {
    let name = &server.spec.name;
    let mut sends = 0;
    loop {
        sends += 1;
        progress.ran = Ran::No;
        let leased = server.ready_for_call(request).await?;
        progress.ran = Ran::Maybe;
        let answer = leased.link.call(request).await;
        if let Ok(_) | Err(RequestError::Protocol(_)) = &answer {
            leased.link.activity.note_answer();
        }
        let (failure, tries, ran) = match answer {
            Ok(result) => return Ok(result),
            Err(RequestError::Protocol(error)) => {
                if let Some(asks) = &request.asks {
                    server.asking.note_refusal(&error, asks);
                }
                let server = name.clone();
                return Err(CallError::Protocol { server, error });
            }
            Err(error @ (RequestError::Unsent | RequestError::Lost(_))) => {
                let link = leased.release();
                let failure = link.why_ended().await;
                // By now any other process that could have read it, such as a wrapper, has exited as well.
                let is_unsent = match error {
                    RequestError::Lost(before) => before.is_some_and(|it| link.is_unread(it)),
                    _ => true,
                };
                match is_unsent {
                    true if sends < SENDS_MAX => continue,
                    true => (failure, sends, Ran::No),
                    false => (failure, 0, Ran::Maybe),
                }
            }
            Err(RequestError::Failed(why)) => (Failure::new(why), 0, Ran::Maybe),
            Err(RequestError::Unreached(why)) => (Failure::new(why), 0, Ran::No),
            Err(RequestError::Denied(denied)) => (leased.link.denial(denied), 0, Ran::No),
        };
        return Err(CallError::unavailable(name, failure, tries, ran));
    }
}
