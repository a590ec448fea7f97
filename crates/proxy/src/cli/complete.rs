//! Shell completion of the names of servers and tools, from the configuration and the last snapshots.
//! No server is started.

use std::{ffi::OsStr, io, path::Path, sync::Arc};

use clap_complete::{CompletionCandidate, Shell, env::Shells};
use config::{Environment, Overrides, edit::Document};
use registry::{Generation, Registry};

use super::global::Global;

/// The variable with which a shell requests completions.
pub(crate) const VARIABLE: &str = "_PROXY_COMPLETE";

/// Returns the name by which this program was started: `tool-proxy` is its name in packages.
pub(crate) fn program_name() -> &'static str {
    let called = std::env::args_os().next().unwrap_or_default();
    let is_long = Path::new(&called).file_name() == Some("tool-proxy".as_ref());
    if is_long { "tool-proxy" } else { "proxy" }
}

/// Writes the script that the shell loads at its start.
pub(crate) fn write_registration(shell: Shell, out: &mut dyn io::Write) -> io::Result<()> {
    let shells = Shells::builtins();
    let completer = shells
        .completer(&shell.to_string())
        .expect("both lists of shells are clap's");
    let name = program_name();
    completer.write_registration(VARIABLE, name, name, name, out)
}

pub(crate) fn complete_servers(current: &OsStr) -> Vec<CompletionCandidate> {
    let file = config::file_path(&Overrides::default(), &Environment::of_process());
    let document = file.ok().and_then(|file| Document::read(&file).ok());
    let servers = document.map(|it| it.servers()).unwrap_or_default();
    let servers = servers.into_iter();
    let fitting = servers.filter(|name| starts_with(name, current));
    fitting.map(CompletionCandidate::new).collect()
}

pub(crate) fn complete_recipes(current: &OsStr) -> Vec<CompletionCandidate> {
    let known = recipes::all().iter();
    let known = known.filter(|recipe| starts_with(recipe.name(), current));
    let candidate = |recipe: &recipes::Recipe| {
        CompletionCandidate::new(recipe.name()).help(Some(recipe.what.clone().into()))
    };
    known.map(candidate).collect()
}

/// `server/tool`; servers first, as long as there is no `/`.
pub(crate) fn complete_tools(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(generation) = open() else {
        return Vec::new();
    };
    let tools = generation.entries().filter_map(|entry| {
        let name = entry.at.to_string();
        let help = entry.purpose().to_owned().into();
        starts_with(&name, current).then(|| CompletionCandidate::new(name).help(Some(help)))
    });
    tools.collect()
}

fn open() -> Option<Arc<Generation>> {
    let settings = Global::default().load().ok()?.gateway;
    let registry = Registry::open(&settings.state_dir, settings.rules()).ok()?;
    registry.generation().ok()
}

fn starts_with(name: &str, current: &OsStr) -> bool {
    current
        .to_str()
        .is_some_and(|typed| name.starts_with(typed))
}
