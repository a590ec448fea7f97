//! All servers: one call, one survey, one stop.

use std::{sync::Arc, time::Duration};

use jsonrpc::Json;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tool::{ClientId, ServerName};

use crate::{
    Applied, Asks, CallError, Failure, Ran, Request, Scope, ServerSpec, ServerState, Sharing,
    Start, Surroundings, Survey, SurveyError, Variables,
    asked_login::{log_in_by_asking, takes_addresses},
    calling::{self, Progress},
    changes::Changes,
    ending::Ending,
    patience::Patience,
    roster::Roster,
    server::Server,
    survey::survey_leased,
};

/// The servers of one configuration. A server is started by the first call or survey that needs
/// it (or with the program), is stopped when idle for long, and ends at [`Fleet::stop`].
#[derive(Debug)]
pub struct Fleet {
    roster: Arc<Roster>,
    changes: Arc<Changes>,
    ending: Ending,
    keepers: TaskTracker,
}

impl Fleet {
    /// Needs a runtime; starts no server.
    pub fn new(specs: Vec<ServerSpec>, surroundings: Surroundings) -> Self {
        let ending = Ending::new();
        let keepers = TaskTracker::new();
        let changes = Arc::new(Changes::default());
        let roster = Roster::new(
            surroundings,
            Arc::clone(&changes),
            ending.clone(),
            keepers.clone(),
        );
        roster.apply(specs);
        Self {
            roster: Arc::new(roster),
            changes,
            ending,
            keepers,
        }
    }

    /// Replaces the servers by those of `specs`, without losing a call: a server that changed or was
    /// removed finishes its running calls.
    pub fn apply(&self, specs: Vec<ServerSpec>) -> Applied {
        self.roster.apply(specs)
    }

    /// Restarts a server at its next call, after its running calls have ended. Returns true if there is
    /// such a server.
    pub fn restart(&self, server: &ServerName) -> bool {
        self.roster.restart(server)
    }

    /// Adds the variables of a client, which are filled into the servers that it uses. Clients share a
    /// server that gets the same values from each of them, and none gets the value of another. Returns
    /// the servers that could not start because a variable was missing, and can be surveyed now.
    pub fn admit_client(&self, client: u64, variables: Arc<Variables>) -> Vec<ServerName> {
        self.roster.admit_client(client, variables)
    }

    /// Returns how servers differ for each client because of its variables, if they do.
    pub fn sharing(&self) -> Vec<Sharing> {
        self.roster.sharing()
    }

    pub(crate) fn roster(&self) -> Arc<Roster> {
        Arc::clone(&self.roster)
    }

    /// Ends the servers that were one client's own.
    pub fn forget_client(&self, client: u64) {
        self.roster.forget_client(client);
    }

    /// Notifies this client's own servers that its roots may have changed.
    pub fn tell_roots_changed(&self, client: u64) {
        for server in self.roster.of_client(client) {
            let Some(leased) = server
                .open_now()
                .filter(|_| server.asking.roots.can_change())
            else {
                continue;
            };
            self.keepers
                .spawn(async move { leased.link.tell_roots_changed().await });
        }
    }

    /// Returns every server and its state. Reads `/proc`, and so blocks for a moment.
    pub fn states(&self) -> Vec<ServerState> {
        let memory = processes::group_memory();
        let all = self.roster.all().into_iter();
        all.map(|(clients, server)| server.state(clients, &memory))
            .collect()
    }

    /// Starts the servers that are to start with the program.
    pub fn start_eager(&self) {
        for (_, server) in self.roster.all() {
            if server.spec.start == Start::Eager && server.spec.scope == Scope::Shared {
                server.want();
            }
        }
    }

    /// Waits for the next server whose tools may have changed: it sent a notification, it was
    /// restarted, or its list has expired. For one listener.
    pub async fn changed(&self) -> ServerName {
        self.changes.next().await
    }

    /// Calls a tool and waits for its result: the `result` of the answer as the server wrote it.
    ///
    /// The timeout begins here, and includes a start; progress extends it if the server's specification
    /// says so. A call that times out, is cancelled, or whose future is dropped is cancelled at the
    /// server, and its late response is dropped.
    pub async fn call(
        &self,
        server: &ServerName,
        request: &Request,
        cancel: &CancellationToken,
    ) -> Result<Json, CallError> {
        let (client, asks) = (request.client.as_ref(), request.asks.as_ref());
        let found = self.roster.find(server, client, asks)?;
        let patience = Patience::new(&found.spec, request);
        let request = patience.watch(request);
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
        progress.server.vitals.count(answer.as_ref().err());
        answer
    }

