//! `proxy status`: what the daemon, its clients and its servers are doing.

use std::{io, path::Path, time::Duration};

use clap::Args;
use daemon::identity::Build;
use daemon::status::{
    ClientStatus, DaemonStatus, HttpStatus, ServerStatus, SharingStatus, TraceStatus,
};
use fleet::ClusterState;
use gateway::LoginStatus;
use printable::group_digits;
use serde_json::json;
use tokio::time::timeout;

use super::route::{need_route, read_status};
use crate::{
    cli::global::Global,
    event_loop::runtime,
    exit::Exit,
    report,
    table::{render_table, wrap},
    time::render_time,
};

const EXIT_CODES: &str = "\
Exit codes: 0 every daemon answered, 3 some did, 1 none did, or none runs";

/// Show the daemon, its clients and its servers
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct StatusArgs {
    /// Refresh every SECONDS, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    watch: Option<u64>,
}

impl StatusArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        print_status(global, self.watch)
    }
}

pub(super) fn print_status(global: &Global, watch: Option<u64>) -> anyhow::Result<Exit> {
    let route = need_route(global)?;
    runtime()?.block_on(async {
        let Some(seconds) = watch else {
            return Ok(print(read_status(&route).await, global.json));
        };
        loop {
            let answers = read_status(&route).await;
            // The output starts at the top of an empty screen.
            if !global.json {
                report::clear_screen();
            }
            let exit = print(answers, global.json);
            let ended = timeout(Duration::from_secs(seconds), tokio::signal::ctrl_c());
            if ended.await.is_ok() {
                return Ok(exit);
            }
        }
    })
}

fn print(answers: Vec<io::Result<DaemonStatus>>, as_json: bool) -> Exit {
    let count = answers.len();
    let mut daemons = Vec::new();
    for answer in answers {
        match answer {
            Ok(daemon) => daemons.push(daemon),
            Err(error) => report::say(&format!("error: {error}")),
        }
    }
    if as_json {
        report::print_json(&json!({"daemons": daemons}));
    } else if !daemons.is_empty() {
        let texts: Vec<String> = daemons.iter().map(render).collect();
        report::print_data(&texts.join("\n\n"));
    }
    if count == 0 {
        report::say(
            "no daemon is running; a client's `proxy serve` starts it, or `proxy daemon start`",
        );
        return Exit::Nothing;
    }
    Exit::of_failures(count - daemons.len(), count)
}

fn render(daemon: &DaemonStatus) -> String {
    let mut parts = vec![
        wrap(&render_daemon(daemon).join("\n"), 2),
        render_clients(&daemon.clients),
        render_servers(&daemon.servers),
    ];
    let servers = &daemon.servers;
    let mut remarks: Vec<String> = servers.iter().flat_map(render_questions).collect();
    remarks.extend(servers.iter().filter_map(render_left_out));
    let scripts = daemon.scripts.iter().flat_map(|it| &it.mistakes);
    remarks.extend(scripts.map(|mistake| {
        let why = printable::one_line(&mistake.why);
        let why = printable::first_chars(&why, WHY_CHARS_MAX);
        let kind = if mistake.file.starts_with("skills/") {
            "skill"
        } else {
            "tool"
        };
        format!("{}: not a {kind}: {why}", mistake.file)
    }));
    let logins = servers.iter();
    let logins = logins.filter_map(|it| Some(render_login(&it.name, it.login.as_ref()?)));
    let mut logins: Vec<String> = logins.collect();
    logins.dedup();
    remarks.extend(logins);
    remarks.extend(daemon.sharing.iter().flat_map(render_sharing));
    if !remarks.is_empty() {
        parts.push(wrap(&remarks.join("\n"), 2));
    }
    parts.join("\n\n")
}

