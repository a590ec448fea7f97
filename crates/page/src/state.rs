//! The state that the page shows: collections of rows by key, built from the gateway.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
};

use daemon::page::PageDaemon;
use files::clock::{now_ms, now_s, to_s};
use fleet::{Launch, RunState, ServerState};
use gateway::{
    Gateway, ServerSettings, Settings, Weight, clients::ConnectedClient, describe_login,
    find_idle_rules, policy::ClientPolicy,
};
use registry::{CatalogServer, ServerCatalog, ToolUsage};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use tool::ServerName;

use crate::limits::{LOOK_CLOSELY_EVERY, MINUTES_MAX};

/// Collections of rows, each by the key of the row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct State {
    pub(crate) daemon: BTreeMap<String, DaemonRow>,
    pub(crate) servers: BTreeMap<String, ServerRow>,
    pub(crate) clients: BTreeMap<String, ClientRow>,
    /// The calls in flight.
    pub(crate) running: BTreeMap<String, RunningRow>,
    /// Everything that needs a person.
    pub(crate) attention: BTreeMap<String, AttentionRow>,
    /// The calls of the last hour, by the minute since 1970.
    pub(crate) minutes: BTreeMap<String, CountRow>,
    /// The calls since the daemon started.
    pub(crate) totals: BTreeMap<String, CountRow>,
}

/// The daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct DaemonRow {
    version: String,
    pid: u32,
    started_at: u64,
    config: String,
    state_dir: String,
    memory_bytes: Option<u64>,
    config_mistakes: Option<String>,
    pins: Option<String>,
    is_leaving: bool,
    /// It changes with the configuration.
    config_number: u64,
    /// It changes with the known tools.
    catalog_number: u64,
}

/// A configured server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ServerRow {
    pub(crate) name: String,
    /// `ready`, `starting`, `stopped`, `resting`, `failed`, `stale`, `login required`, `not asked yet` or
    /// `off`.
    pub(crate) state: &'static str,
    /// The last failure.
    why: Option<String>,
    /// The command that helps.
    next_step: Option<String>,
    enabled: bool,
    is_remote: bool,
    category: String,
    tools: usize,
    /// The tokens of all its definitions.
    pub(crate) tokens: u64,
    /// Calls since the daemon started.
    calls: u64,
    errors: u64,
    /// Calls that were ever counted.
    calls_all: u64,
    last_used_at: Option<u64>,
    login_required: bool,
    /// The issuer of its login.
    login: Option<String>,
    starts: u32,
    memory_bytes: Option<u64>,
    processes: Vec<ProcessRow>,
}

/// A process or connection of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ProcessRow {
    /// The clients that it belongs to; none if all share it.
    client_name: Option<String>,
    state: &'static str,
    pid: Option<u32>,
    memory_bytes: Option<u64>,
    protocol: Option<String>,
    starts: u32,
    calls: u64,
    errors: u64,
    last_error: Option<String>,
    last_error_at: Option<u64>,
}

/// A connected client.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ClientRow {
    pub(crate) number: u64,
    pub(crate) name: Option<String>,
    version: Option<String>,
    transport: &'static str,
    pid: Option<u32>,
    cwd: Option<String>,
    since_at: u64,
    calls: u64,
    /// The credential that admitted it, over HTTP.
    caller: Option<String>,
    /// The table of the configuration that applies to it.
    rule: Option<String>,
}

/// A call in flight.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct RunningRow {
    id: u64,
    tool: String,
    client: String,
    transport: &'static str,
    since_ms: u64,
    is_script: bool,
}

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct AttentionRow {
    /// `question`, `login`, `review`, `failed`, `mistakes`, `rule` or `pins`.
    kind: &'static str,
    server: Option<String>,
    title: String,
    detail: String,
    /// A command.
    next_step: Option<String>,
    since_at: Option<u64>,
    count: Option<usize>,
}

/// Calls, and those of them that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct CountRow {
    calls: u64,
    errors: u64,
}

