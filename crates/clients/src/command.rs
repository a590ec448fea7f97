//! Clients whose files belong to the running program: they are changed by a command of the client.

use std::path::PathBuf;

use crate::{change::ChangedEntry, client_file::ClientFile};

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

/// Returns the commands that remove entries and add others. The parts of an entry that the client's
/// command does not support are lost.
pub(crate) fn commands(
    program: &str,
    removed: &[ChangedEntry],
    added: &[ChangedEntry],
) -> Vec<ClientCommand> {
    let removals = removed
        .iter()
        .map(|it| command(program, "remove", it, None));
    let additions = added.iter().map(|it| {
        let value = it.value.to_string();
        command(program, "add-json", it, Some(value))
    });
    removals.chain(additions).collect()
}

fn command(
    program: &str,
    action: &str,
    entry: &ChangedEntry,
    stdin: Option<String>,
) -> ClientCommand {
    let (scope, folder) = scope_of(&entry.key);
    let words = ["mcp", action, "-s", scope, &entry.name];
    let words = words.into_iter().chain(stdin.as_ref().map(|_| "-"));
    ClientCommand {
        program: program.to_owned(),
        args: words.map(str::to_owned).collect(),
        stdin,
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
