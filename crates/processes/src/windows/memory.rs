//! The memory of processes.

use std::{
    collections::HashMap,
    sync::{LazyLock, Weak},
};

use parking_lot::Mutex;
use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System};
use win32job::Job;

use super::job::list;

/// The jobs of our children, by the pid of the child.
static JOBS: LazyLock<Mutex<HashMap<i32, Weak<Job>>>> = LazyLock::new(Mutex::default);

/// Adds the job of a child to [`group_memory`], until it is dropped.
pub(super) fn register(child: u32, job: Weak<Job>) {
    let mut jobs = JOBS.lock();
    jobs.retain(|_, job| job.strong_count() > 0);
    jobs.insert(child.cast_signed(), job);
}

/// Returns the memory that each child of ours uses with all that it started, in bytes, by the pid of the
/// child.
pub fn group_memory() -> HashMap<i32, u64> {
    let jobs = JOBS.lock();
    let running = jobs
        .iter()
        .filter_map(|(child, job)| Some((*child, list(&*job.upgrade()?)?)));
    let running: Vec<(i32, Vec<u32>)> = running.collect();
    let all: Vec<u32> = running.iter().flat_map(|(_, pids)| pids).copied().collect();
    let Some(system) = read(&all) else {
        return HashMap::new();
    };
    let memory = |pid: &u32| {
        system
            .process(Pid::from_u32(*pid))
            .map_or(0, Process::memory)
    };
    let summed = running
        .iter()
        .map(|(child, pids)| (*child, pids.iter().map(memory).sum()));
    summed.collect()
}

/// Returns the memory that this process uses, in bytes.
pub fn own_memory() -> Option<u64> {
    Some(read_own(&read(&[std::process::id()])?)?.memory())
}

/// Returns the memory that this process alone uses, also where it is swapped out.
pub(super) fn committed_memory() -> Option<u64> {
    Some(read_own(&read(&[std::process::id()])?)?.virtual_memory())
}

fn read_own(system: &System) -> Option<&Process> {
    system.process(Pid::from_u32(std::process::id()))
}

fn read(pids: &[u32]) -> Option<System> {
    let pids: Vec<Pid> = pids.iter().map(|pid| Pid::from_u32(*pid)).collect();
    let mut system = System::new().ok()?;
    let memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&pids), true, memory);
    Some(system)
}