fn render_daemon(daemon: &DaemonStatus) -> Vec<String> {
    let leaving = if daemon.is_leaving {
        ", stops with its last client"
    } else {
        ""
    };
    let mut lines = vec![format!(
        "daemon {}, pid {}, up {}, {}{leaving}",
        daemon.version,
        daemon.pid,
        render_span(daemon.uptime_s),
        render_memory(daemon.memory_bytes),
    )];
    let build = daemon.build.as_ref();
    let difference = build.and_then(|build| build.describe_difference(&Build::ours()));
    lines.extend(
        difference
            .map(|difference| format!("the daemon runs {difference}\n  -> proxy daemon restart")),
    );
    lines.push(format!("config {}", daemon.config.display()));
    lines.push(format!(
        "calls since the start: {}, errors: {}; of a client: since it connected",
        render_count(daemon.calls),
        render_count(daemon.errors)
    ));
    lines.extend(daemon.http.iter().map(|http| match http {
        HttpStatus::Url(url) => format!("http {url}"),
        HttpStatus::Error(error) => format!("http is not served: {error}"),
    }));
    let held = daemon.http_held.iter();
    lines.extend(held.map(|it| format!("http {}, while pid {} runs", it.url, it.pid)));
    lines.extend(daemon.cluster.as_ref().map(render_cluster));
    lines.extend(daemon.traces.as_ref().and_then(render_traces));
    if let Some(embedded) = daemon.meaning {
        let tools = group_digits(embedded.tools);
        if embedded.understood < embedded.tools {
            lines.push(format!(
                "embeddings: {} of {tools} tools; the others are found by their words until then",
                group_digits(embedded.understood)
            ));
        }
        let requests = group_digits(embedded.with_requests);
        lines.push(format!("example requests: {requests} of {tools} tools"));
    }
    if let Some(mistakes) = &daemon.config_mistakes {
        lines.push("The file has mistakes; the previous configuration is in effect:".to_owned());
        lines.extend(mistakes.lines().map(|line| format!("  {line}")));
    }
    if let Some(trouble) = &daemon.pins {
        lines.push(format!(
            "pins: {trouble}; nothing counts as accepted: proxy review"
        ));
    }
    lines.extend(daemon.idle_rules.iter().map(|rule| {
        let [about, found, next] =
            [&rule.about, &rule.found, &rule.next].map(|it| printable::one_line(it));
        format!("{about}: {found}\n  -> {next}")
    }));
    lines
}

/// The line about the cluster; `proxy cluster status` has more.
pub(crate) fn render_cluster(state: &ClusterState) -> String {
    let node = state.nodes.first().map_or("", |it| it.node.as_str());
    let connected = state.nodes.iter().filter(|it| it.is_connected).count();
    let trouble = state.trouble.as_ref();
    let trouble = trouble.map_or_else(String::new, |why| format!("; {why}"));
    format!(
        "node {node} of the cluster {}: {}, {connected} of {}{trouble}",
        state.cluster,
        state.link,
        printable::count_of(state.nodes.len(), "node")
    )
}

fn render_traces(traces: &TraceStatus) -> Option<String> {
    let to = traces.to.as_ref()?;
    let (sent, dropped) = (render_count(traces.sent), render_count(traces.dropped));
    let failure = traces.failure.as_ref();
    let failure = failure.map_or_else(String::new, |why| format!("; the last failed: {why}"));
    Some(format!(
        "traces {to}: {sent} sent, {dropped} dropped{failure}"
    ))
}

fn render_count(count: u64) -> String {
    usize::try_from(count).map_or_else(|_| count.to_string(), group_digits)
}

fn render_clients(clients: &[ClientStatus]) -> String {
    let row = |client: &ClientStatus| {
        [
            client.name.clone().unwrap_or_else(|| "unnamed".to_owned()),
            render_cell(client.version.as_ref()),
            client.transport.clone(),
            render_cell(client.pid),
            client.calls.to_string(),
            render_cell(client.cwd.as_deref().map(Path::display)),
        ]
    };
    if clients.is_empty() {
        return "no clients".to_owned();
    }
    let head = ["client", "version", "over", "pid", "calls", "folder"];
    let table = render_table(head, clients.iter().map(row).collect());
    let with_profile = clients.iter().filter(|client| !client.profiles.is_empty());
    let lines = with_profile.map(|client| {
        let name = client.name.as_deref().unwrap_or("unnamed");
        let profiles = printable::one_line(&client.profiles.join(", "));
        format!(
            "\nclient {} has the profile {profiles}",
            printable::one_line(name)
        )
    });
    table + &lines.collect::<String>()
}

