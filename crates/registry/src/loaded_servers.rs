//! The tools of individually loaded servers: a canonical name needs only the snapshot of its
//! server.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tool::ServerName;

use crate::{
    entry::Entry,
    loaded_tools::{KnownServer, LoadedTools},
};

/// The individually loaded servers by name, each with the registry state that it was loaded from.
#[derive(Debug)]
pub(crate) struct LoadedServers<S>(Mutex<HashMap<String, (Arc<S>, LoadedServer)>>);

impl<S> Default for LoadedServers<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// One server and its tools.
#[derive(Debug)]
pub(crate) struct LoadedServer {
    server: Arc<KnownServer>,
    /// The tools by name, including hidden ones.
    tools: HashMap<String, Arc<Entry>>,
}

impl LoadedServer {
    pub(crate) fn new(loaded: LoadedTools) -> Option<Self> {
        let LoadedTools {
            visible,
            hidden,
            servers,
            ..
        } = loaded;
        let tools = visible.into_iter().chain(hidden);
        Some(Self {
            server: servers.into_iter().next()?,
            tools: tools.map(|it| (it.at.tool.clone(), it)).collect(),
        })
    }

    pub(crate) fn find(&self, tool: &str) -> Option<Arc<Entry>> {
        self.tools.get(tool).cloned()
    }
}

impl<S> LoadedServers<S> {
    /// Finds a tool by its canonical name, if `is_new` accepts the state that its server was loaded
    /// from.
    pub(crate) fn find(&self, asked: &str, is_new: impl FnOnce(&S) -> bool) -> Option<Arc<Entry>> {
        let (server, tool) = asked.split_once('/')?;
        let parts = self.0.lock();
        let (of, part) = parts.get(server)?;
        is_new(of).then(|| part.find(tool)).flatten()
    }

    pub(crate) fn server(&self, name: &ServerName) -> Option<Arc<KnownServer>> {
        let parts = self.0.lock();
        parts
            .get(name.as_str())
            .map(|(_, part)| Arc::clone(&part.server))
    }

    pub(crate) fn insert(&self, of: Arc<S>, part: LoadedServer) {
        let name = part.server.name.as_str().to_owned();
        self.0.lock().insert(name, (of, part));
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
