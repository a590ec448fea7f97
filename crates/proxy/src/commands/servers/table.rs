//! `proxy servers`: every configured server, and its state.

use daemon::status::Availability;
use files::clock::{now_s, show_age};
use gateway::api::{ApiReply, ApiRequest, ServerRow};
use printable::group_digits;
use serde_json::json;

use crate::{
    cli::global::Global,
    commands::{
        api::{Api, explain_reply},
        status::render_login,
    },
    exit::Exit,
    report,
    table::{render_table, wrap},
};

pub(super) async fn print_servers(api: &mut Api, global: &Global) -> anyhow::Result<Exit> {
    let reply = api.ask(ApiRequest::Servers, Exit::Nothing).await?;
    let ApiReply::Servers(rows) = reply else {
        return Err(explain_reply(&reply));
    };
    if global.json {
        report::print_json(&json!({"servers": rows}));
    } else if !rows.is_empty() {
        report::print_data(&render(&rows, now_s()));
    }
    let new = rows.iter().any(|it| it.state == Availability::NotAsked);
    if new && !global.json {
        report::say("hint: `proxy reindex` asks those that were not asked yet for their tools");
    }
    if rows.is_empty() {
        return Err(Exit::Nothing
            .with("no servers; add one: proxy add NAME -- COMMAND, or: proxy add NAME URL"));
    }
    Ok(Exit::Success)
}

fn render(rows: &[ServerRow], now: u64) -> String {
    let head = [
        "server",
        "state",
        "tools",
        "tokens",
        "calls",
        "errors",
        "last used",
        "category",
    ];
    let cells = rows.iter().map(|row| {
        let count = |count: u64| group_digits(usize::try_from(count).unwrap_or(usize::MAX));
        let days = |calls: Option<u64>| calls.map_or_else(|| "-".to_owned(), count);
        [
            row.name.clone(),
            row.state.label().to_owned(),
            count(row.tools as u64),
            count(row.tokens),
            days(row.calls_30_days),
            days(row.errors_30_days),
            row.last_used_at
                .map_or_else(|| "-".to_owned(), |last| show_age(now.saturating_sub(last))),
            row.category.clone(),
        ]
    });
    let mut lines = vec![render_table(head, cells.collect())];
    if rows.iter().any(|row| row.calls_30_days.is_some()) {
        lines.push("\ncalls and errors: of the last 30 days".to_owned());
    }
    let logins = rows.iter();
    let logins = logins.filter_map(|row| Some(render_login(&row.name, row.login.as_ref()?)));
    let logins: Vec<String> = logins.collect();
    if !logins.is_empty() {
        lines.push(wrap(&format!("\n{}", logins.join("\n")), 2));
    }
    for row in rows.iter().filter(|row| row.enabled) {
        if let Some(why) = &row.why {
            lines.push(wrap(&format!("\n{}", render_failure(row, why)), 2));
        }
    }
    lines.join("\n")
}

fn render_failure(row: &ServerRow, why: &str) -> String {
    let name = &row.name;
    let log = row.has_log.then(|| format!("proxy logs {name}, then "));
    let log = log.unwrap_or_default();
    match row.state {
        Availability::LoginRequired => format!("{name}: {why}\n  next: proxy login {name}"),
        // The daemon repeats the survey of a running server.
        Availability::Stale => {
            format!("{name}: it runs, but its list of tools is from an earlier survey: {why}")
        }
        _ => format!("{name}: {why}\n  next: {log}proxy reindex {name}"),
    }
}

#[cfg(test)]
mod tests {
    use gateway::api::ServerRow;
    use insta::assert_snapshot;

    use super::{Availability, render};

    fn row(name: &str, state: Availability) -> ServerRow {
        ServerRow {
            name: name.to_owned(),
            state,
            enabled: state != Availability::Disabled,
            category: "files".to_owned(),
            tools: 12,
            tokens: 1_234,
            has_log: true,
            ..ServerRow::default()
        }
    }

    #[test]
    fn servers_read_as_a_table() {
        let failed = |name, state, why: &str| ServerRow {
            why: Some(why.to_owned()),
            ..row(name, state)
        };
        let rows = [
            ServerRow {
                calls_30_days: Some(5),
                errors_30_days: Some(1),
                last_used_at: Some(7_000),
                ..row("git", Availability::Stopped)
            },
            row("old", Availability::Disabled),
            ServerRow {
                tools: 0,
                ..failed("db", Availability::Down, "`npx` was not found")
            },
            failed(
                "linear",
                Availability::LoginRequired,
                "HTTP 401 Unauthorized",
            ),
            failed("slow", Availability::Stale, "no answer within 30 s"),
            ServerRow {
                category: String::new(),
                ..row("new", Availability::NotAsked)
            },
        ];
        assert_snapshot!(render(&rows, 14_300), @"
        server  state           tools  tokens  calls  errors  last used  category
        git     stopped         12     1,234   5      1       2 h ago    files
        old     disabled        12     1,234   -      -       -          files
        db      down            0      1,234   -      -       -          files
        linear  login required  12     1,234   -      -       -          files
        slow    stale           12     1,234   -      -       -          files
        new     not asked yet   12     1,234   -      -       -

        calls and errors: of the last 30 days

        db: `npx` was not found
          next: proxy logs db, then proxy reindex db

        linear: HTTP 401 Unauthorized
          next: proxy login linear

        slow: it runs, but its list of tools is from an earlier survey: no answer within 30 s
        ");
    }
}
