//! The clients that are served now.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use dashmap::DashMap;
use jsonrpc::{Fields, text_of};
use serde_json::value::RawValue;

use crate::connection::Connection;

/// A client that is served now: one session.
#[derive(Debug)]
pub struct ConnectedClient {
    /// Tells sessions of this process apart.
    pub number: u64,
    /// Where it is connected from.
    pub connection: Connection,
    /// When it came.
    pub since: SystemTime,
    info: OnceLock<ClientInfo>,
    calls: AtomicU64,
}

/// A client as it calls itself in `clientInfo`, on one line each.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Its version, where it says one.
    pub version: Option<String>,
}

/// The longest name or version that is kept, in characters.
const NAME_CHARS_MAX: usize = 100;

impl ConnectedClient {
    /// Its name and version, once it has said them.
    pub fn info(&self) -> Option<&ClientInfo> {
        self.info.get()
    }

    /// The number of its calls up to now.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes what it says of itself, and answers its name; the first one stays.
    pub(super) fn set_info(&self, info: ClientInfo) -> Option<String> {
        let name = info.name.clone();
        self.info.set(info).is_ok().then_some(name)
    }
}

impl ClientInfo {
    /// Reads a `clientInfo`; none where it has no name.
    pub(super) fn read(client_info: &RawValue) -> Option<Self> {
        let fields = Fields::of(client_info.get())?;
        let text = |key| {
            let text = text_of(fields.get(key)?)?;
            Some(printable::one_line_of(&text, NAME_CHARS_MAX))
        };
        Some(Self {
            name: text("name")?,
            version: text("version"),
        })
    }
}

/// All clients that are served now.
#[derive(Debug, Default)]
pub struct ConnectedClients {
    last: AtomicU64,
    here: DashMap<u64, Arc<ConnectedClient>>,
}

impl ConnectedClients {
    /// Takes in a client that connects.
    pub(super) fn add(&self, connection: Connection) -> Arc<ConnectedClient> {
        let client = Arc::new(ConnectedClient {
            number: self.last.fetch_add(1, Ordering::Relaxed),
            connection,
            since: SystemTime::now(),
            info: OnceLock::new(),
            calls: AtomicU64::new(0),
        });
        if !client.connection.is_stateless {
            self.here.insert(client.number, Arc::clone(&client));
        }
        client
    }

    /// Forgets a client that is gone.
    pub(super) fn remove(&self, client: &ConnectedClient) {
        self.here.remove(&client.number);
    }

    /// All of them, in the order in which they came.
    pub fn list(&self) -> Vec<Arc<ConnectedClient>> {
        let mut list: Vec<_> = self.here.iter().map(|it| Arc::clone(&it)).collect();
        list.sort_by_key(|client| client.number);
        list
    }
}
