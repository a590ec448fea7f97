//! The signals that request a stop.

use anyhow::{Context as _, bail};
use processes::SystemRequest;
use tokio_util::sync::CancellationToken;

/// Runs work to its end, unless a signal requests a stop.
pub(crate) async fn until_signal<T>(
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let stop = CancellationToken::new();
    watch_signals(&stop)?;
    let done = stop.run_until_cancelled(Box::pin(work)).await;
    done.unwrap_or_else(|| bail!("interrupted"))
}

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
