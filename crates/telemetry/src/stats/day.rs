//! The statistics of one day.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::{Deserialize, Serialize};

use super::histogram::Histogram;
use crate::record::{CallRecord, Event, estimate_tokens};

/// The most rows (a client with a tool) per day; further ones are added up in one row.
const ROWS_MAX: usize = 1_000;

/// The most searches without a hit that are kept per day.
const ASKED_MAX: usize = 200;

/// The longest text of such a search, in characters.
const ASKED_CHARS_MAX: usize = 120;

/// The most clients whose sessions are counted separately per day.
const CLIENTS_MAX: usize = 200;

/// The name of the row for everything above these limits.
pub(super) const OTHERS: &str = "others";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Day {
    #[serde(with = "rows")]
    pub(super) calls: BTreeMap<RowKey, CallCounts>,
    pub(super) searches: u64,
    pub(super) misses: u64,
    /// Searches without a hit, with the number of times.
    pub(super) asked: BTreeMap<String, u64>,
    pub(super) sessions: BTreeMap<String, Sessions>,
    pub(super) scripts: u64,
    /// The tokens that scripts read and did not return.
    pub(super) script_tokens_saved: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct RowKey {
    pub(super) client: String,
    pub(super) server: String,
    pub(super) tool: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CallCounts {
    pub(super) calls: u64,
    /// The number of errors by code.
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) tokens_in: u64,
    pub(super) tokens_out: u64,
    /// The tokens that were cut from results.
    pub(super) tokens_cut: u64,
    pub(super) cuts: u64,
    pub(super) redacted: u64,
    pub(super) times: Histogram,
    /// The longest time in microseconds; 0 if an earlier version wrote the row.
    pub(super) longest_us: u64,
}

impl CallCounts {
    /// Returns the time in microseconds that `percent` of the calls do not exceed.
    pub(super) fn percentile(&self, percent: u64) -> Option<u64> {
        let time = self.times.percentile(percent)?;
        // The end of the bucket may be far above the longest time in it.
        let longest = Some(self.longest_us).filter(|it| *it > 0);
        Some(longest.map_or(time, |longest| time.min(longest)))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sessions {
    pub(super) count: u64,
    pub(super) tokens_saved: u64,
    /// The first use of each of the three tools.
    pub(super) first_uses: BTreeMap<String, FirstUses>,
}

/// The first calls of one of the three tools in the sessions of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FirstUses {
    /// The sessions that used it.
    pub sessions: u64,
    /// The sessions that used it before the other two.
    pub first: u64,
    /// The sum of the numbers that these calls had in their sessions, from 1 on.
    pub turns: u64,
}

impl FirstUses {
    pub(super) fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.first += other.first;
        self.turns += other.turns;
    }
}

impl Day {
    /// Reads a day. Returns an empty one if there is no file, or if it is invalid.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        match fs::read(path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("maps with text keys are always JSON")
    }

    pub(super) fn count(&mut self, event: &Event) {
        match event {
            Event::Call(call) => self.count_call(call),
            Event::Refusal(_) | Event::Head { .. } => {}
            Event::Search { words, hits, .. } => {
                self.searches += 1;
                if *hits == 0 {
                    self.misses += 1;
                    self.note_asked(&printable::one_line_of(words, ASKED_CHARS_MAX), 1);
                }
            }
            Event::Script {
                bytes_read,
                bytes_sent,
                ..
            } => {
                self.scripts += 1;
                self.script_tokens_saved += estimate_tokens(bytes_read.saturating_sub(*bytes_sent));
            }
            Event::FirstUse {
                client, tool, turn, ..
            } => {
                let uses = &mut self.sessions_of(client).first_uses;
                uses.entry((*tool).to_owned()).or_default().add(FirstUses {
                    sessions: 1,
                    first: u64::from(*turn == 1),
                    turns: *turn,
                });
            }
            Event::Session {
                client,
                tokens_saved,
                ..
            } => {
                let sessions = self.sessions_of(client);
                sessions.count += 1;
                sessions.tokens_saved += tokens_saved;
            }
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (key, row) in &other.calls {
            self.row(key.clone()).add(row);
        }
        self.searches += other.searches;
        self.misses += other.misses;
        self.scripts += other.scripts;
        self.script_tokens_saved += other.script_tokens_saved;
        for (words, count) in &other.asked {
            self.note_asked(words, *count);
        }
        for (client, more) in &other.sessions {
            let sessions = self.sessions_of(client);
            sessions.count += more.count;
            sessions.tokens_saved += more.tokens_saved;
            for (tool, uses) in &more.first_uses {
                let known = sessions.first_uses.entry(tool.clone()).or_default();
                known.add(*uses);
            }
        }
    }

    fn count_call(&mut self, call: &CallRecord) {
        let named = |name: &str| printable::one_line_of(name, ASKED_CHARS_MAX);
        let row = self.row(RowKey {
            client: named(&call.client),
            server: named(&call.server),
            tool: match call.kind {
                "tool" => named(&call.name),
                // The number of resource URIs is unbounded.
                kind => format!("({kind}s)"),
            },
        });
        row.calls += 1;
        if call.outcome.is_error() {
            *row.errors.entry(call.outcome.to_string()).or_default() += 1;
        }
        row.tokens_in += estimate_tokens(call.bytes_in);
        row.tokens_out += estimate_tokens(call.bytes_sent);
        if call.is_cut {
            row.cuts += 1;
            row.tokens_cut += estimate_tokens(call.bytes.saturating_sub(call.bytes_sent));
        }
        row.redacted += call.redacted;
        row.times.count(call.micros);
        row.longest_us = row.longest_us.max(call.micros);
    }

    fn row(&mut self, key: RowKey) -> &mut CallCounts {
        let is_room = self.calls.len() < ROWS_MAX || self.calls.contains_key(&key);
        let others = || RowKey {
            client: OTHERS.to_owned(),
            server: OTHERS.to_owned(),
            tool: OTHERS.to_owned(),
        };
        self.calls
            .entry(if is_room { key } else { others() })
            .or_default()
    }

    fn note_asked(&mut self, words: &str, count: u64) {
        if self.asked.len() < ASKED_MAX || self.asked.contains_key(words) {
            *self.asked.entry(words.to_owned()).or_default() += count;
        }
    }

    fn sessions_of(&mut self, client: &str) -> &mut Sessions {
        let client = printable::one_line_of(client, ASKED_CHARS_MAX);
        let is_room = self.sessions.len() < CLIENTS_MAX || self.sessions.contains_key(&client);
        let client = if is_room { client } else { OTHERS.to_owned() };
        self.sessions.entry(client).or_default()
    }
}

impl CallCounts {
    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        for (code, count) in &other.errors {
            *self.errors.entry(code.clone()).or_default() += count;
        }
        self.tokens_in += other.tokens_in;
        self.tokens_out += other.tokens_out;
        self.tokens_cut += other.tokens_cut;
        self.cuts += other.cuts;
        self.redacted += other.redacted;
        self.times.add(&other.times);
        self.longest_us = self.longest_us.max(other.longest_us);
    }
}

/// Rows as a list: JSON has no keys of several parts.
mod rows {
    use std::collections::BTreeMap;

    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{CallCounts, RowKey};

    pub(super) fn serialize<S: Serializer>(
        rows: &BTreeMap<RowKey, CallCounts>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(rows)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<RowKey, CallCounts>, D::Error> {
        let rows = Vec::<(RowKey, CallCounts)>::deserialize(deserializer)?;
        Ok(rows.into_iter().collect())
    }
}
