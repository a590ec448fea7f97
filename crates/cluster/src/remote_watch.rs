//! Watches of resources of other nodes' servers.

use std::{sync::Arc, time::Duration};

use fleet::{CallError, CallServers, Ran, Subscriber, WatchGuard};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::task::AbortOnDropHandle;
use tool::ServerName;

use crate::{
    core::{Core, Place},
    frames::{FrameKind, Instance, Op},
    nodes::Target,
    outgoing::{RemoteError, explain_loss},
};

/// Watches a resource of another node's server, and again after that node or server was replaced. An error
/// is that of the first attempt; a later attempt that the rules refuse ends the watch.
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
            if is_again && matches!(ended, CallError::Refused(_)) {
                return;
            }
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
    let note_begun = || {
        if is_again {
            (subscriber.sink)(uri);
        } else {
            let _ = begun.try_send(Ok(()));
        }
    };
    match core.place(server) {
        Place::Here(fleet, hold) => {
            let _watching = match fleet.watch(server, uri, subscriber.clone()).await {
                Ok(watching) => watching,
                Err(error) => return error,
            };
            note_begun();
            let lost = hold.map(|it| it.lost.clone()).unwrap_or_default();
            lost.cancelled().await;
            CallError::Cancelled
        }
        Place::There(targets, epoch) => {
            let instance = Instance::new(server, epoch);
            let watching = watch_there(core, &targets[0], instance, uri, subscriber, note_begun);
            match watching.await {
                Ok(()) => CallError::Cancelled,
                Err(RemoteError::Call(error)) => error,
                Err(RemoteError::NotRun(why) | RemoteError::Lost(why)) => {
                    explain_loss(server, why, Ran::No)
                }
            }
        }
        Place::Soon(failure) | Place::Nowhere(failure) => {
            explain_loss(server, failure.why, Ran::No)
        }
    }
}

/// Watches over one request to the other node. The rules are this node's: they are checked before the request
/// and again when the other node has subscribed, since its server may have had to start. A refusal drops
/// the request, and the other node unsubscribes.
async fn watch_there(
    core: &Arc<Core>,
    target: &Target,
    instance: Instance,
    uri: &str,
    subscriber: &Subscriber,
    note_begun: impl Fn(),
) -> Result<(), RemoteError> {
    check_start(subscriber).await?;
    let op = Op::Watch(uri.to_owned());
    let mut exchange = core.begin(target, Some(instance), op).await?;
    loop {
        match exchange.next(&core.nodes).await? {
            (FrameKind::Watching, _) => {
                check_start(subscriber).await?;
                note_begun();
            }
            (FrameKind::Changed, _) => (subscriber.sink)(uri),
            (FrameKind::End, _) => return Ok(()),
            _ => {}
        }
    }
}

async fn check_start(subscriber: &Subscriber) -> Result<(), RemoteError> {
    let Some(rules) = &subscriber.start_check else {
        return Ok(());
    };
    let allowed = rules.check().await;
    allowed.map_err(|refusal| RemoteError::Call(CallError::Refused(refusal)))
}
