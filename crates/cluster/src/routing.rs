//! Calls where their servers run.

use std::{sync::atomic::Ordering, time::Duration};

use fleet::{CallError, CallServers as _, Failure, Ran, Request};
use jsonrpc::Json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use crate::{
    core::{Core, Place},
    frames::{CallOp, Instance, Op, unavailable},
    nodes::Target,
    outgoing::{RemoteError, explain_loss},
};

/// The time for which a call waits for a node that may come: a daemon that is restarted takes 2 s.
pub(crate) const PLACE_WAIT: Duration = Duration::from_secs(3);

/// Calls where the server runs. A call that did not run is sent again when that changes.
pub(crate) async fn call_somewhere(
    core: &Core,
    server: &ServerName,
    request: &Request,
    cancel: &CancellationToken,
) -> Result<Json, CallError> {
    let until = Instant::now() + PLACE_WAIT;
    loop {
        let moved = core.standing.moved.notified();
        let failure = match core.place(server) {
            Place::Here(fleet, None) => return fleet.call(server, request, cancel).await,
            Place::Here(fleet, Some(hold)) => {
                return tokio::select! {
                    answer = fleet.call(server, request, cancel) => answer,
                    () = hold.lost.cancelled() => {
                        let why = "this node gave it up during the call".to_owned();
                        Err(explain_loss(server, why, Ran::Maybe))
                    }
                };
            }
            Place::There(targets, epoch) => {
                request.check_start().await.map_err(CallError::Refused)?;
                let instance = Instance::new(server, epoch);
                match call_one(core, &targets, &instance, request, cancel).await {
                    Ok(answer) => return Ok(answer),
                    Err(RemoteError::Call(error)) => return Err(error),
                    Err(RemoteError::Lost(why)) => {
                        return Err(explain_loss(server, why, Ran::Maybe));
                    }
                    Err(RemoteError::NotRun(why)) => match epoch {
                        Some(_) => core.explain_no_owner(server),
                        None => Failure::new(why),
                    },
                }
            }
            Place::Soon(failure) => {
                core.standing.wanted.notify_one();
                failure
            }
            Place::Nowhere(failure) => return Err(unavailable(server, failure, Ran::No)),
        };
        if Instant::now() >= until {
            return Err(unavailable(server, failure, Ran::No));
        }
        tokio::select! {
            () = cancel.cancelled() => return Err(CallError::Cancelled),
            () = moved => {}
            () = sleep(Duration::from_millis(100)) => {}
        }
    }
}

/// Calls one of these processes: the next in turn, and another one if that did not run it.
async fn call_one(
    core: &Core,
    targets: &[Target],
    instance: &Instance,
    request: &Request,
    cancel: &CancellationToken,
) -> Result<Json, RemoteError> {
    let first = core.turn.fetch_add(1, Ordering::Relaxed);
    let mut last = None;
    for nth in 0..targets.len() {
        let target = &targets[(first + nth) % targets.len()];
        let called = async {
            let op = CallOp::of(request).map_err(|error| RemoteError::NotRun(error.to_string()))?;
            let op = Op::Call(Box::new(op));
            let exchange = core.begin(target, Some(instance.clone()), op).await?;
            exchange.finish_call(&core.nodes, request, cancel).await
        };
        match called.await {
            Err(RemoteError::NotRun(why)) => last = Some(why),
            other => return other,
        }
    }
    Err(RemoteError::NotRun(last.unwrap_or_default()))
}
