//! Discovery of the clients on this machine, and of the servers that they list.

use std::path::{Path, PathBuf};

use crate::advice::translate;
use clients::{EntryScope, Home, ImportedServer, Installed, LeftOut, ServerEntry, find, merge};

/// The name of our packages, and of the program in them.
pub const PACKAGE: &str = "tool-proxy";

/// The entry for this program in clients' files.
#[derive(Debug, Clone)]
pub struct Own {
    /// The absolute path of this program, or the command that runs its package (`npx`).
    pub program: PathBuf,
    /// Its arguments: the package for such a command, `serve`, and the configuration if it is not the
    /// default one.
    pub args: Vec<String>,
    /// Addresses at which the proxy serves HTTP.
    pub urls: Vec<String>,
}

/// The installed clients, and those of their servers that can be imported.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The installed clients.
    pub installed: Vec<Installed>,
    /// The servers, each once.
    pub taken: Vec<ImportedServer>,
    /// Entries that are not imported.
    pub left: Vec<LeftOut>,
    /// Entries of a project's own files, which are imported only on request.
    pub of_projects: Vec<ServerEntry>,
    /// Files that could not be read.
    pub mistakes: Vec<String>,
}

/// Reads the entries of the clients with these ids, or of all. Entries in a project's own files belong
/// to a team: they are imported only `with_project`.
pub fn discover(home: &Home, ids: &[String], own: &Own, with_project: bool) -> Discovery {
    let mut discovery = Discovery::default();
    let mut entries = Vec::new();
    for installed in find(home) {
        if !ids.is_empty() && !ids.contains(&installed.client.id) {
            continue;
        }
        let reading = installed.read(home);
        discovery.mistakes.extend(reading.mistakes);
        for entry in reading.entries {
            let of_project = entry
                .place
                .as_ref()
                .is_some_and(|place| place.file.scope() == EntryScope::Project);
            if of_project && !with_project {
                discovery.of_projects.push(entry);
            } else {
                entries.push(entry);
            }
        }
        discovery.installed.push(installed);
    }
    let (taken, left) = sort_out(&entries, home, own);
    discovery.taken = taken;
    discovery.left = left;
    discovery
}

/// Converts entries to servers, each once, and returns those that are left out, with the reason. Our
/// own entry is in neither list.
pub fn sort_out(
    entries: &[ServerEntry],
    home: &Home,
    own: &Own,
) -> (Vec<ImportedServer>, Vec<LeftOut>) {
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    for entry in entries {
        match translate(entry, home) {
            Ok(it) if is_own(&it, own) => {}
            Ok(it) => taken.push(it),
            Err(why) => left.push(LeftOut {
                entry: entry.clone(),
                why,
            }),
        }
    }
    (merge(taken), left)
}

/// Returns true if the entry starts this program, or another build of it, or calls it: imported, it
/// would call itself.
fn is_own(taken: &ImportedServer, own: &Own) -> bool {
    let server = &taken.server;
    if let Some(url) = &server.url {
        let same = |known: &String| known.trim_end_matches('/') == url.trim_end_matches('/');
        return own.urls.iter().any(same);
    }
    let Some(command) = server.command.as_deref().map(Path::new) else {
        return false;
    };
    let is_this = own.program.is_absolute()
        && (command == own.program || command.canonicalize().is_ok_and(|it| it == own.program));
    let is_named_so = own.program.is_absolute() && command.file_name() == own.program.file_name();
    let is_serving = server.args.iter().any(|arg| arg == "serve");
    is_this || (is_named_so && is_serving) || serves_as_us(command, &server.args)
}

/// Returns true if a command starts this program by one of its names, or runs its package (`npx -y
/// tool-proxy serve`).
pub fn serves_as_us(command: &Path, args: &[String]) -> bool {
    let file = command.file_name().unwrap_or_default();
    let is_package = |arg: &String| arg.split('@').next() == Some(PACKAGE);
    let is_named_so = file == "proxy" || file == PACKAGE || args.iter().any(is_package);
    is_named_so && args.iter().any(|arg| arg == "serve")
}
