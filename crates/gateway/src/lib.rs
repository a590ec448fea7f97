//! Our own MCP face: a session, the three tools and the built-in ones, for any number of clients.
//!
//! This room knows no socket, no configuration file and no terminal.
//!
//! The command line asks the same [`Gateway`] as a client does, so both say the same.

mod arguments;
mod built_in;
mod call_many;
pub mod clients;
mod cost;
mod definitions;
mod describe_tool;
mod envelope;
mod error;
mod execute_dynamic_tool;
mod find;
mod habits;
mod log_level;
mod loose;
mod out;
pub mod policy;
mod read_result;
mod reply;
mod search_tools;
mod servers;
mod session;
mod settings;
pub mod state_dir;
pub mod stdio;
pub mod survey;
mod surveys;
pub mod upkeep;
mod wire;

#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use arc_swap::ArcSwap;
use fleet::{Applied, Fleet, LogSink, ProgressSink, ServerSpec, Surroundings};
use jsonrpc::Json;
use parking_lot::Mutex;
use processes::{Reaper, Spawner, own_program};
use registry::{Generation, Registry, RelevanceFeedback, Usage};
use results::{Caller, ResultStore};
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tool::{Digest, ServerName};
use tracing::warn;

use self::clients::Clients;
use crate::{policy::Client, surveys::Surveys};
pub use cost::{estimate_of_definition, of_definition, of_ours};
pub use definitions::{TOOLS, instructions};
pub use error::ToolError;

pub use habits::Habits;
pub use out::{Letter, Letters, Mailbox, Out, Switchboard, mailbox};
pub use reply::Reply;
pub use search_tools::SearchAnswer;
pub use servers::Servers;
pub use session::{Ended, Opening, Seat, Session, refuse, serve};
pub use settings::{SearchSettings, ServerSettings, Settings, ToolLimits};
pub use wire::{is_known, is_modern};

/// The names of the three tools.
pub const SEARCH: &str = "search_tools";
pub const DESCRIBE: &str = "describe_tool";
pub const EXECUTE: &str = "execute_dynamic_tool";

/// What stands behind the three tools. One serves every session.
#[derive(Debug)]
pub struct Gateway {
    settings: ArcSwap<Settings>,
    /// Why the file as it is now was not taken in.
    config_mistakes: Mutex<Option<String>>,
    pub registry: Registry,
    pub servers: Arc<dyn Servers>,
    pub results: ResultStore,
    pub usage: Usage,
    pub feedback: Arc<RelevanceFeedback>,
    /// Whose lessons count, beside the client.
    project: String,
    pub(crate) surveys: Surveys,
    pub clients: Clients,
    /// Told when there may be tools without a meaning.
    pub(crate) to_embed: Notify,
}

/// What a call brings along from its client.
#[derive(Clone, Default)]
pub struct CallContext {
    /// What holds for the client that calls.
    pub client: Arc<Client>,
    pub caller: Caller,
    /// Members of the request's `_meta` that travel on to the server.
    pub meta: Vec<(String, Json)>,
    pub progress: Option<ProgressSink>,
    pub log: Option<LogSink>,
    pub cancel: CancellationToken,
    /// What this session searched for; none: nothing is learned from the call.
    pub habits: Option<Arc<Habits>>,
    /// Whose own servers are meant, where a server's scope is the client.
    pub seat: Option<fleet::Caller>,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext").finish_non_exhaustive()
    }
}

impl Gateway {
    /// Opens the state folder and gets the servers ready; starts none. Needs a runtime.
    pub fn new(settings: Settings) -> anyhow::Result<Arc<Self>> {
        let surroundings = surroundings(&settings.state_dir);
        Self::with_servers(settings, |specs| Arc::new(Fleet::new(specs, surroundings)))
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
        let registry = Registry::open_with(&settings.state_dir, settings.rules(), options)?;
        let usage = Usage::open(&settings.state_dir);
        let feedback = Arc::new(RelevanceFeedback::open(&settings.state_dir));
        let results = ResultStore::new(&settings.state_dir, &settings.results);
        let specs = survey::with_known_eras(settings.specs(), &registry.catalog());
        let servers = servers(specs);
        Ok(Arc::new(Self {
            settings: ArcSwap::from_pointee(settings),
            config_mistakes: Mutex::default(),
            registry,
            servers,
            results,
            usage,
            feedback,
            project: habits::project(),
            surveys: Surveys::default(),
            clients: Clients::default(),
            to_embed: Notify::new(),
        }))
    }

    /// The settings as they are now: a daemon takes in what changes in the file.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// What is wrong with the file since it was last taken in.
    pub fn config_mistakes(&self) -> Option<String> {
        self.config_mistakes.lock().clone()
    }

    pub fn note_config_mistakes(&self, mistakes: Option<String>) {
        *self.config_mistakes.lock() = mistakes;
    }

