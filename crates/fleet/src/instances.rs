//! The instances of all servers that exist now: shared ones, and those of clients, of callers, of other variables or of
//! the other era. It has the rules which of them a client uses; [`Roster`](crate::roster::Roster) starts them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::sync::Semaphore;
use tool::{ClientId, Digest, HttpCaller, ServerName};

use crate::{
    CallError, Failure, ServerScope, ServerSpec, Surroundings, Variables,
    caller_servers::{CallerServers, has_credential},
    eras::Era,
    question::Asks,
    server::{ProcessKey, Server},
    taken::{Environments, TakenVariables},
};

#[derive(Debug, Default)]
pub(crate) struct Instances {
    /// The shared instance of each server. If each client has its own instance, this one is surveyed.
    pub(crate) shared: BTreeMap<ServerName, Server>,
    /// Instances with other variables than the shared one, or of another era.
    pub(crate) apart: HashMap<ProcessKey, Server>,
    /// The instance that a client uses, if clients may use different ones.
    pub(crate) of_clients: HashMap<(ServerName, u64, Era), Server>,
    pub(crate) of_callers: CallerServers,
    /// Retired instances that the next instances of their servers wait for.
    leaving: HashMap<ServerName, LeavingInstances>,
    /// Retired instances that had not ended when another one was retired. What replaces them waits for their
    /// calls, so a restart interrupts them too.
    retiring: Vec<Server>,
    pub(crate) environments: Environments,
    /// The permits of each client for calls of each server.
    pub(crate) turns: HashMap<(ServerName, u64), Arc<Semaphore>>,
}

/// Retired instances of one server.
#[derive(Debug, Default)]
struct LeavingInstances {
    /// The one beside the shared instance that has the other era, until another one replaces it.
    twin: Option<Server>,
    /// Those that ran calls which would have waited for other clients.
    spares: Vec<Server>,
}

impl Instances {
    pub(crate) fn new() -> Self {
        Self {
            environments: Environments::new(Variables::of_process()),
            ..Self::default()
        }
    }

    pub(crate) fn get_shared(&self, name: &ServerName) -> Result<&Server, CallError> {
        let shared = self.shared.get(name);
        shared.ok_or_else(|| CallError::UnknownServer(name.clone()))
    }

    /// Returns the server that this client uses, if it exists.
    pub(crate) fn find(
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
    pub(crate) fn era_of(
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
    pub(crate) fn era_that_runs(&self, shared: &Server, variables: Digest) -> Era {
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

    /// Lists all servers with the clients that have them for themselves; the shared ones come first.
    pub(crate) fn list_all(&self) -> Vec<(Vec<u64>, Server)> {
        // A spare that does not run says nothing of its server.
        let is_listed = |server: &&Server| {
            !server.is_retired() && (!server.is_spare || server.is_open() || server.is_in_use())
        };
        let mut own: Vec<(Vec<u64>, Server)> = self
            .apart
            .values()
            .chain(self.of_callers.iter())
            .filter(is_listed)
            .map(|server| (Vec::new(), server.clone()))
            .collect();
        for ((name, client, _), server) in &self.of_clients {
            if server.is_retired() {
                continue;
            }
            let known = own.iter_mut().find(|(_, other)| other.is(server));
            if let Some((clients, _)) = known {
                clients.push(*client);
            } else if !self.shared.get(name).is_some_and(|it| it.is(server)) {
                own.push((vec![*client], server.clone()));
            }
        }
        for (clients, _) in &mut own {
            clients.sort_unstable();
        }
        own.sort_by(|a, b| (&a.1.spec.name, &a.0).cmp(&(&b.1.spec.name, &b.0)));
        self.shared
            .values()
            .map(|server| (Vec::new(), server.clone()))
            .chain(own)
            .collect()
    }

    /// Returns the instance beside the shared one that has this key.
    pub(crate) fn get_apart(&self, key: &ProcessKey) -> Option<Server> {
        self.apart
            .get(key)
            .filter(|server| !server.is_retired())
            .cloned()
    }

    /// Returns the failure of the shared server, if it is down. A server that is open in either era is
    /// not down.
    pub(crate) fn last_failure(&self, name: &ServerName) -> Option<Failure> {
        let shared = self.shared.get(name)?;
        // One caller's login says nothing about that of another.
        if shared.is_of_callers && self.of_callers.iter().any(|it| it.spec.name == *name) {
            return None;
        }
        if let Some(taken) = self.take_for(shared) {
            let era = self.era_that_runs(shared, taken.key);
            let key = ProcessKey::new(shared, taken.key, era);
            return self.apart.get(&key)?.last_failure();
        }
        let twin = self.get(shared, None, Era::Handshake);
        let mut both = [Some(shared), twin].into_iter().flatten();
        if both.clone().any(Server::is_open) {
            return None;
        }
        both.find_map(Server::last_failure)
    }

    /// Retires the servers that belong to this client alone.
    pub(crate) fn forget_client(&mut self, client: u64) {
        self.turns.retain(|(_, of), _| *of != client);
        self.environments.clients.remove(&client);
        self.of_clients.retain(|(_, of, _), server| {
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
        } = self;
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

    /// Lists all instances of a server; one may be listed twice.
    fn list(&self, name: &ServerName) -> Vec<Server> {
        let shared = self.shared.get(name);
        let others = self.apart.values().chain(self.of_clients.values());
        let others = others.chain(self.of_callers.iter());
        let others = others.filter(|it| it.spec.name == *name);
        shared.into_iter().chain(others).cloned().collect()
    }

    pub(crate) fn take_leaving_twin(&mut self, name: &ServerName) -> Option<Server> {
        self.leaving.get_mut(name)?.twin.take()
    }

    /// Returns the retired processes that the shared instance of a server, and its twin, wait for: a server
    /// that may run only once starts after all spare processes that it had until then.
    pub(crate) fn spares_before(&self, spec: &ServerSpec) -> &[Server] {
        let leaving = self.leaving.get(&spec.name);
        let leaving = leaving.filter(|_| !spec.has_spares);
        leaving.map_or(&[], |leaving| &leaving.spares)
    }

    /// Lists the instances of a server that were retired and had not ended when another one was retired.
    pub(crate) fn list_retiring(&self, name: &ServerName) -> Vec<Server> {
        self.retiring
            .iter()
            .filter(|server| server.spec.name == *name)
            .cloned()
            .collect()
    }

    /// Retires all instances of a server that the configuration no longer has.
    pub(crate) fn remove(&mut self, name: &ServerName) {
        self.retire(name);
        self.leaving.remove(name);
    }

    /// Retires all instances of a server. Returns the shared one.
    pub(crate) fn retire(&mut self, name: &ServerName) -> Option<Server> {
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
pub(crate) fn connection_at(shared: &Server, client: Option<&ClientId>) -> Option<u64> {
    client.filter(|_| shared.is_personal)?.connection
}
