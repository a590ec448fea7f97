//! One call of one server: its turn, and its handling if the server dies.

use jsonrpc::Json;

use crate::{
    CallError, Failure, Ran, Request,
    error::RequestError,
    limits::SENDS_MAX,
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
    server: &Server,
    request: &Request,
    progress: &mut Progress,
) -> Result<Json, CallError> {
    progress.waits_for_turn = true;
    let queued = async {
        let turn = server.asking.take_turn(request).await;
        progress.waits_for_turn = false;
        (turn, server.places.acquire().await)
    };
    let (mut turn, _place) = tokio::select! {
        biased;
        admitted = queued => admitted,
        () = server.retired.cancelled() => return Err(NotReady::stopping().into_error(&server.spec.name)),
    };
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
        let leased = server.ready_for_call().await;
        let leased = leased.map_err(|it| it.into_error(name))?;
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
