//! The current servers. They are added, replaced and removed while calls are running.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
};

use parking_lot::RwLock;
use tokio::{sync::Semaphore, time::sleep};
use tokio_util::task::TaskTracker;
use tool::{ClientId, Digest, HttpCaller, ServerName};

use crate::{
    CallError, CallerLogins, Failure, Launch, Ran, Request, ServerScope, ServerSpec, Start,
    Surroundings, Template, Variables,
    asking::CallTurn,
    caller_servers::{CallerServers, has_credential},
    changes::Changes,
    eras::Era,
    keeper::{Ending, Keeper},
    limits::{CALLS_OF_CLIENT_MAX, PROCESSES_MAX, RESTART_GRACE, SPARE_IDLE},
    question::Asks,
    roots::Roots,
    secrets_named::forget_printed,
    server::{NotReady, ProcessKey, Server, Siblings},
    taken::{Environments, TakenVariables, templates},
};

/// The effect of a change of the specifications.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// New servers. They are not started yet.
    pub added: Vec<ServerName>,
    /// Replaced servers; `true` if the server is started in another way, so that its tools may differ.
    pub changed: Vec<(ServerName, bool)>,
    /// Removed servers. They finish their running calls.
    pub removed: Vec<ServerName>,
}

impl Applied {
    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct Roster {
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) logins: Arc<CallerLogins>,
    pub(crate) ending: Ending,
    /// The tasks of all servers.
    pub(crate) keepers: TaskTracker,
    pub(crate) servers: RwLock<Instances>,
}

#[derive(Debug, Default)]
pub(crate) struct Instances {
    /// The shared instance of each server. If each client has its own instance, this one is surveyed.
    pub(crate) shared: BTreeMap<ServerName, Server>,
    /// Instances with other variables than the shared one, or of another era.
    apart: HashMap<ProcessKey, Server>,
    /// The instance that a client uses, if clients may use different ones.
    pub(crate) of_clients: HashMap<(ServerName, u64, Era), Server>,
    of_callers: CallerServers,
    /// Retired instances that the next instances of their servers wait for.
    leaving: HashMap<ServerName, LeavingInstances>,
    /// Retired instances that had not ended when another one was retired. What replaces them waits for their
    /// calls, so a restart interrupts them too.
    retiring: Vec<Server>,
    pub(crate) environments: Environments,
    /// The permits of each client for calls of each server.
    turns: HashMap<(ServerName, u64), Arc<Semaphore>>,
}

/// Retired instances of one server.
#[derive(Debug, Default)]
struct LeavingInstances {
    /// The one beside the shared instance that has the other era, until another one replaces it.
    twin: Option<Server>,
    /// Those that ran calls which would have waited for other clients.
    spares: Vec<Server>,
}

