//! One commit: writes snapshots, replaces the catalog, removes unreferenced snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, io};

use tool::Tool;

use crate::catalog::{Record, Records};
use files::UNFINISHED;

use crate::disk::{Disk, snapshot_path};
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
    pub(crate) records: Records,
    pub(crate) book: PinBook,
}

impl<'a> Commit<'a> {
    /// Reads the current state, which another process may have written. The caller must hold the
    /// lock.
    pub(crate) fn new(disk: &'a Disk, rules: &'a Rules, keep_others: bool) -> Self {
        let (before, book) = Records::read_with_pins(disk);
        Self {
            disk,
            rules,
            records: if keep_others {
                before.clone()
            } else {
                Records::default()
            },
            before,
            book,
        }
    }

    /// Writes the results of surveys to disk, and returns the changes.
    pub(crate) fn run(&mut self, news: Vec<News>, now: u64) -> io::Result<Vec<Planned>> {
        let mut planned = Vec::with_capacity(news.len());
        for News {
            server,
            asked_ms,
            outcome,
        } in news
        {
            let known = self.before.servers.get(server.as_str());
            let known = known.cloned().unwrap_or_default();
            let is_outdated = is_outdated(&known, asked_ms, now);
            let unchanged = |record: Record| {
                let planned = Planned::unchanged(&server, &record);
                (record, planned)
            };
            let (mut record, found) = match outcome {
                _ if is_outdated => unchanged(known),
                Ok(snapshot) => self.fresh(&known, &snapshot.in_order())?,
                Err(why) => unchanged(mark_stale(known, why, now)),
            };
            if !is_outdated {
                record.asked_ms = asked_ms;
            }
            planned.push(found);
            self.records.servers.insert(server.to_string(), record);
        }
        let is_configured = |name: &str| {
            self.records.servers.contains_key(name)
                || self.rules.find(name).is_some()
                || self.rules.disabled.iter().any(|it| it.as_str() == name)
        };
        self.book.bound(is_configured);
        self.book.write_with(self.disk, &self.records)?;
        Ok(planned)
    }

    fn fresh(&mut self, known: &Record, snapshot: &Snapshot) -> io::Result<(Record, Planned)> {
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
        let name = snapshot.server.as_str();
        let program = self.rules.find(name).map_or("", |it| &it.program);
        let names = [name, program, &snapshot.server_name];
        let lists = (snapshot.tools.as_slice(), &snapshot.offer);
        let mut record = Record {
            tokens: snapshot.tokens,
            surveyed_at: snapshot.surveyed_at,
            ..Record::new(file_name, names, &snapshot.head(), lists)
        };
        record.keep_changes(known, &plan.changed);
        let versions = kept
            .as_ref()
            .map(|kept| (&kept.head.server_version, &snapshot.server_version));
        let versions = versions.filter(|(before, now)| before != now);
        let planned = Planned {
            altered: find_altered(&plan, before, &snapshot.tools),
            plan,
            version: versions.map(|(before, now)| (before.clone(), now.clone())),
            ..Planned::unchanged(&snapshot.server, &record)
        };
        Ok((record, planned))
    }

    /// Compares the current definitions with the accepted ones.
    fn follow_pins(&mut self, kept: Option<&SnapshotContent>, snapshot: &Snapshot) {
        let server = snapshot.server.as_str();
        let now = snapshot.definitions();
        let before = kept.map(SnapshotContent::definitions).unwrap_or_default();
        let known = self.book.get(server).cloned();
        let mut pins = known.unwrap_or_else(|| {
            // A server that has a snapshot but no pins has lost its pins.
            let record = self.before.servers.get(server);
            let is_new = record.is_none_or(|it| it.snapshot.is_none());
            if self.book.accepts_new_servers() && is_new {
                Pins::of(&now)
            } else {
                Pins::default()
            }
        });
        pins.follow(&before, &now);
        pins.bound(&now);
        let own = snapshot.tools.iter().map(Tool::name);
        pins.note_signs(&now, || self.before.names_besides(server, own));
        pins.at = snapshot.surveyed_at;
        self.book.set(server, pins);
    }
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

/// Marks a server as stale after a failed survey; everything else is unchanged.
fn mark_stale(known: Record, why: SurveyFailure, now: u64) -> Record {
    Record {
        stale: Some(why),
        surveyed_at: known.snapshot.as_ref().map_or(now, |_| known.surveyed_at),
        ..known
    }
}

impl Commit<'_> {
    /// Removes snapshots that neither this catalog nor the previous one references: concurrent
    /// readers may still use the previous one. A file that cannot be removed is retried by the next
    /// commit.
    pub(crate) fn sweep(&self) {
        let named = self.records.files().chain(self.before.files());
        let named: BTreeSet<String> = named.map(snapshot_path).collect();
        let snapshots = self.disk.snapshots().into_iter();
        for path in snapshots.filter(|path| !named.contains(path)) {
            let _ = self.disk.remove(&path);
        }
        let left = fs::read_dir(self.disk.path(""))
            .into_iter()
            .flatten()
            .flatten();
        for file in left.filter(|file| file.file_name().to_string_lossy().starts_with(UNFINISHED)) {
            let _ = fs::remove_file(file.path());
        }
    }
}
