//! The processes between a client and its server, as the system sees them.

use std::fs;

use journeys::processes;

use crate::{
    house::House,
    peer::{Peer, PeerCall},
};

/// An open connection, and our processes behind it.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) peer: Peer,
    /// The process that starts servers is the last.
    pub(super) ours: Vec<u32>,
}

impl Side {
    pub(super) fn without_us(peer: Peer) -> Self {
        Self {
            peer,
            ours: Vec::new(),
        }
    }

    pub(super) fn of(peer: Peer) -> Self {
        let ours = vec![peer.pid()];
        Self { peer, ours }
    }

    pub(super) fn behind(peer: Peer, house: &House) -> Self {
        let ours = vec![peer.pid(), house.daemon_pid()];
        Self { peer, ours }
    }

    pub(super) fn parent(&self) -> u32 {
        *self
            .ours
            .last()
            .expect("a process of ours starts the servers")
    }

    pub(super) fn repeat(&mut self, call: &PeerCall, times: u32) {
        for _ in 0..times {
            self.peer.ask(call);
        }
    }

    pub(super) fn end(self) {
        self.peer.end();
    }
}

/// Returns the microseconds of processor time that these processes have used.
pub(super) fn processor_time_us(pids: &[u32]) -> f64 {
    let threads = pids.iter().flat_map(|pid| {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
        tasks.filter_map(Result::ok)
    });
    let nanoseconds = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e3
}

pub(crate) fn resident_mb(pids: &[u32]) -> f64 {
    let kilobytes = pids.iter().map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.and_then(|word| word.parse::<f64>().ok())
            .expect("the system reports the memory of a process")
    });
    kilobytes.sum::<f64>() / 1024.0
}

/// Returns memory that no file backs: pages of the program itself are shared by all its processes,
/// and the system can reclaim them.
pub(crate) fn own_mb(pids: &[u32]) -> f64 {
    let kilobytes = pids.iter().map(|pid| {
        let text =
            fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the process runs");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Anonymous:"));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.and_then(|word| word.parse::<f64>().ok())
            .expect("the system reports the memory of a process")
    });
    kilobytes.sum::<f64>() / 1024.0
}

/// Returns the running children of a process with this name.
pub(super) fn children_of(parent: u32, program: &str) -> Vec<u32> {
    let is_called = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == program)
    };
    let children = processes::children(parent).into_iter();
    let living = children.filter_map(|(pid, is_dead)| (!is_dead).then_some(pid));
    living.filter(is_called).collect()
}