impl Roster {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        let surroundings = Arc::new(surroundings);
        Self {
            logins: Arc::new(CallerLogins::new(Arc::clone(&surroundings))),
            surroundings,
            changes: Arc::default(),
            ending: Ending::new(),
            keepers: TaskTracker::new(),
            servers: RwLock::new(Instances {
                environments: Environments::new(Variables::of_process()),
                ..Instances::default()
            }),
        }
    }

    /// Lists all servers with the clients that have them for themselves; the shared ones come first.
    pub(crate) fn all(&self) -> Vec<(Vec<u64>, Server)> {
        let servers = self.servers.read();
        // A spare that does not run says nothing of its server.
        let is_listed = |server: &&Server| {
            !server.is_retired() && (!server.is_spare || server.is_open() || server.is_in_use())
        };
        let apart = servers.apart.values().chain(servers.of_callers.iter());
        let apart = apart.filter(is_listed);
        let mut own: Vec<(Vec<u64>, Server)> =
            apart.map(|server| (Vec::new(), server.clone())).collect();
        let of_clients = servers.of_clients.iter();
        for ((name, client, _), server) in of_clients.filter(|(_, it)| !it.is_retired()) {
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
        let shared = servers.shared.values();
        let shared = shared.map(|server| (Vec::new(), server.clone()));
        shared.chain(own).collect()
    }

    /// Returns the server that this client uses: its own if the scope is the client, or a separate one if
    /// the client's variables or its era differ.
    pub(crate) fn find(
        &self,
        name: &ServerName,
        client: Option<&ClientId>,
        asks: Option<&Arc<dyn Asks>>,
    ) -> Result<Server, CallError> {
        if let Some(caller) = client.and_then(|it| it.caller.as_ref())
            && let Some(own) = self.find_of_caller(name, caller, asks)?
        {
            return Ok(own);
        }
        if let Some(known) = self.servers.read().find(name, client, asks)? {
            return Ok(known);
        }
        let servers = &mut *self.servers.write();
        // Another task may have added it before the lock was taken.
        if let Some(known) = servers.find(name, client, asks)? {
            return Ok(known);
        }
        let shared = servers.get_shared(name)?.clone();
        let connection = connection_at(&shared, client);
        let era = servers.era_of(&shared, connection, asks);
        let taken = match connection {
            Some(_) => servers.environments.take(&shared.spec, connection, None),
            None => shared.taken.clone(),
        };
        let own =
            client.filter(|_| connection.is_some() && shared.spec.scope == ServerScope::Client);
        let server = if let Some(client) = own {
            let siblings = Siblings::beside(&shared, era);
            self.begin(in_folder_of(&shared.spec, client), taken, &siblings, asks)
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

    /// Returns the server that this caller over HTTP has for itself. Returns `None` if it has none.
    fn find_of_caller(
        &self,
        name: &ServerName,
        caller: &Arc<HttpCaller>,
        asks: Option<&Arc<dyn Asks>>,
    ) -> Result<Option<Server>, CallError> {
        if !self.is_of_callers(name) {
            return Ok(None);
        }
        let servers = &mut *self.servers.write();
        let shared = servers.get_shared(name)?.clone();
        if !shared.is_of_callers || shared.spec.scope == ServerScope::Client {
            return Ok(None);
        }
        let taken = servers.environments.take(&shared.spec, None, Some(caller));
        if taken.key == shared.taken.key {
            return Ok(None);
        }
        let era = asks.map_or(Era::Newest, |client| shared.eras.of_client(client));
        self.get_of_caller(servers, &shared, taken, era).map(Some)
    }

    /// Returns true if callers over HTTP have instances of their own.
    pub(crate) fn is_of_callers(&self, name: &ServerName) -> bool {
        let servers = self.servers.read();
        servers.shared.get(name).is_some_and(|it| it.is_of_callers)
    }

    fn get_of_caller(
        &self,
        servers: &mut Instances,
        shared: &Server,
        taken: TakenVariables,
        era: Era,
    ) -> Result<Server, CallError> {
        let key = ProcessKey::new(shared, taken.key, era);
        if let Some(known) = servers.of_callers.get(&key) {
            return Ok(known);
        }
        let spec = &shared.spec;
        if !servers.of_callers.make_room(spec) {
            let why = format!(
                "all {} processes for callers are in use",
                spec.callers_max()
            );
            let hint = format!(
                "call again later, or raise `servers.{}.max_callers`",
                spec.name
            );
            let failure = Failure::new(why).hint(hint);
            return Err(CallError::unavailable(&spec.name, failure, 0, Ran::No));
        }
        let siblings = Siblings::beside(shared, era);
        let server = self.begin((*spec).clone(), taken, &siblings, None);
        servers.of_callers.insert(key, server.clone());
        Ok(server)
    }

    /// Returns the server to survey: the shared one, or, if that lacks a variable, the one of the first
    /// client that has all variables.
    pub(crate) fn find_for_survey(&self, name: &ServerName) -> Result<Server, CallError> {
        self.choose_for_survey(&mut self.servers.write(), name)
    }

    fn choose_for_survey(
        &self,
        servers: &mut Instances,
        name: &ServerName,
    ) -> Result<Server, CallError> {
        let shared = servers.get_shared(name)?.clone();
        if let Some(found) = self.find_to_survey_for_caller(servers, &shared) {
            return found;
        }
        if let Some(taken) = servers.take_for(&shared) {
            let era = servers.era_that_runs(&shared, taken.key);
            return Ok(self.get_apart(servers, &shared, taken, era));
        }
        Ok(servers.find(name, None, None)?.unwrap_or(shared))
    }

    /// Returns the instance of a caller to survey: an open one, or that of the last caller whose values
    /// and login suffice. Returns `None` if the shared instance suffices, or no caller does.
    fn find_to_survey_for_caller(
        &self,
        servers: &mut Instances,
        shared: &Server,
    ) -> Option<Result<Server, CallError>> {
        let surroundings = &self.surroundings;
        let suffices = !shared.is_of_callers
            || !shared.taken.is_incomplete() && has_credential(shared, &shared.taken, surroundings);
        if suffices {
            return None;
        }
        let name = &shared.spec.name;
        if let Some(open) = servers.of_callers.find_open(name) {
            return Some(Ok(open));
        }
        let callers = surroundings.callers.list();
        let mut usable = callers.iter();
        let taken = usable.find_map(|it| servers.take_usable(shared, it, surroundings))?;
        Some(self.get_of_caller(servers, shared, taken, Era::Newest))
    }

    /// Returns the server beside the shared one for all clients with these variables and this era.
    pub(crate) fn get_apart(
        &self,
        servers: &mut Instances,
        shared: &Server,
        taken: TakenVariables,
        era: Era,
    ) -> Server {
        let name = &shared.spec.name;
        let key = ProcessKey::new(shared, taken.key, era);
        let known = servers.apart.get(&key).filter(|it| !it.is_retired());
        known.cloned().unwrap_or_else(|| {
            let is_twin = key == ProcessKey::of_twin(shared);
            let twin = is_twin.then(|| servers.take_leaving_twin(name)).flatten();
            let spares = is_twin.then(|| servers.spares_before(&shared.spec));
            let siblings = Siblings {
                before: twin.as_ref(),
                spares_before: spares.unwrap_or_default(),
                is_twin,
                ..Siblings::beside(shared, era)
            };
            let server = self.begin(shared.spec.clone(), taken, &siblings, None);
            servers.apart.insert(key, server.clone());
            server
        })
    }

    /// Returns the failure of the shared server, if it is down. A server that is open in either era is
    /// not down.
    pub(crate) fn last_failure(&self, name: &ServerName) -> Option<Failure> {
        let servers = self.servers.read();
        let shared = servers.shared.get(name)?;
        // One caller's login says nothing about that of another.
        if shared.is_of_callers && servers.of_callers.iter().any(|it| it.spec.name == *name) {
            return None;
        }
        if let Some(taken) = servers.take_for(shared) {
            let era = servers.era_that_runs(shared, taken.key);
            let key = ProcessKey::new(shared, taken.key, era);
            return servers.apart.get(&key)?.last_failure();
        }
        let twin = servers.get(shared, None, Era::Handshake);
        let mut both = [Some(shared), twin].into_iter().flatten();
        if both.clone().any(Server::is_open) {
            return None;
        }
        both.find_map(Server::last_failure)
    }

    /// Returns the permits of this connection's calls, which come before the permits of the server.
    pub(crate) fn turns(&self, name: &ServerName, connection: u64) -> Arc<Semaphore> {
        let key = (name.clone(), connection);
        if let Some(turns) = self.servers.read().turns.get(&key) {
            return Arc::clone(turns);
        }
        let new = || Arc::new(Semaphore::new(CALLS_OF_CLIENT_MAX));
        Arc::clone(self.servers.write().turns.entry(key).or_insert_with(new))
    }

    /// Retires the servers that belong to this client alone.
    pub(crate) fn forget_client(&self, client: u64) {
        let mut servers = self.servers.write();
        servers.turns.retain(|(_, of), _| *of != client);
        servers.environments.clients.remove(&client);
        servers.of_clients.retain(|(_, of, _), server| {
            if *of == client && server.spec.scope == ServerScope::Client {
                server.retire();
            }
            *of != client
        });
        let Instances {
            shared,
            apart,
            environments,
            ..
        } = &mut *servers;
        apart.retain(|key, server| {
            let is_twin = |it: &Server| *key == ProcessKey::of_twin(it);
            let takes = |client| environments.take(&server.spec, Some(client), None).key;
            let is_spare = |it: &Server| key.spare > 0 && key.variables == it.taken.key;
            let of_shared = |it: &Server| is_twin(it) || is_spare(it);
            let is_used = shared.get(&key.server).is_some_and(of_shared)
                || environments
                    .clients
                    .keys()
                    .any(|it| takes(*it) == key.variables);
            if !is_used {
                server.retire();
            }
            is_used
        });
    }

    /// Replaces the servers by those of `specs`. A changed server is replaced after its running calls, and
    /// new calls wait for its replacement. A removed server finishes its running calls.
    pub(crate) fn apply(&self, specs: Vec<ServerSpec>) -> Applied {
        let mut applied = Applied::default();
        let mut servers = self.servers.write();
        if self.ending.begun.is_cancelled() {
            return applied;
        }
        let is_kept = |name: &ServerName| specs.iter().any(|spec| spec.name == *name);
        let gone = servers.shared.keys().filter(|it| !is_kept(it));
        applied.removed = gone.cloned().collect();
        for name in &applied.removed {
            servers.retire(name);
            servers.leaving.remove(name);
        }
        for spec in specs {
            let name = spec.name.clone();
            let is_known = match servers.shared.get(&name) {
                Some(old) if is_same(&old.spec, &spec) => continue,
                Some(old) => {
                    let starts_otherwise = !starts_alike(&old.spec, &spec);
                    applied.changed.push((name, starts_otherwise));
                    true
                }
                None => {
                    applied.added.push(name);
                    false
                }
            };
            let server = self.put(&mut servers, spec);
            if is_known && server.spec.start == Start::Eager {
                server.want();
            }
        }
        applied
    }

    /// Returns another process of this server with the turn of a call that would wait for calls of other
    /// sessions; starts one if there may be more. `None`: all are in use, the configuration says that
    /// there is only one, or all processes for callers are in use and this call is that of a caller.
    pub(crate) fn find_spare(
        &self,
        first: &Server,
        request: &Request,
    ) -> Option<(Server, CallTurn)> {
        if !first.spec.has_spares {
            return None;
        }
        let servers = &mut *self.servers.write();
        if first.is_retired() {
            return None;
        }
        let is_of_caller = first.taken.caller().is_some();
        for spare in 1..PROCESSES_MAX {
            let key = ProcessKey {
                spare,
                ..ProcessKey::new(first, first.taken.key, first.era)
            };
            let known = if is_of_caller {
                servers.of_callers.get(&key)
            } else {
                let apart = servers.apart.get(&key);
                apart.filter(|server| !server.is_retired()).cloned()
            };
            let server = match known {
                Some(known) => known,
                None if is_of_caller && !servers.of_callers.make_room(&first.spec) => return None,
                None => {
                    let server = self.begin_spare(first);
                    if is_of_caller {
                        servers.of_callers.insert(key, server.clone());
                    } else {
                        servers.apart.insert(key, server.clone());
                    }
                    server
                }
            };
            if let Some(turn) = server.asking.try_take_turn(request) {
                return Some((server, turn));
            }
        }
        None
    }

    /// Returns true if calls of this instance go to the one that replaced it.
    pub(crate) fn is_replaced(&self, server: &Server) -> bool {
        server.is_retired() && !self.ending.begun.is_cancelled()
    }

    /// Replaces the instances of a server, and has the new one started. The old ones are interrupted
    /// after [`RESTART_GRACE`] unless the restart `waits` for their calls; one that is not ready has
    /// none, and is interrupted at once. Returns the instance that starts.
    pub(crate) fn restart(&self, name: &ServerName, waits: bool) -> Result<Server, CallError> {
        let servers = &mut *self.servers.write();
        let old = servers.get_shared(name)?.clone();
        if self.ending.begun.is_cancelled() {
            return Err(NotReady::stopping().into_error(name));
        }
        // A person may have renewed the value that a command prints.
        let resolver = self.surroundings.secrets.as_deref();
        forget_printed(templates(&old.spec), resolver);
        let era = servers.era_of(&old, None, None);
        let shared = self.put(servers, old.spec.clone());
        let all: Vec<Server> = servers
            .retiring
            .iter()
            .filter(|server| server.spec.name == *name)
            .cloned()
            .collect();
        let server = if era == Era::Handshake {
            self.get_apart(servers, &shared, shared.taken.clone(), era)
        } else {
            self.choose_for_survey(servers, name)?
        };
        server.want();
        let (open, others): (Vec<_>, Vec<_>) = all.into_iter().partition(Server::is_open);
        let interrupt = |all: Vec<Server>| all.iter().for_each(|it| it.interrupted.cancel());
        interrupt(others);
        if !waits {
            let begun = self.ending.begun.clone();
            self.keepers.spawn(async move {
                begun.run_until_cancelled(sleep(RESTART_GRACE)).await;
                interrupt(open);
            });
        }
        Ok(server)
    }

    /// Retires the instances of a server, and starts the keeper of the shared one that replaces them.
    pub(crate) fn put(&self, servers: &mut Instances, spec: ServerSpec) -> Server {
        let before = servers.retire(&spec.name);
        let taken = servers.environments.take(&spec, None, None);
        let siblings = Siblings {
            before: before.as_ref(),
            spares_before: servers.spares_before(&spec),
            ..Siblings::default()
        };
        let server = self.begin(spec, taken, &siblings, None);
        let name = server.spec.name.clone();
        servers.shared.insert(name, server.clone());
        server
    }

    fn begin_spare(&self, first: &Server) -> Server {
        let siblings = Siblings {
            is_spare: true,
            ..Siblings::beside(first, first.era)
        };
        let idle = first.spec.idle_timeout.unwrap_or(SPARE_IDLE);
        let spec = ServerSpec {
            idle_timeout: Some(idle.min(SPARE_IDLE)),
            ..first.spec.clone()
        };
        self.begin(spec, first.taken.clone(), &siblings, None)
    }

    fn begin(
        &self,
        spec: ServerSpec,
        taken: TakenVariables,
        siblings: &Siblings<'_>,
        client: Option<&Arc<dyn Asks>>,
    ) -> Server {
        let roots = Roots::of(&spec, &taken.values, client);
        let (server, stage) = Server::new(spec, taken, siblings, roots, &self.changes);
        let before = siblings.before.into_iter().chain(siblings.spares_before);
        let keeper = Keeper {
            server: server.clone(),
            surroundings: Arc::clone(&self.surroundings),
            stage,
            ending: self.ending.clone(),
            before: before.map(|it| it.stage.clone()).collect(),
            tries: 0,
        };
        // Boxed, because tokio copies the state of a task several times.
        self.keepers.spawn(Box::pin(keeper.run()));
        server
    }
}

impl Instances {
    fn get_shared(&self, name: &ServerName) -> Result<&Server, CallError> {
        let shared = self.shared.get(name);
        shared.ok_or_else(|| CallError::UnknownServer(name.clone()))
    }

    /// Returns the server that this client uses, if it exists.
    fn find(
        &self,
        name: &ServerName,
        client: Option<&ClientId>,
        asks: Option<&Arc<dyn Asks>>,
    ) -> Result<Option<Server>, CallError> {
        let shared = self.get_shared(name)?;
        let connection = connection_at(shared, client);
        let era = self.era_of(shared, connection, asks);
        Ok(self.get(shared, connection, era).cloned())
    }

    /// Returns the server that a client with this connection uses, if it exists.
    fn get<'a>(
        &'a self,
        shared: &'a Server,
        connection: Option<u64>,
        era: Era,
    ) -> Option<&'a Server> {
        let known = match (connection, era) {
            (Some(connection), era) => {
                let key = (shared.spec.name.clone(), connection, era);
                self.of_clients.get(&key)
            }
            (None, Era::Newest) => Some(shared),
            (None, Era::Handshake) => self.apart.get(&ProcessKey::of_twin(shared)),
        };
        known.filter(|it| !it.is_retired())
    }

    /// Returns the era of the process that serves a client. A caller without a client uses a running one.
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

    /// Returns the era of the running process with these variables.
    fn era_that_runs(&self, shared: &Server, variables: Digest) -> Era {
        choose_open(|era| self.apart.get(&ProcessKey::new(shared, variables, era)))
    }

    /// Returns the variables for the survey of a server that lacks some of the proxy's own: those of the
    /// first client that has all.
    pub(crate) fn take_for(&self, shared: &Server) -> Option<TakenVariables> {
        let is_incomplete = shared.taken.is_incomplete();
        is_incomplete.then(|| self.environments.take_complete(&shared.spec))?
    }

    /// Returns the variables of this caller, if the server can be started with them.
    pub(crate) fn take_usable(
        &self,
        shared: &Server,
        caller: &HttpCaller,
        surroundings: &Surroundings,
    ) -> Option<TakenVariables> {
        let taken = self.environments.take(&shared.spec, None, Some(caller));
        let is_usable = !taken.is_incomplete() && has_credential(shared, &taken, surroundings);
        is_usable.then_some(taken)
    }

    /// Lists all instances of a server; one may be listed twice.
    fn list(&self, name: &ServerName) -> Vec<Server> {
        let shared = self.shared.get(name);
        let others = self.apart.values().chain(self.of_clients.values());
        let others = others.chain(self.of_callers.iter());
        let others = others.filter(|it| it.spec.name == *name);
        shared.into_iter().chain(others).cloned().collect()
    }

    fn take_leaving_twin(&mut self, name: &ServerName) -> Option<Server> {
        self.leaving.get_mut(name)?.twin.take()
    }

    /// Returns the retired processes that the shared instance of a server, and its twin, wait for: a server
    /// that may run only once starts after all spare processes that it had until then.
    fn spares_before(&self, spec: &ServerSpec) -> &[Server] {
        let leaving = self.leaving.get(&spec.name);
        let leaving = leaving.filter(|_| !spec.has_spares);
        leaving.map_or(&[], |leaving| &leaving.spares)
    }

    /// Retires all instances of a server. Returns the shared one.
    fn retire(&mut self, name: &ServerName) -> Option<Server> {
        let replaced = self.list(name);
        self.retiring.retain(|server| !server.has_ended());
        self.retiring.extend(replaced.iter().cloned());
        let leaving = self.leaving.entry(name.clone()).or_default();
        leaving.spares.retain(|server| !server.has_ended());
        leaving
            .spares
            .extend(replaced.iter().filter(|server| server.is_spare).cloned());
        let shared = self.shared.remove(name);
        if let Some(server) = &shared {
            if let Some(twin) = self.apart.get(&ProcessKey::of_twin(server)) {
                leaving.twin = Some(twin.clone());
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
        self.of_callers
            .retain(|key, server| keep(&key.server, server));
        shared
    }
}

/// Returns the era in which a server runs; the newest if it runs in none or in both.
fn choose_open<'a>(get: impl Fn(Era) -> Option<&'a Server>) -> Era {
    let is_open = |era| get(era).is_some_and(Server::is_open);
    if !is_open(Era::Newest) && is_open(Era::Handshake) {
        Era::Handshake
    } else {
        Era::Newest
    }
}

/// Returns the connection of this client, if clients may use different instances of the server.
fn connection_at(shared: &Server, client: Option<&ClientId>) -> Option<u64> {
    client.filter(|_| shared.is_personal)?.connection
}

/// Returns true if both have the same configuration. Learned fields do not count.
fn is_same(old: &ServerSpec, new: &ServerSpec) -> bool {
    let new = ServerSpec {
        spoken: old.spoken.clone(),
        asking_calls: old.asking_calls.clone(),
        ..new.clone()
    };
    *old == new
}

fn starts_alike(old: &ServerSpec, new: &ServerSpec) -> bool {
    old.launch == new.launch && old.login == new.login && old.inherit_env == new.inherit_env
}

/// Sets the folder of a child to that of its client, unless the configuration sets one.
fn in_folder_of(spec: &ServerSpec, client: &ClientId) -> ServerSpec {
    let mut spec = spec.clone();
    spec.client_folder = client.folder.as_deref().map(Path::to_owned);
    if let Launch::Child { cwd, .. } = &mut spec.launch
        && let (None, Some(folder)) = (&cwd, &client.folder)
    {
        *cwd = folder.to_str().map(Template::literal);
    }
    spec
}
