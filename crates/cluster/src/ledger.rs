//! The shared records as this node has seen them, and the rules of ownership. No clock, no network: callers
//! pass the time, and a record's revision in its bucket.
//!
//! A node holds one lease, which it renews. A server with the placement `one` has an owner: a node and an
//! epoch, valid as long as the grant of its lease. Both records change only by compare-and-swap. An owner
//! stops [`HOLD`] after it sent its last acknowledged renewal; another node revokes the lease
//! [`TAKE_OVER_AFTER`] after it saw that renewal, which is later on any clocks.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tool::ServerName;

use crate::seal::Boot;

/// The time between renewals of a lease.
pub(crate) const RENEW_EVERY: Duration = Duration::from_secs(3);

/// The time after which an owner stops its servers, from the moment it sent its last acknowledged renewal.
/// A bucket stands still for up to 8.5 s when its leader dies.
pub(crate) const HOLD: Duration = Duration::from_secs(14);

/// The time in which an owner ends its processes after that. If it stands still, its reaper begins then, and needs
/// another second.
pub(crate) const ENDED_WITHIN: Duration = Duration::from_millis(1_500);

/// The time after which another node takes over, from the moment it saw that renewal. The processes of the owner
/// have ended before.
pub(crate) const TAKE_OVER_AFTER: Duration = Duration::from_secs(18);

/// The replaced processes that are remembered. A further one forgets all.
const REPLACED_MAX: usize = 4_096;

/// The lease of a node, at `lease.NODE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseRecord {
    pub(crate) boot: Boot,
    /// Identifies the machine and state folder of the node.
    pub(crate) home: u64,
    /// Counts the leases of this process. Owners of an earlier grant own nothing.
    pub(crate) grant: u64,
    /// Counts renewals.
    pub(crate) beat: u64,
    /// The node has left, or another has taken over.
    pub(crate) is_revoked: bool,
}

impl LeaseRecord {
    pub(crate) fn revoked(self) -> Self {
        Self {
            is_revoked: true,
            beat: self.beat + 1,
            ..self
        }
    }
}

/// The owner of a server, at `owner.SERVER`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnerRecord {
    pub(crate) node: String,
    pub(crate) boot: Boot,
    pub(crate) grant: u64,
    pub(crate) epoch: u64,
    /// The owner has ended it.
    pub(crate) is_released: bool,
}

/// The newest list of a server's tools, at `list.SERVER`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListRecord {
    pub(crate) version: u64,
    /// SHA-256 of the text of the snapshot, in hexadecimal.
    pub(crate) digest: String,
    pub(crate) node: String,
}

/// The decisions about the definitions of a server, at `pins.SERVER`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinsRecord {
    /// Counts changes.
    pub version: u64,
    /// The node that wrote it.
    pub node: String,
    /// The program or address that they are about, as [`crate::Cluster::pins_scope`] names it.
    #[serde(default)]
    pub scope: String,
    /// JSON: the decisions.
    pub text: String,
}

/// The configuration that all nodes share, at `shared`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedRecord {
    /// Counts pushes.
    pub revision: u64,
    /// The node whose user pushed it.
    pub node: String,
    /// TOML: servers, rules, clients.
    pub text: String,
}

/// One record, by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClusterRecord {
    Lease(String, LeaseRecord),
    Owner(ServerName, OwnerRecord),
    List(ServerName, ListRecord),
    Pins(ServerName, PinsRecord),
    Shared(SharedRecord),
}

impl ClusterRecord {
    /// Reads the value of a key; `None` for a key or a text of another kind.
    pub(crate) fn read(key: &str, text: &[u8]) -> Option<Self> {
        let (kind, name) = key.split_once('.').unwrap_or((key, ""));
        Some(match kind {
            "lease" => Self::Lease(name.to_owned(), serde_json::from_slice(text).ok()?),
            "owner" => Self::Owner(name.parse().ok()?, serde_json::from_slice(text).ok()?),
            "list" => Self::List(name.parse().ok()?, serde_json::from_slice(text).ok()?),
            "pins" => Self::Pins(name.parse().ok()?, serde_json::from_slice(text).ok()?),
            "shared" => Self::Shared(serde_json::from_slice(text).ok()?),
            _ => return None,
        })
    }

