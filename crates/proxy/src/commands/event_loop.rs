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

/// One thread waits for clients and servers and passes their messages; what takes long, such as
/// searching, counting, checking and reading files, has threads of its own (0025).
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")
}
