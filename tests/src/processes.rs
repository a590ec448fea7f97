//! Running processes, found by a marker in their environment or command line.

use std::{fs, os::unix::process::CommandExt as _, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{interval, timeout};

use crate::client::DEADLINE;

/// The environment variable by which a house finds its processes. Every program that a house starts
/// has it, and so have that program's children unless it was removed from their environment.
pub const HOUSE_VARIABLE: &str = "PROXY_TEST_HOUSE";

/// The number of attempts to get a certain process id.
const NUMBER_TRIES: usize = 500;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A process of a house.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    pub pid: u32,
    pub command_line: String,
}

/// Returns the running processes whose environment or command line contains the marker, except this
/// one.
pub fn marked(marker: &str) -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("the journeys run on Linux");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id())
        .filter_map(|pid| find(pid, marker))
        .collect()
}

fn find(pid: u32, marker: &str) -> Option<Process> {
    let read = |file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    // A zombie has neither.
    let command_line = read("cmdline");
    let ours = command_line.contains(marker) || read("environ").contains(marker);
    ours.then_some(Process { pid, command_line })
}

/// Returns the children of a process: their ids, and true for a zombie.
pub fn children(parent: u32) -> Vec<(u32, bool)> {
    let entries = fs::read_dir("/proc").expect("the journeys run on Linux");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let of_parent = pids.filter_map(|pid| {
        let (state, its_parent) = stat(pid)?;
        (its_parent == parent).then_some((pid, state == 'Z'))
    });
    of_parent.collect()
}

/// Returns true if a process runs; a zombie does not.
pub fn lives(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z')
}

/// Waits until a killed process is dead: until then it may still read its input. The main thread
/// may be dead while another thread finishes a read.
pub async fn died(pid: u32) {
    while lives(pid) || count_threads(pid) > 1 {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn count_threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// Waits until a process is stopped.
pub async fn stopped(pid: u32) {
    while stat(pid).is_some_and(|(state, _)| state != 'T') {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Returns the state and the parent of a process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Returns the resident memory in bytes.
pub fn memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Waits until no marked process is left; the error contains the remaining ones.
pub async fn all_gone(marker: &str) -> Result<(), Vec<Process>> {
    let mut looks = interval(LOOK_EVERY);
    let gone = async {
        while !marked(marker).is_empty() {
            looks.tick().await;
        }
    };
    timeout(DEADLINE, gone).await.map_err(|_| marked(marker))
}

/// Kills the processes that a failed test left behind.
pub fn kill_marked(marker: &str) {
    for process in marked(marker) {
        kill(process.pid);
    }
}

/// A process that leads its own group and belongs to no house.
#[derive(Debug)]
pub struct Bystander(std::process::Child);

impl Bystander {
    /// Starts a process that reuses the id of a dead process. This needs root, and fails if another
    /// process takes the id on each attempt; the id is then arbitrary.
    pub fn with_number(number: u32) -> Self {
        let choose = || fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string());
        for _ in 0..NUMBER_TRIES {
            let can_choose = choose().is_ok();
            let bystander = Self::start();
            if bystander.0.id() == number || !can_choose {
                return bystander;
            }
        }
        Self::start()
    }

    fn start() -> Self {
        let mut sleeps = std::process::Command::new("sleep");
        let sleeper = sleeps.arg("3600").process_group(0).spawn();
        Self(sleeper.expect("every system has `sleep`"))
    }

    /// Returns true if the process still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        ended.expect("the process is our child");
    }
}

/// Sends SIGKILL. A process that has already exited is no error.
pub fn kill(pid: u32) {
    send(pid, Signal::KILL);
}

/// Sends SIGTERM.
pub fn terminate(pid: u32) {
    send(pid, Signal::TERM);
}

/// Sends SIGHUP, as a closing terminal does, and an operator to reload files.
pub fn hang_up(pid: u32) {
    send(pid, Signal::HUP);
}

/// Sends SIGINT, as a terminal does for Ctrl-C.
pub fn interrupt(pid: u32) {
    send(pid, Signal::INT);
}

/// Stops the process with SIGSTOP, until [`resume`].
pub fn pause(pid: u32) {
    send(pid, Signal::STOP);
}

/// Resumes a paused process.
pub fn resume(pid: u32) {
    send(pid, Signal::CONT);
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test means the process that it has just seen"
)]
fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let _ = kill_process(pid.expect("a process id fits"), signal);
}
