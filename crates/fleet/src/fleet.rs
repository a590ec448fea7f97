//! All servers: one call, one survey, one stop.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::Json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tool::{ClientId, HttpCaller, ServerName};

use crate::{
    Applied, Asks, CallError, CallServers, CallerLogins, CallerServices, Failure, Lifecycle,
    ListServers, Ran, Request, ServerScope, ServerSpec, ServerState, Servers, Sharing, Start,
    Subscriber, Surroundings, Survey, SurveyError, Variables, WatchGuard,
    asked_login::{log_in_by_asking, takes_addresses},
    caller_servers::has_credential,
    calling::{self, Progress},
    eras::Era,
    patience::Patience,
    redaction::{redact_messages, redact_result},
    roster::Roster,
    server::{NotReady, Server},
    survey::survey_leased,
    taken::values_of_callers,
    watch::watch,
};

/// The servers of one configuration. A server is started by the first call or survey that needs
/// it (or with the program), is stopped when idle for long, and ends at [`Lifecycle::stop`].
#[derive(Debug)]
pub struct Fleet {
    roster: Arc<Roster>,
}

impl Fleet {
    /// Needs a runtime; starts no server.
    pub fn new(specs: Vec<ServerSpec>, surroundings: Surroundings) -> Self {
        let roster = Roster::new(surroundings);
        roster.apply(specs);
        Self {
            roster: Arc::new(roster),
        }
    }

    fn states_with(&self, memory: &HashMap<i32, u64>) -> Vec<ServerState> {
        let all = self.roster.all().into_iter();
        all.map(|(clients, server)| server.state(clients, memory))
            .collect()
    }

    /// Calls, and repeats the call if a person had to log in first and did.
    async fn call_after_login(
        &self,
        request: &Request,
        progress: &mut Progress,
        patience: &Patience,
    ) -> Result<Json, CallError> {
        let answer = self.call_in_turn(request, progress).await;
        let needs_login = matches!(
            &answer,
            Err(CallError::Unavailable { failure, .. }) if failure.login().is_some()
        );
        if !needs_login {
            return answer;
        }
        let client = request.client.as_ref();
        let address = self.roster.logins.offer(&progress.server, client);
        let may_ask = request.may_log_in || address.is_some();
        let asks = request.asks.as_ref();
        let asks = asks.filter(|it| may_ask && takes_addresses(it));
        let halt = patience.clock.halt();
        let is_done = match asks {
            Some(asks) => {
                let (server, address) = (&progress.server, address.clone());
                log_in_by_asking(server, &self.roster, address, asks).await
            }
            None => false,
        };
        drop(halt);
        if !is_done {
            return answer.map_err(|error| error.with_login_address(address));
        }
        progress.ran = Ran::No;
        self.call_in_turn(request, progress).await
    }

    /// Waits for a permit, calls, and retries once if that is safe and the server died. If the server
    /// was replaced before the call reached it, the call is sent to its replacement.
    async fn call_in_turn(
        &self,
        request: &Request,
        progress: &mut Progress,
    ) -> Result<Json, CallError> {
        let connection = request.client.as_ref().and_then(|it| it.connection);
        let name = progress.server.spec.name.clone();
        let turns = connection.map(|it| self.roster.turns(&name, it));
        let _turn = match &turns {
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        loop {
            match calling::call(&self.roster, request, progress).await {
                Err(CallError::Unavailable { ran: Ran::No, .. })
                    if self.roster.is_replaced(&progress.server) =>
                {
                    // The rules say best why a removed server is not called.
                    request.check_start().await.map_err(CallError::Refused)?;
                    let (client, asks) = (request.client.as_ref(), request.asks.as_ref());
                    progress.server = self.roster.find(&name, client, asks)?;
                }
                answer => return answer,
            }
        }
    }
}

impl CallServers for Fleet {
    fn call<'a>(
        &'a self,
        server: &'a ServerName,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        async move {
            let (client, asks) = (request.client.as_ref(), request.asks.as_ref());
            let found = self.roster.find(server, client, asks)?;
            let patience = Patience::new(&found.spec, request);
            let request = patience.watch(request);
            let redaction = found.spec.redaction.clone();
            let request = match &redaction {
                Some(redaction) => redact_messages(redaction, request),
                None => request,
            };
            let mut progress = Progress {
                server: found.clone(),
                ran: Ran::No,
                waits_for_turn: false,
            };
            let ended = tokio::select! {
                biased;
                () = cancel.cancelled() => Ok(Err(CallError::Cancelled)),
                answer = self.call_after_login(&request, &mut progress, &patience) => Ok(answer),
                limit = patience.wait_for_end() => Err(limit),
            };
            let answer = ended.unwrap_or_else(|limit| {
                let session = request.asks.as_ref().map(|asks| asks.session());
                Err(CallError::TimedOut {
                    server: server.clone(),
                    limit,
                    ran: progress.ran,
                    held_up: progress
                        .waits_for_turn
                        .then(|| progress.server.asking.explain_wait(session)),
                })
            });
            if let Err(error) = &answer {
                progress.server.vitals.note_failure(error);
            }
            match redaction {
                Some(redaction) => Ok(redact_result(redaction, answer?).await),
                None => answer,
            }
        }
        .boxed()
    }

    fn watch<'a>(
        &'a self,
        server: &'a ServerName,
        uri: &'a str,
        subscriber: Subscriber,
    ) -> BoxFuture<'a, Result<WatchGuard, CallError>> {
        watch(Arc::clone(&self.roster), server, uri, subscriber).boxed()
    }

    fn log_in<'a>(
        &'a self,
        server: &'a ServerName,
        client: Option<&'a ClientId>,
        asks: &'a Arc<dyn Asks>,
    ) -> BoxFuture<'a, bool> {
        async move {
            let Ok(server) = self.roster.find(server, client, Some(asks)) else {
                return false;
            };
            if server.taken.caller().is_some()
                && has_credential(&server, &server.taken, &self.roster.surroundings)
            {
                return true;
            }
            let address = self.roster.logins.offer(&server, client);
            takes_addresses(asks) && log_in_by_asking(&server, &self.roster, address, asks).await
        }
        .boxed()
    }
}

