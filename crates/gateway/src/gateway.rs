//! The one object behind the three tools: registry, servers, results, and what is counted of them.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use fleet::{Applied, Fleet, ServerSpec, Surroundings, Survey, Variables};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use processes::{Reaper, Spawner, own_program};
use registry::{Entry, Generation, Pin, Registry, RelevanceFeedback, Rules, ServerRules, Usage};
use results::ResultStore;
use secrets::{PrivateFiles, Resolver, Store};
use telemetry::Recorder;
use tokio::sync::{Notify, watch};
use tool::ServerName;
use tracing::warn;

use crate::{
    allowed::OnAlways,
    built_in,
    clients::{ConnectedClient, ConnectedClients},
    connection::Connection,
    error::ToolError,
    forward::Ledgers,
    kept_secrets::hide_kept_secrets,
    last_spoken::with_last_spoken,
    parked::ParkedCalls,
    recent_searches,
    saved_scripts::SavedScripts,
    scrapes::Scrapes,
    script_turns::ScriptTurns,
    servers::Servers,
    settings::Settings,
    state_dir::{self, logs, marker},
    surveys::{LeftOut, SurveyNote, Surveys},
    traces::Traces,
};

/// The wait of each last write for a lock of another process: both fit into the time that a stop
/// may take. Counts that cannot be written by then are lost.
const LAST_FLUSH_WAIT: Duration = Duration::from_millis(600);

/// The snapshots that were found damaged, and what is done about them.
#[derive(Debug, Default)]
pub(crate) struct DamagedSnapshots {
    /// A task surveys what is due.
    pub(crate) is_mended: bool,
    /// Servers to survey; calls wait for them as long as the notes live.
    pub(crate) due: Vec<(ServerName, SurveyNote)>,
    /// The damages that were seen: a server, and the time of the survey whose snapshot is damaged.
    known: BTreeSet<(ServerName, Option<u64>)>,
    /// The generation in which damages were looked for last.
    looked_at: Weak<Generation>,
}

/// Registry, servers and results behind the three tools. One serves every session.
#[derive(Debug)]
pub struct Gateway {
    settings: ArcSwap<Settings>,
    /// Why the file as it is now was not taken in.
    config_mistakes: Mutex<Option<String>>,
    /// The tools that there are.
    pub registry: Registry,
    /// The servers that have them.
    pub servers: Arc<dyn Servers>,
    /// Results that were cut.
    pub results: ResultStore,
    /// How often each tool was called.
    pub usage: Usage,
    /// What calls teach searches.
    pub feedback: Arc<RelevanceFeedback>,
    /// Whose lessons count, beside the client.
    pub(crate) project: String,
    /// Servers that are being asked for their tools right now.
    pub(crate) surveys: Surveys,
    /// The clients that are served now.
    pub clients: ConnectedClients,
    /// Servers that lacked a variable up to now; they may never have told their tools.
    pub(crate) completed: Mutex<Vec<(ServerName, SurveyNote)>>,
    /// Told when there are some.
    pub(crate) has_completed: Notify,
    /// Servers whose snapshots are damaged, and what is done about it.
    pub(crate) damaged: Mutex<DamagedSnapshots>,
    /// The URIs that passed to clients whose requests stand alone.
    pub(crate) ledgers: Ledgers,
    /// Told when the lists of servers may be others.
    pub(crate) lists_changed: watch::Sender<()>,
    /// Calls that wait for their clients to call again.
    pub(crate) parked: Arc<ParkedCalls>,
    /// Told when there may be tools without a meaning.
    pub(crate) to_embed: Notify,
    /// Held while tools get their meaning: one run serves all that wait for it.
    pub(crate) embedding: Arc<tokio::sync::Mutex<()>>,
    /// Writes down what a person allows for good.
    pub(crate) on_always: OnceLock<OnAlways>,
    /// Writes down what is called and asked.
    pub(crate) recorder: Arc<Recorder>,
    /// Sends spans of calls where the configuration says.
    pub(crate) traces: Traces,
    /// What the figures for a watcher remember.
    pub(crate) scrapes: Scrapes,
    /// Runs scripts; none: our own program cannot be found.
    pub(crate) scripts: Option<script::Runner>,
    /// How many of them run at one time.
    pub(crate) script_turns: ScriptTurns,
    /// The folder of saved ones, as it was read last.
    saved: ArcSwap<SavedScripts>,
}

