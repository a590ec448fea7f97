//! The gateway: builds its parts, applies settings, admits clients, and stops.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use files::clock::now_ms;
use fleet::{Applied, Fleet, ServerSpec, Servers, Surroundings};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use processes::{Reaper, Spawner, own_program};
use results::ResultStore;
use secrets::{PrivateFiles, Resolver, Store};
use telemetry::{CallRecord, Event, Outcome, Recorder};
use tracing::warn;

use crate::{
    authorize::Authorizer,
    built_in::{
        BuiltInTool, BuiltInTools, CALL_MANY, CallMany, DeclareTypes, GET_PROMPT, GetPrompt, LIST,
        LIST_RESOURCES, List, ListResources, Parts, READ_RESOURCE, READ_RESULT, RUN_SCRIPT,
        ReadResource, ReadResult, RunScript, TYPES,
    },
    catalog::{Catalog, open_registry},
    client_tasks::ClientTasks,
    clients::Connection,
    clients::{ConnectedClient, ConnectedClients},
    dispatcher::Dispatcher,
    elicitation::parked_calls::ParkedCalls,
    forward::{Forwarder, Ledgers},
    kept_secrets::hide_kept_secrets,
    quotas::{QuotaBook, QuotaStatus},
    redaction_count::RedactionCount,
    running_calls::RunningCalls,
    scrapes::Scrapes,
    script_turns::ScriptTurns,
    settings::Settings,
    state_dir::{self, logs, marker},
    traces::Traces,
};

/// The time that each last write waits for a lock of another process: both fit into the time limit
/// of a stop. Counts that cannot be written by then are lost.
const LAST_FLUSH_WAIT: Duration = Duration::from_millis(600);

/// The parts behind the three tools. One serves every session.
#[derive(Debug)]
pub struct Gateway {
    /// The known tools.
    pub catalog: Arc<Catalog>,
    /// The servers of these tools.
    pub servers: Arc<dyn Servers>,
    /// Results that were cut.
    pub results: ResultStore,
    /// Decides on calls.
    pub authorizer: Arc<Authorizer>,
    pub(crate) dispatcher: Dispatcher,
    quotas: Arc<QuotaBook>,
    pub(crate) forwarder: Arc<Forwarder>,
    /// The connected clients.
    pub clients: ConnectedClients,
    /// The URIs that were sent to clients whose requests stand alone.
    pub(crate) ledgers: Ledgers,
    /// Calls that wait for the next request of their clients.
    pub(crate) parked: Arc<ParkedCalls>,
    pub(crate) client_tasks: Arc<ClientTasks>,
    /// Records calls and searches.
    pub recorder: Arc<Recorder>,
    pub(crate) traces: Arc<Traces>,
    /// The state of the metrics between two scrapes.
    pub(crate) scrapes: Scrapes,
    pub(crate) run_script: Arc<RunScript>,
}

impl Gateway {
    /// Opens the state folder and prepares the servers; starts none. Needs a runtime.
    pub fn new(settings: Settings) -> anyhow::Result<Arc<Self>> {
        let surroundings = surroundings(&settings.private_files());
        Self::with_servers(settings, |specs| Arc::new(Fleet::new(specs, surroundings)))
    }