/// One difference between two states.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct RowChange {
    /// The collection and the key.
    at: [String; 2],
    /// The row; null: it is gone.
    value: Value,
}

impl State {
    /// Returns the differences that turn this state into another.
    pub(crate) fn changes_to(&self, new: &Self) -> Vec<RowChange> {
        let mut changes = Vec::new();
        compare("daemon", &self.daemon, &new.daemon, &mut changes);
        compare("servers", &self.servers, &new.servers, &mut changes);
        compare("clients", &self.clients, &new.clients, &mut changes);
        compare("running", &self.running, &new.running, &mut changes);
        compare("attention", &self.attention, &new.attention, &mut changes);
        compare("minutes", &self.minutes, &new.minutes, &mut changes);
        compare("totals", &self.totals, &new.totals, &mut changes);
        changes
    }
}

fn compare<R: PartialEq + Serialize>(
    collection: &str,
    old: &BTreeMap<String, R>,
    new: &BTreeMap<String, R>,
    changes: &mut Vec<RowChange>,
) {
    let mut add = |key: &str, value| {
        let at = [collection.to_owned(), key.to_owned()];
        changes.push(RowChange { at, value });
    };
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        add(key, Value::Null);
    }
    for (key, row) in new.iter().filter(|(key, row)| old.get(*key) != Some(row)) {
        add(key, serde_json::to_value(row).unwrap_or_default());
    }
}

/// Builds states, one after the other. Figures that cost more are kept for a moment.
#[derive(Debug)]
pub(crate) struct Builder {
    daemon: PageDaemon,
    close: Option<CloseLook>,
    minutes: Minutes,
    /// The numbers of the configuration and of the catalog.
    numbers: (u64, u64),
}

/// The figures that are read now and then, or when the configuration or the catalog changed.
#[derive(Debug)]
struct CloseLook {
    at: Instant,
    settings: Weak<Settings>,
    catalog: Weak<ServerCatalog>,
    mistakes: Option<String>,
    daemon: DaemonRow,
    /// The memory of a server by process id.
    memory: BTreeMap<u32, u64>,
    usage: BTreeMap<String, (u64, Option<u64>)>,
    logins: BTreeMap<ServerName, (Option<String>, bool)>,
    attention: BTreeMap<String, AttentionRow>,
}

/// The calls of the last hour.
#[derive(Debug, Default)]
struct Minutes {
    counted: (u64, u64),
    by_minute: BTreeMap<u64, CountRow>,
}

impl Builder {
    /// Reads the calls of the last hour from the audit log. Blocks.
    pub(crate) fn new(daemon: PageDaemon) -> Self {
        let minutes = Minutes::read(&daemon.gateway);
        Self {
            daemon,
            close: None,
            minutes,
            numbers: (0, 0),
        }
    }

    /// Makes a builder of states without the calls of the last hour.
    pub(crate) fn without_minutes(daemon: PageDaemon) -> Self {
        Self {
            daemon,
            close: None,
            minutes: Minutes::default(),
            numbers: (0, 0),
        }
    }

