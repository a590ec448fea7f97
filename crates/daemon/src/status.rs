//! The report of a daemon on itself, its clients and its servers.

use files::clock::to_s;
use std::{collections::BTreeSet, path::Path, sync::Arc, time::SystemTime};

use fleet::{ServerState, Sharing, State, WaitingQuestion};
use gateway::{
    Gateway, Weight, clients::ConnectedClient, describe_login, find_idle_rules, list_known_names,
};
use serde_json::{Value, json};

use super::{identity::Build, log};

/// The part of the status that only the daemon knows.
#[derive(Debug)]
pub struct About<'a> {
    /// The build of its program.
    pub build: &'a Build,
    /// The configuration file.
    pub config: &'a Path,
    /// The socket at which it is reached.
    pub socket: &'a Path,
    /// The time at which it started.
    pub since: SystemTime,
    /// The URL of the configured HTTP address, or the error; and the addresses served for `serve --http`.
    pub http: (Option<Result<String, String>>, Vec<Value>),
    /// True if it accepts no new clients, and ends when the last one disconnects.
    pub is_leaving: bool,
}

/// Returns the status as JSON. Reads `/proc`, and so blocks for a moment.
pub fn status(gateway: &Gateway, about: &About<'_>) -> Value {
    let settings = gateway.settings();
    let clients = gateway.clients.list();
    let names: Vec<(u64, String)> = clients.iter().map(|it| (it.number, name(it))).collect();
    let states = gateway.servers.states().into_iter();
    let servers: Vec<Value> = states
        .map(|state| server(gateway, &state, &names))
        .collect();
    let sharing = gateway.servers.sharing().into_iter();
    let sharing: Vec<Value> = sharing.map(|it| describe_sharing(&it, &clients)).collect();
    let clients: Vec<Value> = clients.iter().map(client).collect();
    json!({
        "version": about.build.version,
        "pid": std::process::id(),
        "started_at": to_s(about.since),
        "uptime_s": about.since.elapsed().unwrap_or_default().as_secs(),
        "memory_bytes": processes::own_memory(),
        "is_leaving": about.is_leaving,
        "config": about.config,
        "config_mistakes": gateway.config_mistakes(),
        "pins": gateway.catalog.registry.pin_trouble().map(|it| it.to_string()),
        "idle_rules": idle_rules(gateway),
        "state_dir": settings.state_dir,
        "socket": about.socket,
        "http": about.http.0.as_ref().map(|http| match http {
            Ok(url) => json!({"url": url}),
            Err(error) => json!({"error": error}),
        }),
        "http_held": about.http.1,
        "log": log::path(&settings.state_dir),
        "meaning": meaning(gateway),
        "traces": traces(gateway),
        "clients": clients,
        "scripts": scripts(gateway),
        "servers": servers,
        "sharing": sharing,
    })
}

/// Rules that were meant to keep something out, and match nothing.
fn idle_rules(gateway: &Gateway) -> Vec<Value> {
    let settings = gateway.settings();
    let known = list_known_names(&gateway.catalog.registry, &settings);
    let found = find_idle_rules(&settings, known, &[], &BTreeSet::new());
    let idle = found.idle.into_iter();
    let idle = idle.filter(|rule| rule.weight == Weight::Safety);
    idle.map(|rule| json!({"about": rule.about, "found": rule.found, "next": rule.next}))
        .collect()
}

/// The number of tools that have a vector; `null` before the first search, or if there are none.
fn meaning(gateway: &Gateway) -> Option<Value> {
    let (known, tools) = gateway.catalog.registry.loaded()?.embedded()?;
    Some(json!({"understood": known, "tools": tools}))
}

