//! Our own MCP face: the three tools, for any number of clients.
//!
//! The command line asks the same [`Front`] as a client does, so both say the same.

mod budget;
pub(crate) mod clients;
mod definitions;
mod describe_tool;
mod envelope;
mod error;
mod execute_dynamic_tool;
mod fields;
mod log_level;
mod loose;
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
use fleet::{Applied, Caller, Fleet, Guard, Json, LogSink, ProgressSink, Surroundings};
use registry::{Generation, Registry, Usage};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tool::{Digest, ServerName};
use tracing::warn;

use crate::{config::Config, results::ResultStore};

use self::clients::Clients;
pub(crate) use budget::grouped;
pub use definitions::{TOOLS, instructions};
pub use error::ToolError;
pub(crate) use fields::Fields;
pub use reply::Reply;
pub use session::{Seat, serve};

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
    /// Servers that are being asked for their tools right now.
    surveying: Mutex<BTreeSet<ServerName>>,
    pub(crate) clients: Clients,
}

/// What a call brings along from its client.
#[derive(Default)]
pub struct CallContext {
    /// Members of the request's `_meta` that travel on to the server.
    pub meta: Vec<(String, Json)>,
    pub progress: Option<ProgressSink>,
    pub log: Option<LogSink>,
    pub cancel: CancellationToken,
    /// Who calls; none on the command line.
    pub caller: Option<Caller>,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext").finish_non_exhaustive()
    }
}

impl Front {
    /// Opens the state folder and gets the fleet ready; starts no server. Needs a runtime.
    pub fn new(config: Config) -> anyhow::Result<Arc<Self>> {
        let registry = Registry::open(&config.state_dir, config.shelf())?;
        let usage = Usage::open(&config.state_dir);
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
            surveying,
            clients: Clients::default(),
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
            SEARCH => self.search_tools(arguments).await,
            DESCRIBE => self.describe_tool(arguments).await,
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
        execute_dynamic_tool::find(generation, asked)
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
        self.fleet.stop().await;
    }

    pub fn flush(&self) {
        if let Err(error) = self.usage.flush() {
            warn!(%error, "usage was not written");
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
fn own_program() -> Option<PathBuf> {
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
