//! A helper process that outlives us if we are killed, and then ends our children. It ends some of them at a
//! deadline, too, so that they end in time while we stand still.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsString,
    fmt,
    io::{self, BufRead, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::fs::{OFlags, fcntl_setfl};
use tracing::{debug, warn};

use crate::{
    clock::machine_time,
    group::{Group, end, wait_until},
    limits::{DEADLINE_POLL, REAPER_GRACE},
    mark::{Mark, Owner},
    own_program::set_process_name,
    proof::{Claim, ClaimedMarks, ProcessTable},
};

/// The name of the reaper's process. It does not contain our name, so that `pkill -9` with our name
/// does not kill the process that cleans up.
const NAME: &str = "child-reaper";

/// The notes that were read from the input and not applied yet.
const NOTES_MAX: usize = 64;

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
    groups: HashMap<i32, WatchedGroup>,
    /// The [`machine_time`] at which groups with a deadline end.
    deadline: Option<Duration>,
    process: Option<Process>,
}

/// A registered group.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WatchedGroup {
    group: Group,
    end: GroupEnd,
}

/// The time at which the reaper ends a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupEnd {
    /// After the exit of its owner.
    AfterOwner,
    /// At the deadline as well. Has the number of the mark of the child, if it has one.
    AtDeadline(Option<u64>),
}

/// Formats the note that registers the group: `+GROUP`, or `@NUMBER GROUP` and `@- GROUP` with a deadline.
impl fmt::Display for WatchedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            GroupEnd::AfterOwner => write!(f, "+{}", self.group),
            GroupEnd::AtDeadline(Some(number)) => write!(f, "@{number} {}", self.group),
            GroupEnd::AtDeadline(None) => write!(f, "@- {}", self.group),
        }
    }
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
        self.register(group, GroupEnd::AfterOwner);
    }

    /// Registers a group that ends at the deadline as well, with the mark of its child.
    pub(crate) fn watch_until_deadline(&self, group: &Group, mark: Option<&Mark>) {
        self.register(group, GroupEnd::AtDeadline(mark.map(|it| it.number)));
    }

    fn register(&self, group: &Group, end: GroupEnd) {
        let group = group.clone();
        let watched = WatchedGroup { group, end };
        let note = format!("{watched}\n");
        let mut watch = self.watch.lock();
        watch.groups.insert(watched.group.id(), watched);
        self.note(&mut watch, &note);
    }

    /// Moves the deadline, to this [`machine_time`].
    pub(crate) fn move_deadline(&self, deadline: Duration) {
        let mut watch = self.watch.lock();
        watch.deadline = Some(deadline);
        self.note(&mut watch, &deadline_note(deadline));
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
        let deadline = watch.deadline.map(deadline_note);
        let groups = watch.groups.values().map(|group| format!("{group}\n"));
        let notes: String = owner.into_iter().chain(deadline).chain(groups).collect();
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

fn deadline_note(deadline: Duration) -> String {
    format!("!{}\n", deadline.as_millis())
}

/// Runs the reaper: reads notes until its input ends, which happens when the proxy exits for any
/// reason. Then ends the remaining processes of the registered groups, and every other child of the
/// proxy. Ends groups with a deadline when it has passed.
///
/// The reaper needs no signal handlers: it leads a group of its own, so signals from a terminal do
/// not reach it, and a TERM sent to it alone is intentional.
pub fn reap(input: impl BufRead + Send) {
    set_process_name(NAME);
    let notes = follow(input);
    let mut groups: Vec<Group> = notes.groups.into_values().map(|it| it.group).collect();
    // The input ends when the owner exits, but the system may not have removed the process yet.
    let is_gone = |owner: &Owner| wait_until(REAPER_GRACE, || !owner.lives());
    let owner = notes.owner.filter(is_gone);
    let marks = owner.map_or(ClaimedMarks::None, ClaimedMarks::ChildrenOf);
    end_groups(&mut groups, marks, owner);
}

/// Reads notes until the input ends, and ends groups with a deadline meanwhile. Returns what is left.
fn follow(input: impl BufRead + Send) -> Notes {
    let mut notes = Notes::default();
    let (sender, lines) = sync_channel(NOTES_MAX);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut read = input.lines().map_while(Result::ok);
            read.all(|line| sender.send(line).is_ok())
        });
        loop {
            let wait = if notes.has_deadline() {
                DEADLINE_POLL
            } else {
                Duration::MAX
            };
            match lines.recv_timeout(wait) {
                Ok(line) => notes.read(&line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // A new deadline may be among them.
            for line in lines.try_iter() {
                notes.read(&line);
            }
            notes.end_late();
        }
    });
    notes
}

/// Ends the processes of groups, and those with these marks of a proxy.
fn end_groups(groups: &mut [Group], marks: ClaimedMarks, owner: Option<Owner>) {
    end(|| {
        let claim = Claim { groups, marks };
        let found = ProcessTable::read(owner.map(|owner| owner.session)).find(&claim);
        for group in &mut *groups {
            group.learn(&found);
        }
        found
    });
}

#[derive(Debug, Default)]
struct Notes {
    owner: Option<Owner>,
    deadline: Option<Duration>,
    groups: HashMap<i32, WatchedGroup>,
}

impl Notes {
    fn read(&mut self, line: &str) {
        let mut chars = line.chars();
        match (chars.next(), chars.as_str()) {
            (Some('='), owner) => self.owner = Owner::parse(owner),
            (Some('!'), deadline) => {
                self.deadline = deadline.parse().ok().map(Duration::from_millis);
            }
            (Some('+'), group) => self.register(group, GroupEnd::AfterOwner),
            (Some('@'), numbered) => {
                if let Some((number, group)) = numbered.split_once(' ') {
                    self.register(group, GroupEnd::AtDeadline(number.parse().ok()));
                }
            }
            (Some('-'), id) => {
                id.parse().ok().and_then(|id: i32| self.groups.remove(&id));
            }
            _ => {}
        }
    }

    fn register(&mut self, group: &str, end: GroupEnd) {
        if let Some(group) = Group::parse(group) {
            self.groups.insert(group.id(), WatchedGroup { group, end });
        }
    }

    fn has_deadline(&self) -> bool {
        let mut groups = self.groups.values();
        self.deadline.is_some() && groups.any(|it| it.end != GroupEnd::AfterOwner)
    }

    /// Ends the groups whose deadline has passed. Their owner lives, and knows them still.
    fn end_late(&mut self) {
        if !self.has_deadline() || self.deadline.is_none_or(|it| machine_time() < it) {
            return;
        }
        let mut groups = Vec::new();
        let mut numbers = BTreeSet::new();
        self.groups.retain(|_, watched| {
            let GroupEnd::AtDeadline(number) = watched.end else {
                return true;
            };
            groups.push(watched.group.clone());
            numbers.extend(number);
            false
        });
        let marks = match self.owner {
            Some(owner) => ClaimedMarks::Numbered(owner, &numbers),
            None => ClaimedMarks::None,
        };
        end_groups(&mut groups, marks, self.owner);
    }
}
