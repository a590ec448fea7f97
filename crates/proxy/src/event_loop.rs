//! The event loop of a command.

use std::time::Duration;

use anyhow::Context as _;

/// The time that blocking threads have after everything else has ended. Work that must not be lost has
/// been waited for before; no caller waits for the rest.
const THREADS_END_WAIT: Duration = Duration::from_millis(500);

/// Runs a future to its end on an event loop.
pub(crate) fn run_async<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    // Dropping a runtime waits for every such thread, without limit.
    runtime.shutdown_timeout(THREADS_END_WAIT);
    Ok(done)
}

/// One thread waits for clients and servers and passes their messages; slow work, such as searching,
/// counting, checking and reading files, has threads of its own (0025).
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")
}
