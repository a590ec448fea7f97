//! One commit: writes snapshots, replaces the catalog, removes unreferenced snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, io};

use tool::Tool;

use crate::catalog::{OfferNote, Record, Records};
use files::UNFINISHED;

use crate::disk::{Disk, snapshot_path};
use crate::guess::Guess;
use crate::known_servers::ServerNames;
use crate::pin_book::PinBook;
use crate::pins::Pins;
use crate::plan::{Plan, Planned, plan};
use crate::server_rules::Rules;
use crate::snapshot::{News, Snapshot, SnapshotContent, SurveyFailure};

#[derive(Debug)]
pub(crate) struct Commit<'a> {
    disk: &'a Disk,
    rules: &'a Rules,
    before: Records,
    book: PinBook,
    keep_others: bool,
}

/// A commit that was written to disk.
#[derive(Debug)]
pub(crate) struct Done {
    before: Records,
    pub(crate) records: Records,
    pub(crate) book: PinBook,
    pub(crate) planned: Vec<Planned>,
}

impl<'a> Commit<'a> {
    /// Reads the current state, which another process may have written. The caller must hold the
    /// lock.
    pub(crate) fn new(disk: &'a Disk, rules: &'a Rules, keep_others: bool) -> Self {
        let (before, book) = Records::read_with_pins(disk);
        Self {
            disk,
            rules,
            before,
            book,
            keep_others,
        }
    }

    pub(crate) fn run(mut self, news: Vec<News>, now: u64) -> io::Result<Done> {
        let mut records = if self.keep_others {
            self.before.clone()
        } else {
            Records::default()
        };
        let mut planned = Vec::with_capacity(news.len());
        for News {
            server,
            asked_ms,
            outcome,
        } in news
        {
            let known = self
                .before
                .servers
                .get(server.as_str())
                .cloned()
                .unwrap_or_default();
            let is_outdated = is_outdated(&known, asked_ms, now);
            let ServerChange {
                mut record,
                plan,
                altered,
                version,
            } = match outcome {
                _ if is_outdated => keep(known),
                Ok(snapshot) => self.fresh(&known, &snapshot.in_order())?,
                Err(why) => mark_stale(known, why, now),
            };
            if !is_outdated {
                record.asked_ms = asked_ms;
            }
            planned.push(Planned {
                server: server.clone(),
                plan,
                altered,
                version,
                tokens: record.tokens,
                stale: record.stale.clone(),
            });
            records.servers.insert(server.to_string(), record);
        }
        let is_configured = |name: &str| {
            let mut servers = self.rules.servers.iter().map(|it| &it.name);
            records.servers.contains_key(name)
                || servers.any(|it| it.as_str() == name)
                || self.rules.disabled.iter().any(|it| it.as_str() == name)
        };
        self.book.bound(is_configured);
        self.book.write_with(self.disk, &records)?;
        Ok(Done {
            before: self.before,
            records,
            book: self.book,
            planned,
        })
    }

    fn fresh(&mut self, known: &Record, snapshot: &Snapshot) -> io::Result<ServerChange> {
        let text = snapshot.to_text();
        let file_name = Snapshot::file_name(&snapshot.server, &text);
        let kept = known.read_snapshot(self.disk);
        let before = kept.as_ref().map_or(&[][..], |kept| &kept.tools);
        let plan = plan(before, &snapshot.tools);
        self.follow_pins(kept.as_ref(), snapshot);
        if known.snapshot.as_ref() != Some(&file_name) || kept.is_none() {
            self.disk
                .write(&snapshot_path(&file_name), text.as_bytes())?;
        }
        let names = ServerNames {
            configured: snapshot.server.as_str(),
            program: self.rules.program(&snapshot.server),
            server_name: &snapshot.server_name,
        };
        let mut record = Record {
            snapshot: Some(file_name),
            tools: snapshot
                .tools
                .iter()
                .map(|tool| tool.name().to_owned())
                .collect(),
            tokens: snapshot.tokens,
            stale: None,
            surveyed_at: snapshot.surveyed_at,
            protocol: snapshot.protocol.clone(),
            transport: snapshot.transport.clone(),
            asks_clients: snapshot.asks_clients,
            offer: Some(OfferNote::of(&snapshot.offer)),
            ..Record::default()
        };
        record.note_digests(&snapshot.tools);
        record.keep_changes(known, &plan.changed);
        record.guess(Guess::new(names, &snapshot.tools));
        let versions = kept
            .as_ref()
            .map(|kept| [&kept.head.server_version, &snapshot.server_version]);
        let versions = versions.filter(|[before, now]| before != now);
        Ok(ServerChange {
            record,
            altered: find_altered(&plan, before, &snapshot.tools),
            plan,
            version: versions.map(|[before, now]| (before.clone(), now.clone())),
        })
    }

