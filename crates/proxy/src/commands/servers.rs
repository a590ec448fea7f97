//! `proxy servers`: every configured server, and its state.

use files::clock::{now_s, show_age};
use std::{collections::BTreeSet, sync::Arc};

use gateway::{Gateway, describe_login, login_of};
use oauth::Grant;
use printable::group_digits;
use registry::ToolUsage;
use serde_json::{Value, json};
use tool::ServerName;

use super::{serve::find_route, status::ask_daemons};
use crate::{
    cli::Global,
    exit::Exit,
    report,
    table::{render_table, wrap},
    time::render_time,
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
    let rows: Vec<Row> = settings
        .servers
        .iter()
        .map(|server| {
            let name = server.spec.name.to_string();
            let known = catalog
                .servers
                .iter()
                .find(|it| it.name == server.spec.name);
            Row {
                is_enabled: server.enabled,
                calls: Calls::of(&name, &usage),
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
                login: login_of(server, &files).and_then(|record| record.grant),
                login_json: describe_login(server, &files),
                name,
            }
        })
        .collect();
    if global.json {
        let servers: Vec<Value> = rows.iter().map(Row::json).collect();
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
    let daemons = ask_daemons(&route).await.unwrap_or_default();
    let servers = daemons.iter().filter_map(|it| it["servers"].as_array());
    let ready = servers.flatten().filter(|it| it["state"] == "ready");
    let names = ready.filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

struct Row {
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
    calls: Calls,
    login: Option<Grant>,
    /// The same as JSON.
    login_json: Value,
}

/// The last survey returned no list of tools.
struct SurveyFailed {
    why: String,
    /// True if a daemon has a process of the server that answers.
    is_running: bool,
}

#[derive(Default)]
struct Calls {
    count: u64,
    last: Option<u64>,
}

impl Calls {
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

impl Row {
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
            "login": self.login_json,
        })
    }
}

fn render(rows: &[Row], now: u64) -> String {
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
    let logins: Vec<String> = rows.iter().filter_map(render_login).collect();
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

/// Renders the login of a server: the issuer, the scopes and the expiry. `None` for a server without a
/// login.
fn render_login(row: &Row) -> Option<String> {
    let (name, grant) = (&row.name, row.login.as_ref()?);
    if let Some(why) = &grant.ended {
        let why = printable::one_line(why);
        return Some(format!(
            "{name}: the login has ended ({why}); proxy login {name}"
        ));
    }
    let issuer = printable::one_line(&grant.issuer);
    let scopes = match grant.scopes.as_slice() {
        [] => String::new(),
        scopes => format!("; scopes: {}", printable::one_line(&scopes.join(" "))),
    };
    let until = grant.expires_at.map(render_time);
    let until = until.map_or_else(String::new, |until| format!("; token until {until}"));
    let renewed = if grant.is_renewable() {
        ", renewed by itself"
    } else {
        ""
    };
    Some(format!(
        "{name}: logged in at {issuer}{scopes}{until}{renewed}"
    ))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use registry::ToolUsage;
    use serde_json::Value;

    use super::{Calls, Row, SurveyFailed, render};

    fn failed(why: &str, is_running: bool) -> SurveyFailed {
        let why = why.to_owned();
        SurveyFailed { why, is_running }
    }

    fn row(name: &str) -> Row {
        Row {
            log: Some(format!("proxy log {name}, then ")),
            name: name.to_owned(),
            is_enabled: true,
            category: "files".to_owned(),
            tools: 12,
            tokens: 1_234,
            was_asked: true,
            failure: None,
            needs_login: false,
            calls: Calls::default(),
            login: None,
            login_json: Value::Null,
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
            Row {
                calls: Calls::of("git", &usage),
                ..row("git")
            },
            Row {
                is_enabled: false,
                ..row("old")
            },
            Row {
                failure: Some(failed("`npx` was not found", false)),
                tools: 0,
                ..row("db")
            },
            Row {
                failure: Some(failed("HTTP 401 Unauthorized", false)),
                needs_login: true,
                ..row("linear")
            },
            Row {
                failure: Some(failed("no answer within 30 s", true)),
                ..row("slow")
            },
            Row {
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
