//! Requests that read files.

use std::sync::Arc;

use super::error::ApiError;
use crate::gateway::Gateway;

/// Runs the part of a request that reads files, outside the event loop.
pub(super) async fn run_blocking<T: Send + 'static>(
    gateway: &Arc<Gateway>,
    run: impl FnOnce(&Gateway) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let gateway = Arc::clone(gateway);
    let running = tokio::task::spawn_blocking(move || run(&gateway));
    running.await.map_err(anyhow::Error::from)?
}