    pub(crate) fn key(&self) -> String {
        match self {
            Self::Lease(node, _) => format!("lease.{node}"),
            Self::Owner(server, _) => format!("owner.{server}"),
            Self::List(server, _) => format!("list.{server}"),
            Self::Pins(server, _) => format!("pins.{server}"),
            Self::Shared(_) => "shared".to_owned(),
        }
    }

    /// The node that it is about, or that wrote it.
    pub(crate) fn node(&self) -> &str {
        match self {
            Self::Lease(node, _)
            | Self::Owner(_, OwnerRecord { node, .. })
            | Self::List(_, ListRecord { node, .. })
            | Self::Pins(_, PinsRecord { node, .. })
            | Self::Shared(SharedRecord { node, .. }) => node,
        }
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        let text = match self {
            Self::Lease(_, record) => serde_json::to_vec(record),
            Self::Owner(_, record) => serde_json::to_vec(record),
            Self::List(_, record) => serde_json::to_vec(record),
            Self::Pins(_, record) => serde_json::to_vec(record),
            Self::Shared(record) => serde_json::to_vec(record),
        };
        text.expect("a record is JSON")
    }
}

/// A lease, and the time at which this node first saw its last renewal.
#[derive(Debug, Clone)]
pub(crate) struct SeenLease {
    pub(crate) record: LeaseRecord,
    pub(crate) at: Instant,
}

/// The newest revision of a key.
#[derive(Debug, Default)]
struct KeyRevision {
    /// 0: the bucket has no such key.
    revision: u64,
    /// The difference between the bucket and the known record, if there is one.
    loss: Option<Loss>,
    /// The current read of all records has met it.
    is_read: bool,
}

/// The reason why the bucket does not have the known record of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It has none, or an older one.
    Gone,
    /// It has a text that the key of this cluster does not open.
    Foreign,
}

/// A record that the bucket does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostRecord {
    pub(crate) record: ClusterRecord,
    pub(crate) loss: Loss,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) leases: BTreeMap<String, SeenLease>,
    pub(crate) owners: BTreeMap<ServerName, OwnerRecord>,
    pub(crate) lists: BTreeMap<ServerName, ListRecord>,
    pub(crate) pins: BTreeMap<ServerName, PinsRecord>,
    pub(crate) shared: Option<SharedRecord>,
    /// Those of all keys, also of keys without a record of ours: a new record replaces them.
    revisions: BTreeMap<String, KeyRevision>,
    /// The newest revision of any key.
    pub(crate) newest: u64,
    /// The grant of each process whose lease another process of its node replaced.
    replaced: BTreeMap<Boot, u64>,
}

/// The standing of a server with the placement `one`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has no owner. It is taken with this epoch, by replacing this revision (0: there is no record).
    Free {
        revision: u64,
        epoch: u64,
        /// The node that owned it, if that node is back: it takes the server before others do.
        heir: Option<String>,
    },
    /// A process owns it.
    Owned {
        node: String,
        boot: Boot,
        grant: u64,
        epoch: u64,
        /// Another node may revoke the lease, which has this revision, at this time.
        until: Instant,
        lease_revision: u64,
    },
}

impl Ledger {
    /// Notes a record. Returns false if it is older than what is known: a server that lags or lies.
    pub(crate) fn note(&mut self, record: ClusterRecord, revision: u64, now: Instant) -> bool {
        let loss = self.has_newer(&record).then_some(Loss::Gone);
        if !self.note_revision(&record.key(), revision, loss) || loss.is_some() {
            return false;
        }
        match record {
            ClusterRecord::Lease(node, record) => self.insert_lease(node, record, now),
            ClusterRecord::Owner(server, record) => {
                self.owners.insert(server, record);
            }
            ClusterRecord::List(server, record) => {
                self.lists.insert(server, record);
            }
            ClusterRecord::Pins(server, record) => {
                self.pins.insert(server, record);
            }
            ClusterRecord::Shared(record) => self.shared = Some(record),
        }
        true
    }

