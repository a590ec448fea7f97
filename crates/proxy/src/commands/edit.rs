//! `proxy remove`, `enable`, `disable`, `rename`: changes to the configuration file.

use std::io;

use config::{
    Environment,
    edit::{Change, Document, EditError, RemovedRules},
};
use tool::ServerName;

use super::kept_state::KeptState;
use crate::{cli::Global, exit::Exit, report};

pub(super) fn remove(
    global: &Global,
    servers: &[String],
    mut keep_rules: bool,
) -> anyhow::Result<Exit> {
    if !keep_rules && report::can_ask() {
        let Some(mut document) = read(global) else {
            return Ok(Exit::Usage);
        };
        let removed: Vec<String> = servers
            .iter()
            .flat_map(|server| document.remove_rules_of(server).removed)
            .collect();
        if !removed.is_empty() {
            report::say(&format!(
                "these name what is removed:\n  {}",
                removed.join("\n  ")
            ));
            match report::ask("Remove them too? [y]es, [k]eep them, [n]o change:").as_str() {
                "y" | "yes" => {}
                "k" | "keep" => keep_rules = true,
                _ => {
                    report::say("nothing was changed");
                    return Ok(Exit::Nothing);
                }
            }
        }
    }
    edit(global, |document| {
        let mut told = vec![format!("removed: {}", servers.join(", "))];
        for server in servers {
            document.remove_server(server)?;
            let rules = if keep_rules {
                RemovedRules {
                    stay: document.list_rules_of(server),
                    ..RemovedRules::default()
                }
            } else {
                document.remove_rules_of(server)
            };
            let removed = rules.removed.into_iter();
            told.extend(removed.map(|rule| format!("removed `{server}` from {rule}")));
            let stay = rules.stay.into_iter();
            told.extend(stay.map(|rule| format!("stays, and holds for any `{server}`: {rule}")));
        }
        Ok(told.join("\n"))
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
    // No state is kept under an invalid name.
    let state = match from.parse() {
        Ok(from) => Some(KeptState::open(global, from, to.clone())?),
        Err(_) => None,
    };
    let renamed = change_with(
        global,
        |document| document.rename_server(from, &to),
        |_, _, write| match &state {
            Some(state) => state.rename(write),
            None => write(),
        },
    )?;
    let Some(renamed) = renamed else {
        return Ok(Exit::Usage);
    };
    let mut told = vec![format!(
        "renamed: `{from}` is `{to}`, with its rules, accepted tools, logins and history"
    )];
    told.extend(renamed.value);
    report::say(&told.join("\n"));
    Ok(Exit::Success)
}

/// Changes the configuration file, or reports why it cannot be changed. A running daemon applies the
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

/// Changes the configuration file as [`config::edit::change_with`] does. `None` if the change is
/// refused; the reason has been printed.
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

/// Reads the configuration file. `None` if it cannot be read; the reason has been printed.
pub(super) fn read(global: &Global) -> Option<Document> {
    let read = config::file_path(&global.overrides(), &Environment::of_process())
        .map_err(|error| error.to_string())
        .and_then(|path| Document::read(&path).map_err(|error| format!("error: {error}")));
    read.inspect_err(|why| report::say(why)).ok()
}
