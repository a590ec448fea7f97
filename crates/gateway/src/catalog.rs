//! The known tools: the registry, the surveys that fill it, and the lessons of earlier calls.

mod resolve;
mod search;

pub use search::SearchAnswer;

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak, atomic::AtomicBool},
    time::Duration,
};

use arc_swap::ArcSwap;
use files::clock::now_s;
use fleet::{Availability, ServerFacts, Servers, Survey, Variables};
use parking_lot::Mutex;
use registry::{
    CatalogServer, Entry, Generation, Learned, Pin, Registry, RelevanceFeedback, Rules,
    ServerRules, Usage, View,
};
use tokio::sync::{Notify, watch};
use tool::{HttpCaller, ServerName};
use tracing::warn;

use crate::{
    built_in,
    error::ToolError,
    logins::record_of,
    policy::ClientPolicy,
    recent_searches::{self, RecentSearches},
    saved_scripts::SavedScripts,
    settings::Settings,
    surveys::{LeftOut, SurveyNote, Surveys},
};

/// The damaged snapshots that were found, and the work to repair them.
#[derive(Debug, Default)]
pub(crate) struct DamagedSnapshots {
    /// True if a task of this process surveys the servers in `due`.
    pub(crate) is_mended: bool,
    /// Servers to survey; calls wait for them as long as the notes live.
    pub(crate) due: Vec<SurveyNote>,
    /// The known damages: a server, and the time of the survey whose snapshot is damaged.
    known: BTreeSet<(ServerName, Option<u64>)>,
    /// The generation that was last searched for damages.
    looked_at: Weak<Generation>,
}

/// The servers to survey in the background.
#[derive(Debug, Default)]
pub(crate) struct DueSurveys {
    /// Servers that lacked a variable until now; they may never have sent their tools.
    pub(crate) completed: Mutex<Vec<SurveyNote>>,
    pub(crate) damaged: Mutex<DamagedSnapshots>,
    /// Notified when either has servers.
    pub(crate) added: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct EmbeddingQueue {
    /// Notified when there may be tools without an embedding.
    pub(crate) added: Notify,
    /// Held while tools are embedded: one run serves all that wait for it.
    pub(crate) running: Arc<tokio::sync::Mutex<()>>,
    /// A search waited for embeddings in vain, and no run has finished since: another process may
    /// hold the lock.
    pub(crate) is_late: AtomicBool,
}

/// The registry, and everything that keeps it up to date. It knows servers by their lists and calls
/// no tool.
#[derive(Debug)]
pub struct Catalog {
    /// The settings that apply now.
    pub(crate) current: ArcSwap<Settings>,
    /// The mistakes in the file since it was last applied.
    pub(crate) mistakes: Mutex<Option<String>>,
    /// The known tools.
    pub registry: Registry,
    pub(crate) servers: Arc<dyn Servers>,
    /// The number of calls of each tool.
    pub usage: Usage,
    /// The requests that searches learned from earlier calls.
    pub feedback: Arc<RelevanceFeedback>,
    /// The project whose lessons count, beside the client.
    project: String,
    /// Servers that are being asked for their tools right now.
    pub(crate) surveys: Surveys,
    /// Servers to survey in the background.
    pub(crate) due: DueSurveys,
    /// Notified when the lists of servers may have changed.
    pub lists_changed: watch::Sender<()>,
    pub(crate) embeddings: EmbeddingQueue,
    /// The folder of saved scripts, as it was read last.
    saved: ArcSwap<SavedScripts>,
    /// Held by a reading of the folder: of two at once, the later one is stored last.
    pub(crate) scripts_reading: Mutex<()>,
}

impl Catalog {
    pub(crate) fn new(
        settings: Settings,
        (registry, saved): (Registry, SavedScripts),
        servers: Arc<dyn Servers>,
    ) -> Self {
        let state_dir = &settings.state_dir;
        let feedback = RelevanceFeedback::open(state_dir, settings.search.embeds);
        Self {
            registry,
            servers,
            usage: Usage::open(state_dir),
            feedback: Arc::new(feedback),
            current: ArcSwap::from_pointee(settings),
            mistakes: Mutex::default(),
            project: recent_searches::project(),
            surveys: Surveys::default(),
            due: DueSurveys::default(),
            lists_changed: watch::Sender::new(()),
            embeddings: EmbeddingQueue::default(),
            saved: ArcSwap::from_pointee(saved),
            scripts_reading: Mutex::default(),
        }
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.current.load_full()
    }

    /// The mistakes that leave no server configured: every name is unknown because of them.
    pub(crate) fn mistakes_that_hide_servers(&self) -> Option<String> {
        let mistakes = self.mistakes.lock().clone()?;
        self.settings().servers.is_empty().then_some(mistakes)
    }

    pub(crate) fn apply(&self, settings: &Settings) -> anyhow::Result<()> {
        let rules = rules(settings, &self.saved.load());
        Ok(self.registry.apply_rules(rules)?)
    }

