//! Servers: their list, their first survey, and restarts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use files::clock::{now_ms, to_s};
use fleet::{Availability, CallError, Launch, ServerFacts, ServerState};
use futures::future::join_all;
use registry::{CatalogServer, ServerCatalog, ToolUsage};
use serde::{Deserialize, Serialize};
use telemetry::{By, CallCount};
use tool::ServerName;

use super::figures::DAYS_DEFAULT;
use crate::{
    clients::ConnectedClient,
    gateway::Gateway,
    has_log,
    logins::{LoginStatus, describe_login},
    settings::{ServerSettings, Settings},
    survey,
};

/// A configured server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerRow {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: Availability,
    /// The last failure.
    pub why: Option<String>,
    /// The command that helps.
    pub next_step: Option<String>,
    /// True if the configuration enables it.
    pub enabled: bool,
    /// True if it is at an address.
    pub is_remote: bool,
    /// The category of its tools.
    pub category: String,
    /// The number of its tools.
    pub tools: usize,
    /// The tokens of all its definitions.
    pub tokens: u64,
    /// Calls since the daemon started.
    pub calls: u64,
    /// The errors among them.
    pub errors: u64,
    /// Calls of the last 30 days, including today; absent where statistics are off, and in an open tab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_30_days: Option<u64>,
    /// The errors among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors_30_days: Option<u64>,
    /// The time of the last call that was sent to it.
    pub last_used_at: Option<u64>,
    /// Its login.
    pub login: Option<LoginStatus>,
    /// The address at which a login that a page began goes on.
    pub login_address: Option<String>,
    /// True if it has written to stderr.
    pub has_log: bool,
    /// Successful starts since the daemon started.
    pub starts: u32,
    /// The memory of its processes.
    pub memory_bytes: Option<u64>,
    /// Its processes and connections.
    pub processes: Vec<ProcessRow>,
}

/// A process or connection of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessRow {
    /// The clients that it belongs to; none if all share it.
    pub client_name: Option<String>,
    /// Its state.
    pub state: Availability,
    /// Its process id.
    pub pid: Option<u32>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
    /// The revision of the protocol that it speaks.
    pub protocol: Option<String>,
    /// Its successful starts.
    pub starts: u32,
    /// Its last failure.
    pub last_failure: Option<String>,
    /// The time of that failure, in seconds since 1970.
    pub last_failure_at: Option<u64>,
    /// Calls that wait for calls of other clients.
    pub waiting_calls: usize,
}

/// The servers that were asked for their tools for the first time, and those that could not be asked.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SurveyReply {
    /// The servers that had never listed their tools.
    pub asked: Vec<ServerName>,
    /// The servers whose last survey failed.
    pub failures: Vec<SurveyFailure>,
}

/// The reason why a server could not be asked for its tools.
#[derive(Debug, Serialize, Deserialize)]
pub struct SurveyFailure {
    /// The server.
    pub server: ServerName,
    /// The reason.
    pub why: String,
    /// The next step.
    pub next_step: String,
}

/// The outcome of a restart.
#[derive(Debug, Serialize, Deserialize)]
pub struct Restarted {
    /// The server, as the request names it.
    pub server: String,
    /// The time until it was ready, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_ms: Option<u64>,
    /// The reason why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
}

/// The reason why a server is not ready after its restart.
#[derive(Debug)]
pub struct RestartError {
    /// A sentence without a full stop.
    pub why: String,
    /// The next step.
    pub hint: String,
}

impl Gateway {
    /// Servers that were never asked for their tools. One that failed before is left to `reindex`:
    /// a search does not wait for it again.
    pub fn never_asked(&self) -> Vec<ServerName> {
        let catalog = self.catalog.registry.catalog();
        let servers = catalog.servers.iter();
        let new = servers.filter(|it| it.surveyed_at.is_none() && it.stale.is_none());
        new.map(|server| server.name.clone()).collect()
    }