    /// Opens the state folder with another implementation of servers.
    pub fn with_servers(
        settings: Settings,
        servers: impl FnOnce(Vec<ServerSpec>) -> Arc<dyn Servers>,
    ) -> anyhow::Result<Arc<Self>> {
        state_dir::make(&settings.state_dir)?;
        let opened = open_registry(&settings)?;
        let results = ResultStore::new(&settings.state_dir, &settings.results);
        let servers = servers(settings.specs_as_spoken(&opened.0.catalog()));
        let files = settings.private_files();
        let recorder = Arc::new(Recorder::new(telemetry::RecorderSettings {
            folder: settings.state_dir.clone(),
            audit_bytes_max: settings.audit.bytes_max,
            keeps_stats: settings.keeps_stats,
            hide: hide_kept_secrets(&files),
        }));
        let traces = Arc::new(Traces::new(settings.traces.as_ref(), || resolver(&files)));
        let state_dir = settings.state_dir.clone();
        let catalog = Arc::new(Catalog::new(settings, opened, Arc::clone(&servers)));
        let authorizer = Arc::new(Authorizer {
            catalog: Arc::clone(&catalog),
            recorder: Arc::clone(&recorder),
            traces: Arc::clone(&traces),
            on_always: OnceLock::new(),
        });
        let forwarder = Arc::new(Forwarder {
            catalog: Arc::clone(&catalog),
            authorizer: Arc::clone(&authorizer),
            results: results.clone(),
        });
        let run_script = Arc::new(RunScript {
            parts: Parts {
                catalog: Arc::clone(&catalog),
                results: results.clone(),
                recorder: Arc::clone(&recorder),
            },
            runner: script::Runner::of_own_program(),
            turns: ScriptTurns::default(),
        });
        let built_in = built_in_tools(&catalog, &forwarder, &results, Arc::clone(&run_script));
        let client_tasks = ClientTasks::open(&state_dir, Arc::clone(&servers), results.clone());
        let quotas = QuotaBook::open(&state_dir);
        let dispatcher = Dispatcher {
            catalog: Arc::clone(&catalog),
            authorizer: Arc::clone(&authorizer),
            hooks: vec![Box::new(Arc::clone(&quotas)), Box::new(RedactionCount)],
            built_in,
            running: RunningCalls::default(),
        };
        Ok(Arc::new(Self {
            catalog,
            servers,
            results,
            authorizer,
            dispatcher,
            quotas,
            forwarder,
            clients: ConnectedClients::default(),
            ledgers: Ledgers::default(),
            parked: Arc::default(),
            client_tasks: Arc::new(client_tasks),
            recorder,
            traces,
            scrapes: Scrapes {
                began: SystemTime::now(),
                starts: Mutex::default(),
            },
            run_script,
        }))
    }

    /// The current settings: a daemon applies changes of the file.
    pub fn settings(&self) -> Arc<Settings> {
        self.catalog.settings()
    }

    /// The mistakes in the file since it was last applied.
    pub fn config_mistakes(&self) -> Option<String> {
        self.catalog.mistakes.lock().clone()
    }

    /// Remembers the mistakes in the file, for `status`; `None`: the file was applied.
    pub fn note_config_mistakes(&self, mistakes: Option<String>) {
        *self.catalog.mistakes.lock() = mistakes;
    }

    /// Applies other settings: the servers, and the rules for them and their tools. Calls in
    /// progress are not disturbed. The state folder and everything opened in it stay the same.
    pub fn apply(&self, settings: Settings) -> anyhow::Result<Applied> {
        self.catalog.apply(&settings)?;
        let specs = settings.specs_as_spoken(&self.catalog.registry.catalog());
        self.recorder.set_audit_bytes_max(settings.audit.bytes_max);
        self.recorder.set_keeps_stats(settings.keeps_stats);
        self.catalog.current.store(Arc::new(settings));
        let applied = self.servers.apply(specs);
        self.catalog.lists_changed.send_replace(());
        Ok(applied)
    }

    /// Admits a client; its servers are filled in from its own variables.
    pub(crate) fn admit(&self, connection: Connection) -> Arc<ConnectedClient> {
        let client = self.clients.add(connection);
        if let Some(variables) = &client.connection.variables {
            self.catalog.admit_variables(client.number, variables);
        }
        client
    }

    /// Writes counts to the disk, and ends every server quickly. A lock that another process holds
    /// is waited for no longer than a stop may take.
    pub async fn stop(self: &Arc<Self>) {
        self.finish(self.servers.stop()).await;
    }

    /// Stops like `stop`, but gives servers time to save their data.
    pub async fn end(self: &Arc<Self>) {
        self.finish(self.servers.end()).await;
    }

