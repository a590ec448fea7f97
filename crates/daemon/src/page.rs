//! The web page of a daemon: the interface to the crate that serves it.

use std::sync::Arc;

use futures::future::BoxFuture;
use gateway::Gateway;
use tokio_util::sync::CancellationToken;

use crate::status::DaemonStatus;

/// Serves the web page of a daemon.
pub trait ServePage: Send + Sync {
    /// Returns an address that opens the page once; begins to serve it if it is not served. The error
    /// is for people.
    fn open(&self, daemon: PageDaemon) -> BoxFuture<'_, Result<String, String>>;

    /// Serves the page if tabs of an earlier daemon may be open: at the same port, if it is free.
    fn resume(&self, daemon: PageDaemon) -> BoxFuture<'_, ()>;
}

/// Waits until the configuration file as it is now was read. Returns false if that took too long. If it has
/// mistakes, the previous configuration stays in effect.
pub type Settle = Arc<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// The daemon as its page sees it.
#[derive(Clone)]
pub struct PageDaemon {
    /// The gateway that all sessions share.
    pub gateway: Arc<Gateway>,
    /// Returns the status. Blocks for a moment.
    pub status: Arc<dyn Fn() -> DaemonStatus + Send + Sync>,
    /// Counts an open page as a client until the returned value is dropped, so that the daemon does not
    /// end as idle.
    pub attend: Arc<dyn Fn() -> Box<dyn Send + Sync> + Send + Sync>,
    /// Cancelled when the daemon ends, or makes room for another.
    pub stop: CancellationToken,
    /// Waits until the configuration file as it is now is in effect, at most a few seconds.
    pub settle: Settle,
}

impl std::fmt::Debug for PageDaemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageDaemon").finish_non_exhaustive()
    }
}
