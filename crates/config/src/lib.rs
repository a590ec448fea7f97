//! The configuration: as written in a file, variables and flags, then as meant.
//!
//! This room alone knows the file. It fills the settings that each other room declares, and runs
//! nothing.
//!
//! [`load`] either gives a [`Config`] that nobody has to check again, or every mistake at once.
//! Layers, later wins: defaults, the file, `PROXY_*` variables, flags.

use std::path::PathBuf;

mod check;
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
mod tests;

pub use docs::docs;
pub use environment::Environment;
pub use mistake::{ConfigError, Mistake, Place};
pub use paths::default_path;

/// What the person meant: the settings of every room. Paths are absolute.
#[derive(Debug, Clone)]
pub struct Config {
    pub file: PathBuf,
    /// Directives of a tracing filter.
    pub log: String,
    pub gateway: gateway::Settings,
    pub http: http_server::Settings,
    pub daemon: daemon::Settings,
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
pub fn file_path(overrides: &Overrides, env: &Environment) -> Result<PathBuf, ConfigError> {
    file::find(overrides, env).map(|file| file.absolute)
}

/// The state folder as far as a flag or a variable names it, as an absolute path.
pub fn named_state_dir(overrides: &Overrides, env: &Environment) -> Option<PathBuf> {
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
    /// What is no mistake, but may not be what the person wanted.
    pub fn notes(&self) -> Vec<String> {
        if self.gateway.servers.is_empty() {
            return vec!["no servers: add a `[servers.NAME]` table".to_owned()];
        }
        if self.gateway.enabled().next().is_none() {
            return vec!["every server has `enabled = false`".to_owned()];
        }
        Vec::new()
    }
}
