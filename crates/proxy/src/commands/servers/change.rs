//! `proxy servers enable|disable|rename`: changes of servers in the configuration.

use tool::{NameError, ServerName};

use super::server_state::ServerState;
use crate::{
    cli::global::Global,
    commands::edit::{change_with, edit},
    exit::{Exit, refuse},
    report,
};

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
    let to: ServerName = to.parse().map_err(|error: NameError| refuse(error))?;
    // No state is kept under an invalid name.
    let state = match from.parse() {
        Ok(from) => Some(ServerState::open(global, from, to.clone())?),
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
    let mut told = vec![format!(
        "renamed `{from}` to `{to}`, with its rules, accepted tools, logins and history"
    )];
    told.extend(renamed.value);
    report::say(&told.join("\n"));
    Ok(Exit::Success)
}
