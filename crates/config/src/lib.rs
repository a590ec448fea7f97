//! The configuration: the file, variables and flags, read into the settings of every crate.
//!
//! Only this crate knows the file. It fills the settings that the other crates declare, and starts
//! nothing.
//!
//! [`load`] returns a validated [`Config`], or every mistake at once. A later layer overrides an earlier
//! one: defaults, the file, `PROXY_*` variables, flags.
#![warn(missing_docs)]

use std::{path::PathBuf, time::SystemTime};

mod check;
mod cluster;
mod config;
mod docs;
pub mod edit;
mod effective;
mod environment;
mod file;
mod keys;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod layers;
mod lines;
mod listen;
mod login;
mod meant;
mod mistake;
mod node_name;
mod overrides;
mod paths;
mod program;
mod project;
mod raw;
mod rules;
mod template;
mod traces;
mod variables;

#[cfg(test)]
mod tests;

use file::ConfigFile;
use layers::Layer;

pub use cluster::{SHARED_KEYS, shared_path, shared_text};
pub use config::Config;
pub use docs::{SCHEMA, SCHEMA_FILE, docs};
pub use effective::EffectiveValue;
pub use environment::Environment;
pub use mistake::{ConfigError, Mistake, MistakePlace};
pub use overrides::Overrides;
pub use paths::default_path;
pub use project::read_project;
pub use variables::is_of_another_program;

/// Reads the configuration. The only thing touched is the file; no folder is made.
pub fn load(overrides: &Overrides, env: &Environment) -> Result<Config, ConfigError> {
    let file = file::find(overrides, env)?;
    let read_at = SystemTime::now();
    let text = file.read().map_err(|mistakes| file.error(mistakes))?;
    let read = read_layers(&file, &text, overrides, env);
    let mut config = read.map_err(|mistakes| file.error(mistakes))?;
    config.read_at = read_at;
    if config.cluster.is_some() {
        config.shared_revision = cluster::shared_revision(&config.gateway.state_dir);
    }
    Ok(config)
}

/// The configuration without its file: defaults, variables and flags, or defaults alone where
/// these are wrong too. For a client whose file cannot be used: it is served, and gets the reason.
/// Fails if there is no path for a file.
pub fn load_without_file(overrides: &Overrides, env: &Environment) -> Result<Config, ConfigError> {
    let file = file::find(overrides, env)?;
    let read = read_layers(&file, "", overrides, env).or_else(|_| {
        let overrides = Overrides::default();
        read_layers(&file, "", &overrides, &env.without_proxy_variables())
    });
    read.map_err(|mistakes| file.error(mistakes))
}

/// The file that would be read, as an absolute path; it may not be there.
pub fn file_path(overrides: &Overrides, env: &Environment) -> Result<PathBuf, ConfigError> {
    file::find(overrides, env).map(|file| file.absolute)
}

/// The state folder as far as a flag or a variable names it, as an absolute path.
pub fn named_state_dir(overrides: &Overrides, env: &Environment) -> Option<PathBuf> {
    let named = overrides.state_dir.clone();
    let named = named.or_else(|| env.path("PROXY_STATE_DIR"))?;
    paths::from_current_folder(&named, env)
        .ok()
        .map(PathBuf::from)
}

/// The state folder, as an absolute path, even if the file has mistakes. `None`: there is no place for one.
pub fn find_state_dir(overrides: &Overrides, env: &Environment) -> Option<PathBuf> {
    named_state_dir(overrides, env).or_else(|| {
        let file = file::find(overrides, env).ok()?;
        let text = file.read().unwrap_or_default();
        let (table, _) = toml::de::DeTable::parse_recoverable(&text);
        let written = table.get_ref().get("state_dir");
        let written = written.and_then(|value| value.get_ref().as_str());
        paths::find_state_dir(written, &file.absolute, env).ok()
    })
}

/// Returns every value in effect, in the order of the keys, with its origin. Fails for mistakes in single
/// values only: settings that contradict each other are listed too.
pub fn list_values(
    overrides: &Overrides,
    env: &Environment,
) -> Result<Vec<EffectiveValue>, ConfigError> {
    let file = file::find(overrides, env)?;
    let text = file.read().map_err(|mistakes| file.error(mistakes))?;
    let layers = check_layers(&file, &text, overrides, env);
    let layers = layers.map_err(|mistakes| file.error(mistakes))?;
    effective::list(&file.shown, &layers).map_err(|mistakes| file.error(mistakes))
}

fn read_layers(
    file: &ConfigFile,
    text: &str,
    overrides: &Overrides,
    env: &Environment,
) -> Result<Config, Vec<Mistake>> {
    let layers = check_layers(file, text, overrides, env)?;
    let removed = layers.iter().flat_map(|layer| layer.removed.clone());
    let removed = file.error(removed.collect()).to_string();
    let mut config = meant::read_config(file, layers::read(layers)?, env)?;
    config.removed_keys = removed.lines().map(str::to_owned).collect();
    Ok(config)
}

/// Returns the layers, or the mistakes of all of them.
fn check_layers(
    file: &ConfigFile,
    text: &str,
    overrides: &Overrides,
    env: &Environment,
) -> Result<[Layer; 3], Vec<Mistake>> {
    let mut filed = check::check(text);
    if filed.values.contains_key("cluster") {
        let written = filed.values.get("state_dir").and_then(|it| it.as_str());
        let state_dir = named_state_dir(overrides, env)
            .or_else(|| paths::find_state_dir(written, &file.absolute, env).ok());
        if let Some(state_dir) = state_dir {
            cluster::add_shared(&mut filed, &state_dir);
        }
    }
    let variables = variables::read(env, &filed);
    let layers = [filed, variables, layers::read_flags(overrides, env)];
    let mistakes: Vec<Mistake> = layers.iter().flat_map(|it| it.mistakes.clone()).collect();
    if mistakes.is_empty() {
        Ok(layers)
    } else {
        Err(mistakes)
    }
}
