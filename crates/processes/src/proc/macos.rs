//! Asks the kernel by libproc, and for environments by sysinfo (`KERN_PROCARGS2`). macOS has no
//! handles of processes: a process is read again directly before a signal.

use std::io;

use libproc::{
    bsd_info::BSDInfo,
    proc_pid::pidinfo,
    processes::{ProcFilter, pids_by_type},
    task_info::TaskInfo,
};
use rustix::process::{Pid, Signal, geteuid, getsid};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::stat::{Identity, Stat};

/// The argument with which the kernel also describes processes that have exited and were not reaped.
const WITH_ZOMBIES: u64 = 1;

/// The status of a process that has exited and was not reaped (`SZOMB` in `sys/proc.h`).
const STATUS_ZOMBIE: u32 = 5;

/// The status of a process that a signal has stopped (`SSTOP` there).
const STATUS_STOPPED: u32 = 4;

/// The flag of a process of the kernel (`PROC_FLAG_SYSTEM` in `sys/proc_info.h`).
const FLAG_SYSTEM: u32 = 1;

/// Returns the pid of each process, including zombies.
pub(crate) fn list() -> impl Iterator<Item = i32> {
    let pids = pids_by_type(ProcFilter::All).unwrap_or_default();
    pids.into_iter().filter_map(|pid| i32::try_from(pid).ok())
}

pub(crate) fn is_stopped(pid: i32) -> bool {
    read_bsd(pid).is_some_and(|about| about.pbi_status == STATUS_STOPPED)
}

/// The system does not say it without a scan of every process's descriptors.
pub(crate) fn find_listener(_: u16) -> Option<i32> {
    None
}

pub(crate) fn read_name(_: i32) -> Option<String> {
    None
}

pub(crate) fn read_process(pid: i32) -> Option<Stat> {
    let about = read_bsd(pid)?;
    let is_dead = about.pbi_status == STATUS_ZOMBIE;
    // The kernel reports neither the session nor the memory of a zombie; nothing needs them.
    let session = Pid::from_raw(pid).filter(|_| !is_dead);
    let session = session.and_then(|pid| getsid(Some(pid)).ok());
    // Fails for a process of another user.
    let memory = pidinfo::<TaskInfo>(pid, 0).map_or(0, |task| task.pti_resident_size);
    Some(Stat {
        identity: Identity {
            pid,
            start_ticks: about.pbi_start_tvsec * 1_000_000 + about.pbi_start_tvusec,
        },
        is_dead,
        group: about.pbi_pgid.cast_signed(),
        session: session.map_or(0, |id| id.as_raw_nonzero().get()),
        has_memory: about.pbi_flags & FLAG_SYSTEM == 0,
        memory_bytes: memory,
    })
}

fn read_bsd(pid: i32) -> Option<BSDInfo> {
    let about = pidinfo::<BSDInfo>(pid, WITH_ZOMBIES).ok()?;
    (about.pbi_pid.cast_signed() == pid).then_some(about)
}

pub(crate) fn read_own() -> Option<Stat> {
    read_process(i32::try_from(std::process::id()).ok()?)
}

/// Returns a variable from the environment with which a process of our user was started. The system
/// hides the environment of its own programs (`/bin/sh` and others below `/bin` and `/usr`).
pub(crate) fn read_variable(pid: i32, name: &str) -> Option<String> {
    if read_bsd(pid)?.pbi_uid != geteuid().as_raw() {
        return None;
    }
    let pid = sysinfo::Pid::from_u32(u32::try_from(pid).ok()?);
    let environment = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    let mut system = System::new().ok()?;
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, environment);
    system.process(pid)?.environ().iter().find_map(|variable| {
        let value = variable.to_str()?.strip_prefix(name)?.strip_prefix('=')?;
        Some(value.to_owned())
    })
}

/// Returns true: macOS has one space of pids.
pub(crate) fn is_in_our_pid_space(_: i32) -> bool {
    true
}

/// A handle of a process, of which there are none on macOS.
#[derive(Debug)]
pub(crate) enum ProcessHandle {}

/// Returns `None`, as before Linux 5.3: the caller reads the process again before each signal.
#[expect(clippy::unnecessary_wraps, reason = "it fails on other systems")]
pub(crate) fn open_handle(_: i32) -> io::Result<Option<ProcessHandle>> {
    Ok(None)
}

impl ProcessHandle {
    pub(crate) fn send(&self, _: Signal) -> rustix::io::Result<()> {
        match *self {}
    }
}