    fn insert_lease(&mut self, node: String, record: LeaseRecord, now: Instant) {
        let boot = record.boot;
        let before = self.leases.insert(node, SeenLease { record, at: now });
        if let Some(SeenLease { record: old, .. }) = before.filter(|it| it.record.boot != boot) {
            if self.replaced.len() >= REPLACED_MAX {
                self.replaced.clear();
            }
            self.replaced.insert(old.boot, old.grant);
        }
    }

    /// Notes the newest revision of a key. Returns false if it is known, or a newer one is. The first one of a
    /// read counts even if it is older: the bucket may be a restored one.
    fn note_revision(&mut self, key: &str, revision: u64, loss: Option<Loss>) -> bool {
        self.newest = self.newest.max(revision);
        let known = self.revisions.entry(key.to_owned()).or_default();
        let is_first = !std::mem::replace(&mut known.is_read, true);
        if known.revision == revision || known.revision > revision && !is_first {
            return false;
        }
        (known.revision, known.loss) = (revision, loss);
        true
    }

    fn has_newer(&self, record: &ClusterRecord) -> bool {
        match record {
            ClusterRecord::Lease(node, new) => {
                let replaced = self.replaced.get(&new.boot);
                let is_replaced = replaced.is_some_and(|grant| *grant >= new.grant);
                let has_newer = |it: &SeenLease| {
                    let old = &it.record;
                    old.boot == new.boot && (old.grant, old.beat) > (new.grant, new.beat)
                        || old.boot != new.boot && is_replaced
                };
                self.leases.get(node).is_some_and(has_newer)
            }
            ClusterRecord::Owner(server, new) => {
                let old = self.owners.get(server);
                old.is_some_and(|old| old.epoch > new.epoch)
            }
            ClusterRecord::List(server, new) => {
                let old = self.lists.get(server);
                old.is_some_and(|old| old.version > new.version)
            }
            ClusterRecord::Pins(server, new) => {
                let old = self.pins.get(server);
                old.is_some_and(|old| old.version > new.version)
            }
            ClusterRecord::Shared(new) => {
                let old = self.shared.as_ref();
                old.is_some_and(|old| old.revision > new.revision)
            }
        }
    }

    /// Notes a revision of a key that has no record of ours: it was deleted, or cannot be opened. No node
    /// deletes records, so the known record stays; the next write replaces this revision.
    pub(crate) fn note_other(&mut self, key: &str, revision: u64, loss: Loss) {
        self.note_revision(key, revision, Some(loss));
    }

    /// Begins a read of all records.
    pub(crate) fn begin_read(&mut self) {
        self.newest = 0;
        for known in self.revisions.values_mut() {
            known.is_read = false;
        }
    }

    /// Ends a read of all records: the bucket does not have those that it did not meet. `newest` is the last
    /// revision that the bucket gave to any key, `node` is this node.
    ///
    /// An owner without a lease may hold one that the bucket lost, and counts as seen now. A lease of an earlier
    /// process of this node is none: the daemon's lock proves that it has ended.
    pub(crate) fn end_read(&mut self, newest: u64, node: &str, now: Instant) {
        self.newest = self.newest.max(newest);
        for known in self.revisions.values_mut().filter(|it| !it.is_read) {
            (known.revision, known.loss) = (0, Some(Loss::Gone));
        }
        for owner in self.owners.values().filter(|it| !it.is_released) {
            if owner.node == node || self.leases.contains_key(&owner.node) {
                continue;
            }
            let record = LeaseRecord {
                boot: owner.boot,
                home: 0,
                grant: owner.grant,
                beat: 0,
                is_revoked: false,
            };
            let known = self.revisions.entry(format!("lease.{}", owner.node));
            known.or_default().loss.get_or_insert(Loss::Gone);
            self.leases
                .insert(owner.node.clone(), SeenLease { record, at: now });
        }
    }

