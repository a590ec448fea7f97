//! Clients whose files belong to the running program: they are changed by a command of the client.

use std::path::PathBuf;

use crate::{
    change::{AddedEntry, RemovedEntry},
    find::ClientFile,
};

/// A command of a client, to be run by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCommand {
    /// The client's program.
    pub program: String,
    /// Its arguments; no secret is among them.
    pub args: Vec<String>,
    /// The standard input. Entries are passed here because they may hold secrets, and all users can see
    /// arguments.
    pub stdin: Option<String>,
    /// The folder to run it in.
    pub folder: Option<PathBuf>,
}

/// Runs a command to its end, or returns why it failed.
pub type Run<'a> = dyn FnMut(&ClientCommand) -> Result<(), String> + 'a;

impl ClientFile {
    /// Returns the client's own program for editing this file, if the client has one.
    pub fn program(&self) -> Option<&'static str> {
        self.client.command.as_deref()
    }
}

/// Returns the commands that add entries and remove others.
pub(crate) fn change_commands(
    program: &str,
    added: &[AddedEntry],
    removed: &[RemovedEntry],
) -> Vec<ClientCommand> {
    let removals = removed
        .iter()
        .map(|taken| removal(program, &taken.key, &taken.name));
    let additions = added
        .iter()
        .map(|added| addition(program, &added.key, &added.name, &added.value));
    removals.chain(additions).collect()
}

/// Returns the commands that undo a change. The parts of an entry that the client's command does
/// not support are lost.
pub(crate) fn undo_commands(
    program: &str,
    added: &[AddedEntry],
    removed: &[RemovedEntry],
) -> Vec<ClientCommand> {
    let removals = added
        .iter()
        .map(|added| removal(program, &added.key, &added.name));
    let additions = removed.iter();
    let additions = additions.map(|taken| addition(program, &taken.key, &taken.name, &taken.value));
    removals.chain(additions).collect()
}

fn removal(program: &str, key: &[String], name: &str) -> ClientCommand {
    let (scope, folder) = scope_of(key);
    let args = ["mcp", "remove", "-s", scope, name].map(str::to_owned);
    ClientCommand {
        program: program.to_owned(),
        args: args.to_vec(),
        stdin: None,
        folder,
    }
}

fn addition(program: &str, key: &[String], name: &str, value: &serde_json::Value) -> ClientCommand {
    let (scope, folder) = scope_of(key);
    let args = ["mcp", "add-json", "-s", scope, name, "-"].map(str::to_owned);
    ClientCommand {
        program: program.to_owned(),
        args: args.to_vec(),
        stdin: Some(value.to_string()),
        folder,
    }
}

/// Returns the scope of a key: `projects.FOLDER.mcpServers` is the local scope of that folder.
fn scope_of(key: &[String]) -> (&'static str, Option<PathBuf>) {
    match key {
        [projects, folder, _] if projects == "projects" => ("local", Some(PathBuf::from(folder))),
        _ => ("user", None),
    }
}
