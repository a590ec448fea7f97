//! `proxy status`: what the daemon, its clients and its servers are doing.

use std::{io, time::Duration};

use anyhow::Context as _;
use daemon::{
    hello::{Answer, Purpose, greet},
    launch::connect,
    reach::Route,
};
use printable::group_digits;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::serve::find_route;
use crate::{
    cli::Global,
    exit::Exit,
    report,
    table::{render_table, wrap},
    time::render_time,
};

pub(super) fn print_status(global: &Global, watch: Option<u64>) -> anyhow::Result<Exit> {
    let route = match find_route(global) {
        Ok(route) => route.context("no place for the daemon's socket")?,
        Err(error) => {
            report::say(&error.to_string());
            return Ok(Exit::Usage);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let Some(seconds) = watch else {
            return Ok(print(&ask_daemons(&route).await?, global.json));
        };
        loop {
            let daemons = ask_daemons(&route).await?;
            // The output starts at the top of an empty screen.
            if !global.json {
                report::clear_screen();
            }
            let exit = print(&daemons, global.json);
            let ended = timeout(Duration::from_secs(seconds), tokio::signal::ctrl_c());
            if ended.await.is_ok() {
                return Ok(exit);
            }
        }
    })
}

/// Asks each daemon of the configuration for its status, the usual one first.
pub(super) async fn ask_daemons(route: &Route) -> io::Result<Vec<Value>> {
    let mut daemons = Vec::new();
    for socket in route.place.sockets() {
        if let Some(stream) = connect(&socket)?
            && let Some((_, Answer::Status(status))) = greet(stream, Purpose::Status).await?
        {
            daemons.push(status);
        }
    }
    Ok(daemons)
}

/// Notifies each daemon of the configuration that a login or a secret may have changed. A daemon that
/// cannot be notified finds out at the next call of the server.
pub(super) async fn have_looked_again(global: &Global) {
    let Ok(Ok(route)) = find_route(global) else {
        return;
    };
    for socket in route.place.sockets() {
        if let Ok(Some(stream)) = connect(&socket) {
            let _ = greet(stream, Purpose::LookAgain).await;
        }
    }
}

fn print(daemons: &[Value], as_json: bool) -> Exit {
    if as_json {
        report::print_json(&json!({"daemons": daemons}));
    } else {
        let texts: Vec<String> = daemons.iter().map(render).collect();
        if !texts.is_empty() {
            report::print_data(&texts.join("\n\n"));
        }
    }
    if daemons.is_empty() {
        report::say("no daemon runs; a client's `proxy serve` starts it, or `proxy daemon start`");
        return Exit::Nothing;
    }
    Exit::Success
}

fn render(daemon: &Value) -> String {
    let mut lines = vec![format!(
        "daemon {}, pid {}, up {}, {}{}",
        render_cell(&daemon["version"]),
        daemon["pid"],
        render_span(daemon["uptime_s"].as_u64().unwrap_or_default()),
        render_memory(&daemon["memory_bytes"]),
        if daemon["is_leaving"] == true {
            ", leaves with its last client"
        } else {
            ""
        },
    )];
    lines.push(format!("config {}", render_cell(&daemon["config"])));
    match (&daemon["http"]["url"], &daemon["http"]["error"]) {
        (Value::String(url), _) => lines.push(format!("http {url}")),
        (_, Value::String(error)) => lines.push(format!("http is not served: {error}")),
        _ => {}
    }
    for held in daemon["http_held"].as_array().into_iter().flatten() {
        let (url, pid) = (render_cell(&held["url"]), render_cell(&held["pid"]));
        lines.push(format!("http {url}, while pid {pid} runs"));
    }
    lines.extend(render_traces(&daemon["traces"]));
    let meaning = &daemon["meaning"];
    if let (Some(known), Some(tools)) = (meaning["understood"].as_u64(), meaning["tools"].as_u64())
        && known < tools
    {
        lines.push(format!(
            "vectors: {} of {} tools; the others are found by their words until then",
            render_count(known),
            render_count(tools)
        ));
    }
    if let Some(mistakes) = daemon["config_mistakes"].as_str() {
        lines.push("The file has mistakes; what it said before still holds:".to_owned());
        lines.extend(mistakes.lines().map(|line| format!("  {line}")));
    }
    if let Some(trouble) = daemon["pins"].as_str() {
        lines.push(format!(
            "pins: {trouble}; nothing counts as accepted: proxy review"
        ));
    }
    lines.extend(render_idle_rules(&daemon["idle_rules"]));
    let servers = &daemon["servers"];
    let mut parts = vec![
        wrap(&lines.join("\n"), 2),
        render_clients(&daemon["clients"]),
        render_servers(servers),
    ];
    let remarks = [
        render_questions(servers),
        render_left_out(servers),
        render_scripts(&daemon["scripts"]),
        render_logins(servers),
        render_sharing(&daemon["sharing"]),
    ];
    let remarks = remarks.concat();
    if !remarks.is_empty() {
        parts.push(wrap(&remarks.join("\n"), 2));
    }
    parts.join("\n\n")
}

