//! The configuration: the file, variables and flags, read into the settings of every crate.
//!
//! Only this crate knows the file. It fills the settings that the other crates declare, and starts
//! nothing.
//!
//! [`load`] returns a validated [`Config`], or every mistake at once. A later layer overrides an earlier
//! one: defaults, the file, `PROXY_*` variables, flags.
#![warn(missing_docs)]

use std::path::PathBuf;

mod check;
mod config;
mod docs;
pub mod edit;
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
mod overrides;
mod paths;
mod program;
mod raw;
mod rules;
mod template;
mod traces;
mod variables;

#[cfg(test)]
mod tests;

use file::ConfigFile;

pub use config::Config;
pub use docs::docs;
pub use environment::Environment;
pub use mistake::{ConfigError, Mistake, MistakePlace};
pub use overrides::Overrides;
pub use paths::default_path;
pub use variables::is_of_another_program;

/// Reads the configuration. The only thing touched is the file; no folder is made.
pub fn load(overrides: &Overrides, env: &Environment) -> Result<Config, ConfigError> {
    let file = file::find(overrides, env)?;
    let read = file
        .read()
        .and_then(|text| read_layers(&file, &text, overrides, env));
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

fn read_layers(
    file: &ConfigFile,
    text: &str,
    overrides: &Overrides,
    env: &Environment,
) -> Result<Config, Vec<Mistake>> {
    let checked = check::check(text);
    let variables = variables::read(env, &checked);
    let flags = layers::read_flags(overrides, env);
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
    meant::read_config(file, raw, &checked.servers, env)
}
