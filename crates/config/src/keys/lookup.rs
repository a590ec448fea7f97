//! Paths and names, looked up in the table of keys.

use std::{collections::HashMap, sync::LazyLock};

use super::{KEYS, KeySpec, removed::REMOVED};

/// A key, a table or a former key, at a path of the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyMatch {
    Value(&'static KeySpec),
    /// The table of this path.
    Table(&'static str),
    /// A former key, with its replacement.
    Removed(&'static str),
}

impl KeyMatch {
    /// The path in the table of keys.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Value(key) => key.path,
            Self::Table(path) => path,
            Self::Removed(_) => "",
        }
    }
}

/// All keys and tables by their paths. A file of a thousand servers is looked up key by key.
static MATCHES: LazyLock<HashMap<&str, KeyMatch>> = LazyLock::new(|| {
    let mut matches: HashMap<&str, KeyMatch> = HashMap::with_capacity(2 * KEYS.len());
    let keys = KEYS.iter().map(|key| (key.path, KeyMatch::Value(key)));
    let removed = REMOVED.map(|(path, replacement)| (path, KeyMatch::Removed(replacement)));
    for (mut path, found) in keys.chain(removed) {
        matches.insert(path, found);
        while let Some((table, _)) = path.rsplit_once('.') {
            matches.entry(table).or_insert(KeyMatch::Table(table));
            path = table;
        }
    }
    matches
});

/// Returns the pattern of the key `name` in the table `parent`; `None` if no key can match.
pub(crate) fn child(parent: &str, name: &str) -> Option<String> {
    match parent {
        "" if !name.contains('.') => Some(name.to_owned()),
        "servers" | "clients" | "commands" | "profiles" => Some(format!("{parent}.NAME")),
        "servers.NAME.overlay" => Some("servers.NAME.overlay.TOOL".to_owned()),
        _ if parent.is_empty() || name.contains('.') => None,
        _ => Some(format!("{parent}.{name}")),
    }
}

pub(crate) fn find(pattern: &str) -> Option<KeyMatch> {
    MATCHES.get(pattern).copied()
}

/// The names in the table `pattern`, in the order of their declaration.
pub(crate) fn names(pattern: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for key in KEYS {
        let rest = match pattern {
            "" => Some(key.path),
            _ => (key.path.strip_prefix(pattern)).and_then(|rest| rest.strip_prefix('.')),
        };
        let name = rest.and_then(|rest| rest.split('.').next());
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}
