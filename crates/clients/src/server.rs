//! A server in the form of our configuration, and remarks for the person about its import.

use std::path::Path;

use crate::entry::ServerEntry;

/// A server in the form of our configuration. Texts are templates: `${X}` is a variable, and a plain
/// `$` before `{` or `$` is written `$$`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TranslatedServer {
    /// The program; `None` for a server that is called at its `url`.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// The server's environment variables, in the order of the entry.
    pub env: Vec<(String, String)>,
    /// Variables that are passed on from our environment unchanged.
    pub inherit_env: Vec<String>,
    /// The server's working folder.
    pub cwd: Option<String>,
    /// The address of a remote server.
    pub url: Option<String>,
    /// The headers sent with every request to the address.
    pub headers: Vec<(String, String)>,
    /// True if it is enabled.
    pub enabled: bool,
    /// The timeout of one call.
    pub timeout_s: Option<u64>,
    /// Patterns of allowed tools; empty: all.
    pub allow: Vec<String>,
    /// Patterns of denied tools.
    pub deny: Vec<String>,
    /// True if the server works in the folder of its caller, so that each client needs a server
    /// process of its own.
    pub is_per_client: bool,
}

/// An imported server and its origin.
#[derive(Debug, Clone)]
pub struct ImportedServer {
    /// The server in the form of our configuration.
    pub server: TranslatedServer,
    /// The entries that list the server. The first entry determines its name.
    pub entries: Vec<ServerEntry>,
    /// The differences from the entry, one sentence each.
    pub remarks: Vec<String>,
    /// Variables that must be set before it can start.
    pub needs: Vec<Need>,
}

impl ImportedServer {
    /// Returns the folders of the projects that list the server; none if an entry is for all folders.
    pub fn project_folders(&self) -> Vec<String> {
        let folders = self.entries.iter().map(ServerEntry::project_folder);
        let folders: Option<Vec<&Path>> = folders.collect();
        let folders = folders.unwrap_or_default().into_iter();
        let mut folders: Vec<String> = folders
            .map(|folder| folder.to_string_lossy().into_owned())
            .collect();
        folders.sort();
        folders.dedup();
        folders
    }
}

/// A variable that must be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Its name.
    pub variable: String,
    /// Its meaning, as its client or publisher describes it.
    pub what: String,
}

/// An entry that was not imported, and the reason.
#[derive(Debug, Clone)]
pub struct LeftOut {
    /// The entry.
    pub entry: ServerEntry,
    /// The reason, a sentence without its beginning: `it is a part of Goose itself`.
    pub why: String,
}
