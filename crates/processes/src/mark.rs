//! Identifies the owner of a process by a variable in its environment.

use std::{
    fmt,
    str::FromStr,
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
    number: u64,
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
        let mark: Self = read_variable(pid, VARIABLE)?.parse().ok()?;
        (stat.session == mark.owner.session && is_in_our_pid_space(pid)).then_some(mark)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.marker, self.owner, self.number)
    }
}

/// The error for text that is not a mark, or not an owner.
#[derive(Debug)]
pub(crate) struct Unreadable;

impl FromStr for Mark {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let (rest, number) = text.rsplit_once(':').ok_or(Unreadable)?;
        let (owner_at, _) = rest.rmatch_indices(':').nth(2).ok_or(Unreadable)?;
        Ok(Self {
            marker: rest[..owner_at].to_owned(),
            owner: rest[owner_at + 1..].parse()?,
            number: number.parse().map_err(|_| Unreadable)?,
        })
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

    pub(crate) fn lives(self) -> bool {
        self.process.read().is_some_and(|stat| !stat.is_dead)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.process, self.session)
    }
}

impl FromStr for Owner {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let (process, session) = text.rsplit_once(':').ok_or(Unreadable)?;
        Ok(Self {
            process: process.parse().map_err(|_| Unreadable)?,
            session: session.parse().map_err(|_| Unreadable)?,
        })
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
        assert_eq!(first.to_string().parse::<Mark>().unwrap(), first);
        assert_ne!(first, second);
        assert!(first.owner.lives() && !Owner::gone().lives());
        for text in ["", "marker:1:2:3", "marker:1:2:3:x", "1:2:3:4"] {
            assert!(text.parse::<Mark>().is_err(), "{text}");
        }
    }
}
