//! Reads `/proc`, and holds processes by pidfd.

use std::{
    fs,
    io::{self, Read as _},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal},
};

use super::stat::{Identity, Stat};

const OURSELVES: &str = "/proc/self";

/// The size limit of `/proc/PID/stat`: 52 numbers, and a name of 64 bytes at most.
const STAT_BYTES_MAX: usize = 2_048;

/// The size of most environments, in bytes.
const ENVIRONMENT_BYTES: usize = 8 * 1024;

/// The most that is read of the table of sockets: some 25,000 lines.
const SOCKETS_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The number of attempts to read an environment that is empty. Few processes have an empty
/// environment, our reaper among them, and each of these costs this many reads in every scan. The
/// next scan finds a process that was missed nevertheless.
const ENVIRONMENT_READS: usize = 4;

/// Returns the pid of each process.
pub(crate) fn list() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name();
        let is_process = name.as_bytes()[0].is_ascii_digit();
        is_process.then(|| name.to_str()?.parse().ok()).flatten()
    })
}

/// Returns the process that listens on a TCP port, if it is one whose descriptors we may read.
pub(crate) fn find_listener(port: u16) -> Option<i32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
    let tables = tables.filter_map(|path| {
        let mut text = String::new();
        let table = fs::File::open(path).ok()?;
        table
            .take(SOCKETS_BYTES_MAX)
            .read_to_string(&mut text)
            .ok()?;
        Some(text)
    });
    let sockets: Vec<String> = tables
        .flat_map(|text| list_listeners(&text, port))
        .collect();
    let has_socket = |pid: &i32| {
        let descriptors = fs::read_dir(folder(*pid).join("fd")).into_iter().flatten();
        let mut links = descriptors
            .flatten()
            .filter_map(|it| fs::read_link(it.path()).ok());
        links.any(|link| sockets.iter().any(|socket| link == Path::new(socket)))
    };
    list().find(|pid| !sockets.is_empty() && has_socket(pid))
}

/// Returns the sockets in a table of the kernel that listen on a port, as links of descriptors name them.
fn list_listeners(table: &str, port: u16) -> Vec<String> {
    const LISTENS: &str = "0A";
    let local_port = format!("{port:04X}");
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let is_found = local.rsplit(':').next() == Some(&local_port) && *state == LISTENS;
        is_found.then(|| format!("socket:[{inode}]"))
    };
    table.lines().filter_map(socket).collect()
}

/// Returns true if a signal such as SIGSTOP has stopped the process.
pub(crate) fn is_stopped(pid: i32) -> bool {
    let stat = fs::read_to_string(folder(pid).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| state.starts_with(['T', 't']))
}

/// Returns the name of a process, which it may have set itself.
pub(crate) fn read_name(pid: i32) -> Option<String> {
    let name = fs::read_to_string(folder(pid).join("comm")).ok()?;
    Some(name.trim_end().to_owned())
}

pub(crate) fn read_process(pid: i32) -> Option<Stat> {
    read(&folder(pid))
}

pub(crate) fn read_own() -> Option<Stat> {
    read(Path::new(OURSELVES))
}

fn folder(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// Reads the file in one system call, because a daemon reads hundreds of these files.
fn read(process: &Path) -> Option<Stat> {
    let mut bytes = [0; STAT_BYTES_MAX];
    let mut file = fs::File::open(process.join("stat")).ok()?;
    let read = file.read(&mut bytes).ok()?;
    parse(&String::from_utf8_lossy(&bytes[..read]))
}

/// Parses `/proc/PID/stat`. The second field is the program's name in parentheses, which may contain
/// any character.
fn parse(text: &str) -> Option<Stat> {
    let (pid, rest) = text.split_once(" (")?;
    let rest: Vec<&str> = rest.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let pages: u64 = rest.get(21)?.parse().ok()?;
    Some(Stat {
        identity: Identity {
            pid: pid.parse().ok()?,
            start_ticks: rest.get(19)?.parse().ok()?,
        },
        is_dead: matches!(*rest.first()?, "Z" | "X"),
        group: rest.get(2)?.parse().ok()?,
        session: rest.get(3)?.parse().ok()?,
        has_memory: *rest.get(20)? != "0",
        memory_bytes: pages * page_bytes,
    })
}

/// Returns a variable from the environment with which a process of our user was started.
pub(crate) fn read_variable(pid: i32, name: &str) -> Option<String> {
    let process = folder(pid);
    let is_ours = |about: fs::Metadata| about.uid() == geteuid().as_raw();
    if !fs::metadata(&process).is_ok_and(is_ours) {
        return None;
    }
    let environment = read_environment(&process)?;
    environment.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(str::from_utf8(value).ok()?.to_owned())
    })
}

/// Reads the environment of a process. It is empty for a moment during an `exec`.
fn read_environment(process: &Path) -> Option<Vec<u8>> {
    for _ in 0..ENVIRONMENT_READS {
        let mut environment = Vec::with_capacity(ENVIRONMENT_BYTES);
        let file = fs::File::open(process.join("environ")).ok()?;
        // Does not use the file's length, which is reported as 0.
        file.take(u64::MAX).read_to_end(&mut environment).ok()?;
        if !environment.is_empty() {
            return Some(environment);
        }
        std::thread::yield_now();
    }
    None
}

/// Returns true if a process is in our pid namespace, so that the pids in its mark are valid here.
pub(crate) fn is_in_our_pid_space(pid: i32) -> bool {
    pid_space(&folder(pid)) == pid_space(Path::new(OURSELVES))
}

fn pid_space(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/pid")).ok()
}

/// A pidfd, which never refers to a later process with the same pid.
#[derive(Debug)]
pub(crate) struct ProcessHandle(OwnedFd);

/// Opens a handle to the process that has this pid now. Returns `None` if the system has no handles
/// (before Linux 5.3); fails if there is no such process.
pub(crate) fn open_handle(pid: i32) -> io::Result<Option<ProcessHandle>> {
    let id = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    match pidfd_open(id, PidfdFlags::empty()) {
        Ok(handle) => Ok(Some(ProcessHandle(handle))),
        Err(Errno::SRCH) => Err(Errno::SRCH.into()),
        Err(_) => Ok(None),
    }
}

impl ProcessHandle {
    pub(crate) fn send(&self, signal: Signal) -> rustix::io::Result<()> {
        pidfd_send_signal(&self.0, signal)
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_name_with_spaces_and_parentheses_hides_nothing() {
        let text = "7 (a) Z (b) S 1 70 700 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 3";
        let stat = parse(text).unwrap();
        assert_eq!(stat.identity.to_string(), "7:12345");
        assert_eq!((stat.group, stat.session), (70, 700));
        assert!(!stat.is_dead && !stat.has_memory);
        assert_eq!(stat.memory_bytes, 3 * rustix::param::page_size() as u64);
        assert!(parse("7 (a").is_none());
    }
}
