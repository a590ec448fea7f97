//! Counts of the calls of each tool.

use std::collections::BTreeMap;
use std::path::Path;

use dashmap::DashMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tool::ToolRef;

use crate::RegistryError;
use crate::disk::Disk;

/// Calls by tool. Counting touches memory only; [`Usage::flush`] adds what is new to the file,
/// so several processes may count into one.
#[derive(Debug)]
pub struct Usage {
    disk: Disk,
    /// Since the last flush.
    fresh: DashMap<ToolRef, Calls>,
    /// The counts in the file when we last looked.
    written: Mutex<Counts>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Calls {
    ok: u64,
    failed: u64,
    /// When the last one ended, in seconds since 1970; 0: not known.
    #[serde(default)]
    last: u64,
}

/// What is known of the calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUsage {
    /// The tool, written `server/tool`.
    pub tool: String,
    /// Calls that succeeded.
    pub ok: u64,
    /// Calls that failed.
    pub failed: u64,
    /// When the last one ended, in seconds since 1970; none where it was not written down.
    pub last: Option<u64>,
}

type Counts = BTreeMap<String, Calls>;

impl Usage {
    /// Reads what was counted before; a damaged file counts from nothing again.
    pub fn open(folder: &Path) -> Self {
        let disk = Disk::new(folder);
        let written = Mutex::new(read(&disk));
        Self {
            disk,
            fresh: DashMap::new(),
            written,
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

    /// Calls that ever were, as far as this process knows: what others count is seen at a flush.
    pub fn count(&self, at: &ToolRef) -> u64 {
        let fresh = self.fresh.get(at).map_or(0, |calls| calls.total());
        let written = self.written.lock();
        fresh + written.get(&at.to_string()).map_or(0, Calls::total)
    }

    /// When its last call ended, in seconds since 1970, as far as this process knows.
    pub fn last(&self, at: &ToolRef) -> Option<u64> {
        let fresh = self.fresh.get(at).map_or(0, |calls| calls.last);
        let written = self.written.lock();
        let last = fresh.max(written.get(&at.to_string()).map_or(0, |calls| calls.last));
        (last > 0).then_some(last)
    }

    /// Adds the new calls to the file, whole or not at all; on failure they stay to be flushed.
    pub fn flush(&self) -> Result<(), RegistryError> {
        let mut written = self.written.lock();
        let taken = self.take();
        match self.merge(&taken) {
            Ok(counts) => {
                *written = counts;
                Ok(())
            }
            Err(error) => {
                for (at, calls) in taken {
                    self.fresh.entry(at).or_default().add(calls);
                }
                Err(error.into())
            }
        }
    }

    /// Forgets every call.
    pub fn reset(&self) -> Result<(), RegistryError> {
        let mut written = self.written.lock();
        let _turn = self.disk.take_turn()?;
        self.fresh.clear();
        written.clear();
        self.disk.write(FILE, b"{}")?;
        Ok(())
    }

    /// Tools by their calls, the most called first, as far as they are flushed.
    pub fn calls(&self) -> Vec<ToolUsage> {
        let written = self.written.lock();
        let calls = written.iter();
        let mut calls: Vec<ToolUsage> = calls
            .map(|(tool, calls)| ToolUsage {
                tool: tool.clone(),
                ok: calls.ok,
                failed: calls.failed,
                last: Some(calls.last).filter(|last| *last > 0),
            })
            .collect();
        calls.sort_by_key(|it| std::cmp::Reverse(it.ok + it.failed));
        calls
    }

    fn take(&self) -> Vec<(ToolRef, Calls)> {
        let known: Vec<ToolRef> = self.fresh.iter().map(|calls| calls.key().clone()).collect();
        known
            .iter()
            .filter_map(|at| self.fresh.remove(at))
            .collect()
    }

    fn merge(&self, taken: &[(ToolRef, Calls)]) -> std::io::Result<Counts> {
        let _turn = self.disk.take_turn()?;
        let mut counts = read(&self.disk);
        for (at, calls) in taken {
            counts.entry(at.to_string()).or_default().add(*calls);
        }
        if !taken.is_empty() {
            self.disk.write(FILE, &serde_json::to_vec(&counts)?)?;
        }
        Ok(counts)
    }
}

impl Calls {
    fn total(&self) -> u64 {
        self.ok + self.failed
    }

    fn add(&mut self, more: Self) {
        self.ok += more.ok;
        self.failed += more.failed;
        self.last = self.last.max(more.last);
    }
}

fn read(disk: &Disk) -> Counts {
    let bytes = disk.read(FILE).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

const FILE: &str = "usage.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_count_into_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |tool: &str| ToolRef::new("notes".parse().unwrap(), tool);
        let (one, other) = (Usage::open(folder.path()), Usage::open(folder.path()));
        one.record(&at("add"), true, 7);
        one.record(&at("add"), false, 8);
        other.record(&at("add"), true, 7);
        assert_eq!((one.count(&at("add")), other.count(&at("add"))), (2, 1));
        one.flush().unwrap();
        other.flush().unwrap();
        assert_eq!(other.count(&at("add")), 3);
        assert_eq!(other.calls()[0].last, Some(8));
        assert_eq!(Usage::open(folder.path()).count(&at("add")), 3);
        assert_eq!(Usage::open(folder.path()).count(&at("list")), 0);
    }

    #[test]
    fn a_flush_that_fails_loses_no_call() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Usage::open(folder.path());
        let at = ToolRef::new("notes".parse().unwrap(), "add");
        usage.record(&at, true, 7);
        usage.disk.faults.die_after(0);
        usage.flush().unwrap_err();
        assert_eq!(usage.count(&at), 1);
        usage.disk.faults.die_after(i64::MAX);
        usage.flush().unwrap();
        assert_eq!(Usage::open(folder.path()).count(&at), 1);
    }
}
