//! A server in our own words, and what a person should hear of how it came to be so.

use std::{fmt, ops::Range};

use crate::entry::Entry;

/// What our configuration says of a server. Texts are templates: `${X}` is a variable, and a
/// plain `$` before `{` or `$` is written `$$`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Server {
    /// The program; none of a server that is called at its `url`.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets, in the order of the entry.
    pub env: Vec<(String, String)>,
    /// Variables that it gets from us as they are.
    pub inherit_env: Vec<String>,
    /// The folder that it works in.
    pub cwd: Option<String>,
    /// The address of a remote one.
    pub url: Option<String>,
    /// Sent with every request to the address.
    pub headers: Vec<(String, String)>,
    /// Whether it was switched on.
    pub enabled: bool,
    /// How long one call may take.
    pub timeout_s: Option<u64>,
    /// Patterns of tools that are let in; empty: all.
    pub allow: Vec<String>,
    /// Patterns of tools that stay out.
    pub deny: Vec<String>,
    /// It works in the folder of whoever calls it, so that each client needs one of its own.
    pub is_per_client: bool,
}

/// A server that was taken over, and from where.
#[derive(Debug, Clone)]
pub struct Taken {
    /// In our own words.
    pub server: Server,
    /// Where it is listed. The first gives it its name.
    pub entries: Vec<Entry>,
    /// What became different, a sentence each.
    pub remarks: Vec<String>,
    /// Variables that must be set before it can start.
    pub needs: Vec<Need>,
    /// Secrets that stand in it in clear.
    pub secrets: Vec<Secret>,
}

/// A variable that must be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Its name.
    pub variable: String,
    /// What it is, as its client or publisher says.
    pub what: String,
}

/// Where a secret stands in clear.
///
/// A store of secrets takes it from here: the place says what to replace by `${...}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Where in the server.
    pub place: SecretPlace,
    /// The range in the text of that place, in bytes.
    pub range: Range<usize>,
    /// The option, parameter or header whose value it is in that text.
    pub name: Option<String>,
    /// The secret as it stands there. It is never printed.
    pub value: String,
}

/// The part of a server that is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// This variable.
    Env(String),
    /// This header.
    Header(String),
    /// The argument of this number, or a part of it.
    Argument(usize),
    /// The address: its password, path or parameters.
    Url,
}

/// An entry that was left where it is, and why.
#[derive(Debug, Clone)]
pub struct LeftOut {
    /// Which.
    pub entry: Entry,
    /// A sentence without its beginning: `it is a part of Goose itself`.
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
