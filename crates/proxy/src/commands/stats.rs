//! `proxy stats`: statistics of the last days.

use config::Config;
use files::clock::now_ms;
use serde_json::{Value, json};
use telemetry::{By, Figures, Line};

use crate::{
    cli::{Global, Stats, StatsBy},
    exit::Exit,
    report,
    table::{render_table, wrap},
};

/// The widest bar of the chart, in characters.
const BAR_MAX: u64 = 20;

/// Requests without a hit that are shown.
const ASKED_MAX: usize = 10;

pub(super) fn print_stats(config: &Config, global: &Global, stats: &Stats) -> anyhow::Result<Exit> {
    let by = match stats.by {
        StatsBy::Tool => By::Tool,
        StatsBy::Server => By::Server,
        StatsBy::Client => By::Client,
        StatsBy::Day => By::Day,
    };
    let folder = config.gateway.state_dir.join("stats");
    let figures = telemetry::read_stats(&folder, by, stats.days, now_ms())?;
    if global.json {
        report::print_json(&json_of(&figures, stats.top));
    } else {
        report::print_data(&text_of(&figures, stats));
        report::say("calls of the last 10 seconds may be missing; proxy audit has them");
    }
    Ok(Exit::Success)
}

fn text_of(figures: &Figures, stats: &Stats) -> String {
    let most = figures.lines.iter().map(|line| line.calls).max();
    let most = most.unwrap_or(0).max(1);
    let bar = |line: &Line| {
        let width = (line.calls * BAR_MAX).div_ceil(most);
        "#".repeat(usize::try_from(width).unwrap_or(0))
    };
    let row = |line: &Line, bar: String| {
        [
            line.name.clone(),
            line.calls.to_string(),
            line.count_errors().to_string(),
            ms(line.p50_us),
            ms(line.p95_us),
            line.tokens_in.to_string(),
            line.tokens_out.to_string(),
            line.cuts.to_string(),
            bar,
        ]
    };
    let shown = figures.lines.iter().take(stats.top);
    let mut rows: Vec<_> = shown.map(|line| row(line, bar(line))).collect();
    rows.push(row(&figures.total, String::new()));
    let head = [
        "",
        "calls",
        "errors",
        "p50 ms",
        "p95 ms",
        "tokens in",
        "out",
        "cut",
        "",
    ];
    let table = render_table(head, rows);
    let mut lines = Vec::new();
    let left = figures.lines.len().saturating_sub(stats.top);
    if left > 0 {
        lines.push(format!("and {left} more: --top {}", figures.lines.len()));
    }
    let codes = figures.total.errors.iter();
    let codes: Vec<String> = codes
        .map(|(code, count)| format!("{code} {count}"))
        .collect();
    if !codes.is_empty() {
        lines.push(format!("errors: {}", codes.join(", ")));
    }
    let (sessions, saved) = (figures.sessions, figures.tokens_saved);
    let cut = figures.total.tokens_cut;
    let (scripts, left) = (figures.scripts, figures.script_tokens_saved);
    lines.push(format!(
        "saved, about: {saved} tokens of definitions in {sessions} sessions, {cut} of results that were cut, {left} that scripts ({scripts}) read and did not answer"
    ));
    let searches = &figures.searches;
    lines.push(format!(
        "searches: {}, {} without a hit",
        searches.count, searches.misses
    ));
    let asked = searches.asked.iter().take(ASKED_MAX);
    lines.extend(asked.map(|(words, count)| format!("  {count} {words}")));
    format!("{table}\n{}", wrap(&lines.join("\n"), 2))
}

fn ms(micros: Option<u64>) -> String {
    micros.map_or(String::new(), |micros| match micros {
        0..10_000 => format!("{}.{}", micros / 1_000, micros / 100 % 10),
        _ => (micros / 1_000).to_string(),
    })
}

fn json_of(figures: &Figures, top: usize) -> Value {
    let line = |line: &Line| {
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
        "scripts": figures.scripts,
        "tokens_saved_by_scripts": figures.script_tokens_saved,
        "searches": searches.count,
        "searches_without_hit": searches.misses,
        "asked_without_hit": asked.collect::<Vec<_>>(),
    })
}
