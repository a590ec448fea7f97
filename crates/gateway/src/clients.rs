//! The connected clients.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use dashmap::DashMap;
use fleet::Variables;
use jsonrpc::{Fields, mcp::Revision, text_of, without_lone_surrogates};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tool::HttpCaller;

use crate::{person_questions::PersonQuestions, project::ProjectRule};

/// The connection of one client.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// The client's working folder, if it is known.
    pub cwd: Option<Arc<Path>>,
    /// The folders of its roots, once it was asked for them.
    pub roots: Arc<ArcSwap<Vec<PathBuf>>>,
    /// The client's environment, which fills in variables of servers; `None` if the client sent
    /// none, and our own environment is used.
    pub variables: Option<Arc<Variables>>,
    /// The process at the other end: the client's relay.
    pub pid: Option<u32>,
    /// `stdio` or `http`, for people.
    pub transport: &'static str,
    /// The name of its token, over HTTP: clients of different tokens share nothing.
    pub token: Option<Arc<str>>,
    /// The name of its credential in the audit log, over HTTP: `token NAME` or `oauth SUBJECT`.
    pub caller: Option<Arc<str>>,
    /// The caller of its last request over HTTP, if servers differ between callers.
    pub http_caller: Arc<ArcSwapOption<HttpCaller>>,
    /// The name that its start command gives it, in place of the one that it announces.
    pub name: Option<String>,
    /// The table of `[clients]` that applies to it, whatever name it announces; `None`: that name's
    /// table.
    pub rule: Option<Arc<str>>,
    /// The profile that its start command or its address names.
    pub profile: Option<Arc<str>>,
    /// The file of the project that it works in.
    pub project: Option<Arc<ProjectRule>>,
    /// Its person uses this machine, so that a browser redirect to this machine reaches us.
    pub is_here: bool,
    /// The client sends one request and disconnects: it is in no list, and has no servers of its
    /// own.
    pub is_stateless: bool,
}

/// The number of calls of one client.
pub(crate) type CallCounter = Arc<AtomicU64>;

/// A connected client: one session.
#[derive(Debug)]
pub struct ConnectedClient {
    /// The number of the session, unique in this process.
    pub number: u64,
    /// The connection of the client.
    pub connection: Connection,
    /// The time at which it connected.
    pub since: SystemTime,
    info: OnceLock<ClientInfo>,
    revision: OnceLock<Revision>,
    /// The requests for the three tools.
    turns: AtomicU64,
    calls: CallCounter,
    /// Cancelled when a person ends the session.
    pub(crate) ended: CancellationToken,
    /// The questions to all clients that wait.
    pub(crate) questions: Arc<PersonQuestions>,
}

/// The name and version of a client from `clientInfo`, on one line each.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Its version, if it sent one.
    pub version: Option<String>,
}

/// The longest name or version that is kept, in characters.
const NAME_CHARS_MAX: usize = 100;

impl ConnectedClient {
    /// Its name and version, once it has sent them.
    pub fn info(&self) -> Option<&ClientInfo> {
        self.info.get()
    }

    /// Its name; empty until it has sent one.
    pub(crate) fn name(&self) -> Arc<str> {
        let name = self.info.get().map(|it| Arc::clone(&it.name));
        name.unwrap_or_default()
    }

    /// The revision of the protocol that it spoke first, once it has named one.
    pub fn revision(&self) -> Option<&Revision> {
        self.revision.get()
    }

    /// Sets the revision; later ones are ignored.
    pub(super) fn set_revision(&self, revision: Revision) {
        let _ = self.revision.set(revision);
    }

    /// The number of its calls that have ended since it connected, those of its scripts included.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The counter of its calls, to which the record of each call adds one.
    pub(super) fn counter(&self) -> CallCounter {
        Arc::clone(&self.calls)
    }

    /// Counts a request for one of the three tools and returns its number, from 1 on.
    pub(super) fn count_turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sets the name and version. Returns the name if none was set before; later ones are ignored.
    pub(super) fn set_info(&self, info: ClientInfo) -> Option<Arc<str>> {
        let name = Arc::clone(&info.name);
        self.info.set(info).is_ok().then_some(name)
    }
}

impl ClientInfo {
    /// Creates the info of a client whose name is given; its version belongs to the announced name.
    pub(super) fn named(name: &str) -> Self {
        Self {
            name: printable::one_line_of(name, NAME_CHARS_MAX).into(),
            version: None,
        }
    }

    /// Reads a `clientInfo`; `None` if it has no name.
    pub(super) fn read(client_info: &RawValue) -> Option<Self> {
        let info = without_lone_surrogates(client_info.get());
        let fields = Fields::of(&info)?;
        let text = |key| {
            let text = text_of(fields.get(key)?)?;
            Some(printable::one_line_of(&text, NAME_CHARS_MAX))
        };
        Some(Self {
            name: text("name")?.into(),
            version: text("version"),
        })
    }
}

/// All connected clients.
#[derive(Debug, Default)]
pub struct ConnectedClients {
    last: AtomicU64,
    here: DashMap<u64, Arc<ConnectedClient>>,
    /// The questions to all clients that wait.
    pub questions: Arc<PersonQuestions>,
}

impl ConnectedClients {
    /// Adds a client that connects.
    pub(super) fn add(&self, connection: Connection) -> Arc<ConnectedClient> {
        let client = Arc::new(ConnectedClient {
            number: self.last.fetch_add(1, Ordering::Relaxed),
            connection,
            since: SystemTime::now(),
            info: OnceLock::new(),
            revision: OnceLock::new(),
            turns: AtomicU64::default(),
            calls: CallCounter::default(),
            ended: CancellationToken::new(),
            questions: Arc::clone(&self.questions),
        });
        if !client.connection.is_stateless {
            self.here.insert(client.number, Arc::clone(&client));
        }
        client
    }

    /// Removes a client that is gone.
    pub(super) fn remove(&self, client: &ConnectedClient) {
        self.here.remove(&client.number);
    }

    /// Ends the session of a client. Returns its name; `None` if there is no such client.
    pub fn end(&self, number: u64) -> Option<String> {
        let (_, client) = self.here.remove(&number)?;
        client.ended.cancel();
        let name = client.info().map(|info| info.name.to_string());
        Some(name.unwrap_or_else(|| "unnamed".to_owned()))
    }

    /// All clients, in the order in which they connected.
    pub fn list(&self) -> Vec<Arc<ConnectedClient>> {
        let mut list: Vec<_> = self.here.iter().map(|it| Arc::clone(&it)).collect();
        list.sort_by_key(|client| client.number);
        list
    }
}
