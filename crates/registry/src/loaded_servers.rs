//! The tools of individually loaded servers: a canonical name needs only the snapshot of its
//! server.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tool::ServerName;

use crate::{
    entry::Entry,
    loaded_tools::{KnownServer, LoadedTools},
    seen::Seen,
};

/// The individually loaded servers by name, each with the registry state that it was loaded from.
#[derive(Debug, Default)]
pub(crate) struct LoadedServers(Mutex<HashMap<String, (Arc<Seen>, LoadedTools)>>);

impl LoadedServers {
    /// Finds a tool by its canonical name, if its server was loaded from this state.
    pub(crate) fn find(&self, asked: &str, seen: &Seen) -> Option<Arc<Entry>> {
        let (server, tool) = asked.split_once('/')?;
        let parts = self.0.lock();
        let (_, part) = parts.get(server).filter(|(of, _)| of.is_same(seen))?;
        part.find(tool).cloned()
    }

    pub(crate) fn server(&self, name: &ServerName) -> Option<Arc<KnownServer>> {
        let parts = self.0.lock();
        let (_, part) = parts.get(name.as_str())?;
        part.servers.first().cloned()
    }

    pub(crate) fn insert(&self, server: &str, of: Arc<Seen>, part: LoadedTools) {
        self.0.lock().insert(server.to_owned(), (of, part));
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
