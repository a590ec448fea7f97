//! `proxy audit`: the calls that were made, and whether their log is unaltered.

use std::path::Path;

use clap::Args;
use clap_complete::ArgValueCompleter;
use fleet::LogWitness;
use gateway::api::{ApiReply, ApiRequest, CallsQuery, ClusterReply, ClusterRequest, LoggedCall};
use serde_json::{Value, json};
use telemetry::{AuditHead, Broken, Verified};

use super::{
    api::{Api, Daemon, explain_reply, with_api},
    with_config,
};
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::Exit,
    report,
    table::render_table,
};

/// The calls of one request to the API.
const PART_MAX: usize = 10_000;

const EXAMPLES: &str = "\
Examples:
  proxy audit --since 1h
  proxy audit --client claude-code --server files --json
  proxy audit --caller ci             over HTTP, with this token
  proxy audit --failures --since 1d   errors of the last day
  proxy audit --slow 2000             calls that took two seconds or more
  proxy audit --verify                whether the log was altered

Exit codes: 0 success, 1 no such call, or (--verify) the log was altered";

/// Show each call, with its client, time and outcome
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Only calls within this time: `90s`, `15m`, `1h`, `7d`
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    since: Option<String>,
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
    /// Only errors: calls with any outcome but `ok`; and refused credentials
    #[arg(long)]
    failures: bool,
    /// Verify that the log was not altered, or print the first altered line. A node of a cluster also
    /// compares it with the lines of it that other nodes have in their logs
    #[arg(long, conflicts_with_all = ["since", "caller", "client", "server", "tool", "slow", "failures"])]
    verify: bool,
}

fn parse_span(text: &str) -> Result<String, String> {
    let hint = "write a number and a unit, such as 90s, 15m, 1h, 7d";
    let span = files::clock::parse_span(text);
    span.map(|_| text.to_owned()).ok_or_else(|| hint.to_owned())
}

impl AuditArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        if self.verify {
            return with_config(global, |config| {
                let folder = config.gateway.state_dir.join("audit");
                let verified = match telemetry::verify(&folder)? {
                    Ok(verified) => verified,
                    Err(broken) => return Ok(print_broken(&broken, global)),
                };
                let nodes = match config.cluster {
                    Some(_) => Some(compare(&folder, global)?),
                    None => None,
                };
                Ok(print_verified(&verified, nodes.as_deref(), global))
            });
        }
        with_api(global, Daemon::Running, async |api| {
            print_audit(api, global, &self).await
        })
    }
}

async fn print_audit(api: &mut Api, global: &Global, audit: &AuditArgs) -> anyhow::Result<Exit> {
    let mut calls: Vec<LoggedCall> = Vec::new();
    let mut before = None;
    loop {
        let request = ApiRequest::Calls(CallsQuery {
            since: audit.since.clone(),
            client: audit.client.clone(),
            caller: audit.caller.clone(),
            server: audit.server.clone(),
            tool: audit.tool.clone(),
            slow: audit.slow,
            failures: Some(audit.failures),
            before,
            limit: Some(PART_MAX),
            ..CallsQuery::default()
        });
        let reply = api.ask(request, Exit::Nothing).await?;
        let ApiReply::Calls(answer) = reply else {
            return Err(explain_reply(&reply));
        };
        calls.extend(answer.calls);
        before = answer.next_before;
        if before.is_none() {
            break;
        }
    }
    // A person reads the newest calls at the end.
    calls.reverse();
    if calls.is_empty() {
        return Err(Exit::Nothing.with("no matching call in the log"));
    }
    if global.json {
        let lines: Result<Vec<String>, _> = calls.iter().map(serde_json::to_string).collect();
        report::print_data(&lines?.join("\n"));
    } else {
        let head = [
            "when", "client", "what", "decision", "outcome", "tokens", "ms",
        ];
        report::print_data(&render_table(head, calls.iter().map(row).collect()));
    }
    Ok(Exit::Success)
}

