//! Counts of the calls of each tool.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dashmap::DashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tool::ToolRef;

use crate::RegistryError;
use crate::disk::Disk;

/// Calls by tool. Counting and reading touch memory only; [`Usage::flush`] adds the new counts to
/// the file, so several processes may count into one.
#[derive(Debug)]
pub struct Usage {
    disk: Disk,
    /// Counts since the last flush began.
    fresh: DashMap<ToolRef, Calls>,
    /// Never held across a file operation: calls and descriptions read it on the event loop.
    counts: Mutex<KnownCounts>,
    /// Held by the one flush at a time, across its file operations.
    flushing: Mutex<()>,
}

#[derive(Debug, Default)]
struct KnownCounts {
    /// The counts in the file at the last flush.
    written: Counts,
    /// Counts that a flush has taken and not written yet; a failed flush leaves them here.
    unwritten: Counts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Calls {
    ok: u64,
    failed: u64,
    /// When the last one ended, in seconds since 1970; 0: not known.
    #[serde(default)]
    last: u64,
    /// Calls whose arguments did not satisfy the schema, so that they were not sent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    wrong: BTreeMap<String, u64>,
}

/// The name of all calls with wrong arguments in [`Calls::wrong`]; no argument is called that.
const ALL: &str = "";

/// The most arguments of a tool whose mistakes are counted: a hit has room for two or three.
const WRONG_ARGUMENTS_MAX: usize = 12;

/// The calls with wrong arguments after which these arguments are known as often wrong.
const MISTAKES_MIN: u64 = 3;

/// As long as at least one call in so many has wrong arguments, they are known as often wrong.
const CALLS_A_MISTAKE_MAX: u64 = 10;

/// Statistics of the calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUsage {
    /// The tool, written `server/tool`.
    pub tool: String,
    /// Calls that succeeded.
    pub ok: u64,
    /// Calls that failed.
    pub failed: u64,
    /// The time at which the last one ended, in seconds since 1970; none if it was not recorded.
    pub last: Option<u64>,
}

type Counts = BTreeMap<String, Calls>;

impl Usage {
    /// Reads the saved counts; with a damaged file, counts start at zero again.
    pub fn open(folder: &Path) -> Self {
        let disk = Disk::new(folder);
        let written = read(&disk);
        Self {
            disk,
            fresh: DashMap::new(),
            counts: Mutex::new(KnownCounts {
                written,
                ..KnownCounts::default()
            }),
            flushing: Mutex::default(),
        }
    }

    /// Counts a call that ended `now` (seconds since 1970), in memory.
    pub fn record(&self, at: &ToolRef, ok: bool, now: u64) {
        let mut calls = match self.fresh.get_mut(at) {
            Some(calls) => calls,
            None => self.fresh.entry(at.clone()).or_default(),
        };
        if ok {
            calls.ok += 1;
        } else {
            calls.failed += 1;
        }
        calls.last = now;
    }

    /// Counts a call that was not sent because these arguments were wrong, in memory. The names must be
    /// those of the schema: they are stored.
    pub fn record_wrong(&self, at: &ToolRef, arguments: Vec<String>) {
        let mut calls = self.fresh.entry(at.clone()).or_default();
        let wrong = arguments.into_iter().map(|name| (name, 1));
        calls.add_wrong([(ALL.to_owned(), 1)].into_iter().chain(wrong));
    }