    /// Compares the current definitions with the accepted ones.
    fn follow_pins(&mut self, kept: Option<&SnapshotContent>, snapshot: &Snapshot) {
        let server = snapshot.server.as_str();
        let now = snapshot.definitions();
        let before = kept.map(SnapshotContent::definitions).unwrap_or_default();
        let known = self.book.get(server).cloned();
        let mut pins = known.unwrap_or_else(|| {
            // A server that has a record but no pins has lost its pins.
            let is_new = !self.before.servers.contains_key(server);
            let had_none = || {
                let record = &self.before.servers[server];
                record.snapshot.is_none()
            };
            if self.book.accepts_new_servers() && (is_new || had_none()) {
                Pins::of(&now)
            } else {
                Pins::default()
            }
        });
        pins.follow(&before, &now);
        pins.bound(&now);
        pins.at = snapshot.surveyed_at;
        self.book.set(server, pins);
    }
}

/// The record of a server after its survey, and what changed.
#[derive(Debug, Default)]
struct ServerChange {
    record: Record,
    plan: Plan,
    altered: Altered,
    version: Option<(String, String)>,
}

/// The previous and the current definition of each changed tool, by tool name.
type Altered = BTreeMap<String, (String, String)>;

fn find_altered(plan: &Plan, before: &[Tool], now: &[Tool]) -> Altered {
    let json = |tools: &[Tool], name: &str| {
        let found = tools.iter().find(|tool| tool.name() == name);
        found.map(|tool| tool.json().to_owned())
    };
    let altered = plan.changed.iter().filter_map(|name| {
        let both = json(before, name).zip(json(now, name))?;
        Some((name.clone(), both))
    });
    altered.collect()
}

/// Returns true if the registry already has a survey that started later. A stored time in the
/// future was written before the clock was set back, and is ignored.
fn is_outdated(known: &Record, asked_ms: u64, now: u64) -> bool {
    let now_ms = (now + 1) * 1_000;
    known.snapshot.is_some() && asked_ms < known.asked_ms && known.asked_ms <= now_ms
}

fn keep(known: Record) -> ServerChange {
    ServerChange {
        plan: Plan {
            same: known.tools.clone(),
            ..Plan::default()
        },
        record: known,
        ..ServerChange::default()
    }
}

/// Marks a server as stale after a failed survey; everything else is unchanged.
fn mark_stale(known: Record, why: SurveyFailure, now: u64) -> ServerChange {
    let surveyed_at = if known.snapshot.is_some() {
        known.surveyed_at
    } else {
        now
    };
    let record = Record {
        stale: Some(why),
        surveyed_at,
        ..known
    };
    keep(record)
}

impl Done {
    /// Removes snapshots that neither this catalog nor the previous one references: concurrent
    /// readers may still use the previous one. A file that cannot be removed is retried by the next
    /// commit.
    pub(crate) fn sweep(&self, disk: &Disk) {
        let named: BTreeSet<String> = self
            .records
            .files()
            .chain(self.before.files())
            .map(snapshot_path)
            .collect();
        for path in disk
            .snapshots()
            .iter()
            .filter(|path| !named.contains(*path))
        {
            let _ = disk.remove(path);
        }
        let left = fs::read_dir(disk.path("")).into_iter().flatten().flatten();
        for file in left.filter(|file| file.file_name().to_string_lossy().starts_with(UNFINISHED)) {
            let _ = fs::remove_file(file.path());
        }
    }
}