impl Gateway {
    /// Opens the state folder and gets the servers ready; starts none. Needs a runtime.
    pub fn new(settings: Settings) -> anyhow::Result<Arc<Self>> {
        let surroundings = surroundings(&settings.private_files());
        Self::with_servers(settings, |specs| Arc::new(Fleet::new(specs, surroundings)))
    }

    /// What the last survey of a server left out of its lists, if this process asked it.
    pub fn left_out(&self, server: &ServerName) -> Option<LeftOut> {
        self.surveys.left_out(server)
    }

    /// The same with servers of another kind.
    pub fn with_servers(
        settings: Settings,
        servers: impl FnOnce(Vec<ServerSpec>) -> Arc<dyn Servers>,
    ) -> anyhow::Result<Arc<Self>> {
        let options = registry::Options {
            built_in: built_in::tools(),
            embeds: settings.search.embeds,
        };
        state_dir::make(&settings.state_dir)?;
        let saved = SavedScripts::read(settings.scripts.as_deref());
        log_mistakes(&saved);
        let rules = rules(&settings, &saved);
        let registry = Registry::open_with(&settings.state_dir, rules, options)?;
        let usage = Usage::open(&settings.state_dir);
        let feedback = Arc::new(RelevanceFeedback::open(&settings.state_dir));
        let results = ResultStore::new(&settings.state_dir, &settings.results);
        let specs = with_last_spoken(settings.specs(), &registry.catalog());
        let servers = servers(specs);
        let recorder = Recorder::new(telemetry::Settings {
            folder: settings.state_dir.clone(),
            audit_bytes_max: settings.audit.bytes_max,
            hide: hide_kept_secrets(&settings.private_files()),
        });
        let files = settings.private_files();
        let traces = Traces::new(settings.traces.as_ref(), || resolver(&files));
        Ok(Arc::new(Self {
            settings: ArcSwap::from_pointee(settings),
            config_mistakes: Mutex::default(),
            registry,
            servers,
            results,
            usage,
            feedback,
            project: recent_searches::project(),
            surveys: Surveys::default(),
            clients: ConnectedClients::default(),
            completed: Mutex::default(),
            has_completed: Notify::new(),
            damaged: Mutex::default(),
            ledgers: Ledgers::default(),
            lists_changed: watch::Sender::new(()),
            parked: Arc::default(),
            to_embed: Notify::new(),
            embedding: Arc::default(),
            on_always: OnceLock::new(),
            recorder: Arc::new(recorder),
            traces,
            scrapes: Scrapes::begin(),
            scripts: script::Runner::of_own_program(),
            script_turns: ScriptTurns::default(),
            saved: ArcSwap::from_pointee(saved),
        }))
    }

    /// The settings as they are now: a daemon takes in what changes in the file.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// The mistakes in the file since it was last taken in.
    pub fn config_mistakes(&self) -> Option<String> {
        self.config_mistakes.lock().clone()
    }

    /// Remembers what is wrong with the file, for `status`; none: it was taken in.
    pub fn note_config_mistakes(&self, mistakes: Option<String>) {
        *self.config_mistakes.lock() = mistakes;
    }

    /// Has what a person allows for good written down; without it nobody can say "always".
    pub fn on_always(&self, write: OnAlways) {
        let _ = self.on_always.set(write);
    }

    /// Goes on with other settings: the servers, and what is said of them and their tools. Calls
    /// under way are not disturbed. Where the state lies and what was opened with it stays.
    pub fn apply(&self, settings: Settings) -> anyhow::Result<Applied> {
        let rules = rules(&settings, &self.saved.load());
        self.registry.apply_rules(rules)?;
        let specs = with_last_spoken(settings.specs(), &self.registry.catalog());
        self.recorder.set_audit_bytes_max(settings.audit.bytes_max);
        self.settings.store(Arc::new(settings));
        let applied = self.servers.apply(specs);
        self.lists_changed.send_replace(());
        Ok(applied)
    }

    /// The saved scripts, as they were read last.
    pub fn saved_scripts(&self) -> Arc<SavedScripts> {
        self.saved.load_full()
    }