    /// Returns the arguments that calls often have wrong, the most frequent first; none as long as few
    /// calls of the tool had any wrong.
    pub fn often_wrong(&self, at: &ToolRef) -> Vec<String> {
        let calls = self.total(at);
        let mistakes = calls.wrong.get(ALL).copied().unwrap_or(0);
        let is_often =
            mistakes >= MISTAKES_MIN && mistakes * CALLS_A_MISTAKE_MAX >= calls.total() + mistakes;
        let wrong = calls.wrong.into_iter();
        let wrong = wrong.filter(|(name, _)| is_often && name != ALL);
        let mut wrong: Vec<(String, u64)> = wrong.collect();
        wrong.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        wrong.into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the number of all calls known to this process: calls that other processes count are seen
    /// at a flush.
    pub fn count(&self, at: &ToolRef) -> u64 {
        self.total(at).total()
    }

    /// Returns the time at which its last call ended, in seconds since 1970, as far as this process knows.
    pub fn last(&self, at: &ToolRef) -> Option<u64> {
        let last = self.total(at).last;
        (last > 0).then_some(last)
    }

    fn total(&self, at: &ToolRef) -> Calls {
        // Under the lock first: a flush that moves counts from the one to the other holds it.
        let known = self.counts.lock();
        let fresh = self.fresh.get(at);
        let mut calls = fresh.map_or_else(Calls::default, |it| it.clone());
        let name = at.to_string();
        let older = [known.written.get(&name), known.unwritten.get(&name)];
        older.into_iter().flatten().for_each(|it| calls.add(it));
        calls
    }

    /// Adds the new counts to the file, whole or not at all; on failure they stay to be flushed.
    /// Waits for another process's lock for so long at most. Blocks: call it on a thread that may.
    pub fn flush(&self, wait: Duration) -> Result<(), RegistryError> {
        let _flushing = self.flushing.lock();
        let taken = self.take();
        let _turn = self.disk.take_turn_within(wait)?;
        let mut written = read(&self.disk);
        for (tool, calls) in &taken {
            written.entry(tool.clone()).or_default().add(calls);
        }
        if !taken.is_empty() {
            let text = serde_json::to_vec(&written).map_err(std::io::Error::from)?;
            self.disk.write(FILE, &text)?;
        }
        let unwritten = Counts::new();
        *self.counts.lock() = KnownCounts { written, unwritten };
        Ok(())
    }

    /// Forgets every call. Blocks like [`Usage::flush`].
    pub fn reset(&self) -> Result<(), RegistryError> {
        let _flushing = self.flushing.lock();
        let _turn = self.disk.take_turn()?;
        self.disk.write(FILE, b"{}")?;
        let mut known = self.counts.lock();
        self.fresh.clear();
        *known = KnownCounts::default();
        Ok(())
    }

    /// Tools by their calls, the most called first, as far as this process knows.
    pub fn calls(&self) -> Vec<ToolUsage> {
        let known = self.counts.lock();
        let mut all = known.written.clone();
        let fresh = self.fresh.iter();
        let fresh = fresh.map(|it| (it.key().to_string(), it.clone()));
        for (tool, calls) in known.unwritten.clone().into_iter().chain(fresh) {
            all.entry(tool).or_default().add(&calls);
        }
        drop(known);
        let calls = all.into_iter().filter(|(_, it)| it.total() > 0);
        let mut calls: Vec<ToolUsage> = calls
            .map(|(tool, calls)| ToolUsage {
                tool,
                ok: calls.ok,
                failed: calls.failed,
                last: Some(calls.last).filter(|last| *last > 0),
            })
            .collect();
        calls.sort_by_key(|it| std::cmp::Reverse(it.ok + it.failed));
        calls
    }

    /// The counts that are to be written: the new ones, and those of a flush that failed.
    fn take(&self) -> Counts {
        let mut known = self.counts.lock();
        let fresh: Vec<ToolRef> = self.fresh.iter().map(|calls| calls.key().clone()).collect();
        for (at, calls) in fresh.iter().filter_map(|at| self.fresh.remove(at)) {
            let unwritten = known.unwritten.entry(at.to_string());
            unwritten.or_default().add(&calls);
        }
        known.unwritten.clone()
    }
}

impl Calls {
    fn total(&self) -> u64 {
        self.ok + self.failed
    }

    fn add(&mut self, more: &Self) {
        self.ok += more.ok;
        self.failed += more.failed;
        self.last = self.last.max(more.last);
        let wrong = more.wrong.iter();
        self.add_wrong(wrong.map(|(name, count)| (name.clone(), *count)));
    }

