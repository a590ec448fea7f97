//! `proxy stats`: statistics of the last days, and the uses of tools.

use clap::Args;
use gateway::{
    Gateway,
    api::{ApiReply, ApiRequest, FiguresAnswer, FiguresQuery},
};
use serde::Deserialize as _;
use serde_json::{Value, json};
use telemetry::{By, CallFigures, Figures, FirstUses};

use super::{
    api::{Api, Daemon, explain_reply, with_api},
    with_gateway,
};
use crate::{
    cli::global::Global,
    exit::Exit,
    report,
    table::{render_table, wrap},
};

/// The widest bar of the chart, in characters.
const BAR_MAX: u64 = 20;

/// Requests without a hit that are shown.
const MISSES_MAX: usize = 10;

const EXAMPLES: &str = "\
Examples:
  proxy stats
  proxy stats --by client --days 7
  proxy stats --by day --json
  proxy stats --learned              how often each tool was used
  proxy stats --learned --reset      delete them";

/// Show calls, errors, times, tokens, searches without a hit
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatsArgs {
    /// Group by
    #[arg(long, default_value = "tool", value_parser = ["tool", "server", "client", "day"])]
    by: String,
    /// Number of days, including today; 90 are kept
    #[arg(long, value_name = "COUNT", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=90))]
    days: u64,
    /// Number of lines, and of categories
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    top: usize,
    /// Print how often each tool was used since the last reset: calls that were sent to its server
    #[arg(long, conflicts_with_all = ["by", "days", "top"])]
    learned: bool,
    /// With --learned: delete these numbers, and what search learned from calls
    #[arg(long, requires = "learned")]
    reset: bool,
}

impl StatsArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        if !self.learned {
            return with_api(global, Daemon::Running, async |api| {
                self.print(api, global).await
            });
        }
        with_gateway(global, async |gateway| {
            if self.reset {
                gateway.catalog.usage.reset()?;
                gateway.catalog.feedback.reset()?;
                report::say("deleted: the numbers of calls, and what search learned from them");
            } else {
                print_learned(gateway, global);
            }
            Ok(Exit::Success)
        })
    }

    async fn print(&self, api: &mut Api, global: &Global) -> anyhow::Result<Exit> {
        let request = ApiRequest::Figures(FiguresQuery {
            by: Some(By::deserialize(Value::from(self.by.as_str()))?),
            days: Some(self.days),
            top: Some(self.top),
        });
        let reply = api.ask(request, Exit::Nothing).await?;
        let ApiReply::Figures(figures) = &reply else {
            return Err(explain_reply(&reply));
        };
        if !figures.is_on {
            report::say(
                "statistics are off: `stats.enabled = false`; these are of the time before",
            );
        }
        if global.json {
            report::print_json(&json!(figures));
            return Ok(Exit::Success);
        }
        report::print_data(&text_of(figures, self.days, self.top));
        let categories = figures.categories.iter();
        let categories = categories.map(|it| format!("{} {}", it.name, it.calls));
        let categories = categories.collect::<Vec<_>>().join(", ");
        report::print_data(&wrap(&format!("calls by category: {categories}"), 2));
        Ok(Exit::Success)
    }
}

fn print_learned(gateway: &Gateway, global: &Global) {
    let calls = gateway.catalog.usage.calls();
    let feedback = gateway.catalog.feedback.count();
    if global.json {
        let tools = calls.iter();
        let tools = tools.map(|it| {
            json!({"tool": it.tool, "ok": it.ok, "failed": it.failed, "last_used_at": it.last})
        });
        report::print_json(&json!({"tools": tools.collect::<Vec<_>>(), "learned": feedback}));
        return;
    }
    let lines = calls.iter().map(|it| match it.failed {
        0 => format!("{}: {}", it.tool, it.ok),
        failed => format!("{}: {} ({failed} failed)", it.tool, it.ok + failed),
    });
    let mut lines: Vec<String> = lines.collect();
    lines.push(format!("learned: {feedback} requests"));
    report::print_data(&lines.join("\n"));
}