    /// Asks servers that were never asked for their tools or whose snapshots are damaged, and reads the
    /// saved scripts.
    pub async fn survey_new(self: &Arc<Self>) {
        survey::take_in_scripts(&self.catalog).await;
        let mut new = self.never_asked();
        // A loaded generation has seen the damages.
        if self.catalog.registry.loaded().is_none() {
            let registry = self.catalog.registry.clone();
            let damaged = tokio::task::spawn_blocking(move || registry.list_damaged()).await;
            let damaged = damaged.unwrap_or_default().into_iter();
            new.extend(damaged.map(|(name, _)| name));
        }
        if !new.is_empty() {
            survey::get_to_know(Arc::clone(&self.catalog), new).await;
        }
    }

    /// Restarts a server now. Returns the time until it was ready. Its running calls have a grace of
    /// 3 s, or, with `waits`, all the time that they need.
    pub async fn restart(&self, name: &str, waits: bool) -> Result<Duration, RestartError> {
        let unknown = || RestartError {
            why: format!("no server `{name}`"),
            hint: "`proxy servers` lists them; one that is switched off is switched on by `proxy \
                   servers enable`"
                .to_owned(),
        };
        let server = name.parse::<ServerName>().map_err(|_| unknown())?;
        let restarted = self.servers.restart(&server, waits).await;
        restarted.map_err(|error| match error {
            CallError::UnknownServer(_) => unknown(),
            CallError::Unavailable { failure, .. } => RestartError {
                why: format!("{server} did not start: {failure}"),
                hint: failure
                    .hint
                    .unwrap_or_else(|| format!("`proxy logs {server}` prints what it wrote")),
            },
            error => RestartError {
                why: error.to_string(),
                hint: "`proxy status` shows the servers".to_owned(),
            },
        })
    }
}

pub(super) async fn survey(gateway: &Arc<Gateway>) -> SurveyReply {
    let asked = gateway.never_asked();
    gateway.survey_new().await;
    SurveyReply {
        asked,
        failures: list_failures(gateway),
    }
}

/// Servers that could not be asked for their tools, and the command to type.
fn list_failures(gateway: &Gateway) -> Vec<SurveyFailure> {
    let records = gateway.catalog.registry.catalog();
    let failed = records.servers.iter().filter_map(|server| {
        let why = server.stale.as_ref()?;
        let name = server.name.clone();
        let reindex = format!("proxy reindex {name}");
        let log = has_log(&gateway.settings().state_dir, &name);
        let log = log.then(|| format!("proxy logs {name}"));
        let next_step = match (why.hint.clone(), log) {
            (Some(hint), Some(log)) => format!("{hint}; or: {log}, then {reindex}"),
            (Some(step), None) | (None, Some(step)) => format!("{step}, then {reindex}"),
            (None, None) => reindex,
        };
        Some(SurveyFailure {
            server: name,
            why: why.why.clone(),
            next_step,
        })
    });
    failed.collect()
}

/// Restarts all of them at once.
pub(super) async fn restart_all(
    gateway: &Gateway,
    servers: Vec<String>,
    waits: bool,
) -> Vec<Restarted> {
    let restarts = servers.iter().map(|name| gateway.restart(name, waits));
    let outcomes = join_all(restarts).await;
    let outcomes = servers.iter().zip(outcomes).map(|(name, outcome)| {
        let (ready, failed) = match outcome {
            Ok(took) => (Some(took), None),
            Err(error) => (None, Some(error)),
        };
        let ready_ms = ready.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        let (error, next_step) = failed.map(|it| (it.why, it.hint)).unzip();
        Restarted {
            server: name.clone(),
            ready_ms,
            error,
            next_step,
        }
    });
    outcomes.collect()
}

