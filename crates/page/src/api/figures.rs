//! Figures of the last days, as `proxy stats --json` prints them.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use files::clock::now_ms;
use gateway::Gateway;
use registry::Generation;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use telemetry::{By, CallFigures, Figures, FirstUses};

use crate::{
    error::ApiError,
    reply::Reply,
    routes::{Call, Nothing},
};

const DAYS_DEFAULT: u64 = 30;
const TOP_DEFAULT: usize = 1000;

/// The columns of the CSV.
const COLUMNS: [&str; 9] = [
    "name",
    "calls",
    "errors",
    "p50_us",
    "p95_us",
    "tokens_in",
    "tokens_out",
    "tokens_cut",
    "cuts",
];

/// The grouping of figures.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FiguresGroup {
    #[default]
    Tool,
    Server,
    Client,
    Day,
}

/// The form of the answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Json,
    Csv,
}

/// A selection of figures.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FiguresQuery {
    by: Option<FiguresGroup>,
    /// The number of days, including today; 90 are kept.
    days: Option<u64>,
    /// The number of lines.
    top: Option<usize>,
    format: Option<Format>,
}

pub(crate) async fn read(call: Call<FiguresQuery, Nothing>) -> Result<Reply, ApiError> {
    let asked = call.query;
    let by = match asked.by.unwrap_or_default() {
        FiguresGroup::Tool => By::Tool,
        FiguresGroup::Server => By::Server,
        FiguresGroup::Client => By::Client,
        FiguresGroup::Day => By::Day,
    };
    let gateway = Arc::clone(&call.page.daemon.gateway);
    gateway
        .catalog
        .generation()
        .await
        .map_err(|error| super::tools::explain(&error))?;
    let reading = tokio::task::spawn_blocking(move || {
        let days = asked.days.unwrap_or(DAYS_DEFAULT).max(1);
        figures_json(&gateway, by, days, asked.top.unwrap_or(TOP_DEFAULT))
    });
    let json = reading.await.map_err(anyhow::Error::from)??;
    match asked.format.unwrap_or_default() {
        Format::Json => Reply::json(&json),
        Format::Csv => Ok(Reply::Csv(csv(&json))),
    }
}

fn csv(json: &Value) -> String {
    let mut text = COLUMNS.join(",") + "\r\n";
    for line in json["lines"].as_array().into_iter().flatten() {
        let cells = COLUMNS.map(|column| match &line[column] {
            Value::String(text) => quote(text),
            Value::Null => String::new(),
            number => number.to_string(),
        });
        text.push_str(&(cells.join(",") + "\r\n"));
    }
    text
}

/// Quotes a text for CSV. A text that a spreadsheet would read as a formula gets a quotation mark.
fn quote(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let mark = if formula { "'" } else { "" };
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

/// Returns the figures of the last days. Reads files, and so blocks.
pub fn figures_json(gateway: &Gateway, by: By, days: u64, top: usize) -> anyhow::Result<Value> {
    let folder = gateway.settings().state_dir.join("stats");
    let figures = telemetry::read_stats(&folder, by, days, now_ms())?;
    let by_tool = telemetry::read_stats(&folder, By::Tool, days, now_ms())?;
    let generation = gateway.catalog.registry.generation()?;
    let mut json = json_of(&figures, top);
    if by == By::Day {
        for line in json["lines"].as_array_mut().into_iter().flatten() {
            let day = line["name"].as_str().unwrap_or_default();
            let saved = figures.saved_by_day.get(day).copied().unwrap_or(0);
            line["tokens_saved"] = saved.into();
        }
    }
    let categories = count_by_category(&generation, &by_tool);
    let categories = categories.into_iter().take(top);
    json["categories"] = categories
        .map(|(calls, name)| json!({"name": name, "calls": calls}))
        .collect();
    Ok(json)
}

/// Counts the calls of known tools of servers by category, the most called first.
fn count_by_category(generation: &Generation, by_tool: &Figures) -> Vec<(u64, String)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for line in &by_tool.lines {
        let entry = generation.find(&line.name).ok();
        if let Some(entry) = entry.filter(|it| !it.at.server.is_built_in()) {
            *counts.entry(&entry.category).or_default() += line.calls;
        }
    }
    let counts = counts.into_iter();
    let mut counts: Vec<_> = counts
        .map(|(name, calls)| (calls, name.to_owned()))
        .collect();
    counts.sort_by_key(|(calls, _)| Reverse(*calls));
    counts
}

/// The mean number of the call in its session.
#[expect(clippy::cast_precision_loss, reason = "a mean for people")]
fn mean_turn(uses: &FirstUses) -> f64 {
    uses.turns as f64 / uses.sessions.max(1) as f64
}

/// For each client and tool: sessions that used it, that used it first, and the mean turn.
fn json_of_uses(figures: &Figures) -> Value {
    let of_tool = |(tool, uses): (&String, &FirstUses)| {
        let FirstUses {
            sessions, first, ..
        } = uses;
        let turn = (mean_turn(uses) * 100.0).round() / 100.0;
        (
            tool.clone(),
            json!({"sessions": sessions, "first": first, "mean_turn": turn}),
        )
    };
    let clients = figures.first_uses.iter();
    let clients = clients.map(|(client, uses)| {
        let tools: serde_json::Map<String, Value> = uses.iter().map(of_tool).collect();
        (client.clone(), Value::from(tools))
    });
    Value::Object(clients.collect())
}

fn json_of(figures: &Figures, top: usize) -> Value {
    let line = |line: &CallFigures| {
        json!({
            "name": line.name,
            "calls": line.calls,
            "errors": line.errors,
            "p50_us": line.p50_us,
            "p95_us": line.p95_us,
            "tokens_in": line.tokens_in,
            "tokens_out": line.tokens_out,
            "tokens_cut": line.tokens_cut,
            "cuts": line.cuts,
            "redacted": line.redacted,
        })
    };
    let searches = &figures.searches;
    let asked = searches
        .asked
        .iter()
        .map(|(words, count)| json!({"words": words, "count": count}));
    json!({
        "lines": figures.lines.iter().take(top).map(line).collect::<Vec<_>>(),
        "total": line(&figures.total),
        "sessions": figures.sessions,
        "tokens_saved_by_definitions": figures.tokens_saved,
        "first_uses": json_of_uses(figures),
        "scripts": figures.scripts,
        "tokens_saved_by_scripts": figures.script_tokens_saved,
        "searches": searches.count,
        "searches_without_hit": searches.misses,
        "asked_without_hit": asked.collect::<Vec<_>>(),
    })
}
