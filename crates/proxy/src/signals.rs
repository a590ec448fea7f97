//! The signals that request a stop.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// SIGTERM, Ctrl-C and the closing of the terminal.
pub(crate) fn watch_signals(stop: &CancellationToken) -> anyhow::Result<()> {
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    kinds.into_iter().try_for_each(|kind| watch(kind, stop))
}

pub(crate) fn watch(kind: SignalKind, stop: &CancellationToken) -> anyhow::Result<()> {
    let mut signals = signal(kind).context("cannot watch signals")?;
    let stop = stop.clone();
    tokio::spawn(async move {
        signals.recv().await;
        stop.cancel();
    });
    Ok(())
}