fn row(call: &LoggedCall) -> [String; 7] {
    let get = |key: &str| call.line.get(key);
    let text = |key: &str| {
        let text = get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let number = |key: &str| {
        let number = get(key).and_then(Value::as_u64);
        number.map_or_else(String::new, |it| it.to_string())
    };
    if let Some(lost) = get("lost").and_then(Value::as_u64) {
        let mut row: [String; 7] = Default::default();
        row[2] = format!("({lost} calls were not logged)");
        return row;
    }
    let kinds = ["tool", "prompt", "resource", "subscription", "completion"];
    let what = kinds
        .into_iter()
        .find_map(|kind| Some((kind, get(kind)?.as_str()?)));
    let what = match what {
        // A name that belongs to no server is shown as it was called.
        Some((_, name)) if text("server").is_empty() => name.to_owned(),
        Some(("tool", name)) => format!("{}/{name}", text("server")),
        Some((kind, name)) => format!("{}: {kind} {name}", text("server")),
        None => text("server"),
    };
    let what = match text("node") {
        node if node.is_empty() => what,
        node => format!("{what} (on {node})"),
    };
    let rule = get("rule").and_then(Value::as_u64);
    let rule = rule.map_or_else(String::new, |rule| format!(" (rule {rule})"));
    let client = match (text("client"), text("caller")) {
        (client, caller) if client.is_empty() && caller.is_empty() => "-".to_owned(),
        (client, caller) if caller.is_empty() => client,
        (client, caller) => format!("{client} ({caller})").trim_start().to_owned(),
    };
    let handle = get("handle").and_then(Value::as_str);
    let is_cut = get("cut").and_then(Value::as_bool) == Some(true);
    let part = match (handle, is_cut) {
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

/// A line of this log that another node has in its own.
struct Compared {
    witness: LogWitness,
    /// True if this log has the line. `None`: the line is older than this log.
    has: Option<bool>,
}

fn compare(folder: &Path, global: &Global) -> anyhow::Result<Vec<Compared>> {
    let mut witnesses: Vec<LogWitness> = Vec::new();
    with_api(global, Daemon::Started, async |api| {
        let request = ApiRequest::Cluster(ClusterRequest::Witnesses);
        if let Ok(ApiReply::Cluster(ClusterReply::Witnesses(found))) =
            api.ask(request, Exit::Nothing).await
        {
            witnesses = found;
        }
        Ok(Exit::Success)
    })?;
    let head = |it: &LogWitness| AuditHead {
        number: it.head.number,
        digest: it.head.digest.clone(),
    };
    let heads: Vec<AuditHead> = witnesses.iter().map(head).collect();
    let has = telemetry::has_lines(folder, &heads)?;
    let compared = witnesses.into_iter().zip(has);
    let compared = compared.map(|(witness, has)| Compared { witness, has });
    Ok(compared.collect())
}

fn print_verified(verified: &Verified, nodes: Option<&[Compared]>, global: &Global) -> Exit {
    let is_missing = |it: &&Compared| it.has == Some(false);
    let missing = nodes.unwrap_or_default().iter().find(is_missing);
    if global.json {
        let node = |it: &Compared| json!({"node": it.witness.node, "line": it.witness.head.number, "has": it.has});
        let nodes = nodes.map(|all| all.iter().map(node).collect::<Vec<_>>());
        report::print_json(&json!({
            "ok": missing.is_none(), "lines": verified.lines, "first": verified.first,
            "last": verified.last, "digest": verified.digest,
            "unfinished_writes": verified.unfinished, "anchored_since": verified.anchored_since,
            "nodes": nodes,
        }));
    } else if let Some(Compared { witness, .. }) = missing {
        report::say(&format!(
            "error: line {} is not the one that node `{}` has in its log: lines were removed from the end, or \
             the log was replaced. Copy the folder before anything else is called",
            witness.head.number, witness.node
        ));
    } else {
        say_verified(verified, nodes);
    }
    Exit::of_hit(missing.is_none())
}

fn say_verified(verified: &Verified, nodes: Option<&[Compared]>) {
    report::print_data(&format!(
        "{} lines, {} to {}, are unaltered\nlast digest: {}",
        verified.lines, verified.first, verified.last, verified.digest
    ));
    if verified.unfinished > 0 {
        report::say(&format!(
            "unfinished writes: {}; a process was killed during a write, or the disk was full",
            verified.unfinished
        ));
    }
    if verified.anchored_since > verified.first {
        report::say(&format!(
            "the anchor exists since line {}; lines removed from the end before that are not detected",
            verified.anchored_since
        ));
    }
    let known = nodes.unwrap_or_default().iter();
    let known = known.filter(|it| it.has == Some(true));
    if let Some(newest) = known.clone().map(|it| it.witness.head.number).max() {
        let names: Vec<&str> = known.map(|it| it.witness.node.as_str()).collect();
        report::say(&format!(
            "the logs of other nodes ({}) agree, up to line {newest}",
            names.join(", ")
        ));
        return;
    }
    if nodes.is_some() {
        report::say("no connected node has a line of this log yet");
    }
    report::say(
        "a log replaced together with its anchor is detected only by the last digest; store it elsewhere",
    );
}

fn print_broken(broken: &Broken, global: &Global) -> Exit {
    let Broken { file, line, why } = broken;
    if global.json {
        report::print_json(&json!({"ok": false, "file": file, "line": line, "why": why}));
    } else {
        report::say(&format!(
            "error: audit/{file}, line {line}: {why}. The lines before it are unaltered; copy the folder before anything else is called"
        ));
    }
    Exit::Nothing
}
