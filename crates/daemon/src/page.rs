//! The web page of a daemon, and the API that the page and commands use: the interface to the crate that
//! serves both.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use gateway::{Gateway, shell::ShellReply};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::status::DaemonStatus;

/// Serves the web page of a daemon, and its API.
pub trait ServePage: Send + Sync {
    /// Returns an address that opens the page once; begins to serve it if it is not served. The error
    /// is for people.
    fn open(&self, daemon: PageDaemon) -> BoxFuture<'_, Result<String, String>>;

    /// Serves the page if tabs of an earlier daemon may be open: at the same port, if it is free.
    fn resume(&self, daemon: PageDaemon) -> BoxFuture<'_, ()>;

    /// Answers a request of a command: JSON, with `is_hit` for a success.
    fn answer(&self, daemon: PageDaemon, request: ApiRequest) -> BoxFuture<'_, ShellReply>;
}

/// A request of a command to the API.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ApiRequest {
    /// `GET` or `POST`.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The body of a `POST`.
    pub body: Value,
}

impl ApiRequest {
    /// Makes a request that reads.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.into(),
            body: Value::Null,
        }
    }

    /// Makes a request with a body.
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self {
            method: "POST".to_owned(),
            path: path.into(),
            body,
        }
    }
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

impl PageDaemon {
    /// Makes the part of it that a command has without a daemon.
    pub fn of_command(gateway: Arc<Gateway>) -> Self {
        Self {
            gateway,
            status: Arc::new(DaemonStatus::default),
            attend: Arc::new(|| Box::new(())),
            stop: CancellationToken::new(),
            settle: Arc::new(|| futures::future::ready(true).boxed()),
        }
    }
}

impl std::fmt::Debug for PageDaemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageDaemon").finish_non_exhaustive()
    }
}
