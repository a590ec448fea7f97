//! `proxy remove`, `enable`, `disable`, `rename`: what changes in the configuration file.

use std::io;

use config::{
    Environment,
    edit::{Change, Document, EditError},
};
use tool::ServerName;

use crate::{cli::Global, exit::Exit, report};

pub(super) fn remove(global: &Global, servers: &[String]) -> anyhow::Result<Exit> {
    edit(global, |document| {
        for server in servers {
            document.remove_server(server)?;
        }
        Ok(format!("removed: {}", servers.join(", ")))
    })
}

pub(super) fn set_enabled(
    global: &Global,
    servers: &[String],
    enabled: bool,
) -> anyhow::Result<Exit> {
    let state = if enabled { "enabled" } else { "disabled" };
    edit(global, |document| {
        let mut changed = Vec::new();
        for server in servers {
            if document.set_enabled(server, enabled)? {
                changed.push(server.as_str());
            }
        }
        Ok(if changed.is_empty() {
            format!("{state} already: {}", servers.join(", "))
        } else {
            format!("{state}: {}", changed.join(", "))
        })
    })
}

pub(super) fn rename(global: &Global, from: &str, to: &str) -> anyhow::Result<Exit> {
    let to: ServerName = match to.parse() {
        Ok(to) => to,
        Err(error) => {
            report::say(&format!("error: {error}"));
            return Ok(Exit::Usage);
        }
    };
    edit(global, |document| {
        document.rename_server(from, &to)?;
        Ok(format!(
            "renamed: `{from}` is `{to}`; it is asked for its tools anew"
        ))
    })
}

/// Changes the configuration file, or says why it cannot be changed. A daemon that runs applies the
/// change by itself.
pub(super) fn edit(
    global: &Global,
    edit: impl FnMut(&mut Document) -> Result<String, EditError>,
) -> anyhow::Result<Exit> {
    let Some(change) = change_with(global, edit, |_, _, write| write())? else {
        return Ok(Exit::Usage);
    };
    report::say(&change.value);
    Ok(Exit::Success)
}

/// Changes the configuration file as [`config::edit::change_with`] does. None where the change is
/// refused; the reason was said.
pub(super) fn change_with<T>(
    global: &Global,
    edit: impl FnMut(&mut Document) -> Result<T, EditError>,
    commit: impl FnMut(&T, &Document, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
) -> anyhow::Result<Option<Change<T>>> {
    let (overrides, env) = (global.overrides(), Environment::of_process());
    let change = match config::edit::change_with(&overrides, &env, edit, commit) {
        Ok(change) => change,
        Err(error @ (EditError::Io { .. } | EditError::Busy(_) | EditError::Outrun(_))) => {
            return Err(error.into());
        }
        Err(error @ EditError::Mistakes(_)) => {
            report::say(&error.to_string());
            return Ok(None);
        }
        Err(error) => {
            report::say(&format!("error: {error}"));
            return Ok(None);
        }
    };
    if let Some(mistakes) = &change.mistakes {
        report::say(&format!("{mistakes}\nthese were there before"));
    }
    Ok(Some(change))
}

/// The configuration file as it is now; what keeps it from being read was said.
pub(super) fn read(global: &Global) -> Option<Document> {
    let read = config::file_path(&global.overrides(), &Environment::of_process())
        .map_err(|error| error.to_string())
        .and_then(|path| Document::read(&path).map_err(|error| format!("error: {error}")));
    read.inspect_err(|why| report::say(why)).ok()
}
