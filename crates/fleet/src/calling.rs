//! One call of one server: its turn, and its handling if the server dies.

use jsonrpc::Json;
use tool::ServerName;

use crate::{
    CallError, Failure, Ran, Request,
    error::RequestError,
    limits::SENDS_MAX,
    server::{NotReady, Server},
};

/// The progress of a call, for the error of one whose limit ran out.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The server that it is made at.
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
    let mut turn = server.asking.take_turn(request).await;
    progress.waits_for_turn = false;
    let _place = server.places.acquire().await;
    let may_retry = server.spec.retries_safe_calls && request.is_safe;
    let answer = match call_ready(server, request, progress).await {
        Err(CallError::Unavailable {
            ran: Ran::Maybe, ..
        }) if may_retry => call_ready(server, request, progress).await,
        answer => answer,
    };
    if answer.is_ok() {
        turn.note_answer();
    }
    answer
}

/// Calls; retries if the call did not reach the server, because it was dead before.
async fn call_ready(
    server: &Server,
    request: &Request,
    progress: &mut Progress,
) -> Result<Json, CallError> {
    let mut sends = 0;
    loop {
        sends += 1;
        progress.ran = Ran::No;
        match call_once(server, request, progress).await {
            Ok(answer) => return answer,
            Err(_) if sends < SENDS_MAX => {}
            Err(Unsent(failure)) => {
                return Err(CallError::Unavailable {
                    server: server.spec.name.clone(),
                    failure,
                    tries: sends,
                    ran: Ran::No,
                });
            }
        }
    }
}

/// A call that did not reach its server, and why that was not there.
struct Unsent(Failure);

async fn call_once(
    server: &Server,
    request: &Request,
    progress: &mut Progress,
) -> Result<Result<Json, CallError>, Unsent> {
    let name = || server.spec.name.clone();
    let not_ready = |not_ready: NotReady| CallError::Unavailable {
        server: name(),
        failure: not_ready.failure,
        tries: not_ready.tries,
        ran: Ran::No,
    };
    let leased = match server.ready_for_call().await {
        Ok(leased) => leased,
        Err(error) => return Ok(Err(not_ready(error))),
    };
    progress.ran = Ran::Maybe;
    let answer = leased.link.call(request).await;
    if let Ok(_) | Err(RequestError::Protocol(_)) = &answer {
        leased.link.activity().note_answer();
    }
    Ok(match answer {
        Ok(result) => Ok(result),
        Err(RequestError::Protocol(error)) => {
            if let Some(asks) = &request.asks {
                server.asking.note_refusal(&error, asks);
            }
            Err(CallError::Protocol {
                server: name(),
                error,
            })
        }
        Err(RequestError::Unsent) => return Err(Unsent(leased.release().why_ended().await)),
        Err(RequestError::Lost(before)) => {
            let link = leased.release();
            let failure = link.why_ended().await;
            // By now any other process that could have read it, such as a wrapper, has exited as well.
            if before.is_some_and(|before| link.is_unread(before)) {
                return Err(Unsent(failure));
            }
            Err(make_unavailable(name(), failure))
        }
        Err(RequestError::Failed(why)) => Err(make_unavailable(name(), Failure::new(why))),
        Err(RequestError::Unreached(why)) => Err(CallError::Unavailable {
            server: name(),
            failure: Failure::new(why),
            tries: 0,
            ran: Ran::No,
        }),
        Err(RequestError::Denied(denied)) => Err(CallError::Unavailable {
            server: name(),
            failure: leased.link.denial(denied),
            tries: 0,
            ran: Ran::No,
        }),
    })
}

fn make_unavailable(server: ServerName, failure: Failure) -> CallError {
    CallError::Unavailable {
        server,
        failure,
        tries: 0,
        ran: Ran::Maybe,
    }
}
