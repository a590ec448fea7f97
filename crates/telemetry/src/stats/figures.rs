//! The statistics of several days, added up for display.

use std::{cmp::Reverse, collections::BTreeMap, io, path::Path};

use serde::{Deserialize, Serialize};

use super::{
    day::{CallCounts, Day, FirstUses, RowKey},
    list::list,
};
use crate::outcome::CallCount;
use files::clock::days_before;

/// The name of calls of a person at the command line, among those of clients.
pub const COMMAND_LINE: &str = "(command line)";

/// The grouping of statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// By tool, as `server/tool`.
    #[default]
    Tool,
    /// By server.
    Server,
    /// By client, with the name that it announces.
    Client,
    /// By day, in UTC.
    Day,
}

/// The statistics of some days.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// One line per group, the most calls first; days are in order.
    pub lines: Vec<CallFigures>,
    /// The total of all lines.
    pub total: CallFigures,
    /// The searches.
    #[serde(flatten)]
    pub searches: Searches,
    /// The number of clients that connected.
    pub sessions: u64,
    /// The first use of each of the three tools in the sessions of each client.
    pub first_uses: BTreeMap<String, BTreeMap<String, FirstUses>>,
    /// The tokens of tool definitions that clients were not sent.
    #[serde(rename = "tokens_saved_by_definitions")]
    pub tokens_saved: u64,
    /// The number of scripts that ran.
    pub scripts: u64,
    /// The tokens that the calls of scripts returned and the scripts did not.
    #[serde(rename = "tokens_saved_by_scripts")]
    pub script_tokens_saved: u64,
}

/// Calls that are counted together. Tokens are estimated from bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallFigures {
    /// The name of the group.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// The number of errors among them by outcome, such as `tool_error` or `timeout`.
    pub errors: BTreeMap<String, u64>,
    /// The time in microseconds that half of the calls do not exceed, accurate to a quarter.
    pub p50_us: Option<u64>,
    /// The time that 95 of 100 calls do not exceed.
    pub p95_us: Option<u64>,
    /// The tokens of arguments.
    pub tokens_in: u64,
    /// The tokens of responses.
    pub tokens_out: u64,
    /// The tokens of results that were stored and not sent.
    pub tokens_cut: u64,
    /// The number of results that were cut.
    pub cuts: u64,
    /// The number of texts in results that were redacted.
    pub redacted: u64,
    /// Of a day: the tokens that definitions and scripts saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_saved: Option<u64>,
}

/// Searches of all clients.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Searches {
    /// The number of searches.
    #[serde(rename = "searches")]
    pub count: u64,
    /// The number of searches that found nothing.
    #[serde(rename = "searches_without_hit")]
    pub misses: u64,
    /// Searches that found nothing, the most frequent first.
    #[serde(rename = "asked_without_hit")]
    pub asked: Vec<AskedWords>,
}

/// The words of a search that found nothing.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedWords {
    /// The words.
    pub words: String,
    /// The number of such searches.
    pub count: u64,
}

/// Reads the statistics of the last days, including today; empty if there is no folder. A file that is
/// invalid counts as empty.
pub fn read(folder: &Path, by: By, days: u64, now_ms: u64) -> io::Result<Figures> {
    let oldest = days_before(now_ms, days.saturating_sub(1));
    let mut rows: BTreeMap<String, CallCounts> = BTreeMap::new();
    let mut total = CallCounts::default();
    let mut figures = Figures::default();
    let mut asked: BTreeMap<String, u64> = BTreeMap::new();
    let mut saved_by_day: BTreeMap<String, u64> = BTreeMap::new();
    for (name, path) in list(folder)? {
        if name < oldest {
            continue;
        }
        let day = Day::read(&path)?;
        for (key, row) in &day.calls {
            rows.entry(name_of(by, key, &name)).or_default().add(row);
            total.add(row);
        }
        figures.searches.count += day.searches;
        figures.searches.misses += day.misses;
        figures.scripts += day.scripts;
        figures.script_tokens_saved += day.script_tokens_saved;
        let of_sessions = day.sessions.values().map(|it| it.tokens_saved);
        let saved = day.script_tokens_saved + of_sessions.sum::<u64>();
        saved_by_day.insert(name.clone(), saved);
        for (words, count) in day.asked {
            *asked.entry(words).or_default() += count;
        }
        for (client, sessions) in day.sessions {
            figures.sessions += sessions.count;
            figures.tokens_saved += sessions.tokens_saved;
            for (tool, uses) in sessions.first_uses {
                let of_client = figures.first_uses.entry(client.clone()).or_default();
                of_client.entry(tool).or_default().add(uses);
            }
        }
    }
    figures.total = CallFigures::of(("all".to_owned(), total));
    figures.lines = rows.into_iter().map(CallFigures::of).collect();
    let lines = &mut figures.lines;
    if by == By::Day {
        for line in lines {
            line.tokens_saved = Some(saved_by_day.get(&line.name).copied().unwrap_or(0));
        }
    } else {
        lines.sort_by_key(|line| Reverse(line.calls));
    }
    let asked = asked.into_iter();
    let asked = asked.map(|(words, count)| AskedWords { words, count });
    let mut asked: Vec<AskedWords> = asked.collect();
    asked.sort_by_key(|it| Reverse(it.count));
    figures.searches.asked = asked;
    Ok(figures)
}

fn name_of(by: By, key: &RowKey, day: &str) -> String {
    match by {
        By::Tool => format!("{}/{}", key.server, key.tool),
        By::Server => key.server.clone(),
        By::Client if key.client.is_empty() => COMMAND_LINE.to_owned(),
        By::Client => key.client.clone(),
        By::Day => day.to_owned(),
    }
}

impl CallFigures {
    fn of((name, row): (String, CallCounts)) -> Self {
        Self {
            name,
            calls: row.calls,
            p50_us: row.percentile(50),
            p95_us: row.percentile(95),
            errors: row.errors,
            tokens_in: row.tokens_in,
            tokens_out: row.tokens_out,
            tokens_cut: row.tokens_cut,
            cuts: row.cuts,
            redacted: row.redacted,
            tokens_saved: None,
        }
    }

    /// Returns the number of calls and of errors.
    pub fn count(&self) -> CallCount {
        CallCount {
            calls: self.calls,
            errors: self.errors.values().sum(),
        }
    }
}
