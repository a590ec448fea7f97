//! The event loop of a command.

use std::time::Duration;

use anyhow::Context as _;

/// The time that threads which block have when everything else has ended. Whatever must not be
/// lost was waited for before; what is left, nobody waits for.
const THREADS_END_WAIT: Duration = Duration::from_millis(500);

/// Runs to its end what needs an event loop.
pub(super) fn run_async<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    // A runtime that is dropped waits for every such thread, for however long.
    runtime.shutdown_timeout(THREADS_END_WAIT);
    Ok(done)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(4))
        .enable_all()
        .build()
        .context("cannot start the event loop")
}
