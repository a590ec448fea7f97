//! Reads information about processes from `/proc`, if the system has it.

use std::{
    collections::HashMap,
    fmt, fs,
    io::Read as _,
    num::ParseIntError,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    str::FromStr,
};

/// Returns the folder of each process.
pub(crate) fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().as_bytes()[0].is_ascii_digit())
        .map(|entry| entry.path())
}

/// Returns the memory that each process group uses, in bytes, by group id.
pub fn group_memory() -> HashMap<i32, u64> {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut memory = HashMap::new();
    for stat in processes().filter_map(|process| Stat::read(&process)) {
        *memory.entry(stat.group).or_default() += stat.pages * page;
    }
    memory
}

/// Returns the memory that this process uses, in bytes.
pub fn own_memory() -> Option<u64> {
    let page = u64::try_from(rustix::param::page_size()).ok()?;
    Some(Stat::read(Path::new("/proc/self"))?.pages * page)
}

/// One process, distinguished from a later one with the same pid by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// The start time, in clock ticks since the system started.
    pub(crate) start_ticks: u64,
}

impl Identity {
    /// Returns the identity of the process that has this pid now.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = Stat::read(&Path::new("/proc").join(pid.to_string()))?;
        Some(stat.identity)
    }

    /// Reads the current state; returns `None` once the pid is free or reused.
    pub(crate) fn read(self) -> Option<Stat> {
        Stat::read(&Path::new("/proc").join(self.pid.to_string()))
            .filter(|stat| stat.identity == self)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pid, self.start_ticks)
    }
}

impl FromStr for Identity {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (pid, start_ticks) = text.split_once(':').unwrap_or((text, ""));
        Ok(Self {
            pid: pid.parse()?,
            start_ticks: start_ticks.parse()?,
        })
    }
}

/// The part of `/proc/PID/stat` that we read.
#[derive(Debug)]
pub(crate) struct Stat {
    pub(crate) identity: Identity,
    /// True for a zombie.
    pub(crate) is_dead: bool,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// False for a kernel thread.
    pub(crate) has_memory: bool,
    /// The resident memory, in pages.
    pages: u64,
}

/// The size limit of `/proc/PID/stat`: 52 numbers, and a name of 64 bytes at most.
const STAT_BYTES_MAX: usize = 2_048;

impl Stat {
    /// Reads the file in one system call, because a daemon reads hundreds of these files.
    pub(crate) fn read(process: &Path) -> Option<Self> {
        let mut bytes = [0; STAT_BYTES_MAX];
        let mut file = fs::File::open(process.join("stat")).ok()?;
        let read = file.read(&mut bytes).ok()?;
        Self::parse(&String::from_utf8_lossy(&bytes[..read]))
    }

    /// Parses the file. The second field is the program's name in parentheses, which may contain
    /// any character.
    fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(" (")?;
        let rest: Vec<&str> = rest.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            identity: Identity {
                pid: pid.parse().ok()?,
                start_ticks: rest.get(19)?.parse().ok()?,
            },
            is_dead: matches!(*rest.first()?, "Z" | "X"),
            group: rest.get(2)?.parse().ok()?,
            session: rest.get(3)?.parse().ok()?,
            has_memory: *rest.get(20)? != "0",
            pages: rest.get(21)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Stat;

    #[test]
    fn a_name_with_spaces_and_parentheses_hides_nothing() {
        let text = "7 (a) Z (b) S 1 70 700 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 3";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.identity, "7:12345".parse().unwrap());
        assert_eq!((stat.group, stat.session), (70, 700));
        assert!(!stat.is_dead && !stat.has_memory);
        assert_eq!(stat.pages, 3);
        assert!(Stat::parse("7 (a").is_none());
    }
}
