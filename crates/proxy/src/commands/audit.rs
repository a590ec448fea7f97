//! `proxy audit`: the calls that were made, and whether their log is unaltered.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use config::Config;
use files::clock::now_ms;
use serde_json::{Value, json};
use telemetry::{Broken, Filter, Verified};

use super::with_config;
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::Exit,
    report,
    table::render_table,
};

const EXAMPLES: &str = "\
Examples:
  proxy audit --since 1h
  proxy audit --client claude-code --server files --json
  proxy audit --caller ci             over HTTP, with this token
  proxy audit --failures --since 1d   calls that failed
  proxy audit --slow 2000             calls that took two seconds or more
  proxy audit verify                  whether the log was altered";

/// Show the calls that were made, with client, time and outcome
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    action: Option<AuditAction>,
    /// Only calls within this time: `90s`, `15m`, `1h`, `7d`
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    since: Option<u64>,
    /// Only calls over HTTP with this token or OAuth subject
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,
    /// Only calls of the client with this name
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
    /// Only calls of this server
    #[arg(long, value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    server: Option<String>,
    /// Only calls of the tool with this name
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only calls that took at least this time, in milliseconds
    #[arg(long, value_name = "MS")]
    slow: Option<u64>,
    /// Only calls that failed: errors, refused and cancelled calls
    #[arg(long)]
    failures: bool,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum AuditAction {
    /// Verify that the log was not altered
    ///
    /// Exit codes: 0 it was not, 1 it was; the first altered line is printed.
    Verify,
}

fn parse_span(text: &str) -> Result<u64, String> {
    let hint = "write a number and a unit, such as 90s, 15m, 1h, 7d";
    files::clock::parse_span(text).ok_or_else(|| hint.to_owned())
}

impl AuditArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        with_config(global, |config| print_audit(&config, global, self))
    }
}

fn print_audit(config: &Config, global: &Global, audit: AuditArgs) -> anyhow::Result<Exit> {
    let folder = config.gateway.state_dir.join("audit");
    if let Some(AuditAction::Verify) = audit.action {
        return Ok(print_verified(telemetry::verify(&folder)?, global));
    }
    let filter = Filter {
        since_ms: audit.since.map(|span| now_ms().saturating_sub(span)),
        client: audit.client,
        caller: audit.caller,
        server: audit.server,
        tool: audit.tool,
        slow_ms: audit.slow,
        failures: audit.failures,
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
        report::say("no matching call in the log");
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
        let told = format!("({lost} calls were not logged)");
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
    let handle = line["handle"].as_str();
    let part = match (handle, line["cut"] == true) {
        (Some(handle), true) => format!(" (cut: {handle})"),
        (Some(handle), false) => format!(" (of {handle})"),
        (None, is_cut) => (if is_cut { " (cut)" } else { "" }).to_owned(),
    };
    [
        text("at"),
        client,
        what,
        text("decision") + &rule,
        text("outcome") + &part,
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
                    "{lines} lines, {first} to {last}, are unaltered\nlast digest: {digest}"
                ));
                if unfinished > 0 {
                    report::say(&format!(
                        "unfinished writes: {unfinished}; a process was killed during a write, or the disk was full"
                    ));
                }
                if anchored_since > first {
                    report::say(&format!(
                        "the anchor exists since line {anchored_since}; lines removed from the end before that are not detected"
                    ));
                }
                report::say(
                    "a log replaced together with its anchor is detected only by the last digest; store it elsewhere",
                );
            }
            Exit::Success
        }
        Err(Broken { file, line, why }) => {
            if global.json {
                report::print_json(&json!({"ok": false, "file": file, "line": line, "why": why}));
            } else {
                report::say(&format!(
                    "error: audit/{file}, line {line}: {why}. The lines before it are unaltered; copy the folder before anything else is called"
                ));
            }
            Exit::Nothing
        }
    }
}