/// Lists the servers with all figures. Blocks.
pub fn list_servers(gateway: &Gateway) -> Vec<ServerRow> {
    let (settings, catalog) = (gateway.settings(), gateway.catalog.registry.catalog());
    let figures = ServerFigures::read(gateway, &settings, &catalog, true);
    let states = gateway.servers.quick_states();
    let mut rows = figures.list(gateway, &settings, &catalog, &states);
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

/// Figures of servers that cost more to read.
#[derive(Debug)]
pub struct ServerFigures {
    /// The memory of a server by process id.
    memory: BTreeMap<u32, u64>,
    /// The time of the last use of a server.
    last_used: BTreeMap<String, u64>,
    /// The calls of a server in the last 30 days.
    days: Option<BTreeMap<String, CallCount>>,
    /// The login of a server, whether it needs one, and whether it has a log.
    logins: BTreeMap<ServerName, (Option<LoginStatus>, bool, bool)>,
    damaged: Vec<(ServerName, String)>,
}

impl ServerFigures {
    /// Reads them. `is_thorough`: also reads every snapshot to see if it is damaged, and the statistics of
    /// 30 days. Blocks.
    pub fn read(
        gateway: &Gateway,
        settings: &Settings,
        catalog: &ServerCatalog,
        is_thorough: bool,
    ) -> Self {
        let states = gateway.servers.states();
        let memory = states.iter();
        let memory = memory.filter_map(|it| Some((it.pid?, round(it.memory_bytes?))));
        let files = settings.private_files();
        let logins = settings.servers.iter().map(|server| {
            let name = &server.spec.name;
            let known = catalog.servers.iter().find(|it| it.name == *name);
            let is_stale = known.is_some_and(|it| it.stale.is_some());
            let login = describe_login(server, &files);
            let needed = gateway.catalog.needs_login(name, is_stale);
            (
                name.clone(),
                (login, needed, has_log(&settings.state_dir, name)),
            )
        });
        let registry = &gateway.catalog.registry;
        let damaged = is_thorough.then(|| registry.list_damaged());
        Self {
            memory: memory.collect(),
            last_used: find_last_uses(&gateway.catalog.usage.calls()),
            days: is_thorough.then(|| count_days(gateway)).flatten(),
            logins: logins.collect(),
            damaged: damaged.unwrap_or_default(),
        }
    }

    /// Returns the servers in the order of the configuration.
    pub fn list(
        &self,
        gateway: &Gateway,
        settings: &Settings,
        catalog: &ServerCatalog,
        states: &[ServerState],
    ) -> Vec<ServerRow> {
        let counts = gateway.recorder.count_by_server();
        let clients = gateway.clients.list();
        let rows = settings.servers.iter().map(|server| {
            let name = &server.spec.name;
            let own: Vec<&ServerState> = states.iter().filter(|it| it.name == *name).collect();
            let known = catalog.servers.iter().find(|it| it.name == *name);
            let count = counts.get(name.as_str()).copied().unwrap_or_default();
            ServerRow {
                calls: count.calls,
                errors: count.errors,
                ..self.row(gateway, server, known, &own, &clients)
            }
        });
        rows.collect()
    }

    fn row(
        &self,
        gateway: &Gateway,
        server: &ServerSettings,
        known: Option<&CatalogServer>,
        states: &[&ServerState],
        clients: &[Arc<ConnectedClient>],
    ) -> ServerRow {
        let name = &server.spec.name;
        let processes = states.iter().map(|state| self.process(state, clients));
        let processes: Vec<ProcessRow> = processes.collect();
        let found = self.logins.get(name).cloned();
        let (login, needed, has_log) = found.unwrap_or_default();
        let failed = known.and_then(|it| it.stale.as_ref());
        let damage = self.damaged.iter().find(|(it, _)| it == name);
        let damage = damage.map(|(_, why)| format!("its snapshot is damaged ({why})"));
        let survey_failure = failed.map(ToString::to_string).or(damage);
        let facts = ServerFacts {
            is_enabled: server.enabled,
            needs_login: needed || gateway.servers.needs_login(name),
            is_down: gateway.servers.is_down(name),
            is_stale: survey_failure.is_some(),
            is_surveyed: known.is_some_and(|it| it.surveyed_at.is_some()),
        };
        let state = Availability::choose(facts, states.iter().map(|it| it.state));
        let mut down = processes.iter().filter(|it| it.state == Availability::Down);
        let last_failure = down.find_map(|it| it.last_failure.clone());
        let days = self.days.as_ref();
        let days = days.map(|it| it.get(name.as_str()).copied().unwrap_or_default());
        ServerRow {
            name: name.to_string(),
            state,
            why: last_failure.or(survey_failure).or_else(|| {
                let is_down = state == Availability::Down;
                is_down.then(|| gateway.catalog.failure(name)).flatten()
            }),
            next_step: match state {
                Availability::LoginRequired => Some(format!("proxy login {name}")),
                Availability::Down | Availability::Stale => failed
                    .and_then(|it| it.hint.clone())
                    .or_else(|| Some(format!("proxy logs {name}"))),
                _ => None,
            },
            enabled: server.enabled,
            is_remote: matches!(server.spec.launch, Launch::Remote { .. }),
            category: known.map(|it| it.category.clone()).unwrap_or_default(),
            tools: known.map_or(0, |it| it.tools),
            tokens: known.map_or(0, |it| it.tokens),
            calls_30_days: days.map(|it| it.calls),
            errors_30_days: days.map(|it| it.errors),
            last_used_at: self.last_used.get(name.as_str()).copied(),
            login,
            login_address: None,
            has_log,
            starts: processes.iter().map(|it| it.starts).sum(),
            memory_bytes: processes
                .iter()
                .filter_map(|it| it.memory_bytes)
                .reduce(|a, b| a + b),
            processes,
            ..ServerRow::default()
        }
    }

    fn process(&self, state: &ServerState, clients: &[Arc<ConnectedClient>]) -> ProcessRow {
        let own = clients
            .iter()
            .filter(|it| state.clients.contains(&it.number))
            .filter_map(|it| Some(it.info()?.name.to_string()))
            .chain(state.caller.as_deref().map(str::to_owned));
        let own: Vec<String> = own.collect();
        let last_failure = state.last_failure.as_ref();
        ProcessRow {
            client_name: (!own.is_empty()).then(|| own.join(", ")),
            state: state.state.into(),
            pid: state.pid,
            memory_bytes: state.pid.and_then(|pid| self.memory.get(&pid).copied()),
            protocol: state.revision.as_ref().map(|it| it.as_str().to_owned()),
            starts: state.starts,
            last_failure: last_failure.map(|(_, why)| why.clone()),
            last_failure_at: last_failure.map(|(at, _)| to_s(*at)),
            waiting_calls: state.waiting_calls,
        }
    }
}

/// Rounds memory to MiB: smaller differences are no change.
fn round(bytes: u64) -> u64 {
    bytes >> 20 << 20
}

/// Returns the time of the last use of each server.
fn find_last_uses(usage: &[ToolUsage]) -> BTreeMap<String, u64> {
    let mut last_uses: BTreeMap<String, u64> = BTreeMap::new();
    for tool in usage {
        let server = tool.tool.split_once('/').map_or("", |(server, _)| server);
        if let Some(last) = tool.last {
            let newest = last_uses.entry(server.to_owned()).or_default();
            *newest = last.max(*newest);
        }
    }
    last_uses
}

/// Returns the calls of each server in the last 30 days; none if statistics are off. Blocks.
fn count_days(gateway: &Gateway) -> Option<BTreeMap<String, CallCount>> {
    let settings = gateway.settings();
    let folder = settings.state_dir.join("stats");
    gateway.flush_records();
    let figures = telemetry::read_stats(&folder, By::Server, DAYS_DEFAULT, now_ms());
    let lines = figures.ok().filter(|_| settings.keeps_stats)?.lines;
    Some(
        lines
            .into_iter()
            .map(|it| (it.name.clone(), it.count()))
            .collect(),
    )
}
