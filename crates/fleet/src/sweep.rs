//! Children of a proxy that is gone, found by a variable in their environment.

use std::{
    collections::HashSet,
    fmt, fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use rustix::process::geteuid;

use crate::{
    group::{Group, end},
    processes::{Stat, processes},
};

/// Every child gets it: `MARKER:` and the [`Owner`].
pub(crate) const VARIABLE: &str = "PROXY_CHILD";

/// Ends what a crashed predecessor left: every process group of ours with a member that was
/// started under `marker` by a proxy that no longer runs. Returns how many there were. Reads
/// `/proc`, and does nothing where there is none. Blocks up to half a second.
///
/// A process that left for a session of its own (a browser, a daemon) is spared, as it is when
/// its server is stopped.
pub fn sweep(marker: &str) -> usize {
    let groups = left_behind(|of, owner| of == marker && !owner.lives());
    end(&groups);
    groups.len()
}

/// The groups of marked children, whose marker and owner are asked for.
pub(crate) fn left_behind(is_meant: impl Fn(&str, Owner) -> bool) -> Vec<Group> {
    let user = geteuid().as_raw();
    let our_space = pid_space(Path::new("/proc/self"));
    let groups: HashSet<Group> = processes()
        .filter(|process| fs::metadata(process).is_ok_and(|about| about.uid() == user))
        .filter_map(|process| {
            let (marker, owner) = mark(&process)?;
            let stat = Stat::read(&process)?;
            // The numbers in a mark mean something only where it was made.
            let is_ours = stat.session == owner.session && pid_space(&process) == our_space;
            (is_ours && is_meant(&marker, owner)).then(|| Group::new(stat.group))?
        })
        .collect();
    groups.into_iter().collect()
}

/// The value of [`VARIABLE`] for a child of ours, where it would be of use.
pub(crate) fn mark_of(marker: &str) -> Option<String> {
    Some(format!("{marker}:{}", Owner::ourselves()?))
}

/// A proxy, told apart from a later process of the same number by the time of its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: i32,
    start_ticks: u64,
    session: i32,
}

impl Owner {
    pub(crate) fn ourselves() -> Option<Self> {
        let stat = Stat::read(Path::new("/proc/self"))?;
        Some(Self {
            pid: stat.pid,
            start_ticks: stat.start_ticks,
            session: stat.session,
        })
    }

    pub(crate) fn lives(self) -> bool {
        Stat::read(&Path::new("/proc").join(self.pid.to_string()))
            .is_some_and(|stat| stat.start_ticks == self.start_ticks && !stat.is_dead)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.pid, self.start_ticks, self.session)
    }
}

/// The text is no owner.
#[derive(Debug)]
pub(crate) struct NoOwner;

impl FromStr for Owner {
    type Err = NoOwner;

    fn from_str(text: &str) -> Result<Self, NoOwner> {
        let [pid, start, session] = text.split(':').collect::<Vec<_>>()[..] else {
            return Err(NoOwner);
        };
        Ok(Self {
            pid: pid.parse().map_err(|_| NoOwner)?,
            start_ticks: start.parse().map_err(|_| NoOwner)?,
            session: session.parse().map_err(|_| NoOwner)?,
        })
    }
}

/// Under which marker a process was started, and by whom.
fn mark(process: &Path) -> Option<(String, Owner)> {
    let environment = fs::read(process.join("environ")).ok()?;
    let value = environment.split(|byte| *byte == 0).find_map(|variable| {
        variable
            .strip_prefix(VARIABLE.as_bytes())?
            .strip_prefix(b"=")
    })?;
    let value = str::from_utf8(value).ok()?;
    let (owner_at, _) = value.rmatch_indices(':').nth(2)?;
    let owner = value[owner_at + 1..].parse().ok()?;
    Some((value[..owner_at].to_owned(), owner))
}

/// Containers may share a user and a home, and so our markers, but count their processes anew.
fn pid_space(process: &Path) -> Option<PathBuf> {
    fs::read_link(process.join("ns/pid")).ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        os::unix::process::CommandExt as _,
        process::{Child, Command},
    };

    use super::{Owner, VARIABLE, mark_of, sweep};

    /// A process nobody else has: the marker of one test.
    fn marker(test: &str) -> String {
        format!("test:{test}:{}", std::process::id())
    }

    fn gone() -> Owner {
        let ourselves = Owner::ourselves().unwrap();
        let start_ticks = ourselves.start_ticks + 1;
        Owner {
            start_ticks,
            ..ourselves
        }
    }

    fn child(mark: &str) -> Child {
        Command::new("sleep")
            .arg("1000")
            .env(VARIABLE, mark)
            .process_group(0)
            .spawn()
            .unwrap()
    }

    fn signal_of(mut child: Child) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt as _;
        child.wait().unwrap().signal()
    }

    #[test]
    fn children_of_a_proxy_that_is_gone_are_ended_and_no_others() {
        let marker = marker("gone");
        let left = child(&format!("{marker}:{}", gone()));
        let mut ours = child(&mark_of(&marker).unwrap());
        let mut of_another = child(&format!("{marker}-other:{}", gone()));
        let far = Owner {
            session: gone().session + 1,
            ..gone()
        };
        let mut of_another_session = child(&format!("{marker}:{far}"));

        assert_eq!(sweep(&marker), 1);

        assert_eq!(signal_of(left), Some(15));
        for spared in [&mut ours, &mut of_another, &mut of_another_session] {
            assert_eq!(spared.try_wait().unwrap(), None);
            spared.kill().unwrap();
            spared.wait().unwrap();
        }
        assert_eq!(sweep(&marker), 0);
    }
}
