//! `proxy audit`: the calls that were made, and whether their log is unaltered.

use config::Config;
use files::clock::now_ms;
use serde_json::{Value, json};
use telemetry::{Broken, Filter, Verified};

use crate::{
    cli::{Audit, AuditAction, Global},
    exit::Exit,
    report,
    table::render_table,
};

pub(super) fn print_audit(config: &Config, global: &Global, audit: &Audit) -> anyhow::Result<Exit> {
    let folder = config.gateway.state_dir.join("audit");
    if let Some(AuditAction::Verify) = audit.action {
        return Ok(print_verified(telemetry::verify(&folder)?, global));
    }
    let filter = Filter {
        since_ms: audit.since.map(|span| now_ms().saturating_sub(span)),
        client: audit.client.clone(),
        caller: audit.caller.clone(),
        server: audit.server.clone(),
        tool: audit.tool.clone(),
    };
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    telemetry::read(&folder, &filter, |line| {
        if global.json {
            lines.push(line.to_string());
        } else {
            rows.push(row(&line));
        }
    })?;
    if lines.is_empty() && rows.is_empty() {
        report::say("no call is written down that fits");
        return Ok(Exit::Nothing);
    }
    if global.json {
        report::print_data(&lines.join("\n"));
    } else {
        let head = [
            "when", "client", "what", "decision", "outcome", "tokens", "ms",
        ];
        report::print_data(&render_table(head, rows));
    }
    Ok(Exit::Success)
}

fn row(line: &Value) -> [String; 7] {
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| {
        line[key]
            .as_u64()
            .map_or(String::new(), |it| it.to_string())
    };
    if let Some(lost) = line["lost"].as_u64() {
        let told = format!("({lost} calls could not be written down)");
        return [
            String::new(),
            String::new(),
            told,
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ];
    }
    let kinds = ["tool", "prompt", "resource", "subscription", "completion"];
    let what = kinds
        .into_iter()
        .find_map(|kind| Some((kind, line[kind].as_str()?)));
    let what = match what {
        // A name that belongs to no server is shown as it was called.
        Some((_, name)) if text("server").is_empty() => name.to_owned(),
        Some(("tool", name)) => format!("{}/{name}", text("server")),
        Some((kind, name)) => format!("{}: {kind} {name}", text("server")),
        None => text("server"),
    };
    let rule = line["rule"]
        .as_u64()
        .map_or(String::new(), |rule| format!(" (rule {rule})"));
    let client = match (text("client"), text("caller")) {
        (client, caller) if client.is_empty() && caller.is_empty() => "-".to_owned(),
        (client, caller) if caller.is_empty() => client,
        (client, caller) => format!("{client} ({caller})").trim_start().to_owned(),
    };
    [
        text("at"),
        client,
        what,
        text("decision") + &rule,
        text("outcome"),
        number("tokens"),
        number("ms"),
    ]
}

fn print_verified(verified: Result<Verified, Broken>, global: &Global) -> Exit {
    match verified {
        Ok(Verified {
            lines,
            first,
            last,
            digest,
            unfinished,
            anchored_since,
        }) => {
            if global.json {
                report::print_json(&json!({
                    "ok": true, "lines": lines, "first": first, "last": last, "digest": digest,
                    "unfinished_writes": unfinished, "anchored_since": anchored_since,
                }));
            } else {
                report::print_data(&format!(
                    "{lines} lines, {first} to {last}, are as they were written\nlast digest: {digest}"
                ));
                if unfinished > 0 {
                    report::say(&format!(
                        "unfinished writes: {unfinished}; a process was killed while it wrote, or the disk was full"
                    ));
                }
                if anchored_since > first {
                    report::say(&format!(
                        "the anchor counts from line {anchored_since} on; lines taken from the end before it was made do not show"
                    ));
                }
                report::say(
                    "a log that was replaced together with its anchor shows by the last digest alone; keep it elsewhere",
                );
            }
            Exit::Success
        }
        Err(Broken { file, line, why }) => {
            if global.json {
                report::print_json(&json!({"ok": false, "file": file, "line": line, "why": why}));
            } else {
                report::say(&format!(
                    "error: audit/{file}, line {line}: {why}. What stands before it is as it was written; keep a copy of the folder before anything else is called"
                ));
            }
            Exit::Nothing
        }
    }
}