    /// Goes on with other settings: the servers, and what is said of them and their tools. Calls
    /// under way are not disturbed. Where the state lies and what was opened with it stays.
    pub fn apply(&self, settings: Settings) -> anyhow::Result<Applied> {
        self.registry.apply_rules(settings.rules())?;
        let specs = survey::with_known_eras(settings.specs(), &self.registry.catalog());
        self.settings.store(Arc::new(settings));
        Ok(self.servers.apply(specs))
    }

    /// Answers a call of one of the three tools; `None` for any other name.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<&RawValue>,
        context: CallContext,
    ) -> Option<Reply> {
        let reply = match name {
            SEARCH => {
                let habits = context.habits.as_deref();
                self.search_tools(arguments, habits, &context.client).await
            }
            DESCRIBE => self.describe_tool(arguments, &context.client).await,
            EXECUTE => self.execute_dynamic_tool(arguments, context).await,
            _ => return None,
        };
        Some(reply.unwrap_or_else(|error| Reply::error(&error)))
    }

    /// The tool that a name means, or the error that a client would get.
    pub async fn find(
        &self,
        generation: &Arc<Generation>,
        asked: &str,
    ) -> Result<Arc<registry::Entry>, ToolError> {
        find::find(generation, asked, &Client::default()).await
    }

    /// The tool that a name means to a client, and the registry that it is in. A name that is not
    /// known waits for servers that are being asked for their tools.
    pub(crate) async fn resolve(
        &self,
        asked: &str,
        client: &Client,
    ) -> Result<(Arc<Generation>, Arc<registry::Entry>), ToolError> {
        let generation = self.generation().await?;
        let sees = |server: &ServerName| self.shows(client, server);
        let error = match find::find(&generation, asked, client).await {
            Ok(entry) => return Ok((generation, entry)),
            Err(error) => error,
        };
        let is_unknown = matches!(error, ToolError::UnknownTool { .. });
        if !is_unknown || self.surveys.missing(sees).is_empty() {
            return Err(error);
        }
        let missing = self.surveys.settle(sees).await;
        let generation = self.generation().await?;
        match find::find(&generation, asked, client).await {
            Ok(entry) => Ok((generation, entry)),
            Err(ToolError::UnknownTool { asked, near, .. }) => Err(ToolError::UnknownTool {
                asked,
                near,
                missing,
            }),
            Err(error) => Err(error),
        }
    }

    /// Whether a client may know of a server.
    pub(crate) fn shows(&self, client: &Client, server: &ServerName) -> bool {
        let catalog = self.registry.catalog();
        let known = catalog.servers.iter().find(|it| it.name == *server);
        known.is_none_or(|it| client.sees(&it.name, &it.category))
    }

    /// The registry as it is now. Loading it, at the first question and after each commit, is
    /// done off the event loop.
    pub async fn generation(&self) -> Result<Arc<Generation>, ToolError> {
        if let Some(generation) = self.registry.loaded() {
            return Ok(generation);
        }
        let registry = self.registry.clone();
        let loading = tokio::task::spawn_blocking(move || registry.generation());
        match loading.await {
            Ok(Ok(generation)) => Ok(generation),
            Ok(Err(error)) => Err(ToolError::Internal(error.to_string())),
            Err(error) => Err(ToolError::Internal(error.to_string())),
        }
    }

    /// The tools of the servers, and not our own.
    pub fn offered(generation: &Generation) -> impl Iterator<Item = &registry::Entry> {
        generation
            .entries()
            .filter(|entry| !built_in::is_own(entry))
    }

    /// Why a server that failed last time did so.
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
                .clone()
        })
    }

    /// Writes down what was counted, and ends every server.
    pub async fn stop(&self) {
        self.flush();
        tokio::join!(self.results.finish(), self.servers.stop());
    }

    pub fn flush(&self) {
        if let Err(error) = self.usage.flush() {
            warn!(%error, "usage was not written");
        }
        if let Err(error) = self.feedback.flush() {
            warn!(%error, "what was learned was not written");
        }
    }
}

/// What every child of ours gets: a reaper that outlives us, a log, and our mark.
fn surroundings(state_dir: &Path) -> Surroundings {
    let reaper = own_program().map(|program| Reaper::new(program, vec!["reaper".into()]));
    if reaper.is_none() {
        warn!("no reaper: were we killed, servers could stay");
    }
    Surroundings {
        spawner: Arc::new(Spawner::new(reaper, marker(state_dir))),
        log_folder: Some(logs(state_dir)),
    }
}

/// Where the servers' stderr is kept.
pub fn logs(state_dir: &Path) -> PathBuf {
    state_dir.join("logs")
}

/// Tells the children of this configuration from those of others.
pub fn marker(state_dir: &Path) -> String {
    Digest::of_bytes(state_dir.as_os_str().as_encoded_bytes()).short(16)
}

/// Seconds since 1970, for what is written to disk.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