    /// Reads the folder of saved scripts anew. Blocks; none: there is no such folder.
    pub(crate) fn survey_scripts(&self) -> anyhow::Result<Option<Survey>> {
        let settings = self.settings();
        let now = SavedScripts::read(settings.scripts.as_deref());
        let before = self.saved.swap(Arc::new(now.clone()));
        if now.mistakes != before.mistakes {
            log_mistakes(&now);
        }
        if now.has_folder != before.has_folder {
            self.registry.apply_rules(rules(&settings, &now))?;
        }
        Ok(now.has_folder.then(|| now.survey()))
    }

    /// Takes in a client; its servers are filled in from its own variables.
    pub(crate) fn admit(&self, connection: Connection) -> Arc<ConnectedClient> {
        let client = self.clients.add(connection);
        if let Some(variables) = &client.connection.variables {
            self.admit_variables(client.number, variables);
        }
        client
    }

    fn admit_variables(&self, client: u64, variables: &Arc<Variables>) {
        let completed = self.servers.admit_client(client, Arc::clone(variables));
        if !completed.is_empty() {
            // A call that comes before the survey begins waits for it too.
            let catalog = self.registry.catalog();
            let noted = completed.into_iter().map(|server| {
                let known = catalog.servers.iter().find(|it| it.name == server);
                let is_known = known.is_some_and(|it| it.surveyed_at.is_some());
                let note = self.surveys.begin(&server, is_known);
                (server, note)
            });
            self.completed.lock().extend(noted);
            self.has_completed.notify_one();
        }
    }

    /// The registry as it is now. Loading it, at the first question and after each commit, is
    /// done off the event loop.
    pub async fn generation(&self) -> Result<Arc<Generation>, ToolError> {
        if let Some(generation) = self.registry.loaded() {
            // A reload of the configuration may have loaded it.
            self.mend(&generation);
            return Ok(generation);
        }
        let registry = self.registry.clone();
        let loading = tokio::task::spawn_blocking(move || registry.generation());
        match loading.await {
            Ok(Ok(generation)) => {
                self.mend(&generation);
                Ok(generation)
            }
            Ok(Err(error)) => Err(ToolError::Internal(error.to_string())),
            Err(error) => Err(ToolError::Internal(error.to_string())),
        }
    }

    /// Has damaged snapshots mended from now on; the caller runs the task that surveys what is due.
    pub(crate) fn begin_mending(&self) {
        self.damaged.lock().is_mended = true;
    }

    /// Whether a task of this process surveys servers with damaged snapshots.
    pub(crate) fn is_mending(&self) -> bool {
        self.damaged.lock().is_mended
    }

    /// Has servers with damaged snapshots surveyed again, in a process that serves: each damage once, so
    /// that a disk that keeps failing does not start servers without end.
    fn mend(&self, generation: &Arc<Generation>) {
        let mut damaged = self.damaged.lock();
        let is_looked_at = std::ptr::eq(damaged.looked_at.as_ptr(), Arc::as_ptr(generation));
        if !damaged.is_mended || is_looked_at {
            return;
        }
        damaged.looked_at = Arc::downgrade(generation);
        for server in generation
            .servers()
            .iter()
            .filter(|it| it.damaged.is_some())
        {
            // A survey that succeeded has another time, and so has a new damage.
            if damaged
                .known
                .insert((server.name.clone(), server.surveyed_at))
            {
                let note = self.surveys.begin(&server.name, false);
                damaged.due.push((server.name.clone(), note));
                self.has_completed.notify_one();
            }
        }
    }

    /// The tool whose name is written as we write it; its server is loaded off the event loop.
    pub(crate) async fn named(&self, asked: &str) -> Option<Arc<Entry>> {
        let registry = &self.registry;
        if let Some(entry) = registry.named(asked) {
            return Some(entry);
        }
        if registry.loaded().is_some() {
            return None;
        }
        let (registry, asked) = (registry.clone(), asked.to_owned());
        let loading = tokio::task::spawn_blocking(move || registry.load_named(&asked));
        loading.await.ok().flatten()
    }

    /// The tools of the servers, and not our own.
    pub fn offered(generation: &Generation) -> impl Iterator<Item = &registry::Entry> {
        generation
            .entries()
            .filter(|entry| !built_in::is_own(entry))
    }