/// The saved scripts, and the files that are not scripts; `null` if there is no such folder.
fn scripts(gateway: &Gateway) -> Option<Value> {
    let saved = gateway.catalog.saved_scripts();
    let mistakes = saved.mistakes.iter();
    let mistakes = mistakes.map(|it| json!({"file": it.file, "why": it.why}));
    let folder = &gateway.settings().scripts;
    let told = || json!({"folder": folder, "tools": saved.count(), "mistakes": mistakes.collect::<Vec<_>>()});
    (saved.has_folder || !saved.mistakes.is_empty()).then(told)
}

/// The delivery of spans; `null` if the configuration names no collector.
fn traces(gateway: &Gateway) -> Option<Value> {
    let delivery = gateway.trace_delivery()?;
    Some(json!({
        "to": delivery.to,
        "sent": delivery.sent,
        "dropped": delivery.dropped,
        "last_at": delivery.last.map(to_s),
        "failure": delivery.failure,
    }))
}

fn name(client: &Arc<ConnectedClient>) -> String {
    let named = client.info().map(|info| info.name.clone());
    named.unwrap_or_else(|| "unnamed".to_owned())
}

fn client(client: &Arc<ConnectedClient>) -> Value {
    json!({
        "number": client.number,
        "name": client.info().map(|info| &info.name),
        "version": client.info().and_then(|info| info.version.as_ref()),
        "transport": client.connection.transport,
        "pid": client.connection.pid,
        "cwd": client.connection.cwd,
        "since": to_s(client.since),
        "calls": client.calls(),
    })
}

/// Describes how a server differs for a client. Names of variables, and no value.
fn describe_sharing(sharing: &Sharing, clients: &[Arc<ConnectedClient>]) -> Value {
    let client = clients.iter().find(|it| it.number == sharing.client);
    let client = client.map(|it| match it.connection.pid {
        Some(pid) => format!("{} (pid {pid})", name(it)),
        None => name(it),
    });
    json!({
        "server": sharing.server.as_str(),
        "client": sharing.client,
        "client_name": client,
        "differing": sharing.differing,
        "lacking": sharing.lacking,
    })
}

fn server(gateway: &Gateway, state: &ServerState, clients: &[(u64, String)]) -> Value {
    let catalog = gateway.catalog.registry.catalog();
    let known = catalog.servers.iter().find(|it| it.name == state.name);
    let own = clients
        .iter()
        .filter(|(number, _)| state.clients.contains(number));
    let own: Vec<&str> = own.map(|(_, name)| name.as_str()).collect();
    let settings = gateway.settings();
    let login = settings.server(&state.name);
    let login = login.map(|it| describe_login(it, &settings.private_files()));
    json!({
        "name": state.name.as_str(),
        "client": state.clients.first(),
        "client_name": (!own.is_empty()).then(|| own.join(", ")),
        "state": match state.state {
            State::Stopped => "stopped",
            State::Starting => "starting",
            State::Ready => "ready",
            State::Resting => "resting",
        },
        "protocol": state.revision.as_ref().map(jsonrpc::mcp::Revision::as_str),
        "pid": state.pid,
        "memory_bytes": state.memory_bytes,
        "tools": known.map_or(0, |it| it.tools),
        "stale": known.and_then(|it| it.stale.as_ref()).map(ToString::to_string),
        "left_out": gateway.catalog.left_out(&state.name).map(|it| json!({"count": it.count, "why": it.why})),
        "login": login,
        "login_required": gateway.catalog.needs_login(&state.name, known.is_some_and(|it| it.stale.is_some())),
        "starts": state.starts,
        "calls": state.calls,
        "errors": state.errors,
        "last_error": state.last_error.as_ref().map(|(_, why)| why),
        "last_error_at": state.last_error.as_ref().map(|(at, _)| to_s(*at)),
        "questions": state.questions.iter().map(question).collect::<Vec<_>>(),
    })
}

/// A question that a client has not answered yet.
fn question(question: &WaitingQuestion) -> Value {
    json!({
        "client": question.client,
        "method": question.method,
        "since": to_s(question.since),
        "holds_up_others": question.holds_up_others,
    })
}
