//! The servers whose tools may have changed: they notified us, or are new.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tool::ServerName;

/// A set of servers with a wait for the next one. A server that reports a hundred changes before the
/// set is read is in it once: the queue is bounded by the number of servers.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    names: Mutex<BTreeSet<ServerName>>,
    news: Notify,
}

impl Changes {
    pub(crate) fn note(&self, server: &ServerName) {
        self.names.lock().insert(server.clone());
        self.news.notify_one();
    }

    /// Waits for the next server; each note is answered once.
    pub(crate) async fn next(&self) -> ServerName {
        loop {
            if let Some(server) = self.names.lock().pop_first() {
                return server;
            }
            self.news.notified().await;
        }
    }
}