/// One line for each rule that restricts access and matches nothing.
fn render_idle_rules(rules: &Value) -> Vec<String> {
    let render = |rule: &Value| {
        let part = |key: &str| printable::one_line(rule[key].as_str().unwrap_or_default());
        let (about, found, next) = (part("about"), part("found"), part("next"));
        format!("{about}: {found}\n  -> {next}")
    };
    rules.as_array().into_iter().flatten().map(render).collect()
}

fn render_traces(traces: &Value) -> Option<String> {
    let to = traces["to"].as_str()?;
    let count = |key: &str| render_count(traces[key].as_u64().unwrap_or_default());
    let (sent, dropped) = (count("sent"), count("dropped"));
    let failure = traces["failure"].as_str();
    let failure = failure.map_or_else(String::new, |why| format!("; the last failed: {why}"));
    Some(format!(
        "traces {to}: {sent} sent, {dropped} dropped{failure}"
    ))
}

fn render_count(count: u64) -> String {
    usize::try_from(count).map_or_else(|_| count.to_string(), group_digits)
}

fn render_clients(clients: &Value) -> String {
    let row = |client: &Value| {
        [
            client["name"].as_str().unwrap_or("unnamed").to_owned(),
            render_cell(&client["version"]),
            render_cell(&client["transport"]),
            render_cell(&client["pid"]),
            render_cell(&client["calls"]),
            render_cell(&client["cwd"]),
        ]
    };
    let rows = clients.as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return "no clients".to_owned();
    }
    let head = ["client", "version", "over", "pid", "calls", "folder"];
    render_table(head, rows.iter().map(row).collect())
}

fn render_servers(servers: &Value) -> String {
    let rows = servers.as_array().map(Vec::as_slice).unwrap_or_default();
    // A server that speaks two revisions has a process for each.
    let has_twin = |server: &Value| {
        let same = |it: &&Value| {
            ["name", "client_name"]
                .iter()
                .all(|key| it[key] == server[key])
        };
        rows.iter().filter(same).count() > 1
    };
    let row = |server: &Value| {
        let mut name = render_cell(&server["name"]);
        if let Some(revision) = server["protocol"].as_str().filter(|_| has_twin(server)) {
            name = format!("{name}, {revision}");
        }
        let why = [&server["last_error"], &server["stale"]].map(Value::as_str);
        let why = why.into_iter().flatten().next().unwrap_or_default();
        [
            match server["client_name"].as_str() {
                Some(client) => format!("{name} ({client})"),
                None => name,
            },
            match server["login_required"].as_bool() {
                Some(true) => "login required".to_owned(),
                _ => render_cell(&server["state"]),
            },
            render_cell(&server["pid"]),
            render_memory(&server["memory_bytes"]),
            render_cell(&server["tools"]),
            render_cell(&server["calls"]),
            render_cell(&server["errors"]),
            printable::first_chars(why, WHY_CHARS_MAX).to_owned(),
        ]
    };
    if rows.is_empty() {
        return "no servers".to_owned();
    }
    let head = [
        "server",
        "state",
        "pid",
        "memory",
        "tools",
        "calls",
        "errors",
        "last error",
    ];
    render_table(head, rows.iter().map(row).collect())
}

