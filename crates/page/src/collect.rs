//! Collects the state from the gateway.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use daemon::{page::PageDaemon, status::describe_client};
use files::clock::{now_ms, to_s};
use fleet::{Availability, Launch, ServerFacts, ServerState};
use gateway::{Gateway, LoginStatus, ServerSettings, Settings, describe_login};
use registry::{CatalogServer, ServerCatalog, ToolUsage};
use telemetry::{By, CallCount};
use tokio::time::Instant;
use tool::ServerName;

use crate::{
    api::figures::DAYS_DEFAULT,
    attention::{
        Attention, add_idle_rules, add_mistakes, add_other_questions, add_questions, add_reviews,
        add_server,
    },
    limits::LOOK_CLOSELY_EVERY,
    logins::{LoginAttempt, Logins},
    minutes::Minutes,
    page_state::PageState,
    state::{DaemonRow, ProcessRow, RunningRow, ServerRow, State},
};

/// Builds states, one after the other. Figures that cost more are kept for a moment.
#[derive(Debug)]
pub(crate) struct Builder {
    daemon: PageDaemon,
    logins: Arc<Logins>,
    close: Option<CloseLook>,
    /// The settings and the catalog by which these matters need a person.
    of_catalog: (Weak<Settings>, Weak<ServerCatalog>, Attention),
    minutes: Option<Minutes>,
    /// The numbers of the configuration and of the catalog.
    numbers: (u64, u64),
    /// True if every snapshot is read to see if it is damaged, and the statistics of 30 days.
    is_thorough: bool,
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
    /// The time of the last use of a server.
    last_used: BTreeMap<String, u64>,
    /// The calls of a server in the last 30 days.
    days: Option<BTreeMap<String, CallCount>>,
    /// The login of a server, whether it needs one, and whether it has a log.
    logins: BTreeMap<ServerName, (Option<LoginStatus>, bool, bool)>,
    damaged: Vec<(ServerName, String)>,
    attention: Attention,
}

impl Builder {
    /// Makes a builder for tabs.
    pub(crate) fn new(page: &PageState) -> Self {
        Self {
            daemon: page.daemon.clone(),
            logins: Arc::clone(&page.logins),
            close: None,
            of_catalog: Default::default(),
            minutes: None,
            numbers: (0, 0),
            is_thorough: false,
        }
    }

    /// Makes a builder of one state.
    pub(crate) fn once(page: &PageState) -> Self {
        Self {
            is_thorough: true,
            ..Self::new(page)
        }
    }

    /// Returns the whole state. Blocks: reads all definitions whenever one changed, and the log once.
    pub(crate) fn build_whole(&mut self) -> State {
        let mut state = self.build();
        let gateway = &self.daemon.gateway;
        let (settings, catalog) = (gateway.settings(), gateway.catalog.registry.catalog());
        let (of_settings, of_catalog, attention) = &mut self.of_catalog;
        if !is_of(of_settings, &settings) || !is_of(of_catalog, &catalog) {
            *attention = Attention::new();
            add_reviews(attention, gateway);
            add_idle_rules(attention, gateway);
            (*of_settings, *of_catalog) = (Arc::downgrade(&settings), Arc::downgrade(&catalog));
        }
        state.attention.extend(attention.clone());
        let minutes = self.minutes.get_or_insert_with(|| Minutes::read(gateway));
        state.minutes = minutes.count(gateway.recorder.count_calls());
        state.daemon.values_mut().for_each(|it| it.is_whole = true);
        state
    }

    /// Returns the state as it is now, without matters of the catalog and the calls of the last hour.
    /// Blocks for a moment.
    pub(crate) fn build(&mut self) -> State {
        let gateway = Arc::clone(&self.daemon.gateway);
        let settings = gateway.settings();
        let catalog = gateway.catalog.registry.catalog();
        let close = self.look_closely(&settings, &catalog);
        let states = gateway.servers.quick_states();
        let counts = gateway.recorder.count_by_server();
        let clients = gateway.clients.list();
        let names: BTreeMap<u64, String> = clients
            .iter()
            .filter_map(|it| Some((it.number, it.info()?.name.to_string())))
            .collect();
        let mut state = State {
            attention: close.attention.clone(),
            ..State::default()
        };
        add_questions(&mut state.attention, &gateway, &states);
        for server in &settings.servers {
            let name = &server.spec.name;
            let of = states.iter().filter(|it| it.name == *name);
            let of: Vec<&ServerState> = of.collect();
            let known = catalog.servers.iter().find(|it| it.name == *name);
            let count = counts.get(name.as_str()).copied().unwrap_or_default();
            let mut row = ServerRow {
                calls: count.calls,
                errors: count.errors,
                ..close.server(&gateway, server, known, &of, &names)
            };
            match self.logins.find(&row.name) {
                Some(LoginAttempt::Waits(address)) => row.login_address = Some(address),
                // It says more than the need for a login.
                Some(LoginAttempt::Failed(why)) if row.state == Availability::LoginRequired => {
                    row.why = Some(why);
                }
                _ => {}
            }
            for waiting in of {
                add_other_questions(&mut state.attention, waiting);
            }
            add_server(&mut state.attention, &row);
            state.servers.insert(row.name.clone(), row);
        }
        state.clients = clients
            .iter()
            .filter(|it| it.connection.transport != "shell")
            .map(|it| (it.number.to_string(), describe_client(&settings, it)))
            .collect();
        state.running = list_running(&gateway);
        let totals = gateway.recorder.count_calls();
        state.totals.insert("totals".to_owned(), totals);
        let daemon = close.daemon.clone();
        state.daemon.insert("daemon".to_owned(), daemon);
        self.close = Some(close);
        state
    }

