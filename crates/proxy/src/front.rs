//! Our own MCP face: the three tools, for any number of clients.
//!
//! The command line asks the same [`Front`] as a client does, so both say the same.

mod budget;
mod built_in;
mod call_many;
pub(crate) mod clients;
mod definitions;
mod describe_tool;
mod envelope;
mod error;
mod execute_dynamic_tool;
mod fields;
mod habits;
mod log_level;
mod loose;
mod out;
mod read_result;
mod reply;
mod search_tools;
mod session;
pub mod stdio;
mod wire;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use arc_swap::ArcSwap;
use fleet::{Applied, Fleet, Guard, Json, LogSink, ProgressSink, Surroundings};
use registry::{Generation, Lessons, Registry, Usage};
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tool::{Digest, ServerName};
use tracing::warn;

use crate::{
    config::{Client, Config, Semantic},
    results::{Caller, ResultStore},
};

use self::clients::Clients;
pub(crate) use budget::{Budget, Origin, grouped, text_block};
pub use definitions::{TOOLS, instructions};
pub use error::ToolError;
pub(crate) use fields::{Fields, text_of};
pub use habits::Habits;
pub(crate) use out::{Letter, Letters, Out, Switchboard, mailbox};
pub(crate) use read_result::{Output, Unit, Wanted, read_kept, read_value, select_work, told};
pub use reply::Reply;
#[cfg(test)]
pub(crate) use session::refuse;
pub(crate) use session::{Opening, Session};
pub use session::{Seat, serve};
pub(crate) use wire::{is_known, is_modern};

/// The names of the three tools.
pub const SEARCH: &str = "search_tools";
pub const DESCRIBE: &str = "describe_tool";
pub const EXECUTE: &str = "execute_dynamic_tool";

/// What stands behind the three tools. One serves every session.
#[derive(Debug)]
pub struct Front {
    config: ArcSwap<Config>,
    /// Why the file as it is now was not taken in.
    config_mistakes: Mutex<Option<String>>,
    pub registry: Registry,
    pub fleet: Fleet,
    pub results: ResultStore,
    pub usage: Usage,
    pub lessons: Arc<Lessons>,
    /// Whose lessons count, beside the client.
    project: String,
    /// Servers that are being asked for their tools right now.
    surveying: Mutex<BTreeSet<ServerName>>,
    pub(crate) clients: Clients,
    /// Told when there may be tools without a meaning.
    pub(crate) to_understand: Notify,
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

impl Front {
    /// Opens the state folder and gets the fleet ready; starts no server. Needs a runtime.
    pub fn new(config: Config) -> anyhow::Result<Arc<Self>> {
        let options = registry::Options {
            built_in: built_in::tools(),
            meaning: config.search.semantic == Semantic::Encoder,
        };
        let registry = Registry::open_with(&config.state_dir, config.shelf(), options)?;
        let usage = Usage::open(&config.state_dir);
        let lessons = Arc::new(Lessons::open(&config.state_dir));
        let results = ResultStore::new(&config.state_dir, &config.results);
        let specs = crate::survey::with_known_eras(config.specs(), &registry.catalog());
        let fleet = Fleet::new(specs, surroundings(&config));
        let surveying = Mutex::default();
        Ok(Arc::new(Self {
            config: ArcSwap::from_pointee(config),
            config_mistakes: Mutex::default(),
            registry,
            fleet,
            results,
            usage,
            lessons,
            project: habits::project(),
            surveying,
            clients: Clients::default(),
            to_understand: Notify::new(),
        }))
    }

    /// The configuration as it is now: a daemon takes in what changes in the file.
    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// What is wrong with the file since it was last taken in.
    pub(crate) fn config_mistakes(&self) -> Option<String> {
        let mistakes = self.config_mistakes.lock();
        mistakes
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn note_config_mistakes(&self, mistakes: Option<String>) {
        let noted = self.config_mistakes.lock();
        *noted.unwrap_or_else(std::sync::PoisonError::into_inner) = mistakes;
    }

    /// Goes on with another configuration: its servers, and what it says of them and their tools.
    /// Calls under way are not disturbed. Where the state lies and what was opened with it stays.
    pub(crate) fn take_in(&self, config: Config) -> anyhow::Result<Applied> {
        self.registry.reshelve(config.shelf())?;
        let specs = crate::survey::with_known_eras(config.specs(), &self.registry.catalog());
        self.config.store(Arc::new(config));
        Ok(self.fleet.apply(specs))
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
                self.search_tools(arguments, context.habits.as_deref(), &context.client)
                    .await
            }
            DESCRIBE => self.describe_tool(arguments, &context.client).await,
            EXECUTE => self.execute_dynamic_tool(arguments, context).await,
            _ => return None,
        };
        Some(reply.unwrap_or_else(|error| Reply::error(&error)))
    }

    /// The tool that a name means, or the error that a client would get.
    pub fn find<'a>(
        &self,
        generation: &'a Generation,
        asked: &str,
    ) -> Result<&'a registry::Entry, ToolError> {
        execute_dynamic_tool::find(generation, asked, &Client::default())
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
        let failures = self.fleet.failures().into_iter();
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

    /// Notes that a server is being asked for its tools, until the guard is dropped.
    pub(crate) fn note_survey(self: &Arc<Self>, server: &ServerName) -> SurveyNote {
        self.surveys().insert(server.clone());
        SurveyNote {
            front: Arc::clone(self),
            server: server.clone(),
        }
    }

    fn surveying(&self) -> Vec<String> {
        self.surveys().iter().map(ToString::to_string).collect()
    }

    fn surveys(&self) -> std::sync::MutexGuard<'_, BTreeSet<ServerName>> {
        self.surveying
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes down what was counted, and ends every server.
    pub async fn stop(&self) {
        self.flush();
        tokio::join!(self.results.finish(), self.fleet.stop());
    }

    pub fn flush(&self) {
        if let Err(error) = self.usage.flush() {
            warn!(%error, "usage was not written");
        }
        if let Err(error) = self.lessons.flush() {
            warn!(%error, "what was learned was not written");
        }
    }
}

#[derive(Debug)]
pub(crate) struct SurveyNote {
    front: Arc<Front>,
    server: ServerName,
}

impl Drop for SurveyNote {
    fn drop(&mut self) {
        self.front.surveys().remove(&self.server);
    }
}

/// What every child of ours gets: a guard that outlives us, a log, and our mark.
fn surroundings(config: &Config) -> Surroundings {
    let guard = own_program().map(|program| Guard::new(program, vec!["guard".into()]));
    if guard.is_none() {
        warn!("no guard: were we killed, servers could stay");
    }
    Surroundings {
        guard,
        log_folder: Some(logs(config)),
        marker: Some(marker(config)),
    }
}

/// Our own program. On Linux the link still names it after an upgrade has replaced the file.
pub(crate) fn own_program() -> Option<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() {
        return Some(link);
    }
    std::env::current_exe().ok()
}

/// Where the servers' stderr is kept.
pub(crate) fn logs(config: &Config) -> PathBuf {
    config.state_dir.join("logs")
}

/// Tells the children of this configuration from those of others.
pub(crate) fn marker(config: &Config) -> String {
    Digest::of_bytes(config.state_dir.as_os_str().as_encoded_bytes()).short(16)
}

/// Seconds since 1970, for what is written to disk.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