/// The columns of the table; the last is a bar.
const HEAD: [&str; 9] = [
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

fn text_of(answer: &FiguresAnswer, days: u64, top: usize) -> String {
    let figures = &answer.figures;
    let most = figures.lines.iter().map(|line| line.calls).max();
    let most = most.unwrap_or(0).max(1);
    let bar = |line: &CallFigures| {
        let width = (line.calls * BAR_MAX).div_ceil(most);
        "#".repeat(usize::try_from(width).unwrap_or(0))
    };
    let row = |line: &CallFigures, bar: String| {
        [
            line.name.clone(),
            line.calls.to_string(),
            line.count().errors.to_string(),
            ms(line.p50_us),
            ms(line.p95_us),
            line.tokens_in.to_string(),
            line.tokens_out.to_string(),
            line.cuts.to_string(),
            bar,
        ]
    };
    let shown = figures.lines.iter();
    let mut rows: Vec<_> = shown.map(|line| row(line, bar(line))).collect();
    rows.push(row(&figures.total, String::new()));
    let table = render_table(HEAD, rows);
    let mut lines = vec![match days {
        1 => "of today, in UTC".to_owned(),
        days => format!("of the last {days} days, today included, in UTC"),
    }];
    if answer.more > 0 {
        let all = figures.lines.len() + answer.more;
        lines.push(format!("and {} more: --top {all}", answer.more));
    }
    let codes = figures.total.errors.iter();
    let codes = codes.map(|(code, count)| format!("{code} {count}"));
    let codes: Vec<String> = codes.collect();
    if !codes.is_empty() {
        lines.push(format!("errors: {}", codes.join(", ")));
    }
    lines.push(format!(
        "saved, about: {} tokens of definitions in {} sessions, {} of results that were cut, {} that scripts ({}) read and did not answer",
        figures.tokens_saved,
        figures.sessions,
        figures.total.tokens_cut,
        figures.script_tokens_saved,
        figures.scripts
    ));
    let redacted = figures.total.redacted;
    if redacted > 0 {
        lines.push(format!("redacted: {redacted} texts in results"));
    }
    lines.push(format!(
        "searches: {}, {} without a hit",
        figures.searches.count, figures.searches.misses
    ));
    let asked = figures.searches.asked.iter().take(MISSES_MAX);
    lines.extend(asked.map(|it| format!("  {} {}", it.count, it.words)));
    lines.extend(lines_of_uses(figures, top));
    format!("{table}\n{}", wrap(&lines.join("\n"), 2))
}

/// `CLIENT: search_tools at turn 1.2, first in 12 of 14 sessions; ...`, with a heading.
fn lines_of_uses(figures: &Figures, top: usize) -> Vec<String> {
    let of_tool = |(tool, uses): (&String, &FirstUses)| {
        let turn = mean_turn(uses);
        let (first, sessions) = (uses.first, uses.sessions);
        format!("{tool} at turn {turn:.1}, first in {first} of {sessions} sessions")
    };
    let mut lines = Vec::new();
    for (client, uses) in figures.first_uses.iter().take(top) {
        if lines.is_empty() {
            lines.push("first call of each tool in a session, by client:".to_owned());
        }
        let mut uses: Vec<_> = uses.iter().collect();
        uses.sort_by_key(|(_, uses)| std::cmp::Reverse(uses.first));
        let uses: Vec<String> = uses.into_iter().map(of_tool).collect();
        let client = match client.as_str() {
            "" => "(no name)",
            client => client,
        };
        lines.push(format!("  {client}: {}", uses.join("; ")));
    }
    lines
}

/// The mean number of the call in its session.
#[expect(clippy::cast_precision_loss, reason = "a mean for people")]
fn mean_turn(uses: &FirstUses) -> f64 {
    uses.turns as f64 / uses.sessions.max(1) as f64
}

fn ms(micros: Option<u64>) -> String {
    micros.map_or(String::new(), |micros| match micros {
        0..10_000 => format!("{}.{}", micros / 1_000, micros / 100 % 10),
        _ => (micros / 1_000).to_string(),
    })
}