    /// Returns the figures of the last close look, or takes another.
    fn look_closely(
        &mut self,
        settings: &Arc<Settings>,
        catalog: &Arc<ServerCatalog>,
    ) -> CloseLook {
        let mistakes = self.daemon.gateway.config_mistakes();
        let close = self.close.take();
        let is_same = close.as_ref().map_or((false, false), |it| {
            (is_of(&it.settings, settings), is_of(&it.catalog, catalog))
        });
        self.numbers.0 += u64::from(!is_same.0);
        self.numbers.1 += u64::from(!is_same.1);
        let close = close.filter(|it| {
            let is_new = it.at.elapsed() < LOOK_CLOSELY_EVERY && it.mistakes == mistakes;
            is_new && is_same == (true, true)
        });
        let mut close = close.unwrap_or_else(|| self.take_close_look(settings, catalog, mistakes));
        (close.daemon.config_number, close.daemon.catalog_number) = self.numbers;
        close
    }

    fn take_close_look(
        &self,
        settings: &Arc<Settings>,
        catalog: &Arc<ServerCatalog>,
        mistakes: Option<String>,
    ) -> CloseLook {
        let gateway = &self.daemon.gateway;
        let status = (self.daemon.status)();
        let servers = status.servers.iter();
        let memory = servers
            .filter_map(|it| Some((it.pid?, round(it.memory_bytes?))))
            .collect();
        let files = settings.private_files();
        let logins = settings.servers.iter().map(|server| {
            let name = &server.spec.name;
            let known = catalog.servers.iter().find(|it| it.name == *name);
            let is_stale = known.is_some_and(|it| it.stale.is_some());
            let login = describe_login(server, &files);
            let needed = gateway.catalog.needs_login(name, is_stale);
            let has_log = gateway::has_log(&settings.state_dir, name);
            (name.clone(), (login, needed, has_log))
        });
        let registry = &gateway.catalog.registry;
        let damaged = self.is_thorough.then(|| registry.list_damaged());
        let pins = registry.pin_trouble().map(|it| it.to_string());
        let mut attention = BTreeMap::new();
        add_mistakes(&mut attention, mistakes.as_deref(), pins.as_deref());
        CloseLook {
            at: Instant::now(),
            settings: Arc::downgrade(settings),
            catalog: Arc::downgrade(catalog),
            daemon: DaemonRow {
                version: status.version,
                pid: status.pid,
                config_mistakes: mistakes.clone(),
                ..DaemonRow::default()
            },
            mistakes,
            memory,
            last_used: find_last_uses(&gateway.catalog.usage.calls()),
            days: self.is_thorough.then(|| count_days(gateway)).flatten(),
            logins: logins.collect(),
            damaged: damaged.unwrap_or_default(),
            attention,
        }
    }
}

/// Returns true if the reference is to this very value.
fn is_of<T>(reference: &Weak<T>, value: &Arc<T>) -> bool {
    std::ptr::eq(reference.as_ptr(), Arc::as_ptr(value))
}

fn list_running(gateway: &Gateway) -> BTreeMap<String, RunningRow> {
    let calls = gateway.running_calls().list().into_iter();
    let rows = calls.map(|call| {
        let row = RunningRow {
            id: call.id,
            tool: call.tool.clone(),
            client: call.client.to_string(),
            transport: call.transport,
            since_ms: call.since_ms,
            parent: call.parent,
        };
        (call.id.to_string(), row)
    });
    rows.collect()
}

impl CloseLook {
    fn server(
        &self,
        gateway: &Gateway,
        server: &ServerSettings,
        known: Option<&CatalogServer>,
        states: &[&ServerState],
        clients: &BTreeMap<u64, String>,
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

    fn process(&self, state: &ServerState, clients: &BTreeMap<u64, String>) -> ProcessRow {
        let own = state.clients.iter().filter_map(|it| clients.get(it));
        let own = own.map(String::as_str).chain(state.caller.as_deref());
        let own: Vec<&str> = own.collect();
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