    /// Returns the state as it is now. Blocks for a moment.
    pub(crate) fn build(&mut self) -> State {
        let gateway = Arc::clone(&self.daemon.gateway);
        let settings = gateway.settings();
        let catalog = gateway.catalog.registry.catalog();
        let mistakes = gateway.config_mistakes();
        let mut close = self.close.take();
        let is_same = close.as_ref().map_or((false, false), |it| {
            let is_same = std::ptr::eq(it.settings.as_ptr(), Arc::as_ptr(&settings));
            let is_known = std::ptr::eq(it.catalog.as_ptr(), Arc::as_ptr(&catalog));
            (is_same, is_known)
        });
        self.numbers.0 += u64::from(!is_same.0);
        self.numbers.1 += u64::from(!is_same.1);
        close = close.filter(|it| {
            let is_new = it.at.elapsed() < LOOK_CLOSELY_EVERY && it.mistakes == mistakes;
            is_new && is_same == (true, true)
        });
        let mut close =
            close.unwrap_or_else(|| CloseLook::take(&self.daemon, &settings, &catalog, mistakes));
        (close.daemon.config_number, close.daemon.catalog_number) = self.numbers;
        let states = gateway.servers.quick_states();
        let clients = gateway.clients.list();
        let names: BTreeMap<u64, String> = clients
            .iter()
            .filter_map(|it| Some((it.number, it.info()?.name.clone())))
            .collect();
        let mut state = State {
            attention: close.attention.clone(),
            ..State::default()
        };
        for server in &settings.servers {
            let of = states.iter().filter(|it| it.name == server.spec.name);
            let known = catalog
                .servers
                .iter()
                .find(|it| it.name == server.spec.name);
            let row = close.server(
                &gateway,
                server,
                known,
                &of.clone().collect::<Vec<_>>(),
                &names,
            );
            for waiting in of {
                add_questions(&mut state.attention, waiting);
            }
            add_server(&mut state.attention, &row);
            state.servers.insert(row.name.clone(), row);
        }
        state.clients = list_clients(&settings, &clients);
        state.running = list_running(&gateway);
        let (calls, errors) = gateway.count_calls();
        state.minutes = self.minutes.count((calls, errors));
        state
            .totals
            .insert("totals".to_owned(), CountRow { calls, errors });
        state
            .daemon
            .insert("daemon".to_owned(), close.daemon.clone());
        self.close = Some(close);
        state
    }
}

/// Returns the clients; commands come and go, and are none.
fn list_clients(
    settings: &Settings,
    clients: &[Arc<ConnectedClient>],
) -> BTreeMap<String, ClientRow> {
    let clients = clients
        .iter()
        .filter(|it| it.connection.transport != "shell");
    let rows = clients.map(|client| {
        let connection = &client.connection;
        let row = ClientRow {
            number: client.number,
            name: client.info().map(|it| it.name.clone()),
            version: client.info().and_then(|it| it.version.clone()),
            transport: connection.transport,
            pid: connection.pid,
            cwd: connection.cwd.as_ref().map(|it| it.display().to_string()),
            since_at: to_s(client.since),
            calls: client.calls(),
            caller: connection.caller.as_ref().map(ToString::to_string),
            rule: policy_of(settings, client).table,
        };
        (client.number.to_string(), row)
    });
    rows.collect()
}

fn list_running(gateway: &Gateway) -> BTreeMap<String, RunningRow> {
    let calls = gateway.running_calls().list().into_iter();
    let rows = calls.map(|call| {
        let row = RunningRow {
            id: call.id,
            tool: call.tool.clone(),
            client: call.client.clone(),
            transport: call.transport,
            since_ms: call.since_ms,
            is_script: call.is_script,
        };
        (call.id.to_string(), row)
    });
    rows.collect()
}

/// Returns the rules for a client in these settings.
pub(crate) fn policy_of(settings: &Settings, client: &ConnectedClient) -> ClientPolicy {
    let announced = client.info().map(|it| it.name.as_str());
    let rule = client.connection.rule.as_deref();
    settings.clients.of(rule.or(announced))
}

impl CloseLook {
    fn take(
        daemon: &PageDaemon,
        settings: &Arc<Settings>,
        catalog: &Arc<ServerCatalog>,
        mistakes: Option<String>,
    ) -> Self {
        let gateway = &daemon.gateway;
        let status = (daemon.status)();
        let servers = status.servers.iter();
        let memory = servers
            .filter_map(|it| Some((it.pid?, round(it.memory_bytes?))))
            .collect();
        let files = settings.private_files();
        let logins = settings.enabled().map(|server| {
            let name = &server.spec.name;
            let known = catalog.servers.iter().find(|it| it.name == *name);
            let is_stale = known.is_some_and(|it| it.stale.is_some());
            let login = describe_login(server, &files).map(|it| it.issuer);
            let needed = gateway.catalog.needs_login(name, is_stale);
            (name.clone(), (login, needed))
        });
        let pins = gateway
            .catalog
            .registry
            .pin_trouble()
            .map(|it| it.to_string());
        let mut attention = BTreeMap::new();
        add_mistakes(&mut attention, mistakes.as_deref(), pins.as_deref());
        add_reviews(&mut attention, gateway);
        add_idle_rules(&mut attention, gateway, settings);
        Self {
            at: Instant::now(),
            settings: Arc::downgrade(settings),
            catalog: Arc::downgrade(catalog),
            daemon: DaemonRow {
                version: status.version,
                pid: status.pid,
                started_at: status.started_at,
                config: status.config.display().to_string(),
                state_dir: status.state_dir.display().to_string(),
                memory_bytes: status.memory_bytes.map(round),
                config_mistakes: mistakes.clone(),
                pins,
                is_leaving: status.is_leaving,
                ..DaemonRow::default()
            },
            mistakes,
            memory,
            usage: sum_usage(&gateway.catalog.usage.calls()),
            logins: logins.collect(),
            attention,
        }
    }