    /// The elements that the last survey of a server left out of its lists, if this process asked
    /// it.
    pub fn left_out(&self, server: &ServerName) -> Option<LeftOut> {
        self.surveys.left_out(server)
    }

    /// The saved scripts, as they were read last.
    pub fn saved_scripts(&self) -> Arc<SavedScripts> {
        self.saved.load_full()
    }

    /// Reads the folder of saved scripts again. Blocks; `None` if there is no such folder.
    pub(crate) fn survey_scripts(&self) -> anyhow::Result<Option<Survey>> {
        let _reading = self.scripts_reading.lock();
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

    /// Admits the variables of a client; servers that lacked one are surveyed.
    pub(crate) fn admit_variables(&self, client: u64, variables: &Arc<Variables>) {
        let completed = self.servers.admit_client(client, Arc::clone(variables));
        note_completed(self, &completed);
    }

    /// Remembers a caller over HTTP; servers that lacked one are surveyed.
    pub fn meet_caller(&self, caller: &Arc<HttpCaller>) {
        if let Some(callers) = self.servers.callers() {
            note_completed(self, &callers.meet(caller));
        }
    }

    /// The current generation of the registry. It is loaded off the event loop, at the first request
    /// and after each commit.
    pub async fn generation(&self) -> Result<Arc<Generation>, ToolError> {
        if let Some(generation) = self.registry.loaded() {
            // A reload of the configuration may have loaded it.
            self.mend(&generation);
            return Ok(generation);
        }
        let registry = self.registry.clone();
        let loading = tokio::task::spawn_blocking(move || registry.generation());
        let loaded = loading.await.map_err(ToolError::internal)?;
        let generation = loaded.map_err(ToolError::internal)?;
        self.mend(&generation);
        Ok(generation)
    }

    /// Schedules a new survey of servers with damaged snapshots, in a process that serves: once for
    /// each damage, so that a disk that keeps failing does not start servers without end.
    fn mend(&self, generation: &Arc<Generation>) {
        let mut damaged = self.due.damaged.lock();
        let is_looked_at = std::ptr::eq(damaged.looked_at.as_ptr(), Arc::as_ptr(generation));
        if !damaged.is_mended || is_looked_at {
            return;
        }
        damaged.looked_at = Arc::downgrade(generation);
        let servers = generation.servers().iter();
        for server in servers.filter(|it| it.damaged.is_some()) {
            // A survey that succeeded has another time, and so has a new damage.
            let damage = (server.name.clone(), server.surveyed_at);
            if damaged.known.insert(damage) {
                damaged.due.push(self.surveys.begin(&server.name, false));
                self.due.added.notify_one();
            }
        }
    }

    /// The tool with exactly this name; its server is loaded off the event loop.
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

    /// The reason why a server failed last time, if it did.
    pub fn failure(&self, server: &ServerName) -> Option<String> {
        let mut failures = self.servers.failures().into_iter();
        match failures.find(|(name, _)| name == server) {
            Some((_, why)) => Some(why.to_string()),
            None => self.read_record(server, |it| it.stale.as_ref().map(ToString::to_string))?,
        }
    }

    /// Reads a fact from the record of a server, if there is one.
    pub(crate) fn read_record<T>(
        &self,
        server: &ServerName,
        read: impl FnOnce(&CatalogServer) -> T,
    ) -> Option<T> {
        let catalog = self.registry.catalog();
        catalog
            .servers
            .iter()
            .find(|it| it.name == *server)
            .map(read)
    }

    /// The state of a server, if calls fail in it or its tools may have changed. `is_stale`: the server
    /// could not be asked for its tools last time.
    pub(crate) fn find_trouble(&self, server: &ServerName, is_stale: bool) -> Option<Availability> {
        Availability::find_trouble(self.read_facts(server, is_stale), || {
            let states = self.servers.quick_states().into_iter();
            let own = states.filter(|it| it.name == *server);
            own.map(|it| it.state).max().unwrap_or_default()
        })
    }

    /// Returns the facts that decide the state of a server. Those of ours are always enabled.
    pub fn read_facts(&self, server: &ServerName, is_stale: bool) -> ServerFacts {
        let settings = self.settings();
        let is_surveyed = self.read_record(server, |it| it.surveyed_at.is_some());
        ServerFacts {
            is_enabled: settings.server(server).is_none_or(|it| it.enabled),
            needs_login: self.needs_login(server, is_stale),
            is_down: self.servers.is_down(server),
            is_stale,
            is_surveyed: is_surveyed.unwrap_or(false),
        }
    }

    /// Returns true if a call of this server's tools would only fail because nobody is logged in, as
    /// far as that is known without asking. `is_stale`: the server could not be asked for its tools
    /// last time.
    pub fn needs_login(&self, server: &ServerName, is_stale: bool) -> bool {
        if self.servers.needs_login(server) {
            return true;
        }
        let settings = self.settings();
        let server = settings.server(server);
        let record = server.and_then(|it| record_of(it, &settings.private_files()));
        record.is_some_and(|record| match &record.grant {
            Some(grant) => grant.ended.is_some(),
            None => is_stale && record.was_challenged(),
        })
    }

    /// Servers other than `failed` that have tools and did not fail last time.
    pub(crate) fn list_others_available(
        &self,
        failed: &ServerName,
        policy: &ClientPolicy,
    ) -> Vec<ServerName> {
        let catalog = self.registry.catalog();
        let servers = catalog.servers.iter().filter(|it| it.name != *failed);
        let servers = servers.filter(|server| policy.sees(&server.name, &server.category));
        let is_fine = |it: &&CatalogServer| match self.find_trouble(&it.name, it.stale.is_some()) {
            None | Some(Availability::Stale) => it.tools > 0,
            Some(_) => false,
        };
        let up = servers.filter(is_fine);
        up.map(|server| server.name.clone()).collect()
    }

    /// Servers that are down.
    pub(crate) fn down(&self, view: Option<&View>) -> Vec<String> {
        let catalog = self.registry.catalog();
        let servers = catalog.servers.iter().filter(|server| sees(view, server));
        let down = servers.filter(|it| {
            self.find_trouble(&it.name, it.stale.is_some()) == Some(Availability::Down)
        });
        down.map(|server| server.name.to_string()).collect()
    }

    /// The earlier calls that a search may use: those of this client in this project, or for a
    /// search from the shell those of all clients here.
    pub(crate) fn learned(&self, searches: Option<&RecentSearches>) -> Option<Learned> {
        self.settings().search.learns.then(|| Learned {
            feedback: self.feedback.clone(),
            whose: searches.map_or(self.project.clone(), |it| it.owner(&self.project)),
        })
    }

    /// Learns from a call, if it followed from a search.
    pub(crate) fn learn(
        &self,
        searches: Option<&RecentSearches>,
        entry: &Entry,
        ok: impl FnOnce() -> bool,
    ) {
        if let Some(searches) = searches.filter(|_| self.settings().search.learns)
            && let Some((lesson, ok)) = searches.take_lesson(&entry.at, ok)
        {
            let whose = searches.owner(&self.project);
            self.feedback.learn(&whose, &lesson, entry, ok, now_s());
        }
    }

    /// Counts a call whose arguments were wrong, by these arguments.
    pub(crate) fn note_mistake(&self, entry: &Entry, error: &ToolError) {
        if let ToolError::InvalidInput { violations, .. } = error
            && !built_in::is_own(entry)
            && self.settings().keeps_stats
        {
            let schema = entry.input_schema();
            let wrong = tool::wrong_arguments(&schema, violations);
            self.usage.record_wrong(&entry.at, wrong);
        }
    }

    /// Writes counts and lessons to the disk, and waits at most `wait` for the lock of another
    /// process. Blocks; a failure is logged, and the counts are kept for the next time.
    pub fn flush(&self, wait: Duration) {
        if let Err(error) = self.usage.flush(wait) {
            warn!(%error, "usage was not written");
        }
        if let Err(error) = self.feedback.flush(wait) {
            warn!(%error, "search feedback was not written");
        }
    }
}

/// The tools of the servers, without our own.
pub fn list_offered(generation: &Generation) -> impl Iterator<Item = &registry::Entry> {
    generation
        .entries()
        .filter(|entry| !built_in::is_own(entry))
}

pub(crate) fn open_registry(settings: &Settings) -> anyhow::Result<(Registry, SavedScripts)> {
    let options = registry::Options {
        built_in: built_in::tools(),
        embeds: settings.search.embeds,
        has_requests: true,
    };
    let saved = SavedScripts::read(settings.scripts.as_deref());
    log_mistakes(&saved);
    let rules = rules(settings, &saved);
    let registry = Registry::open_with(&settings.state_dir, rules, options)?;
    Ok((registry, saved))
}

/// The rules for all servers; the saved scripts are a server if their folder exists.
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

/// Returns true if the view admits this server; no view admits every server.
pub(crate) fn sees(view: Option<&View>, server: &CatalogServer) -> bool {
    view.is_none_or(|view| view.admits(&server.name, &server.category))
}

fn log_mistakes(saved: &SavedScripts) {
    for mistake in &saved.mistakes {
        warn!(
            file = mistake.file,
            why = mistake.why,
            "a saved script is not a tool"
        );
    }
}

/// Has servers surveyed that lacked a value until now. A call that arrives before the survey begins
/// waits for it too.
fn note_completed(catalog: &Catalog, completed: &[ServerName]) {
    if !completed.is_empty() {
        let noted = completed.iter();
        let noted = noted.map(|server| begin_survey(catalog, server));
        catalog.due.completed.lock().extend(noted);
        catalog.due.added.notify_one();
    }
}

/// Begins the note of a survey. A server with known tools is not waited for.
pub(crate) fn begin_survey(catalog: &Catalog, server: &ServerName) -> SurveyNote {
    let is_known = catalog.read_record(server, |it| it.surveyed_at.is_some());
    catalog.surveys.begin(server, is_known == Some(true))
}