    /// The number of keys that the bucket has, as far as known.
    pub(crate) fn count_keys(&self) -> usize {
        self.revisions.values().filter(|it| it.revision > 0).count()
    }

    /// The known records that the bucket does not have.
    pub(crate) fn list_lost(&self) -> Vec<LostRecord> {
        let keys = self.revisions.iter();
        let lost = keys.filter_map(|(key, known)| {
            Some(LostRecord {
                loss: known.loss?,
                record: self.find(key)?,
            })
        });
        lost.collect()
    }

    fn find(&self, key: &str) -> Option<ClusterRecord> {
        let (kind, name) = key.split_once('.').unwrap_or((key, ""));
        let server = || name.parse::<ServerName>().ok();
        Some(match kind {
            "lease" => {
                let record = self.leases.get(name)?.record.clone();
                ClusterRecord::Lease(name.to_owned(), record)
            }
            "owner" => ClusterRecord::Owner(server()?, self.owners.get(&server()?)?.clone()),
            "list" => ClusterRecord::List(server()?, self.lists.get(&server()?)?.clone()),
            "pins" => ClusterRecord::Pins(server()?, self.pins.get(&server()?)?.clone()),
            "shared" => ClusterRecord::Shared(self.shared.clone()?),
            _ => return None,
        })
    }

    /// The revision that a new record at this key replaces.
    pub(crate) fn revision_of(&self, key: &str) -> u64 {
        self.revisions.get(key).map_or(0, |it| it.revision)
    }

    /// Returns true if the bucket does not have our record of this key.
    pub(crate) fn is_lost(&self, key: &str) -> bool {
        self.revisions.get(key).is_some_and(|it| it.loss.is_some())
    }

    /// Returns true if the bucket has no record of this key, or an older one.
    pub(crate) fn is_gone(&self, key: &str) -> bool {
        let known = self.revisions.get(key);
        known.is_some_and(|it| it.loss == Some(Loss::Gone))
    }

