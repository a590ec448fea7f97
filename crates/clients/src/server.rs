//! A server in the form of our configuration, and remarks for the person about its import.

use std::{fmt, ops::Range};

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
    /// Secrets that it contains in clear text.
    pub secrets: Vec<Secret>,
}

/// A variable that must be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Its name.
    pub variable: String,
    /// Its meaning, as its client or publisher describes it.
    pub what: String,
}

/// The place of a secret in clear text.
///
/// The secret store replaces the text at this place by `${...}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The part of the server that holds it.
    pub place: SecretPlace,
    /// The range in the text of that place, in bytes.
    pub range: Range<usize>,
    /// The option, parameter or header in that text whose value is the secret.
    pub name: Option<String>,
    /// The secret itself. It is never printed.
    pub value: String,
}

/// The part of a server that holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// This variable.
    Env(String),
    /// This header.
    Header(String),
    /// The argument with this index, or a part of it.
    Argument(usize),
    /// The address: its password, path or parameters.
    Url,
}

/// An entry that was not imported, and the reason.
#[derive(Debug, Clone)]
pub struct LeftOut {
    /// The entry.
    pub entry: ServerEntry,
    /// The reason, a sentence without its beginning: `it is a part of Goose itself`.
    pub why: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("place", &self.place)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the variable `{name}`"),
            Self::Header(name) => write!(f, "the header `{name}`"),
            Self::Argument(index) => write!(f, "argument {}", index + 1),
            Self::Url => f.write_str("the address"),
        }
    }
}