    async fn finish(self: &Arc<Self>, servers: BoxFuture<'_, ()>) {
        let catalog = Arc::clone(&self.catalog);
        let counts = tokio::task::spawn_blocking(move || catalog.flush(LAST_FLUSH_WAIT));
        let scripts = self.run_script.stop();
        // The last records are those of calls that end with their servers.
        let quotas = Arc::clone(&self.quotas);
        let ends = async {
            tokio::join!(self.results.finish(), servers, scripts);
            let _ = tokio::task::spawn_blocking(move || quotas.write()).await;
            let recorder = Arc::clone(&self.recorder);
            let written = tokio::task::spawn_blocking(move || recorder.flush());
            let _ = tokio::join!(written, self.traces.finish());
        };
        let _ = tokio::join!(counts, ends);
    }

    /// The tool calls in flight.
    pub fn running_calls(&self) -> &RunningCalls {
        &self.dispatcher.running
    }

    /// The quotas of the configuration, with their use at this moment.
    pub fn list_quotas(&self) -> Vec<QuotaStatus> {
        self.quotas.list_uses(&self.settings().quotas)
    }

    /// Records in the audit log that a credential was refused over HTTP; `why` holds no part of it.
    pub fn record_refused_credential(&self, why: &str) {
        let record = CallRecord {
            at_ms: now_ms(),
            transport: "http",
            kind: "credential",
            name: why.to_owned(),
            decision: "deny",
            outcome: Outcome::of_code("denied"),
            ..CallRecord::default()
        };
        self.recorder.record(Event::Refusal(Box::new(record)));
    }

    /// Waits until the records of calls and the counts of quotas are on disk. Blocks.
    pub fn flush_records(&self) {
        self.quotas.write();
        self.recorder.flush();
    }

    /// The delivery of spans of calls since the program began; `None` if the configuration names no
    /// collector.
    pub fn trace_delivery(&self) -> Option<telemetry::otlp::Delivery> {
        self.traces.0.as_ref().map(|it| it.delivery())
    }
}

fn built_in_tools(
    catalog: &Arc<Catalog>,
    forwarder: &Arc<Forwarder>,
    results: &ResultStore,
    run_script: Arc<RunScript>,
) -> BuiltInTools {
    let (catalog, forwarder) = (|| Arc::clone(catalog), || Arc::clone(forwarder));
    let results = || results.clone();
    let read_resource = ReadResource {
        forwarder: forwarder(),
        results: results(),
    };
    let get_prompt = GetPrompt {
        forwarder: forwarder(),
        results: results(),
    };
    let types = DeclareTypes {
        catalog: catalog(),
        results: results(),
    };
    let tools: [(_, Arc<dyn BuiltInTool>); 8] = [
        (READ_RESULT, Arc::new(ReadResult { results: results() })),
        (CALL_MANY, Arc::new(CallMany { results: results() })),
        (READ_RESOURCE, Arc::new(read_resource)),
        (GET_PROMPT, Arc::new(get_prompt)),
        (
            LIST_RESOURCES,
            Arc::new(ListResources { catalog: catalog() }),
        ),
        (LIST, Arc::new(List { catalog: catalog() })),
        (RUN_SCRIPT, run_script),
        (TYPES, Arc::new(types)),
    ];
    BuiltInTools(tools.into())
}

/// The environment of every child process of ours: a reaper that outlives us, a log, and secrets.
pub fn surroundings(files: &PrivateFiles) -> Surroundings {
    let state_dir = &files.state_dir;
    let spawner = Arc::new(spawner(state_dir));
    let secrets = Resolver::new(Store::of(files), Arc::clone(&spawner));
    Surroundings {
        spawner,
        log_folder: Some(logs(state_dir)),
        private: Some(files.clone()),
        secrets: Some(Arc::new(secrets)),
        callers: Arc::default(),
    }
}

/// The resolver of the secrets that a configuration names outside of its servers.
pub fn resolver(files: &PrivateFiles) -> Arc<Resolver> {
    let spawner = Arc::new(spawner(&files.state_dir));
    Arc::new(Resolver::new(Store::of(files), spawner))
}

/// Returns what starts child processes that end with this process.
pub fn spawner(state_dir: &Path) -> Spawner {
    let reaper = own_program().map(|program| Reaper::new(program, vec!["reaper".into()]));
    if reaper.is_none() {
        warn!("no reaper: servers may keep running if the proxy is killed");
    }
    Spawner::new(reaper, marker(state_dir))
}
