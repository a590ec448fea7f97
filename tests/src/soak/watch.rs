//! The monitor of the daemon: its memory, its descriptors, its processes.

use std::{collections::BTreeSet, fmt, fs};

use super::estate::Estate;
use crate::processes;
use parking_lot::{Mutex, MutexGuard};

const MIB: u64 = 1024 * 1024;

/// Samples of the daemon, taken at intervals.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    daemon: Option<u32>,
    daemons: u64,
    memory: Range,
    descriptors: Range,
    /// Children of a daemon without the marker: their environment is empty.
    helpers: BTreeSet<u32>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Range {
    first: Option<u64>,
    last: u64,
    max: u64,
}

impl Range {
    fn take(&mut self, value: u64) {
        self.first.get_or_insert(value);
        self.last = value;
        self.max = self.max.max(value);
    }
}

impl Watch {
    /// Takes a sample of the current daemon.
    pub(super) fn look(&self, estate: &Estate) {
        let Some(pid) = self.daemon(estate) else {
            return;
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map(Iterator::count);
        let mut seen = self.seen();
        if let (Some(bytes), Ok(descriptors)) = (processes::memory(pid), descriptors) {
            seen.memory.take(bytes / MIB);
            seen.descriptors.take(descriptors as u64);
        }
        seen.helpers.extend(helpers(estate, pid));
    }

    /// Returns the daemon's process and its memory in MiB at the last sample.
    pub(super) fn memory(&self) -> (Option<u32>, u64) {
        let seen = self.seen();
        (seen.daemon, seen.memory.last)
    }

    /// Discards the samples: later samples are compared with the next one.
    pub(super) fn begin(&self) {
        let mut seen = self.seen();
        (seen.memory, seen.descriptors) = Default::default();
    }

    /// Returns the daemon's process, if one runs.
    pub(super) fn daemon(&self, estate: &Estate) -> Option<u32> {
        let known = self.seen().daemon;
        if known.is_some_and(processes::lives) {
            return known;
        }
        let processes = estate.house.processes();
        let found = processes
            .iter()
            .find(|process| process.command_line.contains(" daemon run"));
        let found = found.map(|process| process.pid);
        let mut seen = self.seen();
        seen.daemons += u64::from(found.is_some() && found != seen.daemon);
        seen.daemon = found;
        found
    }

    /// Returns the helpers of any daemon that still run.
    pub(super) fn helpers_left(&self, estate: &Estate) -> Vec<u32> {
        let helpers = self.seen().helpers.clone().into_iter();
        helpers.filter(|pid| is_helper(estate, *pid)).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock()
    }
}

/// Returns the children of a daemon that run its own program: the guard, and the helpers that read
/// results.
pub(super) fn helpers(estate: &Estate, daemon: u32) -> Vec<u32> {
    let children = processes::children(daemon).into_iter();
    let living = children.filter_map(|(pid, is_dead)| (!is_dead).then_some(pid));
    living.filter(|pid| is_helper(estate, *pid)).collect()
}

fn is_helper(estate: &Estate, pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    processes::lives(pid) && program.is_ok_and(|program| program == estate.programs.proxy)
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.seen();
        writeln!(f, "{:<36} {:>10}", "daemons", seen.daemons)?;
        for (name, range) in [
            ("memory of the daemon, MiB", seen.memory),
            ("descriptors of the daemon", seen.descriptors),
        ] {
            let (first, last, max) = (range.first.unwrap_or_default(), range.last, range.max);
            writeln!(f, "{name:<36} {last:>10}  first {first}, most {max}")?;
        }
        Ok(())
    }
}