    fn add_wrong(&mut self, more: impl IntoIterator<Item = (String, u64)>) {
        for (name, count) in more {
            if self.wrong.len() < WRONG_ARGUMENTS_MAX || self.wrong.contains_key(&name) {
                *self.wrong.entry(name).or_default() += count;
            }
        }
    }
}

fn read(disk: &Disk) -> Counts {
    let bytes = disk.read(FILE).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

pub(crate) const FILE: &str = "usage.json";

#[cfg(test)]
mod tests {
    use files::Lock;

    use super::*;

    const WAIT: Duration = Duration::from_secs(20);

    #[test]
    fn two_processes_count_into_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |tool: &str| ToolRef::new("notes".parse().unwrap(), tool);
        let (one, other) = (Usage::open(folder.path()), Usage::open(folder.path()));
        one.record(&at("add"), true, 7);
        one.record(&at("add"), false, 8);
        other.record(&at("add"), true, 7);
        assert_eq!((one.count(&at("add")), other.count(&at("add"))), (2, 1));
        assert_eq!((one.calls()[0].failed, one.calls()[0].last), (1, Some(8)));
        one.flush(WAIT).unwrap();
        other.flush(WAIT).unwrap();
        assert_eq!(other.count(&at("add")), 3);
        assert_eq!(other.calls()[0].last, Some(8));
        assert_eq!(Usage::open(folder.path()).count(&at("add")), 3);
        assert_eq!(Usage::open(folder.path()).count(&at("list")), 0);
    }

    #[test]
    fn arguments_are_often_wrong_after_a_few_mistakes_until_most_calls_are_right() {
        let folder = tempfile::tempdir().unwrap();
        let at = ToolRef::new("notes".parse().unwrap(), "add");
        let usage = Usage::open(folder.path());
        let wrong = |names: &[&str]| {
            let names = names.iter().map(ToString::to_string);
            usage.record_wrong(&at, names.collect());
        };
        wrong(&["day"]);
        wrong(&["day", "title"]);
        assert!(usage.often_wrong(&at).is_empty());
        usage.flush(WAIT).unwrap();
        wrong(&[]);
        assert_eq!(usage.often_wrong(&at), ["day", "title"]);
        usage.flush(WAIT).unwrap();
        let other = Usage::open(folder.path());
        assert_eq!(other.often_wrong(&at), ["day", "title"]);
        assert_eq!((other.count(&at), other.calls()), (0, Vec::new()));
        for _ in 0..30 {
            other.record(&at, true, 7);
        }
        assert!(other.often_wrong(&at).is_empty());
        for name in 0..100 {
            other.record_wrong(&at, vec![format!("argument{name}")]);
        }
        assert!(other.often_wrong(&at).len() < WRONG_ARGUMENTS_MAX);
        other.reset().unwrap();
        assert!(other.often_wrong(&at).is_empty());
    }

    #[test]
    fn a_flush_that_fails_loses_no_call() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Usage::open(folder.path());
        let at = ToolRef::new("notes".parse().unwrap(), "add");
        usage.record(&at, true, 7);
        usage.disk.faults.die_after(0);
        usage.flush(WAIT).unwrap_err();
        assert_eq!(usage.count(&at), 1);
        usage.disk.faults.die_after(i64::MAX);
        usage.flush(WAIT).unwrap();
        assert_eq!(Usage::open(folder.path()).count(&at), 1);
    }

    #[test]
    fn counting_and_reading_wait_for_no_lock_of_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Usage::open(folder.path());
        let at = ToolRef::new("notes".parse().unwrap(), "add");
        usage.record(&at, true, 7);
        let held = Lock::take(&usage.disk.path("lock")).unwrap();
        std::thread::scope(|scope| {
            let flushing = scope.spawn(|| usage.flush(WAIT));
            // The flush has taken the counts, and waits for the lock.
            while !usage.fresh.is_empty() {
                std::thread::yield_now();
            }
            usage.record(&at, false, 8);
            assert_eq!((usage.count(&at), usage.last(&at)), (2, Some(8)));
            usage.calls();
            assert!(!flushing.is_finished());
            drop(held);
            flushing.join().unwrap().unwrap();
        });
        assert_eq!(usage.count(&at), 2);
        assert_eq!(Usage::open(folder.path()).count(&at), 1);
    }

    #[test]
    fn a_flush_gives_up_a_lock_that_is_held_on_and_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Usage::open(folder.path());
        let at = ToolRef::new("notes".parse().unwrap(), "add");
        usage.record(&at, true, 7);
        let held = Lock::take(&usage.disk.path("lock")).unwrap();
        usage.flush(Duration::ZERO).unwrap_err();
        usage.record(&at, true, 8);
        assert_eq!(usage.count(&at), 2);
        drop(held);
        usage.flush(WAIT).unwrap();
        assert_eq!(Usage::open(folder.path()).count(&at), 2);
    }
}
