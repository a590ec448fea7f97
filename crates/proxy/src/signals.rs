//! The signals that request a stop.

use anyhow::Context as _;
use processes::SystemRequest;
use tokio_util::sync::CancellationToken;

/// SIGTERM, Ctrl-C and the closing of the terminal.
pub(crate) fn watch_signals(stop: &CancellationToken) -> anyhow::Result<()> {
    let kinds = [
        SystemRequest::Terminate,
        SystemRequest::Interrupt,
        SystemRequest::HangUp,
    ];
    kinds.into_iter().try_for_each(|kind| watch(kind, stop))
}

pub(crate) fn watch(kind: SystemRequest, stop: &CancellationToken) -> anyhow::Result<()> {
    let mut requests = kind.watch().context("cannot watch signals")?;
    let stop = stop.clone();
    tokio::spawn(async move {
        requests.next().await;
        stop.cancel();
    });
    Ok(())
}
