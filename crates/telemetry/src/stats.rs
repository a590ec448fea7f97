//! Statistics per day: calls, errors, times and costs by client, server and tool; searches; sessions.
//!
//! One file per day, `2026-11-22.json`, which several processes update under a lock.

mod day;
mod figures;
mod histogram;
mod list;

use files::clock::{day_of, days_before};
use std::{collections::BTreeMap, fs, io, path::PathBuf};

use files::{Lock, write_whole};

use crate::record::Event;
use day::Day;
use list::list;

pub use day::FirstUses;
pub use figures::{AskedWords, By, COMMAND_LINE, CallFigures, Figures, Searches, read};

/// The number of days that are kept, including today.
pub const DAYS_KEPT: u64 = 90;

/// The statistics that this process has not written yet, by day.
#[derive(Debug)]
pub(crate) struct Stats {
    folder: PathBuf,
    days: BTreeMap<String, Day>,
    /// The latest time that was counted, in unix milliseconds.
    newest_ms: u64,
}

impl Stats {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            days: BTreeMap::new(),
            newest_ms: 0,
        }
    }

    pub(crate) fn count(&mut self, event: &Event) {
        let at_ms = match event {
            Event::Call(call) | Event::Refusal(call) => call.at_ms,
            Event::Search { at_ms, .. }
            | Event::Script { at_ms, .. }
            | Event::Head { at_ms, .. }
            | Event::FirstUse { at_ms, .. }
            | Event::Session { at_ms, .. } => *at_ms,
        };
        self.newest_ms = self.newest_ms.max(at_ms);
        self.days.entry(day_of(at_ms)).or_default().count(event);
    }

    /// Adds the statistics to those on disk, and removes days that are too old. Statistics that cannot
    /// be written are kept for the next time.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        if self.days.is_empty() {
            return Ok(());
        }
        files::own_folder(&self.folder)?;
        let _turn = Lock::take(&self.folder.join("lock"))?;
        while let Some((name, day)) = self.days.first_key_value() {
            let path = self.folder.join(format!("{name}.json"));
            let mut whole = Day::read(&path)?;
            whole.add(day);
            write_whole(&path, whole.to_text().as_bytes())?;
            self.days.pop_first();
        }
        let oldest = days_before(self.newest_ms, DAYS_KEPT - 1);
        for (name, path) in list(&self.folder)? {
            if name < oldest {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
