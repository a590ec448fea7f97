//! The servers that there are: added, replaced and taken away while calls are under way.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tool::{ClientId, Digest, ServerName};

use crate::{
    CallError, Failure, Launch, Scope, ServerSpec, Start, Surroundings, Template, Variables,
    changes::Changes,
    ending::Ending,
    eras::Era,
    keeper::Keeper,
    limits::CALLS_OF_CLIENT_MAX,
    question::Asks,
    roots::Roots,
    secrets_named::forget_printed,
    server::{LeasedLink, Place, Server},
    taken::{Environments, Sharing, Taken, templates},
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
    ending: Ending,
    keepers: TaskTracker,
    servers: RwLock<Servers>,
}

#[derive(Debug)]
struct Servers {
    /// One of each; of a server with a scope of clients the one that answers surveys.
    shared: BTreeMap<ServerName, Server>,
    /// Servers that get other variables than the shared one, or that use another era.
    apart: HashMap<ProcessKey, Server>,
    /// The server that each client uses where they may differ: its own, one of `apart`, or the shared.
    of_clients: HashMap<(ServerName, u64, Era), Server>,
    /// Shared servers of the other era that were retired, until others replace them.
    leaving: HashMap<ServerName, Server>,
    environments: Environments,
    /// The calls that each client may still make of each server.
    turns: HashMap<(ServerName, u64), Arc<Semaphore>>,
}

/// Clients whose servers have the same key share one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ProcessKey {
    server: ServerName,
    /// The digest of the values that it is started with.
    variables: Digest,
    era: Era,
}

impl ProcessKey {
    /// Of the shared server, spoken to with a handshake although it speaks a newer revision too.
    fn of_twin(shared: &Server) -> Self {
        Self {
            server: shared.spec.name.clone(),
            variables: shared.taken.key,
            era: Era::Handshake,
        }
    }
}

impl Roster {
    pub(crate) fn new(
        surroundings: Surroundings,
        changes: Arc<Changes>,
        ending: Ending,
        keepers: TaskTracker,
    ) -> Self {
        Self {
            surroundings: Arc::new(surroundings),
            changes,
            ending,
            keepers,
            servers: RwLock::new(Servers {
                shared: BTreeMap::new(),
                apart: HashMap::new(),
                of_clients: HashMap::new(),
                leaving: HashMap::new(),
                environments: Environments::new(Variables::of_process()),
                turns: HashMap::new(),
            }),
        }
    }

