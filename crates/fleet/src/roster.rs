//! The current servers. They are added, replaced and removed while calls are running.

use std::{path::Path, sync::Arc};

use parking_lot::RwLock;
use tokio::{sync::Semaphore, time::sleep};
use tokio_util::task::TaskTracker;
use tool::{ClientId, HttpCaller, ServerName};

use crate::{
    CallError, CallerLogins, Failure, Launch, Ran, Request, ServerScope, ServerSpec, Start,
    Surroundings, Template,
    asking::CallTurn,
    caller_servers::has_credential,
    changes::Changes,
    eras::Era,
    instances::{Instances, connection_at},
    keeper::{Ending, Keeper},
    limits::{CALLS_OF_CLIENT_MAX, PROCESSES_MAX, RESTART_GRACE, SPARE_IDLE},
    question::Asks,
    roots::Roots,
    secrets_named::forget_printed,
    server::{NotReady, ProcessKey, Server, Siblings},
    taken::{TakenVariables, templates},
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

impl Roster {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        let surroundings = Arc::new(surroundings);
        Self {
            logins: Arc::new(CallerLogins::new(Arc::clone(&surroundings))),
            surroundings,
            changes: Arc::default(),
            ending: Ending::new(),
            keepers: TaskTracker::new(),
            servers: RwLock::new(Instances::new()),
        }
    }

    /// Lists all servers with the clients that have them for themselves; the shared ones come first.
    pub(crate) fn all(&self) -> Vec<(Vec<u64>, Server)> {
        self.servers.read().list_all()
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
            let failure = Failure::new(why).hint("call again later");
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
        servers.get_apart(&key).unwrap_or_else(|| {
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
        self.servers.read().last_failure(name)
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
        self.servers.write().forget_client(client);
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
            servers.remove(name);
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
                servers.get_apart(&key)
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
        let retiring = servers.list_retiring(name);
        let server = if era == Era::Handshake {
            self.get_apart(servers, &shared, shared.taken.clone(), era)
        } else {
            self.choose_for_survey(servers, name)?
        };
        server.want();
        let (open, others): (Vec<_>, Vec<_>) = retiring.into_iter().partition(Server::is_open);
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