    fn server(
        &self,
        gateway: &Gateway,
        server: &ServerSettings,
        known: Option<&CatalogServer>,
        states: &[&ServerState],
        clients: &BTreeMap<u64, String>,
    ) -> ServerRow {
        let name = &server.spec.name;
        let processes: Vec<ProcessRow> = states
            .iter()
            .map(|state| self.process(state, clients))
            .collect();
        let (login, needed) = self.logins.get(name).cloned().unwrap_or_default();
        let login_required = server.enabled && (needed || gateway.servers.needs_login(name));
        let survey_failure = known.and_then(|it| it.stale.as_ref());
        let state = choose_state(server.enabled, login_required, known, states);
        let mut last_error = processes.iter().filter(|it| it.state == "resting");
        let last_error = last_error.find_map(|it| it.last_error.clone());
        let usage = self.usage.get(name.as_str()).copied().unwrap_or_default();
        ServerRow {
            name: name.to_string(),
            state,
            why: last_error.or_else(|| survey_failure.map(ToString::to_string)),
            next_step: match state {
                "login required" => Some(format!("proxy login {name}")),
                "failed" | "stale" | "resting" => survey_failure
                    .and_then(|it| it.hint.clone())
                    .or_else(|| Some(format!("proxy log {name}"))),
                _ => None,
            },
            enabled: server.enabled,
            is_remote: matches!(server.spec.launch, Launch::Remote { .. }),
            category: known.map(|it| it.category.clone()).unwrap_or_default(),
            tools: known.map_or(0, |it| it.tools),
            tokens: known.map_or(0, |it| it.tokens),
            calls: processes.iter().map(|it| it.calls).sum(),
            errors: processes.iter().map(|it| it.errors).sum(),
            calls_all: usage.0,
            last_used_at: usage.1,
            login_required,
            login,
            starts: processes.iter().map(|it| it.starts).sum(),
            memory_bytes: processes
                .iter()
                .filter_map(|it| it.memory_bytes)
                .reduce(|a, b| a + b),
            processes,
        }
    }

    fn process(&self, state: &ServerState, clients: &BTreeMap<u64, String>) -> ProcessRow {
        let own = state.clients.iter().filter_map(|it| clients.get(it));
        let own: Vec<&str> = own.map(String::as_str).collect();
        let last_error = state.last_error.as_ref();
        ProcessRow {
            client_name: (!own.is_empty()).then(|| own.join(", ")),
            state: state.state.as_str(),
            pid: state.pid,
            memory_bytes: state.pid.and_then(|pid| self.memory.get(&pid).copied()),
            protocol: state.revision.as_ref().map(|it| it.as_str().to_owned()),
            starts: state.starts,
            calls: state.calls,
            errors: state.errors,
            last_error: last_error.map(|(_, why)| why.clone()),
            last_error_at: last_error.map(|(at, _)| to_s(*at)),
        }
    }
}

/// Rounds memory to MiB: smaller differences are no change.
fn round(bytes: u64) -> u64 {
    bytes >> 20 << 20
}

