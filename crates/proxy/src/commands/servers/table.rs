//! `proxy servers`: every configured server, and its state.

use files::clock::{now_s, show_age};
use std::{collections::BTreeSet, sync::Arc};

use daemon::status::RunState;
use gateway::{Gateway, LoginStatus, describe_login};
use printable::group_digits;
use registry::ToolUsage;
use serde_json::{Value, json};
use tool::ServerName;

use crate::{
    cli::global::Global,
    commands::{
        route::{find_route, read_status},
        status::render_login,
    },
    exit::Exit,
    report,
    table::{render_table, wrap},
};

pub(super) async fn print_servers(gateway: &Arc<Gateway>, global: &Global) -> Exit {
    let settings = gateway.settings();
    let files = settings.private_files();
    let catalog = gateway.catalog.registry.catalog();
    let damaged = gateway.catalog.registry.list_damaged();
    let damage_of = |server: &ServerName| {
        let (_, why) = damaged.iter().find(|(name, _)| name == server)?;
        Some(format!("its snapshot is damaged ({why})"))
    };
    let running = list_running(global).await;
    let usage = gateway.catalog.usage.calls();
    let now = now_s();
    let rows: Vec<ServerRow> = settings
        .servers
        .iter()
        .map(|server| {
            let name = server.spec.name.to_string();
            let known = catalog
                .servers
                .iter()
                .find(|it| it.name == server.spec.name);
            ServerRow {
                is_enabled: server.enabled,
                calls: UsageSum::of(&name, &usage),
                category: known.map(|it| it.category.clone()).unwrap_or_default(),
                tools: known.map_or(0, |it| it.tools),
                tokens: known.map_or(0, |it| it.tokens),
                was_asked: known.is_some_and(|it| it.surveyed_at.is_some()),
                failure: known
                    .and_then(|it| it.stale.as_ref().map(ToString::to_string))
                    .or_else(|| damage_of(&server.spec.name))
                    .map(|why| SurveyFailed {
                        why,
                        is_running: running.contains(&name),
                    }),
                needs_login: gateway.catalog.needs_login(
                    &server.spec.name,
                    known.is_some_and(|it| it.stale.is_some()),
                ),
                log: gateway
                    .catalog
                    .has_log(&server.spec.name)
                    .then(|| format!("proxy log {name}, then ")),
                login: describe_login(server, &files),
                name,
            }
        })
        .collect();
    if global.json {
        let servers: Vec<Value> = rows.iter().map(ServerRow::json).collect();
        report::print_json(&json!({"servers": servers}));
    } else if !rows.is_empty() {
        report::print_data(&render(&rows, now));
    }
    let new = rows
        .iter()
        .any(|it| it.is_enabled && it.state() == "not asked yet");
    if new && !global.json {
        report::say("hint: `proxy reindex` asks those that were not asked yet for their tools");
    }
    if rows.is_empty() {
        report::say("no servers; add one: proxy add NAME -- COMMAND, or: proxy add NAME URL");
        return Exit::Nothing;
    }
    Exit::Success
}

/// The servers that run in a daemon of this configuration.
async fn list_running(global: &Global) -> BTreeSet<String> {
    let Ok(Ok(route)) = find_route(global) else {
        return BTreeSet::new();
    };
    let daemons = read_status(&route).await.unwrap_or_default();
    let servers = daemons.into_iter().flat_map(|it| it.servers);
    let ready = servers.filter(|it| it.state == RunState::Ready);
    ready.map(|it| it.name).collect()
}

struct ServerRow {
    name: String,
    is_enabled: bool,
    category: String,
    tools: usize,
    tokens: u64,
    was_asked: bool,
    failure: Option<SurveyFailed>,
    needs_login: bool,
    /// The command that shows the server's log, if the server has written anything.
    log: Option<String>,
    calls: UsageSum,
    login: Option<LoginStatus>,
}

/// The last survey returned no list of tools.
struct SurveyFailed {
    why: String,
    /// True if a daemon has a process of the server that answers.
    is_running: bool,
}

#[derive(Default)]
struct UsageSum {
    count: u64,
    last: Option<u64>,
}

impl UsageSum {
    fn of(server: &str, usage: &[ToolUsage]) -> Self {
        let is_of = |it: &&ToolUsage| it.tool.split_once('/').is_some_and(|(it, _)| it == server);
        usage
            .iter()
            .filter(is_of)
            .fold(Self::default(), |sum, it| Self {
                count: sum.count + it.ok + it.failed,
                last: sum.last.max(it.last),
            })
    }
}

