//! `proxy serve`: one client over stdin and stdout, until either end says so.

use std::{io::IsTerminal as _, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::Exit,
    config::Config,
    front::{self, Front, stdio},
    report, survey,
};

/// The whole shutdown of `serve`: servers that do not go by then were killed.
pub(super) const STOP_WAIT: Duration = Duration::from_millis(1_800);

/// How often what was counted is written down.
const FLUSH_EVERY: Duration = Duration::from_secs(30);

pub(super) async fn serve(config: Config) -> anyhow::Result<Exit> {
    let stop = CancellationToken::new();
    watch_signals(&stop)?;
    sweep(&config);
    let front = Front::new(config)?;
    if std::io::stdin().is_terminal() {
        report::say(
            "serving MCP on stdin and stdout: this is for a client to start; Ctrl-C ends it",
        );
    }
    front.fleet.start_eager();
    let unknown = survey::unknown(&front.registry.catalog());
    let background = tokio::spawn(survey::get_to_know(Arc::clone(&front), unknown));
    let refreshing = tokio::spawn(survey::keep_fresh(Arc::clone(&front)));
    let understanding = tokio::spawn(survey::keep_meaning(Arc::clone(&front)));
    let flushing = tokio::spawn(flush(Arc::clone(&front)));
    let results = front.results.clone();
    tokio::spawn(async move { results.sweep().await });
    front::serve(Arc::clone(&front), stdio::input(), stdio::output(), stop).await;
    background.abort();
    refreshing.abort();
    understanding.abort();
    flushing.abort();
    if timeout(STOP_WAIT, front.stop()).await.is_err() {
        tracing::warn!("some servers did not end in time and were killed");
    }
    Ok(Exit::Success)
}

/// Ends what a predecessor that crashed left behind. Nobody waits for it.
pub(super) fn sweep(config: &Config) {
    let marker = front::marker(config);
    tokio::task::spawn_blocking(move || {
        let ended = fleet::sweep(&marker);
        if ended > 0 {
            tracing::warn!(ended, "ended servers that a crashed proxy had left");
        }
    });
}

pub(super) fn watch_signals(stop: &CancellationToken) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        let mut signals = signal(kind).context("cannot watch signals")?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    Ok(())
}

pub(super) async fn flush(front: Arc<Front>) {
    loop {
        tokio::time::sleep(FLUSH_EVERY).await;
        let front = Arc::clone(&front);
        let _ = tokio::task::spawn_blocking(move || front.flush()).await;
    }
}
