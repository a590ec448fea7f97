//! The figures of several days, added up for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
};

use super::{
    day::{Day, Key, OTHERS, Row},
    list::list,
};
use files::clock::days_before;

/// What figures are added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// `server/tool`.
    Tool,
    /// A server.
    Server,
    /// A client, by the name that it announces.
    Client,
    /// A day, in UTC.
    Day,
}

/// The figures of some days.
#[derive(Debug, Default)]
pub struct Figures {
    /// The most calls first; days in their order.
    pub lines: Vec<Line>,
    /// All of them in one.
    pub total: Line,
    /// What was searched for.
    pub searches: Searches,
    /// How many clients connected.
    pub sessions: u64,
    /// Tokens of definitions that they were not sent.
    pub tokens_saved: u64,
    /// How many scripts ran.
    pub scripts: u64,
    /// Tokens that their calls brought and their answers left out.
    pub script_tokens_saved: u64,
}

/// Calls that are counted together. Tokens are estimated by bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Of what they are.
    pub name: String,
    /// How many.
    pub calls: u64,
    /// Those that failed, by code, tool errors among them.
    pub errors: BTreeMap<String, u64>,
    /// The time that half of them took at most, in microseconds, right to a quarter.
    pub p50_us: Option<u64>,
    /// The same of 95 in 100.
    pub p95_us: Option<u64>,
    /// Of arguments.
    pub tokens_in: u64,
    /// Of answers.
    pub tokens_out: u64,
    /// Of results that were kept and not sent.
    pub tokens_cut: u64,
    /// Results that were cut.
    pub cuts: u64,
}

/// Searches of all clients.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Searches {
    /// How many.
    pub count: u64,
    /// Those that found nothing.
    pub misses: u64,
    /// What they asked for, the most frequent first.
    pub asked: Vec<(String, u64)>,
}

/// The figures of the last days, today among them; of a folder that is not there none. A file that
/// cannot be understood counts nothing.
pub fn read(folder: &Path, by: By, days: u64, now_ms: u64) -> io::Result<Figures> {
    let oldest = days_before(now_ms, days.saturating_sub(1));
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut total = Row::default();
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
        for (words, count) in day.asked {
            *asked.entry(words).or_default() += count;
        }
        for sessions in day.sessions.values() {
            figures.sessions += sessions.count;
            figures.tokens_saved += sessions.tokens_saved;
        }
    }
    figures.total = Line::of("all", total);
    let lines = rows.into_iter().map(|(name, row)| Line::of(&name, row));
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

/// The names of the clients that called or connected in the days that are kept.
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

fn name_of(by: By, key: &Key, day: &str) -> String {
    match by {
        By::Tool => format!("{}/{}", key.server, key.tool),
        By::Server => key.server.clone(),
        By::Client if key.client.is_empty() => "(command line)".to_owned(),
        By::Client => key.client.clone(),
        By::Day => day.to_owned(),
    }
}

impl Line {
    fn of(name: &str, row: Row) -> Self {
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
        }
    }

    /// How many of them failed.
    pub fn count_errors(&self) -> u64 {
        self.errors.values().sum()
    }
}
