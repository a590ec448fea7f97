//! `proxy review`, `proxy history`: what became of tools since they were accepted, and since when.

use std::path::PathBuf;

use gateway::Gateway;
use registry::{HistoryEntry, Review};
use serde_json::{Value, json};
use setup::moving::difference;
use tool::ServerName;

use crate::{
    cli::{Global, History, ReviewTools},
    exit::Exit,
    report,
};

pub(super) fn review(
    gateway: &Gateway,
    global: &Global,
    asked: &ReviewTools,
) -> anyhow::Result<Exit> {
    let server: Option<ServerName> = match asked.server.as_deref().map(str::parse).transpose() {
        Ok(server) => server,
        Err(error) => {
            report::say(&format!("error: {error}"));
            return Ok(Exit::Usage);
        }
    };
    if asked.accept || asked.refuse {
        return decide(gateway, server.as_ref(), asked);
    }
    let reviews = gateway.registry.list_reviews(server.as_ref());
    if global.json {
        let list: Vec<Value> = reviews.iter().map(json_of).collect();
        report::print_json(&Value::from(list));
    } else if reviews.is_empty() {
        report::say("every tool is as it was accepted");
    } else {
        let texts: Vec<String> = reviews.iter().map(text_of).collect();
        report::print_data(&texts.join("\n\n"));
        report::say("proxy review SERVER [TOOL...] --accept, or --refuse");
    }
    Ok(if reviews.is_empty() {
        Exit::Success
    } else {
        Exit::Nothing
    })
}

fn decide(
    gateway: &Gateway,
    server: Option<&ServerName>,
    asked: &ReviewTools,
) -> anyhow::Result<Exit> {
    let servers = match server {
        Some(server) => vec![server.clone()],
        None => gateway
            .settings()
            .enabled()
            .map(|it| it.spec.name.clone())
            .collect(),
    };
    let mut decided = Vec::new();
    for server in servers {
        let tools = gateway
            .registry
            .decide_on(&server, &asked.tools, asked.accept)?;
        decided.extend(tools.into_iter().map(|tool| format!("{server}/{tool}")));
    }
    let verb = if asked.accept { "accepted" } else { "refused" };
    if decided.is_empty() {
        report::say("no tool waits under this name; `proxy review` lists them");
        return Ok(Exit::Nothing);
    }
    report::say(&format!("{verb}: {}", decided.join(", ")));
    Ok(Exit::Success)
}

fn json_of(review: &Review) -> Value {
    json!({
        "tool": review.at.to_string(),
        "state": state_of(review),
        "before": review.before,
        "now": review.now,
        "signs": review.signs,
    })
}

fn state_of(review: &Review) -> &'static str {
    match (review.is_refused, &review.before) {
        (true, _) => "refused",
        (false, Some(_)) => "changed",
        (false, None) => "new",
    }
}

fn text_of(review: &Review) -> String {
    let at = review.at.to_string();
    let mut lines = vec![format!("{at}: {}", state_of(review))];
    lines.extend(review.signs.iter().map(|sign| format!("  ! {sign}")));
    lines.push(show_difference(&at, review.before.as_deref(), &review.now));
    lines.join("\n")
}

/// Line by line, with what is hidden in them written out.
fn show_difference(name: &str, before: Option<&str>, now: &str) -> String {
    let lines = |json: &str| {
        let value: Option<Value> = serde_json::from_str(json).ok();
        let pretty = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
        printable::seen_json(&pretty.unwrap_or_else(|| json.to_owned())).into_owned() + "\n"
    };
    let before = before.map(lines);
    let text = difference(PathBuf::from(name), before.as_deref(), &lines(now)).text;
    text.trim_end().to_owned()
}

pub(super) fn print_history(gateway: &Gateway, global: &Global, asked: &History) -> Exit {
    let entries = gateway.registry.list_history(asked.server.as_deref());
    if let [from, to] = asked.diff.as_slice() {
        return print_between(&entries, *from, *to);
    }
    if global.json {
        let numbered = entries.iter().enumerate().map(|(at, it)| {
            json!({"number": at + 1, "at": it.at, "server": it.server, "added": it.added,
                "changed": it.changed, "removed": it.removed})
        });
        report::print_json(&Value::from(numbered.collect::<Vec<_>>()));
        return Exit::Success;
    }
    if entries.is_empty() {
        report::say("no survey changed anything, as far back as is kept");
        return Exit::Success;
    }
    let lines = entries.iter().enumerate().map(|(at, it)| {
        let time = telemetry::show_time(it.at * 1_000);
        format!("{}  {time}  {}: {}", at + 1, it.server, names_of(it))
    });
    report::print_data(&lines.collect::<Vec<_>>().join("\n"));
    Exit::Success
}

fn names_of(entry: &HistoryEntry) -> String {
    let lists = [
        ("added", &entry.added),
        ("changed", &entry.changed),
        ("removed", &entry.removed),
    ];
    let lists = lists.iter().filter(|(_, names)| !names.is_empty());
    let lists = lists.map(|(what, names)| format!("{what} {}", names.join(", ")));
    lists.collect::<Vec<_>>().join("; ")
}

/// From the state behind one entry to that behind another; 0 is before all of them.
fn print_between(entries: &[HistoryEntry], from: usize, to: usize) -> Exit {
    if from >= to || to > entries.len() {
        report::say(&format!(
            "error: no such entries\nhint: `proxy history` numbers them, 1 to {}; the first of the two is the older, 0 before all",
            entries.len()
        ));
        return Exit::Usage;
    }
    let between = &entries[from..to];
    let mut texts = Vec::new();
    let mut names: Vec<(&String, &String)> = Vec::new();
    for entry in between {
        texts.push(format!("{}: {}", entry.server, names_of(entry)));
        for tool in entry.definitions.keys() {
            if !names.contains(&(&entry.server, tool)) {
                names.push((&entry.server, tool));
            }
        }
    }
    for (server, tool) in names {
        let of_server = between.iter().filter(|it| it.server == *server);
        let mut states = of_server.filter_map(|it| it.definitions.get(tool));
        let first = states.clone().next();
        let last = states.next_back();
        if let Some(((before, _), (_, now))) = first.zip(last) {
            texts.push(show_difference(
                &format!("{server}/{tool}"),
                Some(before),
                now,
            ));
        }
    }
    report::print_data(&texts.join("\n"));
    Exit::Success
}
