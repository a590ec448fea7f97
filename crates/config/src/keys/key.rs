//! A key of the configuration, and the kinds of values.

/// One key that holds a value.
#[derive(Debug)]
pub(crate) struct KeySpec {
    /// The dotted path; `NAME` is a server and `TOOL` a tool of it.
    pub(crate) path: &'static str,
    pub(crate) kind: ValueKind,
    /// The default as it would be written in the file.
    pub(crate) default: Option<&'static str>,
    /// True if a `PROXY_*` variable may set it.
    pub(crate) variable: bool,
    pub(crate) meaning: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Text,
    /// Text with `${VAR}` in it.
    Template,
    Command,
    Url,
    /// A folder whose path is a template.
    Folder,
    /// A folder of ours, needed before any server starts.
    StateDir,
    Filter,
    Category,
    Tag,
    Version,
    Glob,
    /// The name of a variable of our own environment, or the beginning of several.
    Inherited,
    Switch,
    /// One of a few words.
    Choice(&'static [&'static str]),
    Count(Count),
    List(&'static ValueKind),
    /// Regular expressions by their names.
    Patterns,
    /// Templates by the name of a variable of the environment.
    Variables,
    /// Templates by the name of an HTTP header.
    Headers,
    /// Templates by a name for the holder of the token.
    Tokens,
    /// A file whose path is a template.
    File,
    /// Files by a name for the holder of the token in them.
    TokenFiles,
    /// An address to listen on.
    Listen,
    /// The name of a machine, as a `Host` header has it.
    Host,
    /// The name of a cluster or of a node in it.
    ClusterName,
    /// A scheme, a host and a port, as an `Origin` header has them.
    Origin,
    /// A JSON object written as TOML.
    Arguments,
    /// Settings of arguments, by the name of an argument.
    ArgumentSettings,
    /// Rules for calls, one table each.
    Rules,
    /// Limits of calls and tokens, one table each.
    Quotas,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) unit: &'static str,
}

pub(super) const fn count(min: u64, max: u64, unit: &'static str) -> ValueKind {
    ValueKind::Count(Count { min, max, unit })
}

impl ValueKind {
    /// Begins a key with a default.
    pub(super) const fn or(self, default: &'static str) -> KeySpec {
        KeySpec {
            default: Some(default),
            ..self.key("", "")
        }
    }

    /// A key that only the file sets.
    pub(super) const fn key(self, path: &'static str, meaning: &'static str) -> KeySpec {
        KeySpec {
            path,
            kind: self,
            default: None,
            variable: false,
            meaning,
        }
    }

    /// A key that a variable may set as well.
    pub(super) const fn variable(self, path: &'static str, meaning: &'static str) -> KeySpec {
        KeySpec {
            variable: true,
            ..self.key(path, meaning)
        }
    }
}

impl KeySpec {
    /// The same as [`ValueKind::key`].
    pub(super) const fn key(self, path: &'static str, meaning: &'static str) -> Self {
        Self {
            path,
            meaning,
            ..self
        }
    }

    /// The same as [`ValueKind::variable`].
    pub(super) const fn variable(self, path: &'static str, meaning: &'static str) -> Self {
        Self {
            path,
            variable: true,
            meaning,
            ..self
        }
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &'static str {
        split(self.path).1
    }

    /// The path without its last part; empty for the top of the file.
    pub(crate) fn table(&self) -> &'static str {
        split(self.path).0
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}
