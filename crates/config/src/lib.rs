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
pub use docs::docs;
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
    let read = file
        .read()
        .and_then(|text| read_layers(&file, &text, overrides, env));
    let read = read.map(|config| Config {
        read_at,
        shared_revision: match &config.cluster {
            Some(_) => cluster::shared_revision(&config.gateway.state_dir),
            None => 0,
        },
        ..config
    });
    read.map_err(|mistakes| ConfigError {
        file: file.shown.clone(),
        mistakes,
    })
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
    read.map_err(|mistakes| ConfigError {
        file: file.shown.clone(),
        mistakes,
    })
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

/// Returns every value in effect, in the order of the keys, with its origin. Fails for mistakes in single
/// values only: settings that contradict each other are listed too.
pub fn list_values(
    overrides: &Overrides,
    env: &Environment,
) -> Result<Vec<EffectiveValue>, ConfigError> {
    let file = file::find(overrides, env)?;
    let read = file
        .read()
        .and_then(|text| check_layers(&file, &text, overrides, env));
    read.map(|(layers, servers)| effective::list(&layers::merge(&servers, &file.shown, layers)))
        .map_err(|mistakes| ConfigError {
            file: file.shown.clone(),
            mistakes,
        })
}

fn read_layers(
    file: &ConfigFile,
    text: &str,
    overrides: &Overrides,
    env: &Environment,
) -> Result<Config, Vec<Mistake>> {
    let (layers, servers) = check_layers(file, text, overrides, env)?;
    let raw = layers::read(&servers, &file.shown, layers)?;
    meant::read_config(file, raw, &servers, env)
}

/// Returns the state folder before the layers are merged.
fn find_state_dir(
    file: &ConfigFile,
    checked: &check::Checked,
    overrides: &Overrides,
    env: &Environment,
) -> Option<PathBuf> {
    if let Some(named) = named_state_dir(overrides, env) {
        return Some(named);
    }
    let written = checked.values.get("state_dir").and_then(|it| it.as_str());
    let parent = file.absolute.parent().unwrap_or(&file.absolute);
    match written {
        Some(written) => Some(parent.join(paths::from_home(written.as_ref(), env).ok()?)),
        None => paths::default_state_dir(env, &file.absolute),
    }
}

/// Returns the layers, and the names of the servers in the order of the file.
fn check_layers(
    file: &ConfigFile,
    text: &str,
    overrides: &Overrides,
    env: &Environment,
) -> Result<([Layer; 3], Vec<String>), Vec<Mistake>> {
    let mut checked = check::check(text);
    if checked.values.contains_key("cluster")
        && let Some(state_dir) = find_state_dir(file, &checked, overrides, env)
    {
        cluster::add_shared(&mut checked, &state_dir);
    }
    let variables = variables::read(env, &checked);
    let flags = layers::read_flags(overrides, env);
    let filed = Layer {
        values: checked.values,
        places: checked.places,
        mistakes: checked.mistakes,
    };
    let layers = [filed, variables, flags];
    let mistakes: Vec<Mistake> = layers.iter().flat_map(|it| it.mistakes.clone()).collect();
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    Ok((layers, checked.servers))
}
