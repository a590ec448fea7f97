//! Reasons why an edit of the configuration is refused.

use std::{io, path::PathBuf};

use policy::NotAllowable;
use tool::ServerName;

use crate::ConfigError;

/// The reason why an edit was not made; the document is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The file is not valid TOML, so it cannot be edited.
    #[error("{0}")]
    Broken(ConfigError),
    /// The file would have mistakes that it does not have now.
    #[error("{0}\nnothing was changed")]
    Mistakes(ConfigError),
    /// Another command holds the lock.
    #[error(
        "{}: another program has locked it for 30 s; nothing was changed\nhint: wait for that \
        program, or end it",
        .0.display()
    )]
    Busy(PathBuf),
    /// The file is not the one that the change was made for.
    #[error("{}: it was changed since; nothing was changed", .0.display())]
    Changed(PathBuf),
    /// Another program writes the file all the time.
    #[error(
        "{}: another program keeps changing it; nothing was changed\nhint: wait for that program, \
        or end it",
        .0.display()
    )]
    Outrun(PathBuf),
    /// No rule can allow it without overriding rules that the user did not see.
    #[error("{0}\nhint: `proxy policy test NAME ARGS` shows the rule that decides")]
    NotAllowable(NotAllowable),
    /// A server of this name exists already.
    #[error(
        "server `{0}` already exists\nhint: choose another name (`--as NAME` in `proxy add`), or: \
        proxy remove {0}"
    )]
    Exists(ServerName),
    /// The file has a table `cluster`.
    #[error(
        "this configuration is part of a cluster already\nhint: `proxy cluster status` shows it; remove \
        the table `[cluster]` to join another"
    )]
    HasCluster,
    /// Rules apply to a name that no server has yet.
    #[error(
        "rules already name `{name}`, and would apply to the renamed server:\n  {}\nhint: remove \
        these first, or choose another name",
        rules.join("\n  ")
    )]
    Named {
        /// The new name.
        name: ServerName,
        /// The rules.
        rules: Vec<String>,
    },
    /// Rules match tools of the former name, and not clearly the same ones of the new name.
    #[error(
        "these rules would no longer apply to every tool of the renamed server, so nothing was changed:\n  {}\n\
        hint: name the server in full, as in `NAME/write_*`, and rename again",
        .0.join("\n  ")
    )]
    Patterns(Vec<String>),
    /// No server has this name.
    #[error("no server `{name}` in the configuration{}", list(known))]
    Unknown {
        /// The requested name.
        name: String,
        /// The existing names, in the order of the file.
        known: Vec<String>,
    },
}

fn list(known: &[String]) -> String {
    match known {
        [] => "; it has none".to_owned(),
        known => format!("; it has `{}`", known.join("`, `")),
    }
}
