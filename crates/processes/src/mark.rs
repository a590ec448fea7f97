//! Identifies the owner of a process by a variable in its environment.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::proc::{Identity, Stat, is_in_our_pid_space, read_own, read_variable};

/// The variable that holds the [`Mark`] of every child; its descendants inherit it.
pub(crate) const VARIABLE: &str = "PROXY_CHILD";

/// The mark of a child, written as `MARKER:PID:START:SESSION:NUMBER`: the marker, the proxy that
/// started the process, and the number of the child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) marker: String,
    pub(crate) owner: Owner,
    pub(crate) number: u64,
}

impl Mark {
    /// Returns a unique mark for one more child. `None` if the system does not provide our own
    /// identity.
    pub(crate) fn next(marker: &str) -> Option<Self> {
        static CHILDREN: AtomicU64 = AtomicU64::new(0);
        Some(Self {
            marker: marker.to_owned(),
            owner: Owner::ourselves()?,
            number: CHILDREN.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Returns the mark of a process; `None` if the process moved to another session, belongs to
    /// another user, or is in another pid namespace, where the pids of a mark are not valid.
    /// (Containers may share a user and a home directory, and so our markers.)
    pub(crate) fn of(stat: &Stat) -> Option<Self> {
        if !stat.has_memory {
            return None;
        }
        let pid = stat.identity.pid;
        let mark = Self::parse(&read_variable(pid, VARIABLE)?)?;
        (stat.session == mark.owner.session && is_in_our_pid_space(pid)).then_some(mark)
    }

    fn parse(text: &str) -> Option<Self> {
        let (rest, number) = text.rsplit_once(':')?;
        let (owner_at, _) = rest.rmatch_indices(':').nth(2)?;
        Some(Self {
            marker: rest[..owner_at].to_owned(),
            owner: Owner::parse(&rest[owner_at + 1..])?,
            number: number.parse().ok()?,
        })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.marker, self.owner, self.number)
    }
}

/// A proxy process, distinguished from a later process with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) process: Identity,
    pub(crate) session: i32,
}

impl Owner {
    pub(crate) fn ourselves() -> Option<Self> {
        let stat = read_own()?;
        Some(Self {
            process: stat.identity,
            session: stat.session,
        })
    }

    /// Parses the form in which an owner is written.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (process, session) = text.rsplit_once(':')?;
        Some(Self {
            process: Identity::parse(process)?,
            session: session.parse().ok()?,
        })
    }

    pub(crate) fn lives(self) -> bool {
        self.process.read().is_some_and(|stat| !stat.is_dead)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.process, self.session)
    }
}

#[cfg(test)]
impl Owner {
    /// Returns an owner that has exited.
    pub(crate) fn gone() -> Self {
        let mut owner = Self::ourselves().unwrap();
        owner.process.start_ticks += 1;
        owner
    }
}

#[cfg(test)]
mod tests {
    use super::{Mark, Owner};

    #[test]
    fn a_mark_is_read_as_it_was_written_and_is_one_childs() {
        let first = Mark::next("with:colons").unwrap();
        let second = Mark::next("with:colons").unwrap();
        assert_eq!(Mark::parse(&first.to_string()).unwrap(), first);
        assert_ne!(first, second);
        assert!(first.owner.lives() && !Owner::gone().lives());
        for text in ["", "marker:1:2:3", "marker:1:2:3:x", "1:2:3:4"] {
            assert!(Mark::parse(text).is_none(), "{text}");
        }
    }
}
