//! The configuration: as written in a file, variables and flags, then as meant.
//!
//! [`load`] either gives a [`Config`] that nobody has to check again, or every mistake at once.
//! Layers, later wins: defaults, the file, `PROXY_*` variables, flags.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use tool::{ServerName, ToolRef};

mod check;
mod clients;
mod docs;
mod environment;
mod file;
mod keys;
mod layers;
mod lines;
mod listen;
mod meant;
mod mistake;
mod paths;
mod program;
mod rules;
mod variables;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may")]
mod tests;

pub use clients::{Client, Clients};
pub use docs::docs;
pub use environment::Environment;
pub use listen::{Http, HttpLimits, Listen, TOKEN_HINT, Tls};
pub use mistake::{ConfigError, Mistake, Place};
pub use paths::default_path;

/// What the person meant. Paths are absolute; servers stand in the order of the file.
#[derive(Debug, Clone)]
pub struct Config {
    pub file: PathBuf,
    pub state_dir: PathBuf,
    /// Directives of a tracing filter.
    pub log: String,
    pub results: Results,
    pub search: Search,
    pub reindex: Reindex,
    pub http: Http,
    /// What holds for a client by the name it announces.
    pub clients: Clients,
    pub daemon: Daemon,
    /// All of them, the ones that are switched off included.
    pub servers: Vec<Server>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub max_tokens: u64,
    pub keep_hours: u64,
    pub keep_mib: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Whether calls teach later searches.
    pub learn: bool,
    pub semantic: Semantic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reindex {
    /// How many servers are asked at one time.
    pub parallel: usize,
}

/// What understands requests beside their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Semantic {
    Encoder,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Daemon {
    linger_s: u64,
}

impl Daemon {
    /// How long it stays without a client; none: for ever.
    pub fn linger(&self) -> Option<Duration> {
        (self.linger_s > 0).then(|| Duration::from_secs(self.linger_s))
    }
}

#[derive(Debug, Clone)]
pub struct Server {
    pub spec: fleet::ServerSpec,
    pub enabled: bool,
    pub category: Option<String>,
    pub tags: Vec<String>,
    /// For one result; none leaves it to [`Results`].
    pub max_tokens: Option<u64>,
    /// Globs over the server's own tool names; empty lets every tool in.
    pub allow: Vec<String>,
    /// Globs over the server's own tool names; a denied tool stays out though it is allowed.
    pub deny: Vec<String>,
    /// By the tool's own name.
    pub overlays: BTreeMap<String, registry::Overlay>,
    /// By the tool's own name; only tools for which there is something else to say than for
    /// their server.
    pub tools: BTreeMap<String, ToolLimits>,
}

/// What holds for one tool in place of its server's limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolLimits {
    pub timeout: Option<Duration>,
    pub max_tokens: Option<u64>,
}

/// The flags that go before everything else. Relative paths start at the current folder.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub config: Option<PathBuf>,
    pub state_dir: Option<PathBuf>,
    pub log: Option<String>,
}

/// Reads the configuration. The only thing touched is the file; no folder is made.
pub fn load(overrides: &Overrides, env: &Environment) -> Result<Config, ConfigError> {
    let file = file::find(overrides, env)?;
    let read = file.read().and_then(|text| {
        let from = Sources {
            text: &text,
            overrides,
            env,
        };
        understand(&file, &from)
    });
    read.map_err(|mistakes| ConfigError {
        file: file.shown.clone(),
        mistakes,
    })
}

/// Everything a configuration is made of besides defaults.
#[derive(Debug, Clone, Copy)]
struct Sources<'a> {
    text: &'a str,
    overrides: &'a Overrides,
    env: &'a Environment,
}

/// The file that would be read, as an absolute path; it may not be there.
pub(crate) fn file_path(overrides: &Overrides, env: &Environment) -> Result<PathBuf, ConfigError> {
    file::find(overrides, env).map(|file| file.absolute)
}

/// The state folder as far as a flag or a variable names it, as an absolute path.
pub(crate) fn named_state_dir(overrides: &Overrides, env: &Environment) -> Option<PathBuf> {
    let named = overrides.state_dir.clone();
    let named = named.or_else(|| env.path("PROXY_STATE_DIR"))?;
    paths::here(&named, env).ok().map(PathBuf::from)
}

fn understand(file: &file::File, from: &Sources<'_>) -> Result<Config, Vec<Mistake>> {
    let checked = check::check(from.text);
    let variables = variables::read(from.env, &checked);
    let flags = layers::flags(from.overrides, from.env);
    let mut mistakes = checked.mistakes;
    mistakes.extend(variables.mistakes);
    mistakes.extend(flags.mistakes);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let raw = layers::merge(
        &checked.servers,
        [checked.values, variables.values, flags.values],
    )?;
    meant::config(file, raw, &checked.servers, from.env)
}

impl Config {
    pub fn enabled(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.enabled)
    }

    /// Any of them, one that is switched off included.
    pub fn server(&self, name: &ServerName) -> Option<&Server> {
        self.servers.iter().find(|it| it.spec.name == *name)
    }

    /// None where the limits of its server hold.
    pub fn tool_limits(&self, tool: &ToolRef) -> Option<&ToolLimits> {
        self.server(&tool.server)?.tools.get(&tool.tool)
    }

    /// What the fleet needs to know of the enabled servers.
    pub fn specs(&self) -> Vec<fleet::ServerSpec> {
        self.enabled().map(|server| server.spec.clone()).collect()
    }

    /// What the registry needs to know of the enabled servers.
    pub fn shelf(&self) -> registry::Shelf {
        let servers = self.enabled().map(Server::shelved).collect();
        registry::Shelf { servers }
    }

    /// What is no mistake, but may not be what the person wanted.
    pub fn notes(&self) -> Vec<String> {
        if self.servers.is_empty() {
            return vec!["no servers: add a `[servers.NAME]` table".to_owned()];
        }
        if self.enabled().next().is_none() {
            return vec!["every server has `enabled = false`".to_owned()];
        }
        Vec::new()
    }
}

impl Server {
    fn shelved(&self) -> registry::Shelved {
        registry::Shelved {
            name: self.spec.name.clone(),
            program: program::program(&self.spec.launch),
            category: self.category.clone(),
            tags: self.tags.clone(),
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            overlays: self.overlays.clone(),
        }
    }
}
