//! Collects the state from the gateway.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use daemon::{page::PageDaemon, status::describe_client};
use gateway::{Gateway, Settings, api::ServerFigures};
use registry::ServerCatalog;
use tokio::time::Instant;

use crate::{
    attention::{
        Attention, add_idle_rules, add_mistakes, add_other_questions, add_questions, add_reviews,
        add_server,
    },
    limits::LOOK_CLOSELY_EVERY,
    logins::Logins,
    minutes::Minutes,
    page_state::PageState,
    state::{DaemonRow, RunningRow, State},
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
}

/// The figures that are read now and then, or when the configuration or the catalog changed.
#[derive(Debug)]
struct CloseLook {
    at: Instant,
    settings: Weak<Settings>,
    catalog: Weak<ServerCatalog>,
    mistakes: Option<String>,
    daemon: DaemonRow,
    servers: ServerFigures,
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
        let clients = gateway.clients.list();
        let mut state = State {
            attention: close.attention.clone(),
            ..State::default()
        };
        add_questions(&mut state.attention, &gateway, &states);
        for mut row in close.servers.list(&gateway, &settings, &catalog, &states) {
            self.logins.add_to(&mut row);
            for waiting in states.iter().filter(|it| it.name.as_str() == row.name) {
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
        let pins = gateway
            .catalog
            .registry
            .pin_trouble()
            .map(|it| it.to_string());
        let mut attention = BTreeMap::new();
        add_mistakes(&mut attention, mistakes.as_deref(), pins.as_deref());
        CloseLook {
            at: Instant::now(),
            settings: Arc::downgrade(settings),
            catalog: Arc::downgrade(catalog),
            daemon: DaemonRow {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                config_mistakes: mistakes.clone(),
                ..DaemonRow::default()
            },
            mistakes,
            servers: ServerFigures::read(gateway, settings, catalog, false),
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