impl ServerRow {
    fn state(&self) -> &'static str {
        match (self.is_enabled, &self.failure, self.was_asked) {
            (false, ..) => "off",
            (true, ..) if self.needs_login => "login required",
            (true, Some(failed), _) if failed.is_running => "stale",
            (true, Some(_), _) => "failed",
            (true, None, true) => "on",
            (true, None, false) => "not asked yet",
        }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "state": self.state(),
            "category": self.category,
            "tools": self.tools,
            "tokens": self.tokens,
            "calls": self.calls.count,
            "last_used_at": self.calls.last,
            "failure": self.failure.as_ref().map(|it| &it.why),
            "login": self.login,
        })
    }
}

fn render(rows: &[ServerRow], now: u64) -> String {
    let head = [
        "server",
        "state",
        "tools",
        "tokens",
        "calls",
        "last used",
        "category",
    ];
    let cells = rows.iter().map(|row| {
        let count = |count: u64| group_digits(usize::try_from(count).unwrap_or(usize::MAX));
        [
            row.name.clone(),
            row.state().to_owned(),
            count(row.tools as u64),
            count(row.tokens),
            count(row.calls.count),
            row.calls
                .last
                .map_or_else(|| "-".to_owned(), |last| show_age(now.saturating_sub(last))),
            row.category.clone(),
        ]
    });
    let mut lines = vec![render_table(head, cells.collect())];
    let logins = rows.iter();
    let logins = logins.filter_map(|row| Some(render_login(&row.name, row.login.as_ref()?)));
    let logins: Vec<String> = logins.collect();
    if !logins.is_empty() {
        lines.push(wrap(&format!("\n{}", logins.join("\n")), 2));
    }
    for row in rows.iter().filter(|row| row.is_enabled) {
        if let Some(SurveyFailed { why, is_running }) = &row.failure {
            let name = &row.name;
            let log = row.log.as_deref().unwrap_or_default();
            let text = if row.needs_login {
                format!("{name}: {why}\n  next: proxy login {name}")
            } else if *is_running {
                // The daemon repeats the survey of a running server.
                format!("{name}: it runs, but its list of tools is from an earlier survey: {why}")
            } else {
                format!("{name}: {why}\n  next: {log}proxy reindex {name}")
            };
            lines.push(wrap(&format!("\n{text}"), 2));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use registry::ToolUsage;

    use super::{ServerRow, SurveyFailed, UsageSum, render};

    fn failed(why: &str, is_running: bool) -> SurveyFailed {
        let why = why.to_owned();
        SurveyFailed { why, is_running }
    }

    fn row(name: &str) -> ServerRow {
        ServerRow {
            log: Some(format!("proxy log {name}, then ")),
            name: name.to_owned(),
            is_enabled: true,
            category: "files".to_owned(),
            tools: 12,
            tokens: 1_234,
            was_asked: true,
            failure: None,
            needs_login: false,
            calls: UsageSum::default(),
            login: None,
        }
    }

    #[test]
    fn servers_read_as_a_table() {
        let usage = |tool: &str, ok, failed, last| ToolUsage {
            tool: tool.to_owned(),
            ok,
            failed,
            last,
        };
        let usage = [
            usage("git/log", 3, 1, Some(100)),
            usage("git/diff", 1, 0, Some(7_000)),
            usage("github/list", 9, 0, None),
        ];
        let rows = [
            ServerRow {
                calls: UsageSum::of("git", &usage),
                ..row("git")
            },
            ServerRow {
                is_enabled: false,
                ..row("old")
            },
            ServerRow {
                failure: Some(failed("`npx` was not found", false)),
                tools: 0,
                ..row("db")
            },
            ServerRow {
                failure: Some(failed("HTTP 401 Unauthorized", false)),
                needs_login: true,
                ..row("linear")
            },
            ServerRow {
                failure: Some(failed("no answer within 30 s", true)),
                ..row("slow")
            },
            ServerRow {
                was_asked: false,
                category: String::new(),
                ..row("new")
            },
        ];
        assert_snapshot!(render(&rows, 14_300), @"
        server  state           tools  tokens  calls  last used  category
        git     on              12     1,234   5      2 h ago    files
        old     off             12     1,234   0      -          files
        db      failed          0      1,234   0      -          files
        linear  login required  12     1,234   0      -          files
        slow    stale           12     1,234   0      -          files
        new     not asked yet   12     1,234   0      -

        db: `npx` was not found
          next: proxy log db, then proxy reindex db

        linear: HTTP 401 Unauthorized
          next: proxy login linear

        slow: it runs, but its list of tools is from an earlier survey: no answer within 30 s
        ");
    }
}