    /// The reason why a server failed last time, where it did.
    pub fn failure(&self, server: &ServerName) -> Option<String> {
        let failures = self.servers.failures().into_iter();
        let failure = failures
            .filter(|(name, _)| name == server)
            .map(|(_, why)| why.to_string())
            .next();
        failure.or_else(|| {
            let catalog = self.registry.catalog();
            catalog
                .servers
                .iter()
                .find(|it| it.name == *server)?
                .stale
                .as_ref()
                .map(ToString::to_string)
        })
    }

    /// Whether the server has written to stderr what `proxy log` would show.
    pub fn has_log(&self, server: &ServerName) -> bool {
        let newest = fleet::log_path(&crate::logs(&self.settings().state_dir), server);
        std::fs::metadata(newest).is_ok_and(|it| it.len() > 0)
    }

    /// Writes down what was counted, and ends every server in a hurry. A lock that another process
    /// holds is waited for no longer than a stop may take.
    pub async fn stop(self: &Arc<Self>) {
        self.finish(self.servers.stop()).await;
    }

    /// The same, with time for servers that write down what they have.
    pub async fn end(self: &Arc<Self>) {
        self.finish(self.servers.end()).await;
    }

    async fn finish(self: &Arc<Self>, servers: BoxFuture<'_, ()>) {
        let gateway = Arc::clone(self);
        let counts = tokio::task::spawn_blocking(move || gateway.flush(LAST_FLUSH_WAIT));
        let scripts = async {
            if let Some(scripts) = &self.scripts {
                scripts.stop().await;
            }
        };
        // The last records are those of calls that end with their servers.
        let ends = async {
            tokio::join!(self.results.finish(), servers, scripts);
            let recorder = Arc::clone(&self.recorder);
            let written = tokio::task::spawn_blocking(move || recorder.flush());
            let _ = tokio::join!(written, self.traces.finish());
        };
        let _ = tokio::join!(counts, ends);
    }

    /// What became of spans of calls since the program began; none where the configuration names no
    /// collector.
    pub fn trace_delivery(&self) -> Option<otlp::Delivery> {
        self.traces.delivery()
    }

    /// Writes down what was counted and learned, and waits for the lock of another process for so
    /// long at most. Blocks; a failure is logged, and what was counted stays for the next time.
    pub fn flush(&self, wait: Duration) {
        if let Err(error) = self.usage.flush(wait) {
            warn!(%error, "usage was not written");
        }
        if let Err(error) = self.feedback.flush(wait) {
            warn!(%error, "what was learned was not written");
        }
    }
}

/// The rules for all servers; saved scripts are one where there is their folder.
fn rules(settings: &Settings, saved: &SavedScripts) -> Rules {
    let mut rules = settings.rules();
    if saved.has_folder {
        rules.servers.push(ServerRules {
            // The person who changes them has them run.
            pin: Pin::Off,
            ..ServerRules::plain(ServerName::scripts())
        });
    }
    rules
}

fn log_mistakes(saved: &SavedScripts) {
    for mistake in &saved.mistakes {
        warn!(
            file = mistake.file,
            why = mistake.why,
            "a saved script is no tool"
        );
    }
}

/// The surroundings of every child of ours: a reaper that outlives us, a log, and secrets.
fn surroundings(files: &PrivateFiles) -> Surroundings {
    let state_dir = &files.state_dir;
    let spawner = Arc::new(spawner(state_dir));
    let secrets = Resolver::new(Store::of(files), Arc::clone(&spawner));
    Surroundings {
        spawner,
        log_folder: Some(logs(state_dir)),
        private: Some(files.clone()),
        secrets: Some(Arc::new(secrets)),
    }
}

/// What reads the secrets that a configuration names, apart from its servers.
pub fn resolver(files: &PrivateFiles) -> Arc<Resolver> {
    let spawner = Arc::new(spawner(&files.state_dir));
    Arc::new(Resolver::new(Store::of(files), spawner))
}

fn spawner(state_dir: &Path) -> Spawner {
    let reaper = own_program().map(|program| Reaper::new(program, vec!["reaper".into()]));
    if reaper.is_none() {
        warn!("no reaper: were we killed, servers could stay");
    }
    Spawner::new(reaper, marker(state_dir))
}