fn render_servers(servers: &[ServerStatus]) -> String {
    // A server that speaks two revisions has a process for each.
    let has_twin = |server: &ServerStatus| {
        let same =
            |it: &&ServerStatus| (&it.name, &it.client_name) == (&server.name, &server.client_name);
        servers.iter().filter(same).count() > 1
    };
    let row = |at: usize| {
        let server = &servers[at];
        // The counts are those of the server, and stand once.
        let is_first = servers[..at].iter().all(|it| it.name != server.name);
        let count = |count: u64| {
            if is_first {
                count.to_string()
            } else {
                String::new()
            }
        };
        let mut name = server.name.clone();
        if let Some(revision) = server.protocol.as_ref().filter(|_| has_twin(server)) {
            name = format!("{name}, {revision}");
        }
        let why = server.last_failure.as_ref().or(server.stale.as_ref());
        [
            match &server.client_name {
                Some(client) => format!("{name} ({client})"),
                None => name,
            },
            match (server.state.label(), server.node.as_deref()) {
                (state, Some("")) => format!("{state}, on no node"),
                (state, Some(node)) => format!("{state} on {node}"),
                (state, None) => state.to_owned(),
            },
            render_cell(server.pid),
            render_memory(server.memory_bytes),
            server.tools.to_string(),
            count(server.calls),
            count(server.errors),
            why.map(|why| printable::first_chars(why, WHY_CHARS_MAX).to_owned())
                .unwrap_or_default(),
        ]
    };
    if servers.is_empty() {
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
        "last failure",
    ];
    render_table(head, (0..servers.len()).map(row).collect())
}

/// One line for each question that a client has not answered, and one for the calls that wait for others.
fn render_questions(server: &ServerStatus) -> Vec<String> {
    let lines = server.questions.iter().map(|question| {
        let (name, method) = (&server.name, &question.method);
        let client = printable::one_line(&question.client);
        let since = render_time(question.since);
        let others = if question.holds_up_others {
            "; calls of other clients wait for the answer"
        } else {
            ""
        };
        format!("{name} waits for an answer that {client} is asked for ({method}, since {since}){others}")
    });
    let waiting = (server.waiting_calls > 0).then(|| {
        let calls = printable::count_of(server.waiting_calls, "call");
        format!(
            "{}: {calls} waiting for calls of other clients",
            server.name
        )
    });
    lines.chain(waiting).collect()
}

