//! A helper process that outlives us if we are killed, and then ends our children.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    ffi::OsString,
    io::{self, BufRead, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
};

use parking_lot::Mutex;
use rustix::fs::{OFlags, fcntl_setfl};
use tracing::{debug, warn};

use crate::{
    group::{Group, end, wait_until},
    limits::REAPER_GRACE,
    mark::Owner,
    own_program::set_process_name,
    proof::{Claim, ClaimedMarks, ProcessTable},
};

/// The name of the reaper's process. It does not contain our name, so that `pkill -9` with our name
/// does not kill the process that cleans up.
const NAME: &str = "child-reaper";

/// Our handle to the reaper, which registers the process groups that the reaper ends after our
/// exit. The reaper is started with the first child, and restarted whenever it is found dead.
/// Dropping the handle ends it.
#[derive(Debug)]
pub struct Reaper {
    program: PathBuf,
    args: Vec<OsString>,
    watch: Mutex<Watch>,
}

#[derive(Debug, Default)]
struct Watch {
    groups: HashMap<i32, Group>,
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    notes: ChildStdin,
}

impl Reaper {
    /// Prepares a reaper without starting it. `program` with `args` must run [`reap`] on its stdin.
    pub fn new(program: PathBuf, args: Vec<OsString>) -> Self {
        Self {
            program,
            args,
            watch: Mutex::default(),
        }
    }

    /// Ensures that the reaper runs before a child is spawned, so that the child can be registered
    /// at once.
    pub(crate) fn ensure_running(&self) {
        let mut watch = self.watch.lock();
        if !watch.is_running() {
            self.start(&mut watch);
        }
    }

    /// Registers a group, and replaces its earlier entry.
    pub(crate) fn watch(&self, group: &Group) {
        let mut watch = self.watch.lock();
        watch.groups.insert(group.id(), group.clone());
        self.note(&mut watch, &format!("+{group}\n"));
    }

    /// Removes a group that has ended; its id may be reused from now on.
    pub(crate) fn forget(&self, group: &Group) {
        let mut watch = self.watch.lock();
        if watch.groups.remove(&group.id()).is_some() {
            self.note(&mut watch, &format!("-{}\n", group.id()));
        }
    }

    fn note(&self, watch: &mut Watch, note: &str) {
        let Some(process) = &mut watch.process else {
            return;
        };
        if process.tell(note).is_err() {
            self.start(watch);
        }
    }

    /// Starts a reaper and registers all groups with it. If it cannot start, we continue without
    /// one: the sweep of the next start is the fallback.
    fn start(&self, watch: &mut Watch) {
        drop(watch.process.take());
        let owner = Owner::ourselves().map(|owner| format!("={owner}\n"));
        let groups = watch.groups.values().map(|group| format!("+{group}\n"));
        let notes: String = owner.into_iter().chain(groups).collect();
        let started = self.spawn().and_then(|mut process| {
            process.tell(&notes)?;
            Ok(process)
        });
        match started {
            Ok(process) => {
                debug!(pid = process.child.id(), "the reaper runs");
                watch.process = Some(process);
            }
            Err(error) => {
                warn!(%error, "no reaper: children may outlive a `kill -9` of this process");
            }
        }
    }

    /// Spawns the process with an empty environment: ours contains secrets, and the reaper needs no
    /// variable.
    fn spawn(&self) -> io::Result<Process> {
        let mut child = Command::new(&self.program)
            .arg0(NAME)
            .args(&self.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let notes = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let process = Process { child, notes };
        // A stopped reaper must not block us; a reaper that does not read is replaced.
        fcntl_setfl(&process.notes, OFlags::NONBLOCK)?;
        Ok(process)
    }

    /// Returns the number of registered groups.
    #[cfg(test)]
    pub(crate) fn watched(&self) -> usize {
        self.watch.lock().groups.len()
    }
}

impl Watch {
    fn is_running(&mut self) -> bool {
        let process = self.process.as_mut();
        process.is_some_and(|process| matches!(process.child.try_wait(), Ok(None)))
    }
}

impl Process {
    fn tell(&mut self, notes: &str) -> io::Result<()> {
        self.notes.write_all(notes.as_bytes())
    }
}

/// Ends the reaper's process. Its owner has already ended its children (each of them holds the
/// reaper), or registers them with the next reaper.
impl Drop for Process {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = ended {
            debug!(%error, "the reaper could not be stopped");
        }
    }
}

/// Runs the reaper: reads notes until its input ends, which happens when the proxy exits for any
/// reason. Then ends the remaining processes of the registered groups, and every other child of the
/// proxy.
///
/// The reaper needs no signal handlers: it leads a group of its own, so signals from a terminal do
/// not reach it, and a TERM sent to it alone is intentional.
pub fn reap(input: impl BufRead) {
    set_process_name(NAME);
    let mut notes = Notes::default();
    for line in input.lines().map_while(Result::ok) {
        notes.read(&line);
    }
    let mut groups: Vec<Group> = notes.groups.into_values().collect();
    // The input ends when the owner exits, but the system may not have removed the process yet.
    let is_gone = |owner: &Owner| wait_until(REAPER_GRACE, || !owner.lives());
    let owner = notes.owner.filter(is_gone);
    end(|| {
        let claim = Claim {
            groups: &groups,
            marks: owner.map_or(ClaimedMarks::None, ClaimedMarks::ChildrenOf),
        };
        let found = ProcessTable::read(owner.map(|owner| owner.session)).find(&claim);
        for group in &mut groups {
            group.learn(&found);
        }
        found
    });
}

#[derive(Debug, Default)]
struct Notes {
    owner: Option<Owner>,
    groups: HashMap<i32, Group>,
}

impl Notes {
    fn read(&mut self, line: &str) {
        let mut chars = line.chars();
        match (chars.next(), chars.as_str()) {
            (Some('='), owner) => self.owner = Owner::parse(owner),
            (Some('+'), group) => {
                let group = Group::parse(group);
                self.groups.extend(group.map(|group| (group.id(), group)));
            }
            (Some('-'), id) => {
                id.parse().ok().and_then(|id: i32| self.groups.remove(&id));
            }
            _ => {}
        }
    }
}