fn sum_usage(usage: &[ToolUsage]) -> BTreeMap<String, (u64, Option<u64>)> {
    let mut sums: BTreeMap<String, (u64, Option<u64>)> = BTreeMap::new();
    for tool in usage {
        let server = tool.tool.split_once('/').map_or("", |(server, _)| server);
        let sum = sums.entry(server.to_owned()).or_default();
        *sum = (sum.0 + tool.ok + tool.failed, sum.1.max(tool.last));
    }
    sums
}

fn choose_state(
    is_enabled: bool,
    needs_login: bool,
    known: Option<&CatalogServer>,
    states: &[&ServerState],
) -> &'static str {
    let has = |state: RunState| states.iter().any(|it| it.state == state);
    let is_stale = known.is_some_and(|it| it.stale.is_some());
    let was_asked = known.is_some_and(|it| it.surveyed_at.is_some());
    match () {
        () if !is_enabled => "off",
        () if needs_login => "login required",
        () if has(RunState::Ready) && is_stale => "stale",
        () if has(RunState::Ready) => "ready",
        () if has(RunState::Starting) => "starting",
        () if has(RunState::Resting) => "resting",
        () if is_stale => "failed",
        () if was_asked => "stopped",
        () => "not asked yet",
    }
}

type Attention = BTreeMap<String, AttentionRow>;

impl AttentionRow {
    fn new(kind: &'static str, title: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            server: None,
            title: title.into(),
            detail: detail.into(),
            next_step: None,
            since_at: None,
            count: None,
        }
    }
}

fn add_questions(attention: &mut Attention, state: &ServerState) {
    for (at, question) in state.questions.iter().enumerate() {
        let (server, client) = (&state.name, &question.client);
        let others = if question.holds_up_others {
            "; calls of other clients wait for the answer"
        } else {
            ""
        };
        let detail = format!("{client} is asked ({}){others}", question.method);
        let row = AttentionRow {
            server: Some(server.to_string()),
            since_at: Some(to_s(question.since)),
            ..AttentionRow::new("question", format!("{server} waits for an answer"), detail)
        };
        attention.insert(format!("question {server} {client} {at}"), row);
    }
}

fn add_server(attention: &mut Attention, row: &ServerRow) {
    let (kind, title) = match row.state {
        "login required" => ("login", format!("{} needs a login", row.name)),
        "failed" | "resting" | "stale" => ("failed", format!("{} failed", row.name)),
        _ => return,
    };
    let needed = AttentionRow {
        server: Some(row.name.clone()),
        next_step: row.next_step.clone(),
        since_at: row.processes.iter().filter_map(|it| it.last_error_at).max(),
        ..AttentionRow::new(kind, title, row.why.clone().unwrap_or_default())
    };
    attention.insert(format!("{kind} {}", row.name), needed);
}

fn add_mistakes(attention: &mut Attention, mistakes: Option<&str>, pins: Option<&str>) {
    let title = "The configuration has mistakes; the previous one is in effect";
    let mistakes = mistakes.map(|it| ("mistakes", title, it, "proxy config check"));
    let pins = pins.map(|it| ("pins", "Nothing counts as accepted", it, "proxy review"));
    for (kind, title, detail, next) in mistakes.into_iter().chain(pins) {
        let row = AttentionRow {
            next_step: Some(next.to_owned()),
            ..AttentionRow::new(kind, title, detail)
        };
        attention.insert(kind.to_owned(), row);
    }
}

fn add_reviews(attention: &mut Attention, gateway: &Gateway) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for review in gateway.catalog.registry.list_reviews(None).list {
        if !review.is_refused {
            *counts.entry(review.shown.server.to_string()).or_default() += 1;
        }
    }
    for (server, count) in counts {
        let definitions = printable::count_of(count, "definition");
        let title = format!("{server} changed {definitions}");
        let row = AttentionRow {
            next_step: Some(format!("proxy review {server}")),
            count: Some(count),
            server: Some(server.clone()),
            ..AttentionRow::new("review", title, "They are not accepted yet.")
        };
        attention.insert(format!("review {server}"), row);
    }
}