    /// Calls; and calls once more where a person had to log in first, and did when the client asked.
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
        let asks = request.asks.as_ref();
        let Some(asks) = asks.filter(|it| needs_login && request.may_log_in && takes_addresses(it))
        else {
            return answer;
        };
        let halt = patience.halt();
        if !log_in_by_asking(&progress.server, self.roster.surroundings(), asks).await {
            return answer;
        }
        drop(halt);
        progress.ran = Ran::No;
        self.call_in_turn(request, progress).await
    }

    /// Asks the user of this client to log in to a server, if the client can show URLs. Returns true if
    /// there is a login afterwards.
    pub async fn log_in(
        &self,
        server: &ServerName,
        client: Option<&ClientId>,
        asks: &Arc<dyn Asks>,
    ) -> bool {
        let Ok(server) = self.roster.find(server, client, Some(asks)) else {
            return false;
        };
        takes_addresses(asks) && log_in_by_asking(&server, self.roster.surroundings(), asks).await
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
            let server = progress.server.clone();
            match calling::call(&server, request, progress).await {
                Err(CallError::Unavailable { ran: Ran::No, .. })
                    if server.is_retired() && !self.ending.has_begun() =>
                {
                    let (client, asks) = (request.client.as_ref(), request.asks.as_ref());
                    progress.server = self.roster.find(&name, client, asks)?;
                }
                answer => return answer,
            }
        }
    }

    /// Reads every page of a server's `tools/list`, starting the server if need be.
    pub async fn survey(&self, server: &ServerName) -> Result<Survey, SurveyError> {
        let missing = |error: CallError| SurveyError {
            failure: Failure::new(error.to_string()),
        };
        let server = self.roster.find_for_survey(server).map_err(missing)?;
        let leased = server.ready().await.map_err(|not_ready| SurveyError {
            failure: not_ready.failure,
        })?;
        survey_leased(&server, leased).await
    }

    /// The same of a server that is running; `None` of one that is not, or that ends meanwhile,
    /// which is left alone: its next start is a change.
    pub async fn survey_running(&self, server: &ServerName) -> Option<Result<Survey, SurveyError>> {
        let (server, leased) = self.roster.get_open(server)?;
        let link = Arc::clone(&leased.link);
        let surveyed = survey_leased(&server, leased).await;
        (surveyed.is_ok() || !link.has_ended()).then_some(surveyed)
    }

    /// Has a server looked at again after so long, if it still runs then.
    pub fn look_again(&self, server: &ServerName, after: Duration) {
        let (changes, ending) = (Arc::clone(&self.changes), self.ending.clone());
        let server = server.clone();
        self.keepers.spawn(async move {
            let waiting = tokio::time::sleep(after);
            tokio::select! {
                () = ending.begun() => {}
                () = waiting => changes.note(&server),
            }
        });
    }

    /// Why each server that is not available now is so, by name.
    pub fn failures(&self) -> Vec<(ServerName, Failure)> {
        let failed =
            |(_, server): (_, Server)| Some((server.spec.name.clone(), server.last_failure()?));
        let mut failures: Vec<_> = self.roster.all().into_iter().filter_map(failed).collect();
        failures.sort_by(|a, b| a.0.cmp(&b.0));
        failures.dedup_by(|a, b| a.0 == b.0);
        failures
    }

    /// Returns true if this server failed last time and was not started since.
    pub fn is_down(&self, server: &ServerName) -> bool {
        self.roster.last_failure(server).is_some()
    }

    /// Returns true if this server failed because a login is missing.
    pub fn needs_login(&self, server: &ServerName) -> bool {
        let failure = self.roster.last_failure(server);
        failure.is_some_and(|it| it.login().is_some())
    }

    /// Returns the servers that failed and may start now: a login or a secret that they lacked was added.
    pub fn list_mended(&self) -> Vec<ServerName> {
        let failures = self.failures().into_iter();
        let mended = failures.filter(|(_, it)| it.awaited.as_ref().is_some_and(|it| it.has_come()));
        mended.map(|(name, _)| name).collect()
    }

    /// Ends every server, all at once, within 1.5 s. No process of ours is left when this returns,
    /// unless the system cannot kill it.
    pub async fn stop(&self) {
        self.ending.hurry();
        self.end().await;
    }

    /// The same, with more time for servers that save their state.
    pub async fn end(&self) {
        self.ending.begin();
        self.keepers.close();
        self.keepers.wait().await;
    }
}

#[cfg(test)]
mod tests;