    /// The environment that every server is started with.
    pub(crate) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.ending.has_begun()
    }

    /// All of them, with the clients whose own they are; those behind the others.
    pub(crate) fn all(&self) -> Vec<(Vec<u64>, Server)> {
        let servers = self.read();
        let shared = servers.shared.values();
        let mut own: Vec<(Vec<u64>, Server)> = servers
            .apart
            .values()
            .filter(|it| !it.is_retired())
            .map(|it| (Vec::new(), it.clone()))
            .collect();
        for ((name, client, _), server) in &servers.of_clients {
            if server.is_retired() {
                continue;
            }
            let is_this = |it: &&mut (Vec<u64>, Server)| it.1.is(server);
            if let Some((clients, _)) = own.iter_mut().find(is_this) {
                clients.push(*client);
            } else if !servers.shared.get(name).is_some_and(|it| it.is(server)) {
                own.push((vec![*client], server.clone()));
            }
        }
        for (clients, _) in &mut own {
            clients.sort_unstable();
        }
        own.sort_by(|a, b| (&a.1.spec.name, &a.0).cmp(&(&b.1.spec.name, &b.0)));
        let shared = shared.map(|server| (Vec::new(), server.clone()));
        shared.chain(own).collect()
    }

    /// A server of this name that somebody has open, the shared one first.
    pub(crate) fn get_open(&self, name: &ServerName) -> Option<(Server, LeasedLink)> {
        let all = self.all().into_iter().map(|(_, server)| server);
        let mut named = all.filter(|it| it.spec.name == *name && it.spec.scope == Scope::Shared);
        named.find_map(|it| it.open_now().map(|open| (it, open)))
    }

    /// The server as this client has it: one of its own where its scope is the client, and one
    /// apart where the client's variables or the era in which it speaks make it another.
    pub(crate) fn find(
        &self,
        name: &ServerName,
        client: Option<&ClientId>,
        asks: Option<&Arc<dyn Asks>>,
    ) -> Result<Server, CallError> {
        if let Some(known) = self.read().find(name, client, asks)? {
            return Ok(known);
        }
        let servers = &mut *self.write();
        // It may have come before we held the lock.
        if let Some(known) = servers.find(name, client, asks)? {
            return Ok(known);
        }
        let shared = servers.get_shared(name)?.clone();
        let connection = connection_at(&shared, client);
        let era = servers.era_of(&shared, connection, asks);
        let taken = match connection {
            Some(_) => servers.environments.take(&shared.spec, connection),
            None => (*shared.taken).clone(),
        };
        let own = client.filter(|_| connection.is_some() && shared.spec.scope == Scope::Client);
        let server = if let Some(client) = own {
            let place = Place {
                era,
                beside: Some(&shared),
                ..Place::default()
            };
            self.begin(in_folder_of(&shared.spec, client), taken, &place, asks)
        } else if era == Era::Newest && taken.key == shared.taken.key {
            shared
        } else {
            self.get_apart(servers, &shared, taken, era)
        };
        if let Some(connection) = connection {
            let key = (name.clone(), connection, era);
            servers.of_clients.insert(key, server.clone());
        }
        Ok(server)
    }

    /// The server that is asked for its tools: the shared one; where that lacks a variable, the one
    /// of the first client that has all.
    pub(crate) fn find_for_survey(&self, name: &ServerName) -> Result<Server, CallError> {
        let servers = &mut *self.write();
        let shared = servers.get_shared(name)?.clone();
        if let Some(taken) = servers.take_for(&shared) {
            let era = servers.era_that_runs(&shared, taken.key);
            return Ok(self.get_apart(servers, &shared, taken, era));
        }
        let known = servers.find(name, None, None)?;
        Ok(known.unwrap_or(shared))
    }

    /// A server beside the shared one, for all clients whose variables and era are these.
    fn get_apart(&self, servers: &mut Servers, shared: &Server, taken: Taken, era: Era) -> Server {
        let name = &shared.spec.name;
        let key = ProcessKey {
            server: name.clone(),
            variables: taken.key,
            era,
        };
        let known = servers.apart.get(&key).filter(|it| !it.is_retired());
        known.cloned().unwrap_or_else(|| {
            let is_twin = key == ProcessKey::of_twin(shared);
            let before = is_twin.then(|| servers.leaving.remove(name)).flatten();
            let place = Place {
                era,
                before: before.as_ref(),
                beside: Some(shared),
                is_twin,
            };
            let server = self.begin((*shared.spec).clone(), taken, &place, None);
            servers.apart.insert(key, server.clone());
            server
        })
    }

    /// Why the server is down for those who share it, if it is; one that is open in either era is
    /// not.
    pub(crate) fn last_failure(&self, name: &ServerName) -> Option<Failure> {
        let servers = self.read();
        let shared = servers.shared.get(name)?;
        if let Some(taken) = servers.take_for(shared) {
            let era = servers.era_that_runs(shared, taken.key);
            let key = ProcessKey {
                server: name.clone(),
                variables: taken.key,
                era,
            };
            return servers.apart.get(&key)?.last_failure();
        }
        let twin = servers.apart.get(&ProcessKey::of_twin(shared));
        let twin = twin.filter(|it| !it.is_retired());
        let mut both = [Some(shared), twin].into_iter().flatten();
        if both.clone().any(Server::is_open) {
            return None;
        }
        both.find_map(Server::last_failure)
    }

    /// Takes in the variables of a client. Returns the servers that could not start for want of a
    /// variable, and can be asked for their tools now.
    pub(crate) fn admit_client(&self, client: u64, variables: Arc<Variables>) -> Vec<ServerName> {
        let servers = &mut *self.write();
        let all: Vec<Server> = servers.shared.values().cloned().collect();
        let lack = |servers: &Servers, it: &Server| {
            it.taken.is_incomplete() && servers.take_for(it).is_none()
        };
        let lacked: Vec<Server> = all.into_iter().filter(|it| lack(servers, it)).collect();
        servers.environments.admit(client, variables);
        let mut completed = Vec::new();
        for shared in lacked {
            let Some(taken) = servers.take_for(&shared) else {
                continue;
            };
            completed.push(shared.spec.name.clone());
            if shared.spec.start == Start::Eager && !self.ending.has_begun() {
                self.get_apart(servers, &shared, taken, Era::Newest).want();
            }
        }
        completed
    }

    /// Returns how servers differ for each client, if they do.
    pub(crate) fn sharing(&self) -> Vec<Sharing> {
        let servers = self.read();
        let mut all = Vec::new();
        for client in servers.environments.clients() {
            for shared in servers.shared.values().filter(|it| it.is_personal) {
                let taken = servers.environments.take(&shared.spec, Some(client));
                let of_others = servers.take_for(shared);
                let of_others = of_others.as_ref().unwrap_or(&shared.taken);
                let is_apart = shared.spec.scope == Scope::Shared
                    && !taken.is_incomplete()
                    && taken.key != of_others.key;
                let differing = is_apart.then(|| taken.values.differing(&of_others.values));
                let differing = differing.unwrap_or_default();
                if differing.is_empty() && taken.lacking.is_empty() {
                    continue;
                }
                all.push(Sharing {
                    server: shared.spec.name.clone(),
                    client,
                    differing,
                    lacking: taken.lacking,
                });
            }
        }
        all
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
        servers.environments.forget(client);
        servers.of_clients.retain(|(_, of, _), server| {
            if *of == client && server.spec.scope == Scope::Client {
                server.retire();
            }
            *of != client
        });
        let Servers {
            shared,
            apart,
            environments,
            ..
        } = &mut *servers;
        apart.retain(|key, server| {
            let is_twin = |it: &Server| *key == ProcessKey::of_twin(it);
            let takes = |client| environments.take(&server.spec, Some(client)).key;
            let is_used = shared.get(&key.server).is_some_and(is_twin)
                || environments.clients().any(|it| takes(it) == key.variables);
            if !is_used {
                server.retire();
            }
            is_used
        });
    }

    /// The servers that are this client's own.
    pub(crate) fn of_client(&self, client: u64) -> Vec<Server> {
        let servers = self.read();
        let own = servers
            .of_clients
            .iter()
            .filter(|((_, of, _), it)| *of == client && it.spec.scope == Scope::Client);
        own.map(|(_, server)| server.clone()).collect()
    }

    /// Makes the servers those of `specs`. One that changed is replaced when its calls are done,
    /// and calls that come meanwhile wait for the new one; one that is no more finishes its calls.
    pub(crate) fn apply(&self, specs: Vec<ServerSpec>) -> Applied {
        let mut applied = Applied::default();
        let mut servers = self.write();
        if self.ending.has_begun() {
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
            servers.leaving.remove(&name);
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
            let taken = servers.environments.take(&spec, None);
            let server = match &old {
                Some(old) => self.replace(old, spec, taken),
                None => self.begin(spec, taken, &Place::default(), None),
            };
            if old.is_some() && server.spec.start == Start::Eager {
                server.want();
            }
            servers.shared.insert(name, server);
        }
        applied
    }

    /// Replaces a server by one of the same, for which commands that print its secrets run again, as [`Roster::apply`] replaces one that changed, and with
    /// it those of single clients. Whether there is such a server.
    pub(crate) fn restart(&self, name: &ServerName) -> bool {
        let mut servers = self.write();
        let Some(old) = servers.shared.get(name).cloned() else {
            return false;
        };
        if !self.ending.has_begun() {
            servers.retire(name);
            // The person who restarts a server may have renewed the value that a command prints.
            let resolver = self.surroundings.secrets.as_deref();
            forget_printed(templates(&old.spec), resolver);
            let spec = (*old.spec).clone();
            let taken = servers.environments.take(&spec, None);
            let server = self.replace(&old, spec, taken);
            servers.shared.insert(name.clone(), server);
        }
        true
    }

    /// A shared server in the place of this one.
    fn replace(&self, old: &Server, spec: ServerSpec, taken: Taken) -> Server {
        let place = Place {
            before: Some(old),
            ..Place::default()
        };
        self.begin(spec, taken, &place, None)
    }

    fn begin(
        &self,
        spec: ServerSpec,
        taken: Taken,
        place: &Place<'_>,
        client: Option<&Arc<dyn Asks>>,
    ) -> Server {
        let roots = Roots::of(&spec, &taken.values, client);
        let (keeper, server) = Keeper::new(
            spec,
            taken,
            Arc::clone(&self.surroundings),
            Arc::clone(&self.changes),
            self.ending.clone(),
            place,
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
    fn get_shared(&self, name: &ServerName) -> Result<&Server, CallError> {
        let shared = self.shared.get(name);
        shared.ok_or_else(|| CallError::UnknownServer(name.clone()))
    }

    /// The server as this client has it, where that has begun.
    fn find(
        &self,
        name: &ServerName,
        client: Option<&ClientId>,
        asks: Option<&Arc<dyn Asks>>,
    ) -> Result<Option<Server>, CallError> {
        let shared = self.get_shared(name)?;
        let connection = connection_at(shared, client);
        let era = self.era_of(shared, connection, asks);
        let known = self.get(shared, connection, era);
        Ok(known.filter(|it| !it.is_retired()).cloned())
    }

    fn get<'a>(
        &'a self,
        shared: &'a Server,
        connection: Option<u64>,
        era: Era,
    ) -> Option<&'a Server> {
        match (connection, era) {
            (Some(connection), era) => {
                let key = (shared.spec.name.clone(), connection, era);
                self.of_clients.get(&key)
            }
            (None, Era::Newest) => Some(shared),
            (None, Era::Handshake) => self.apart.get(&ProcessKey::of_twin(shared)),
        }
    }

    /// The era of the process that works for a client. Whoever is no client has the one that runs.
    fn era_of(
        &self,
        shared: &Server,
        connection: Option<u64>,
        asks: Option<&Arc<dyn Asks>>,
    ) -> Era {
        if let Some(client) = asks {
            return shared.eras.of_client(client);
        }
        choose_open(|era| self.get(shared, connection, era))
    }

    /// The era of the process with these variables that runs.
    fn era_that_runs(&self, shared: &Server, variables: Digest) -> Era {
        choose_open(|era| {
            self.apart.get(&ProcessKey {
                server: shared.spec.name.clone(),
                variables,
                era,
            })
        })
    }

    /// The variables with which a server is asked for its tools, where it lacks some of our own:
    /// those of the first client that has all.
    fn take_for(&self, shared: &Server) -> Option<Taken> {
        let is_incomplete = shared.taken.is_incomplete();
        is_incomplete.then(|| self.environments.take_complete(&shared.spec))?
    }

    fn retire(&mut self, name: &ServerName) {
        if let Some(server) = self.shared.remove(name) {
            if let Some(twin) = self.apart.get(&ProcessKey::of_twin(&server)) {
                self.leaving.insert(name.clone(), twin.clone());
            }
            server.retire();
        }
        let keep = |of: &ServerName, server: &Server| {
            if of == name {
                server.retire();
            }
            of != name
        };
        self.of_clients.retain(|(of, ..), server| keep(of, server));
        self.apart.retain(|key, server| keep(&key.server, server));
    }
}

/// The era in which a server runs; the newest where it runs in none or in both.
fn choose_open<'a>(get: impl Fn(Era) -> Option<&'a Server>) -> Era {
    let is_open = |era| get(era).is_some_and(Server::is_open);
    if !is_open(Era::Newest) && is_open(Era::Handshake) {
        Era::Handshake
    } else {
        Era::Newest
    }
}

/// The connection of this client, where clients of the server may have one each or apart.
fn connection_at(shared: &Server, client: Option<&ClientId>) -> Option<u64> {
    client.filter(|_| shared.is_personal)?.connection
}

/// Tells whether both say the same. What was learned of it was not written by anybody.
fn is_same(old: &ServerSpec, new: &ServerSpec) -> bool {
    let new = ServerSpec {
        spoken: old.spoken.clone(),
        asks_clients: old.asks_clients,
        ..new.clone()
    };
    *old == new
}

fn starts_alike(old: &ServerSpec, new: &ServerSpec) -> bool {
    old.launch == new.launch && old.login == new.login && old.inherit_env == new.inherit_env
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
