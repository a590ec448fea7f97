//! Scans all processes, and identifies those that are ours.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use tokio::{sync::Mutex, task::spawn_blocking};

use super::{Ours, own_group};
use crate::{
    group::Group,
    mark::{Mark, Owner},
    proc::{Identity, Stat, list, read_process},
};

/// The processes that we may end.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) groups: &'a [Group],
    pub(crate) marks: ClaimedMarks<'a>,
}

/// The owner of the marks that are searched for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClaimedMarks<'a> {
    None,
    /// One child of ours, and its descendants.
    Child(&'a Mark),
    /// Every child of this proxy.
    ChildrenOf(Owner),
    /// The children of this proxy with these numbers.
    Numbered(Owner, &'a BTreeSet<u64>),
    /// Every child of an exited proxy with this marker.
    LeftBy(&'a str),
}

impl ClaimedMarks<'_> {
    fn holds(&self, mark: &Mark) -> bool {
        match self {
            Self::None => false,
            Self::Child(child) => mark == *child,
            Self::ChildrenOf(owner) => mark.owner == *owner,
            Self::Numbered(owner, numbers) => {
                mark.owner == *owner && numbers.contains(&mark.number)
            }
            Self::LeftBy(marker) => mark.marker == *marker && !mark.owner.lives(),
        }
    }
}

/// A snapshot of all processes; empty if the system does not provide them.
#[derive(Debug, Default)]
pub(crate) struct ProcessTable {
    rows: Vec<ProcessRow>,
}

#[derive(Debug)]
struct ProcessRow {
    stat: Stat,
    /// `None` for a dead process.
    mark: Option<Mark>,
}

impl ProcessTable {
    /// Scans all processes. If a session is given, reads only its marks: reading an environment
    /// costs more than the rest of the scan.
    pub(crate) fn read(session: Option<i32>) -> Self {
        let rows = list().filter_map(|pid| {
            let stat = read_process(pid)?;
            let may_be_marked = !stat.is_dead && session.is_none_or(|it| it == stat.session);
            let mark = may_be_marked.then(|| Mark::of(&stat)).flatten();
            Some(ProcessRow { stat, mark })
        });
        Self {
            rows: rows.collect(),
        }
    }

    /// Scans all processes, and reads the marks of our own session, which our children share.
    pub(crate) fn near() -> Self {
        Owner::ourselves().map_or_else(Self::default, |us| Self::read(Some(us.session)))
    }

    /// Returns the live members of a group, without its leader.
    pub(crate) fn led_by(&self, leader: i32) -> Vec<Identity> {
        let others =
            self.rows.iter().map(|row| &row.stat).filter(|stat| {
                stat.group == leader && stat.identity.pid != leader && !stat.is_dead
            });
        others.map(|stat| stat.identity).collect()
    }

    /// Returns every live process that is proven to match the claim: by its own mark, or by its group.
    pub(crate) fn find(&self, claim: &Claim) -> Vec<Ours> {
        let evidence = self.rows.iter().filter(|row| claim.is_evidence(row));
        let groups: BTreeSet<i32> = evidence.map(|row| row.stat.group).collect();
        let ours = groups.into_iter();
        ours.flat_map(|group| self.find_in(group, claim)).collect()
    }

    fn find_in(&self, group: i32, claim: &Claim) -> Vec<Ours> {
        let members = || self.rows.iter().filter(|row| row.stat.group == group);
        let is_whole = self.is_ours(group, claim);
        let meant =
            members().filter(|row| !row.stat.is_dead && (is_whole || claim.claims_mark_of(row)));
        let held: Vec<Ours> = meant.filter_map(|row| Ours::hold(&row.stat)).collect();
        // A group that has members keeps its id. If one member was in the group both before and
        // after the handles were opened, the id referred to the same group throughout.
        let is_same = |row: &ProcessRow| {
            let now = row.stat.identity.read();
            now.is_some_and(|now| now.group == group)
        };
        if is_whole && !members().filter(|row| claim.is_evidence(row)).any(is_same) {
            return Vec::new();
        }
        held
    }

    /// Returns true if all live members of a group are ours because some are known to be: we
    /// created the group, or its leader is ours or has exited. A process of ours may have joined a
    /// foreign group.
    fn is_ours(&self, group: i32, claim: &Claim) -> bool {
        let mut members = self.rows.iter().filter(|row| row.stat.group == group);
        let leader = self
            .rows
            .iter()
            .find(|row| row.stat.identity.pid == group && !row.stat.is_dead);
        let is_led_by_others = leader.is_some_and(|leader| !claim.claims_mark_of(leader));
        group > 1
            && group != own_group()
            && (members.any(|row| claim.claims_group_of(row)) || !is_led_by_others)
    }
}

impl Claim<'_> {
    fn is_evidence(&self, row: &ProcessRow) -> bool {
        self.claims_group_of(row) || self.claims_mark_of(row)
    }

    /// Returns true if the process identifies a claimed group. Dead processes count: until they are
    /// reaped, they hold the group's id.
    fn claims_group_of(&self, row: &ProcessRow) -> bool {
        let stat = &row.stat;
        let mut groups = self.groups.iter();
        groups.any(|group| group.id() == stat.group && group.knows(stat.identity))
    }

    fn claims_mark_of(&self, row: &ProcessRow) -> bool {
        row.mark.as_ref().is_some_and(|mark| self.marks.holds(mark))
    }
}

/// Scans that callers share, so that thirty servers that stop at once do not each read all
/// processes.
#[derive(Debug, Default)]
pub(crate) struct SharedScans {
    last: Mutex<Option<(Instant, Arc<ProcessTable>)>>,
}

impl SharedScans {
    /// Returns a scan that began after this call.
    pub(crate) async fn scan(&self) -> Arc<ProcessTable> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((began, table)) = &*last
            && *began >= asked
        {
            return Arc::clone(table);
        }
        let began = Instant::now();
        let table = Arc::new(spawn_blocking(ProcessTable::near).await.unwrap_or_default());
        *last = Some((began, Arc::clone(&table)));
        table
    }
}