    /// Decides who owns a server.
    pub(crate) fn standing(&self, server: &ServerName) -> Standing {
        let revision = self.revision_of(&format!("owner.{server}"));
        let Some(owner) = self.owners.get(server) else {
            return Standing::Free {
                revision,
                epoch: 1,
                heir: None,
            };
        };
        let lease = self.leases.get(&owner.node);
        let live = lease.filter(|it| !it.record.is_revoked && !owner.is_released);
        match live {
            Some(SeenLease { record, at })
                if (record.boot, record.grant) == (owner.boot, owner.grant) =>
            {
                Standing::Owned {
                    node: owner.node.clone(),
                    boot: owner.boot,
                    grant: owner.grant,
                    epoch: owner.epoch,
                    until: *at + TAKE_OVER_AFTER,
                    lease_revision: self.revision_of(&format!("lease.{}", owner.node)),
                }
            }
            // Its process released it or its lease, was replaced, or lost the lease.
            _ => Standing::Free {
                revision,
                epoch: owner.epoch + 1,
                heir: live.map(|_| owner.node.clone()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::Seal;

    struct Fixture {
        ledger: Ledger,
        boots: [Boot; 2],
        began: Instant,
        revision: u64,
    }

    impl Fixture {
        fn new() -> Self {
            Self {
                ledger: Ledger::default(),
                boots: [0, 1].map(|_| Seal::new("c", "k").boot()),
                began: Instant::now(),
                revision: 0,
            }
        }

        fn note(&mut self, record: ClusterRecord, after: u64) -> bool {
            self.revision += 1;
            let at = self.began + Duration::from_secs(after);
            self.ledger.note(record, self.revision, at)
        }

        fn lease(&mut self, node: usize, grant: u64, beat: u64, after: u64) -> bool {
            let record = LeaseRecord {
                boot: self.boots[node],
                home: 7,
                grant,
                beat,
                is_revoked: false,
            };
            self.note(ClusterRecord::Lease("a".to_owned(), record), after)
        }

        fn owner(&mut self, node: usize, epoch: u64, is_released: bool) -> bool {
            let record = OwnerRecord {
                node: "a".to_owned(),
                boot: self.boots[node],
                grant: 1,
                epoch,
                is_released,
            };
            self.note(ClusterRecord::Owner(server(), record), 0)
        }

        fn standing(&self) -> String {
            match self.ledger.standing(&server()) {
                Standing::Free {
                    epoch,
                    heir,
                    revision,
                } => {
                    format!("free {epoch} heir {heir:?} at {revision}")
                }
                Standing::Owned { epoch, until, .. } => {
                    format!("owned {epoch} until {}", (until - self.began).as_secs())
                }
            }
        }
    }

    fn server() -> ServerName {
        "memory".parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_is_one_whose_lease_is_the_one_that_it_took_the_server_with() {
        let mut all = Fixture::new();
        assert_eq!(all.standing(), "free 1 heir None at 0");
        all.lease(0, 1, 0, 0);
        all.owner(0, 1, false);
        assert_eq!(all.standing(), "owned 1 until 18");
        all.lease(0, 1, 1, 3);
        assert_eq!(all.standing(), "owned 1 until 21");
        // It lost its lease and has another; then its process was replaced.
        all.lease(0, 2, 0, 9);
        assert_eq!(all.standing(), "free 2 heir Some(\"a\") at 2");
        all.lease(1, 1, 0, 10);
        assert_eq!(all.standing(), "free 2 heir Some(\"a\") at 2");
        all.owner(1, 2, false);
        assert_eq!(all.standing(), "owned 2 until 28");
        all.owner(1, 2, true);
        assert_eq!(all.standing(), "free 3 heir None at 7");
        // A deletion is not signed, and changes no owner.
        all.owner(1, 3, false);
        all.ledger.note_other("owner.memory", 9, Loss::Gone);
        all.ledger.note_other("lease.a", 10, Loss::Gone);
        assert_eq!(all.standing(), "owned 3 until 28");
        assert_eq!(all.ledger.revision_of("owner.memory"), 9);
        let is_lost = |ledger: &Ledger| ledger.is_lost("owner.memory");
        assert!(is_lost(&all.ledger), "its owner writes it again");
        all.revision = 9;
        all.owner(1, 3, false);
        assert!(!is_lost(&all.ledger));
        all.ledger.begin_read();
        all.ledger.end_read(10, "b", all.began);
        assert_eq!(all.standing(), "owned 3 until 28");
        assert_eq!(all.ledger.revision_of("lease.a"), 0, "an empty bucket");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_finds_the_records_that_the_bucket_lost_without_a_trace() {
        let mut all = Fixture::new();
        all.lease(0, 1, 0, 0);
        all.owner(0, 1, false);
        // A purge keeps the last sequence.
        all.ledger.begin_read();
        all.ledger.end_read(2, "b", all.began);
        let lost = |ledger: &Ledger| {
            let keys = ledger.list_lost().into_iter().map(|it| it.record.key());
            keys.collect::<Vec<_>>()
        };
        assert_eq!(lost(&all.ledger), ["lease.a", "owner.memory"]);
        assert_eq!(all.ledger.revision_of("owner.memory"), 0);
        assert_eq!(all.ledger.count_keys(), 0);
        assert_eq!(all.standing(), "owned 1 until 18", "it is owned still");
        all.lease(0, 1, 1, 4);
        assert_eq!(lost(&all.ledger), ["owner.memory"]);
        // One record is removed; the others are met with the revision that is known.
        all.ledger.begin_read();
        assert!(
            !all.ledger
                .note(all.ledger.find("lease.a").unwrap(), 3, all.began)
        );
        all.ledger.end_read(3, "b", all.began);
        assert_eq!(all.ledger.revision_of("lease.a"), 3);
        assert_eq!(all.standing(), "owned 1 until 22");
        assert_eq!(lost(&all.ledger), ["owner.memory"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_restored_bucket_has_lower_revisions_and_changes_no_newer_record() {
        let mut all = Fixture::new();
        all.revision = 90;
        all.owner(0, 2, false);
        all.lease(0, 1, 9, 3);
        all.ledger.begin_read();
        all.revision = 4;
        assert!(!all.owner(0, 1, false), "an earlier epoch");
        assert!(!all.lease(0, 1, 8, 30), "an earlier beat");
        all.ledger.end_read(6, "b", all.began);
        assert_eq!(all.standing(), "owned 2 until 21");
        assert_eq!(all.ledger.revision_of("owner.memory"), 5);
        assert!(all.ledger.is_lost("owner.memory") && all.ledger.is_lost("lease.a"));
        assert_eq!(all.ledger.newest, 6);
        assert!(all.lease(0, 1, 10, 31));
        all.revision = 5;
        assert!(!all.lease(0, 1, 11, 32), "the read has ended");
        assert_eq!(all.standing(), "owned 2 until 49");
    }

    #[tokio::test(start_paused = true)]
    async fn a_restored_lease_of_a_process_that_was_replaced_makes_no_server_free() {
        let mut all = Fixture::new();
        all.lease(0, 1, 7, 0);
        all.lease(1, 1, 0, 1);
        all.owner(1, 1, false);
        assert!(!all.lease(0, 1, 8, 9), "it was replaced");
        assert_eq!(all.standing(), "owned 1 until 19");
        assert!(all.ledger.is_lost("lease.a"), "its node writes it again");
        assert!(all.lease(0, 2, 0, 9), "a new lease of that process");
        assert_eq!(all.standing(), "free 2 heir Some(\"a\") at 3");
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_whose_lease_was_never_seen_is_waited_for() {
        for (node, expected) in [("b", "owned 4 until 23"), ("a", "free 5 heir None at 1")] {
            let mut all = Fixture::new();
            all.owner(0, 4, false);
            all.ledger
                .end_read(1, node, all.began + Duration::from_secs(5));
            assert_eq!(all.standing(), expected, "as {node} sees it");
            assert_eq!(all.ledger.is_lost("lease.a"), node == "b");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_that_is_sent_again_or_is_older_changes_nothing_but_the_revision() {
        let mut all = Fixture::new();
        all.lease(0, 1, 5, 0);
        all.owner(0, 4, false);
        assert!(!all.lease(0, 1, 4, 9), "an earlier beat");
        assert!(!all.owner(1, 3, false), "an earlier epoch");
        assert_eq!(all.standing(), "owned 4 until 18");
        assert_eq!(all.ledger.revision_of("owner.memory"), 4);
        all.revision = 0;
        assert!(!all.lease(0, 1, 9, 9), "an earlier revision");
        all.ledger.note_other("lease.a", 9, Loss::Gone);
        all.revision = 5;
        assert!(!all.lease(0, 1, 9, 9), "it was deleted after that");
        assert_eq!(all.ledger.revision_of("lease.a"), 9);
        all.ledger.note_other("owner.other", 11, Loss::Foreign);
        assert_eq!(all.ledger.revision_of("owner.other"), 11, "it is replaced");
    }

    #[test]
    fn records_are_read_back_by_their_keys() {
        let list = ListRecord {
            version: 3,
            digest: "ab".to_owned(),
            node: "a".to_owned(),
        };
        let record = ClusterRecord::List(server(), list);
        assert_eq!(
            ClusterRecord::read(&record.key(), &record.text()),
            Some(record)
        );
        for (key, text) in [
            ("list.", "{}"),
            ("owner.Bad Name", "{}"),
            ("x", "{}"),
            ("lease.a", "7"),
        ] {
            assert_eq!(ClusterRecord::read(key, text.as_bytes()), None, "{key}");
        }
    }
}
