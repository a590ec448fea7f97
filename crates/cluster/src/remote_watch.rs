//! Watches of resources of other nodes' servers.

use std::{sync::Arc, time::Duration};

use fleet::{CallError, CallServers, Ran, Subscriber, WatchGuard};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::task::AbortOnDropHandle;
use tool::ServerName;

use crate::{
    core::{Core, Place},
    frames::{FrameKind, Instance, Op},
    outgoing::{RemoteError, explain_loss},
};

/// Watches a resource of another node's server, and again after that node or server was replaced. An error
/// is that of the first attempt.
pub(crate) async fn watch_elsewhere(
    core: Arc<Core>,
    server: ServerName,
    uri: &str,
    subscriber: Subscriber,
) -> Result<WatchGuard, CallError> {
    let uri = uri.to_owned();
    let (begun, mut has_begun) = mpsc::channel::<Result<(), CallError>>(1);
    let watching = tokio::spawn(async move {
        let mut is_again = false;
        loop {
            let ended = watch_once(&core, &server, &uri, &subscriber, &begun, is_again).await;
            if !is_again && begun.try_send(Err(ended)).is_ok() {
                return;
            }
            is_again = true;
            sleep(Duration::from_secs(1)).await;
        }
    });
    let watching = AbortOnDropHandle::new(watching);
    match has_begun.recv().await {
        Some(Ok(())) => Ok(Box::new(watching)),
        Some(Err(error)) => Err(error),
        None => Err(CallError::Cancelled),
    }
}

/// Returns when the watch ended.
async fn watch_once(
    core: &Arc<Core>,
    server: &ServerName,
    uri: &str,
    subscriber: &Subscriber,
    begun: &mpsc::Sender<Result<(), CallError>>,
    is_again: bool,
) -> CallError {
    let (targets, epoch) = match core.place(server) {
        Place::There(targets, epoch) => (targets, epoch),
        Place::Here(fleet, hold) => {
            let Ok(_watching) = fleet.watch(server, uri, subscriber.clone()).await else {
                return CallError::Cancelled;
            };
            (subscriber.sink)(uri);
            let lost = hold.map(|it| it.lost.clone()).unwrap_or_default();
            lost.cancelled().await;
            return CallError::Cancelled;
        }
        Place::Soon(failure) | Place::Nowhere(failure) => {
            return explain_loss(server, failure.why, Ran::No);
        }
    };
    let op = Op::Watch(uri.to_owned());
    let instance = Some(Instance::new(server, epoch));
    let watching = async {
        let exchange = core.begin(&targets[0], instance, op).await?;
        let on_frame = |kind: &FrameKind| match kind {
            FrameKind::Watching if is_again => (subscriber.sink)(uri),
            FrameKind::Watching => drop(begun.try_send(Ok(()))),
            FrameKind::Changed => (subscriber.sink)(uri),
            _ => {}
        };
        exchange.finish(&core.nodes, on_frame).await
    };
    match watching.await {
        Ok(_) => CallError::Cancelled,
        Err(RemoteError::Call(error)) => error,
        Err(RemoteError::NotRun(why) | RemoteError::Lost(why)) => {
            explain_loss(server, why, Ran::No)
        }
    }
}