fn render_left_out(server: &ServerStatus) -> Option<String> {
    let left_out = server.left_out.as_ref()?;
    let name = &server.name;
    let why = printable::one_line(&left_out.why);
    let why = printable::first_chars(&why, WHY_CHARS_MAX);
    let more = match left_out.count {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    Some(format!("{name}: left out of its lists: {why}{more}"))
}

/// Renders the login of a server: the issuer, the scopes and the expiry.
pub(super) fn render_login(server: &str, login: &LoginStatus) -> String {
    if let Some(why) = &login.ended {
        let why = printable::one_line(why);
        return format!("{server}: the login has ended ({why}); proxy login {server}");
    }
    let issuer = printable::one_line(&login.issuer);
    let scopes = match login.scopes.as_slice() {
        [] => String::new(),
        scopes => format!("; scopes: {}", printable::one_line(&scopes.join(" "))),
    };
    let until = login.expires_at.map(render_time);
    let until = until.map_or_else(String::new, |until| format!("; token until {until}"));
    let renewed = if login.is_renewable {
        ", renewed automatically"
    } else {
        ""
    };
    format!("{server}: logged in at {issuer}{scopes}{until}{renewed}")
}

/// One line for each way in which a server differs for a client.
fn render_sharing(sharing: &SharingStatus) -> Vec<String> {
    let server = &sharing.server;
    let client = sharing.client_name.as_deref();
    let client = client.map_or_else(|| "a client that left".to_owned(), printable::one_line);
    let mut lines = Vec::new();
    if !sharing.differing.is_empty() {
        let names = sharing.differing.join(", ");
        lines.push(format!(
            "{server} has its own process for {client}: {names} differs from other clients"
        ));
    }
    if !sharing.lacking.is_empty() {
        let names = sharing.lacking.join(", ");
        lines.push(format!(
            "{server} does not start for {client}: it does not set {names}"
        ));
    }
    lines
}

/// The limit of an error in a table, in characters; `--json` has all of it.
const WHY_CHARS_MAX: usize = 80;

fn render_cell(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn render_memory(bytes: Option<u64>) -> String {
    render_cell(bytes.map(|bytes| format!("{} MiB", render_count(bytes >> 20))))
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
            "calls": 8, "errors": 1, "config": "/c.toml", "config_mistakes": "c.toml:1:1: no",
            "idle_rules": [{"about": "rule 1", "found": "`server = \"tiem\"` matches no known server",
                "next": "did you mean time?"}],
            "clients": [{"name": "claude\u{1b}[2J\u{202e}-code\n", "transport": "stdio", "pid": 8, "calls": 3,
                "cwd": "/home/ada"}],
            "servers": [
                {"name": "git", "state": "ready", "pid": 9, "memory_bytes": 1 << 20, "tools": 12,
                    "calls": 3, "errors": 1, "last_failure": "no answer",
                    "questions": [{"client": "claude-code", "method": "elicitation/create",
                        "since": 0, "holds_up_others": true}],
                    "waiting_calls": 2,
                    "left_out": {"count": 3, "why": "`a:1`: over 5000 in one list"}},
                {"name": "shell", "client_name": "claude-code", "state": "stopped", "tools": 1,
                    "calls": 0, "errors": 0, "protocol": "2025-11-25"},
                {"name": "both", "state": "stopped", "tools": 2, "calls": 5, "errors": 0,
                    "protocol": "2026-07-28"},
                {"name": "both", "state": "ready", "pid": 10, "tools": 2, "calls": 5, "errors": 0,
                    "protocol": "2025-11-25"},
            ],
            "scripts": {"tools": 2, "mistakes": [{"file": "scripts/a.ts", "why": "line 2: no"}]},
            "sharing": [
                {"server": "git", "client": 1, "client_name": "codex (pid 9)", "differing": ["TOKEN", "USER"],
                    "lacking": []},
                {"server": "git", "client": 2, "client_name": "zed (pid 8)", "differing": [],
                    "lacking": ["TOKEN"]},
            ],
        });
        let daemon = serde_json::from_value(daemon).unwrap();
        assert_snapshot!(render(&daemon), @r#"
        daemon 1.2.3, pid 7, up 1 min, 5 MiB
        config /c.toml
        calls since the start: 8, errors: 1; of a client: since it connected
        The file has mistakes; the previous configuration is in effect:
          c.toml:1:1: no
        rule 1: `server = "tiem"` matches no known server
          -> did you mean time?

        client       version  over   pid  calls  folder
        claude-code  -        stdio  8    3      /home/ada

        server               state    pid  memory  tools  calls  errors  last failure
        git                  ready    9    1 MiB   12     3      1       no answer
        shell (claude-code)  stopped  -    -       1      0      0
        both, 2026-07-28     stopped  -    -       2      5      0
        both, 2025-11-25     ready    10   -       2

        git waits for an answer that claude-code is asked for (elicitation/create, since 1970-01-01 00:00); calls of other clients wait for the answer
        git: 2 calls waiting for calls of other clients
        git: left out of its lists: `a:1`: over 5000 in one list (and 2 more)
        scripts/a.ts: not a tool: line 2: no
        git has its own process for codex (pid 9): TOKEN, USER differs from other clients
        git does not start for zed (pid 8): it does not set TOKEN
        "#);
    }
}
