//! The servers that there are: added, replaced and taken away while calls are under way.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tool::{ClientId, ServerName};

use crate::{
    CallError, Launch, Scope, ServerSpec, Start, Surroundings, Template, changes::Changes,
    keeper::Keeper, limits::CALLS_OF_CLIENT_MAX, question::Asks, roots::Roots, server::Server,
};

/// The effect of a change of the specifications.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// New ones; nothing is started yet.
    pub added: Vec<ServerName>,
    /// Replaced; `true` where it may have other tools now, for it is started in another way.
    pub changed: Vec<(ServerName, bool)>,
    /// Those that are no more; they finish the calls they have.
    pub removed: Vec<ServerName>,
}

impl Applied {
    /// Nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct Roster {
    surroundings: Arc<Surroundings>,
    changes: Arc<Changes>,
    stop: CancellationToken,
    keepers: TaskTracker,
    servers: RwLock<Servers>,
}

#[derive(Debug, Default)]
struct Servers {
    /// One of each; of a server with a scope of clients the one that answers surveys.
    shared: BTreeMap<ServerName, Server>,
    of_clients: HashMap<(ServerName, u64), Server>,
    /// The calls that each client may still make of each server.
    turns: HashMap<(ServerName, u64), Arc<Semaphore>>,
}

impl Roster {
    pub(crate) fn new(
        surroundings: Surroundings,
        changes: Arc<Changes>,
        stop: CancellationToken,
        keepers: TaskTracker,
    ) -> Self {
        Self {
            surroundings: Arc::new(surroundings),
            changes,
            stop,
            keepers,
            servers: RwLock::default(),
        }
    }

    pub(crate) fn get(&self, name: &ServerName) -> Option<Server> {
        self.read().shared.get(name).cloned()
    }

    /// All of them, those of single clients behind the others.
    pub(crate) fn all(&self) -> Vec<(Option<u64>, Server)> {
        let servers = self.read();
        let shared = servers.shared.values().map(|server| (None, server.clone()));
        let of_clients = servers.of_clients.iter();
        let mut of_clients: Vec<_> = of_clients
            .map(|((_, client), server)| (Some(*client), server.clone()))
            .collect();
        of_clients.sort_by(|a, b| (&a.1.spec.name, a.0).cmp(&(&b.1.spec.name, b.0)));
        shared.chain(of_clients).collect()
    }

    /// The server as this client has it: where its scope is the client, one of the client's own.
    pub(crate) fn find(
        &self,
        name: &ServerName,
        client: Option<&ClientId>,
        asks: Option<&Arc<dyn Asks>>,
    ) -> Result<Server, CallError> {
        let unknown = || CallError::UnknownServer(name.clone());
        let shared = self.get(name).ok_or_else(unknown)?;
        let client = client.filter(|_| shared.spec.scope == Scope::Client);
        let Some((client, connection)) = client.and_then(|it| Some((it, it.connection?))) else {
            return Ok(shared);
        };
        let key = (name.clone(), connection);
        if let Some(own) = self.read().of_clients.get(&key) {
            return Ok(own.clone());
        }
        let mut servers = self.write();
        // Both may have changed before we held the lock.
        let shared = servers.shared.get(name).cloned().ok_or_else(unknown)?;
        let new = || self.begin(in_folder_of(&shared.spec, client), None, asks);
        Ok(servers.of_clients.entry(key).or_insert_with(new).clone())
    }

    /// The permits for which calls over this connection wait before they wait for the server.
    pub(crate) fn turns(&self, name: &ServerName, connection: u64) -> Arc<Semaphore> {
        let key = (name.clone(), connection);
        if let Some(turns) = self.read().turns.get(&key) {
            return Arc::clone(turns);
        }
        let new = || Arc::new(Semaphore::new(CALLS_OF_CLIENT_MAX));
        Arc::clone(self.write().turns.entry(key).or_insert_with(new))
    }

    /// The client is gone, and with it the servers that were its own.
    pub(crate) fn forget_client(&self, client: u64) {
        let mut servers = self.write();
        servers.turns.retain(|(_, of), _| *of != client);
        servers.of_clients.retain(|(_, of), server| {
            if *of == client {
                server.retire();
            }
            *of != client
        });
    }

    /// The servers that are this client's own.
    pub(crate) fn of_client(&self, client: u64) -> Vec<Server> {
        let servers = self.read();
        let own = servers
            .of_clients
            .iter()
            .filter(|((_, of), _)| *of == client);
        own.map(|(_, server)| server.clone()).collect()
    }

    /// Makes the servers those of `specs`. One that changed is replaced when its calls are done,
    /// and calls that come meanwhile wait for the new one; one that is no more finishes its calls.
    pub(crate) fn apply(&self, specs: Vec<ServerSpec>) -> Applied {
        let mut applied = Applied::default();
        let mut servers = self.write();
        if self.stop.is_cancelled() {
            return applied;
        }
        let is_kept = |name: &ServerName| specs.iter().any(|spec| spec.name == *name);
        let gone: Vec<ServerName> = servers
            .shared
            .keys()
            .filter(|it| !is_kept(it))
            .cloned()
            .collect();
        for name in gone {
            servers.retire(&name);
            applied.removed.push(name);
        }
        for spec in specs {
            let name = spec.name.clone();
            let old = servers.shared.get(&name).cloned();
            match &old {
                Some(old) if is_same(&old.spec, &spec) => continue,
                Some(old) => {
                    let starts_otherwise = !starts_alike(&old.spec, &spec);
                    applied.changed.push((name.clone(), starts_otherwise));
                    servers.retire(&name);
                }
                None => applied.added.push(name.clone()),
            }
            let server = self.begin(spec, old.as_ref(), None);
            if old.is_some() && server.spec.start == Start::Eager {
                server.want();
            }
            servers.shared.insert(name, server);
        }
        applied
    }

    fn begin(
        &self,
        spec: ServerSpec,
        before: Option<&Server>,
        client: Option<&Arc<dyn Asks>>,
    ) -> Server {
        let roots = Roots::of(&spec, client);
        let (keeper, server) = Keeper::new(
            spec,
            Arc::clone(&self.surroundings),
            Arc::clone(&self.changes),
            self.stop.clone(),
            before,
            roots,
        );
        self.keepers.spawn(keeper.run());
        server
    }

    fn read(&self) -> RwLockReadGuard<'_, Servers> {
        self.servers.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Servers> {
        self.servers.write()
    }
}

impl Servers {
    fn retire(&mut self, name: &ServerName) {
        if let Some(server) = self.shared.remove(name) {
            server.retire();
        }
        self.of_clients.retain(|(of, _), server| {
            if of == name {
                server.retire();
            }
            of != name
        });
    }
}

/// Tells whether both say the same. What is spoken was learned, not written by anybody.
fn is_same(old: &ServerSpec, new: &ServerSpec) -> bool {
    let new = ServerSpec {
        spoken: old.spoken.clone(),
        ..new.clone()
    };
    *old == new
}

fn starts_alike(old: &ServerSpec, new: &ServerSpec) -> bool {
    old.launch == new.launch && old.inherit_env == new.inherit_env
}

/// A child works in the folder of its client, unless the configuration names one.
fn in_folder_of(spec: &ServerSpec, client: &ClientId) -> ServerSpec {
    let mut spec = spec.clone();
    spec.client_folder.clone_from(&client.folder);
    if let Launch::Child { cwd, .. } = &mut spec.launch
        && let (None, Some(folder)) = (&cwd, &client.folder)
    {
        *cwd = folder.to_str().map(Template::literal);
    }
    spec
}
