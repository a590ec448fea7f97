//! Tests of the registry as a whole.

use std::path::Path;

use serde_json::{Value, json};
use tool::{ServerName, Tool};

use crate::{News, Query, Registry, Rules, ServerRules, Snapshot};

mod commit;
mod crash;
mod embedding;
mod laws;
mod named;
mod pins;
mod requests;
mod search;
mod spellings;
mod tool_lock;

pub(super) fn server(name: &str) -> ServerName {
    name.parse().unwrap()
}

/// Parses a tool of the form `name: description`.
pub(super) fn tool(line: &str) -> Value {
    let (name, description) = line.split_once(": ").unwrap_or((line, ""));
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// Parses tools of such lines.
pub(super) fn tools(lines: &[&str]) -> Vec<Tool> {
    let parse = |line: &&str| Tool::parse(&tool(line).to_string()).unwrap();
    lines.iter().map(parse).collect()
}

pub(super) fn news_of(name: &str, tools: &[Value]) -> News {
    let parse = |json: &Value| Tool::parse(&json.to_string()).unwrap();
    let snapshot = Snapshot {
        server: server(name),
        tools: tools.iter().map(parse).collect(),
        offer: tool::Offer::default(),
        server_name: format!("{name}-server"),
        server_version: "1.4.0".to_owned(),
        instructions: None,
        protocol: "2025-11-25".to_owned(),
        transport: None,
        asking_calls: Vec::new(),
        tokens: 10 * tools.len() as u64,
        surveyed_at: 1_000,
    };
    News {
        server: server(name),
        asked_ms: 0,
        outcome: Ok(snapshot),
    }
}

pub(super) fn news(name: &str, lines: &[&str]) -> News {
    let tools: Vec<Value> = lines.iter().map(|line| tool(line)).collect();
    news_of(name, &tools)
}

pub(super) fn failed(name: &str, why: &str) -> News {
    News {
        server: server(name),
        asked_ms: 0,
        outcome: Err(crate::SurveyFailure::new(why)),
    }
}

pub(super) fn rules(names: &[&str]) -> Rules {
    Rules {
        servers: names
            .iter()
            .map(|name| ServerRules::plain(server(name)))
            .collect(),
        ..Rules::default()
    }
}

/// Returns the names of a generation's tools, sorted.
pub(super) fn held(registry: &Registry) -> Vec<String> {
    registry
        .generation()
        .unwrap()
        .entries()
        .map(|entry| entry.at.to_string())
        .collect()
}

/// Returns the names of the hits, best first, each followed by the same tool on other servers.
pub(super) fn hits(registry: &Registry, query: &Query) -> Vec<String> {
    let found = registry.generation().unwrap().search(query);
    let names = found
        .hits
        .iter()
        .flat_map(|hit| std::iter::once(&hit.entry.at).chain(&hit.also));
    names.map(ToString::to_string).collect()
}

pub(super) fn open(folder: &Path, names: &[&str]) -> Registry {
    Registry::open(folder, rules(names)).unwrap()
}