fn add_idle_rules(attention: &mut Attention, gateway: &Gateway, settings: &Settings) {
    let known = gateway::list_known_names(&gateway.catalog.registry, settings);
    let found = find_idle_rules(settings, known, &[], &BTreeSet::new());
    let idle = found.idle.into_iter();
    for rule in idle.filter(|it| it.weight == Weight::Safety) {
        let title = format!("{} matches nothing", rule.about);
        let row = AttentionRow {
            next_step: Some(rule.next),
            ..AttentionRow::new("rule", title, rule.found)
        };
        attention.insert(format!("rule {}", rule.about), row);
    }
}

impl Minutes {
    /// Reads the calls of the last hour from the audit log; none if there is no log. Blocks.
    fn read(gateway: &Gateway) -> Self {
        gateway.flush_records();
        let mut minutes = Self {
            counted: gateway.count_calls(),
            ..Self::default()
        };
        let folder = gateway.settings().state_dir.join("audit");
        let filter = telemetry::Filter {
            since_ms: Some(now_ms().saturating_sub(MINUTES_MAX * 60_000)),
            ..telemetry::Filter::default()
        };
        // A log that cannot be read counts as empty: the calls from now on are shown.
        let _ = telemetry::read_newest(&folder, &filter, |line| {
            let at = line["at"].as_str().and_then(files::clock::read_time);
            if let Some(at) = at {
                let row = minutes.by_minute.entry(at / 60_000).or_default();
                row.calls += 1;
                row.errors += u64::from(line["outcome"] != "ok");
            }
            true
        });
        minutes
    }

    /// Adds the calls since the last count to this minute.
    fn count(&mut self, counted: (u64, u64)) -> BTreeMap<String, CountRow> {
        let new = CountRow {
            calls: counted.0.saturating_sub(self.counted.0),
            errors: counted.1.saturating_sub(self.counted.1),
        };
        self.counted = counted;
        let now = now_s() / 60;
        if new.calls > 0 {
            let row = self.by_minute.entry(now).or_default();
            row.calls += new.calls;
            row.errors += new.errors;
        }
        self.by_minute
            .retain(|minute, _| minute + MINUTES_MAX > now);
        let rows = self.by_minute.iter();
        rows.map(|(minute, row)| (minute.to_string(), *row))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(totals: u64, running: &[u64]) -> State {
        let row = |id: &u64| {
            let row = RunningRow {
                id: *id,
                tool: "git/log".to_owned(),
                client: String::new(),
                transport: "stdio",
                since_ms: 0,
                is_script: false,
            };
            (id.to_string(), row)
        };
        let count = CountRow {
            calls: totals,
            errors: 0,
        };
        State {
            totals: BTreeMap::from([("totals".to_owned(), count)]),
            running: running.iter().map(row).collect(),
            ..State::default()
        }
    }

    #[test]
    fn changes_name_the_rows_that_differ() {
        let changes = state(1, &[1, 2]).changes_to(&state(2, &[2, 3]));
        let at = |change: &RowChange| (change.at.join("/"), change.value.is_null());
        let at: Vec<_> = changes.iter().map(at).collect();
        let expected = [
            ("running/1", true),
            ("running/3", false),
            ("totals/totals", false),
        ];
        assert_eq!(at, expected.map(|(key, gone)| (key.to_owned(), gone)));
        assert_eq!(changes[2].value, json!({"calls": 2, "errors": 0}));
        assert_eq!(state(1, &[1]).changes_to(&state(1, &[1])), []);
    }

    #[test]
    fn the_last_hour_is_counted_by_minutes() {
        let mut minutes = Minutes::default();
        minutes.by_minute.insert(7, CountRow::default());
        let rows = minutes.count((3, 1));
        assert_eq!(
            rows.values().copied().collect::<Vec<_>>(),
            [CountRow {
                calls: 3,
                errors: 1
            }]
        );
        let rows = minutes.count((5, 1));
        let sum: u64 = rows.values().map(|it| it.calls).sum();
        assert_eq!(sum, 5);
    }
}