impl ListServers for Fleet {
    fn survey<'a>(&'a self, server: &'a ServerName) -> BoxFuture<'a, Result<Survey, SurveyError>> {
        async move {
            let missing = |error: CallError| SurveyError {
                failure: Failure::new(error.to_string()),
            };
            let (server, leased) = loop {
                let found = self.roster.find_for_survey(server).map_err(missing)?;
                match found.ready().await {
                    Ok(leased) => break (found, leased),
                    // It was replaced.
                    Err(_) if self.roster.is_replaced(&found) => {}
                    Err(NotReady { failure, .. }) => return Err(SurveyError { failure }),
                }
            };
            survey_leased(&server, leased).await
        }
        .boxed()
    }

    fn survey_running<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Option<Result<Survey, SurveyError>>> {
        async move {
            // The shared one comes first.
            let found = self.roster.all().into_iter().find_map(|(_, it)| {
                let is_it = it.spec.name == *server && it.spec.scope == ServerScope::Shared;
                let leased = is_it.then(|| it.open_now())??;
                Some((it, leased))
            });
            let (server, leased) = found?;
            let link = Arc::clone(&leased.link);
            let surveyed = survey_leased(&server, leased).await;
            (surveyed.is_ok() || !link.has_ended()).then_some(surveyed)
        }
        .boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ServerName> {
        async move { self.roster.changes.next().await }.boxed()
    }

    fn look_again(&self, server: &ServerName, after: Duration) {
        let (changes, ending) = (Arc::clone(&self.roster.changes), self.roster.ending.clone());
        let server = server.clone();
        self.roster.keepers.spawn(async move {
            let waited = ending.begun.run_until_cancelled(sleep(after)).await;
            if waited.is_some() {
                changes.note(&server);
            }
        });
    }

    fn sharing(&self) -> Vec<Sharing> {
        let servers = self.roster.servers.read();
        let mut all = Vec::new();
        for client in servers.environments.clients.keys().copied() {
            for shared in servers.shared.values().filter(|it| it.is_personal) {
                let taken = servers.environments.take(&shared.spec, Some(client), None);
                let of_others = servers.take_for(shared);
                let of_others = of_others.as_ref().unwrap_or(&shared.taken);
                let is_apart = shared.spec.scope == ServerScope::Shared
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

    fn states(&self) -> Vec<ServerState> {
        self.states_with(&processes::group_memory())
    }

    fn quick_states(&self) -> Vec<ServerState> {
        self.states_with(&HashMap::new())
    }

    fn failures(&self) -> Vec<(ServerName, Failure)> {
        let failed =
            |(_, server): (_, Server)| Some((server.spec.name.clone(), server.last_failure()?));
        let mut failures: Vec<_> = self.roster.all().into_iter().filter_map(failed).collect();
        failures.sort_by(|a, b| a.0.cmp(&b.0));
        failures.dedup_by(|a, b| a.0 == b.0);
        failures
    }

    fn is_down(&self, server: &ServerName) -> bool {
        self.roster.last_failure(server).is_some()
    }

    fn needs_login(&self, server: &ServerName) -> bool {
        let failure = self.roster.last_failure(server);
        failure.is_some_and(|it| it.login().is_some())
    }

    fn list_mended(&self) -> Vec<ServerName> {
        let failures = self.failures().into_iter();
        let mended = failures.filter(|(_, it)| it.awaited.as_ref().is_some_and(|it| it.has_come()));
        mended.map(|(name, _)| name).collect()
    }
}

impl Lifecycle for Fleet {
    fn apply(&self, specs: Vec<ServerSpec>) -> Applied {
        self.roster.apply(specs)
    }

    fn restart<'a>(
        &'a self,
        name: &'a ServerName,
        waits: bool,
    ) -> BoxFuture<'a, Result<Duration, CallError>> {
        async move {
            let began = Instant::now();
            let mut server = self.roster.restart(name, waits)?;
            loop {
                match server.ready().await {
                    Ok(_) => return Ok(began.elapsed()),
                    // Another restart or a change of the configuration replaced it.
                    Err(_) if self.roster.is_replaced(&server) => {
                        server = self.roster.find_for_survey(name)?;
                    }
                    Err(not_ready) => return Err(not_ready.into_error(name)),
                }
            }
        }
        .boxed()
    }

    fn start_eager(&self) {
        for (_, server) in self.roster.all() {
            if server.spec.start == Start::Eager && server.spec.scope == ServerScope::Shared {
                server.want();
            }
        }
    }

    fn admit_client(&self, client: u64, variables: Arc<Variables>) -> Vec<ServerName> {
        let servers = &mut *self.roster.servers.write();
        let lack = |it: &&Server| it.taken.is_incomplete() && servers.take_for(it).is_none();
        let lacked: Vec<Server> = servers.shared.values().filter(lack).cloned().collect();
        servers.environments.clients.insert(client, variables);
        let mut completed = Vec::new();
        for shared in lacked {
            let Some(taken) = servers.take_for(&shared) else {
                continue;
            };
            completed.push(shared.spec.name.clone());
            if shared.spec.start == Start::Eager && !self.roster.ending.begun.is_cancelled() {
                self.roster
                    .get_apart(servers, &shared, taken, Era::Newest)
                    .want();
            }
        }
        completed
    }

    fn forget_client(&self, client: u64) {
        self.roster.forget_client(client);
    }

    fn tell_roots_changed(&self, client: u64) {
        let servers = self.roster.servers.read();
        for ((_, of, _), server) in &servers.of_clients {
            if *of == client
                && server.spec.scope == ServerScope::Client
                && server.asking.roots.can_change()
                && let Some(leased) = server.open_now()
            {
                let keepers = &self.roster.keepers;
                keepers.spawn(async move { leased.link.tell_roots_changed().await });
            }
        }
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async move {
            self.roster.ending.hurried.cancel();
            self.end().await;
        }
        .boxed()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        async move {
            self.roster.ending.begun.cancel();
            self.roster.keepers.close();
            self.roster.keepers.wait().await;
        }
        .boxed()
    }
}

impl CallerServices for Fleet {
    fn offer_login(&self, server: &ServerName, client: Option<&ClientId>) -> Option<String> {
        let server = self.roster.find(server, client, None).ok()?;
        self.roster.logins.offer(&server, client)
    }

    fn is_of_callers(&self, server: &ServerName) -> bool {
        self.roster.is_of_callers(server)
    }

    fn logins(&self) -> &Arc<CallerLogins> {
        &self.roster.logins
    }

    fn values(&self) -> Option<Arc<BTreeSet<String>>> {
        let servers = self.roster.servers.read();
        let of_callers = servers.shared.values().filter(|it| it.is_of_callers);
        let mut of_callers = of_callers.peekable();
        of_callers.peek()?;
        let named = of_callers.flat_map(|it| values_of_callers(&it.spec));
        Some(Arc::new(named.collect()))
    }

    fn meet(&self, caller: &Arc<HttpCaller>) -> Vec<ServerName> {
        let surroundings = &self.roster.surroundings;
        if !surroundings.callers.meet(caller) {
            return Vec::new();
        }
        let servers = self.roster.servers.read();
        let of_callers = servers.shared.values().filter(|it| it.is_of_callers);
        let is_usable = |it: &&Server| servers.take_usable(it, caller, surroundings).is_some();
        let usable = of_callers.filter(is_usable);
        usable.map(|it| it.spec.name.clone()).collect()
    }
}

impl Servers for Fleet {
    fn callers(&self) -> Option<&dyn CallerServices> {
        Some(self)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
