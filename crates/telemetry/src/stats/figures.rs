//! The statistics of several days, added up for display.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
};

use super::{
    day::{CallCounts, Day, FirstUses, OTHERS, RowKey},
    list::list,
};
use files::clock::days_before;

/// The grouping of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By tool, as `server/tool`.
    Tool,
    /// By server.
    Server,
    /// By client, with the name that it announces.
    Client,
    /// By day, in UTC.
    Day,
}

/// The statistics of some days.
#[derive(Debug, Default)]
pub struct Figures {
    /// One line per group, the most calls first; days are in order.
    pub lines: Vec<CallFigures>,
    /// The total of all lines.
    pub total: CallFigures,
    /// The searches.
    pub searches: Searches,
    /// The number of clients that connected.
    pub sessions: u64,
    /// The first use of each of the three tools in the sessions of each client.
    pub first_uses: BTreeMap<String, BTreeMap<String, FirstUses>>,
    /// The tokens of tool definitions that clients were not sent.
    pub tokens_saved: u64,
    /// The same tokens and those that scripts saved, by day.
    pub saved_by_day: BTreeMap<String, u64>,
    /// The number of scripts that ran.
    pub scripts: u64,
    /// The tokens that the calls of scripts returned and the scripts did not.
    pub script_tokens_saved: u64,
}

/// Calls that are counted together. Tokens are estimated from bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFigures {
    /// The name of the group.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// The number of failed calls by code, including tool errors.
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
}

/// Searches of all clients.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Searches {
    /// The number of searches.
    pub count: u64,
    /// The number of searches that found nothing.
    pub misses: u64,
    /// The words of searches that found nothing, the most frequent first.
    pub asked: Vec<(String, u64)>,
}

/// Reads the statistics of the last days, including today; empty if there is no folder. A file that is
/// invalid counts as empty.
pub fn read(folder: &Path, by: By, days: u64, now_ms: u64) -> io::Result<Figures> {
    let oldest = days_before(now_ms, days.saturating_sub(1));
    let mut rows: BTreeMap<String, CallCounts> = BTreeMap::new();
    let mut total = CallCounts::default();
    let mut figures = Figures::default();
    let mut asked: BTreeMap<String, u64> = BTreeMap::new();
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
        figures.saved_by_day.insert(name.clone(), saved);
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
    figures.total = CallFigures::of("all", total);
    let lines = rows
        .into_iter()
        .map(|(name, row)| CallFigures::of(&name, row));
    figures.lines = lines.collect();
    if by != By::Day {
        figures
            .lines
            .sort_by_key(|line| std::cmp::Reverse(line.calls));
    }
    figures.searches.asked = asked.into_iter().collect();
    figures
        .searches
        .asked
        .sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Ok(figures)
}

/// Returns the names of the clients that called or connected in the days that are kept.
pub fn list_clients(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut clients = BTreeSet::new();
    for (_, path) in list(folder)? {
        let day = Day::read(&path)?;
        clients.extend(day.calls.keys().map(|key| key.client.clone()));
        clients.extend(day.sessions.keys().cloned());
    }
    clients.remove("");
    clients.remove(OTHERS);
    Ok(clients)
}

fn name_of(by: By, key: &RowKey, day: &str) -> String {
    match by {
        By::Tool => format!("{}/{}", key.server, key.tool),
        By::Server => key.server.clone(),
        By::Client if key.client.is_empty() => "(command line)".to_owned(),
        By::Client => key.client.clone(),
        By::Day => day.to_owned(),
    }
}

impl CallFigures {
    fn of(name: &str, row: CallCounts) -> Self {
        Self {
            name: name.to_owned(),
            calls: row.calls,
            p50_us: row.percentile(50),
            p95_us: row.percentile(95),
            errors: row.errors,
            tokens_in: row.tokens_in,
            tokens_out: row.tokens_out,
            tokens_cut: row.tokens_cut,
            cuts: row.cuts,
            redacted: row.redacted,
        }
    }

    /// Returns the number of failed calls.
    pub fn count_errors(&self) -> u64 {
        self.errors.values().sum()
    }
}
