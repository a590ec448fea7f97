//! The servers that may have other tools than they had: told by them, or new here.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tool::ServerName;

/// Called when a server says that its list of tools is another now.
pub(crate) type OnListChanged = Arc<dyn Fn() + Send + Sync>;

/// A set that is waited on. A server that tells of a hundred changes before anybody asks is in
/// it once: the queue is bounded by the number of servers.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    names: Mutex<BTreeSet<ServerName>>,
    news: Notify,
}

impl Changes {
    pub(crate) fn note(&self, server: &ServerName) {
        self.lock().insert(server.clone());
        self.news.notify_one();
    }

    /// Waits for the next server; each note is answered once.
    pub(crate) async fn next(&self) -> ServerName {
        loop {
            if let Some(server) = self.lock().pop_first() {
                return server;
            }
            self.news.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<ServerName>> {
        self.names.lock()
    }
}