/// One line for each question that a client has not answered.
fn render_questions(servers: &Value) -> Vec<String> {
    let render = |server: &Value| {
        let name = render_cell(&server["name"]);
        let questions = server["questions"].as_array().into_iter().flatten();
        let lines = questions.map(|question| {
            let client = printable::one_line(&render_cell(&question["client"]));
            let method = render_cell(&question["method"]);
            let since = question["since"].as_u64().map_or_else(String::new, render_time);
            let others = match question["holds_up_others"].as_bool() {
                Some(true) => "; calls of other clients wait for it",
                _ => "",
            };
            format!("{name} waits for an answer that {client} is asked for ({method}, since {since}){others}")
        });
        lines.collect::<Vec<_>>()
    };
    let servers = servers.as_array().into_iter().flatten();
    servers.flat_map(render).collect()
}

/// One line for each server whose lists are incomplete.
fn render_left_out(servers: &Value) -> Vec<String> {
    let render = |server: &Value| {
        let (count, why) = (&server["left_out"]["count"], &server["left_out"]["why"]);
        let (count, why) = (count.as_u64()?, printable::one_line(why.as_str()?));
        let name = render_cell(&server["name"]);
        let why = printable::first_chars(&why, WHY_CHARS_MAX);
        let more = match count {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        Some(format!("{name}: left out of its lists: {why}{more}"))
    };
    let servers = servers.as_array().into_iter().flatten();
    servers.filter_map(render).collect()
}

/// One line for each saved script that is no tool.
fn render_scripts(scripts: &Value) -> Vec<String> {
    let render = |mistake: &Value| {
        let why = printable::one_line(mistake["why"].as_str()?);
        let why = printable::first_chars(&why, WHY_CHARS_MAX);
        let file = render_cell(&mistake["file"]);
        Some(format!("scripts/{file}: no tool: {why}"))
    };
    let mistakes = scripts["mistakes"].as_array().into_iter().flatten();
    mistakes.filter_map(render).collect()
}

/// One line for each server with a login.
fn render_logins(servers: &Value) -> Vec<String> {
    let render = |server: &Value| {
        let (name, login) = (render_cell(&server["name"]), &server["login"]);
        let issuer = printable::one_line(login["issuer"].as_str()?);
        if let Some(why) = login["ended"].as_str() {
            let why = printable::one_line(why);
            return Some(format!(
                "{name}: the login has ended ({why}); proxy login {name}"
            ));
        }
        let scopes = login["scopes"].as_array().into_iter().flatten();
        let scopes: Vec<&str> = scopes.filter_map(Value::as_str).collect();
        let scopes = match scopes.as_slice() {
            [] => String::new(),
            scopes => format!("; scopes: {}", printable::one_line(&scopes.join(" "))),
        };
        let until = login["expires_at"].as_u64().map(render_time);
        let until = until.map_or_else(String::new, |until| format!("; token until {until}"));
        Some(format!("{name}: logged in at {issuer}{scopes}{until}"))
    };
    let servers = servers.as_array().into_iter().flatten();
    let mut lines: Vec<String> = servers.filter_map(render).collect();
    lines.dedup();
    lines
}

/// One line for each client and server for which the client's variables differ.
fn render_sharing(sharing: &Value) -> Vec<String> {
    let render = |it: &Value| {
        let (server, client) = (render_cell(&it["server"]), it["client_name"].as_str());
        let client = client.map_or_else(|| "a client that left".to_owned(), printable::one_line);
        let names = |of: &str| {
            let names = it[of].as_array().into_iter().flatten();
            let names: Vec<String> = names.map(render_cell).collect();
            (!names.is_empty()).then(|| names.join(", "))
        };
        let apart = names("differing").map(|names| {
            format!("{server} runs apart for {client}: {names} differs from that of others")
        });
        let lacking = names("lacking")
            .map(|names| format!("{server} does not start for {client}: it does not set {names}"));
        apart.into_iter().chain(lacking).collect::<Vec<_>>()
    };
    let sharing = sharing.as_array().into_iter().flatten();
    sharing.flat_map(render).collect()
}

/// The limit of an error in a table, in characters; `--json` has all of it.
const WHY_CHARS_MAX: usize = 80;

fn render_cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn render_memory(bytes: &Value) -> String {
    let mib = |bytes: u64| group_digits(usize::try_from(bytes >> 20).unwrap_or(usize::MAX));
    bytes
        .as_u64()
        .map_or_else(|| "-".to_owned(), |bytes| format!("{} MiB", mib(bytes)))
}

fn render_span(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::{render, render_span};

    #[test]
    fn a_span_is_told_in_its_two_largest_units() {
        let check = |seconds, told| assert_eq!(render_span(seconds), told);
        check(59, "59 s");
        check(60, "1 min");
        check(3_661, "1 h 1 min");
        check(90_061, "1 d 1 h");
    }

    #[test]
    fn a_person_reads_a_table() {
        let daemon = json!({
            "version": "1.2.3", "pid": 7, "uptime_s": 61, "memory_bytes": 5 << 20,
            "config": "/c.toml", "config_mistakes": "c.toml:1:1: no",
            "idle_rules": [{"about": "rule 1", "found": "`server = \"tiem\"` matches no known server",
                "next": "did you mean time?"}],
            "clients": [{"name": "claude\u{1b}[2J\u{202e}-code\n", "transport": "stdio", "pid": 8, "calls": 3,
                "cwd": "/home/ada"}],
            "servers": [
                {"name": "git", "state": "ready", "pid": 9, "memory_bytes": 1 << 20, "tools": 12,
                    "calls": 3, "errors": 1, "last_error": "no answer",
                    "questions": [{"client": "claude-code", "method": "elicitation/create",
                        "since": 0, "holds_up_others": true}],
                    "left_out": {"count": 3, "why": "`a:1`: over 5000 in one list"}},
                {"name": "shell", "client_name": "claude-code", "state": "stopped", "tools": 1,
                    "calls": 0, "errors": 0, "protocol": "2025-11-25"},
                {"name": "both", "state": "stopped", "tools": 2, "calls": 0, "errors": 0,
                    "protocol": "2026-07-28"},
                {"name": "both", "state": "ready", "pid": 10, "tools": 2, "calls": 5, "errors": 0,
                    "protocol": "2025-11-25"},
            ],
            "scripts": {"tools": 2, "mistakes": [{"file": "a.ts", "why": "line 2: no"}]},
            "sharing": [
                {"server": "git", "client_name": "codex (pid 9)", "differing": ["TOKEN", "USER"],
                    "lacking": []},
                {"server": "git", "client_name": "zed (pid 8)", "differing": [],
                    "lacking": ["TOKEN"]},
            ],
        });
        assert_snapshot!(render(&daemon), @r#"
        daemon 1.2.3, pid 7, up 1 min, 5 MiB
        config /c.toml
        The file has mistakes; what it said before still holds:
          c.toml:1:1: no
        rule 1: `server = "tiem"` matches no known server
          -> did you mean time?

        client       version  over   pid  calls  folder
        claude-code  -        stdio  8    3      /home/ada

        server               state    pid  memory  tools  calls  errors  last error
        git                  ready    9    1 MiB   12     3      1       no answer
        shell (claude-code)  stopped  -    -       1      0      0
        both, 2026-07-28     stopped  -    -       2      0      0
        both, 2025-11-25     ready    10   -       2      5      0

        git waits for an answer that claude-code is asked for (elicitation/create, since 1970-01-01 00:00); calls of other clients wait for it
        git: left out of its lists: `a:1`: over 5000 in one list (and 2 more)
        scripts/a.ts: no tool: line 2: no
        git runs apart for codex (pid 9): TOKEN, USER differs from that of others
        git does not start for zed (pid 8): it does not set TOKEN
        "#);
    }
}
