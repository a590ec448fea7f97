//! The lease of this node and the servers that it owns: renewed, taken, and given up in time.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use fleet::{Fleet, Lifecycle as _, Placement};
use processes::machine_time;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
use tool::ServerName;
use tracing::{debug, info, warn};

use crate::{
    book,
    bus::NATS_TIMEOUT,
    core::{Concern, Core, OwnedServer, Tenure},
    frames::Op,
    ledger::{
        ClusterRecord, ENDED_WITHIN, HOLD, LeaseRecord, OwnerRecord, RENEW_EVERY, SeenLease,
        Standing, TAKE_OVER_AFTER,
    },
    nodes::BEAT_EVERY,
    seal::Boot,
    settings::Role,
};

/// The time between two looks at servers without an owner.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The time after which a renewal that failed is tried again.
const RETRY_WAIT: Duration = Duration::from_millis(500);

/// A node takes a server later by this for each one that it owns, so that they spread.
const DELAY_PER_SERVER: Duration = Duration::from_millis(100);

/// The time for which a server is left to its last node, if that is back.
const HEIR_WAIT: Duration = Duration::from_secs(4);

/// The time for which calls of a server that is handed over may go on.
const DRAIN_WAIT: Duration = Duration::from_secs(10);

/// The rest of a lease with which the state of the cluster names its end.
const LEASE_SHORT: Duration = Duration::from_secs(8);

/// The time for which a node waits for messages of others before it takes a server that has no record: more than
/// the time between two beats, so that an owner whose record is lost was heard.
const OTHERS_WAIT: Duration = BEAT_EVERY.saturating_add(Duration::from_secs(1));

/// The least time that a lease must last for another server to be taken.
const TENURE_MIN: Duration = Duration::from_secs(5);

/// Renews the lease, for ever. Needs the records to be loaded.
pub(crate) async fn keep_lease(core: &Core) {
    let (home, mut grant) = match core.role {
        Role::Member { home } => (home, 0),
        Role::Guest => return std::future::pending().await,
    };
    // A daemon that was killed may have left processes of servers that this one is about to own.
    let spawner = Arc::clone(&core.owned_surroundings.spawner);
    let _ = spawn_blocking(move || spawner.end_leftovers()).await;
    loop {
        if let Some(node) = find_stranger(core) {
            let why = format!(
                "node `{node}` has another key, and no record here was sealed with the key of this node: \
                 `proxy cluster join-token` there prints the right one"
            );
            core.set_trouble(Concern::Lease, Some(why));
            sleep(RENEW_EVERY).await;
            continue;
        }
        grant += 1;
        let Some(boot) = core.boot() else { return };
        let first = LeaseRecord {
            boot,
            home,
            grant,
            beat: 0,
            is_revoked: false,
        };
        if let Err(wait) = take_lease(core, first.clone()).await {
            sleep(wait).await;
            continue;
        }
        renew(core, first).await;
        warn!(
            node = core.settings.node,
            "the lease of this node is lost: its servers with one owner end"
        );
        core.tenure.lock().take();
        for server in core.owned.read().keys() {
            warn!(server = %server, "it ends here");
        }
        // Within `ENDED_WITHIN`.
        release(core, None, true).await;
    }
}

/// Returns a node with another key, if this node has found nothing with its own: it must not run what that
/// node may run. Records of nodes that are gone count for ten seconds.
fn find_stranger(core: &Core) -> Option<String> {
    let stranger = core.nodes.strangers().into_iter().next()?;
    let ledger = core.ledger.lock();
    let is_empty = ledger.leases.is_empty() && ledger.owners.is_empty() && ledger.lists.is_empty();
    (is_empty && ledger.shared.is_none()).then_some(stranger)
}

/// Writes the first record of a lease. An error is the time to wait.
async fn take_lease(core: &Core, record: LeaseRecord) -> Result<(), Duration> {
    let node = core.settings.node.clone();
    let (known, revision) = {
        let ledger = core.ledger.lock();
        let revision = ledger.revision_of(&format!("lease.{node}"));
        (ledger.leases.get(&node).cloned(), revision)
    };
    if let Some(SeenLease { record: old, at }) = known {
        // The daemon's lock lets one process run for a state folder.
        let is_ours = old.home == record.home || old.boot == record.boot || old.is_revoked;
        if !is_ours && at.elapsed() < TAKE_OVER_AFTER {
            let target = core.nodes.target(&node, old.boot);
            if core.ask(&target, None, Op::Ping).await.is_ok() {
                core.standing.is_double.store(true, Ordering::Relaxed);
                let why = format!(
                    "another machine is node `{node}`: give this one another name in `cluster.node`"
                );
                core.set_trouble(Concern::Lease, Some(why));
            }
            // A machine that does not answer may only be cut off.
            return Err(RENEW_EVERY);
        }
    }
    let sent = SendTime::now();
    match book::write_over(core, ClusterRecord::Lease(node, record.clone()), revision).await {
        Ok(Some(_)) => {
            core.standing.is_double.store(false, Ordering::Relaxed);
            core.set_trouble(Concern::Lease, None);
            set_tenure(core, record.grant, sent);
            Ok(())
        }
        Ok(None) => Err(RETRY_WAIT),
        Err(error) => {
            let why = format!("the lease of this node was not written: {error}");
            core.set_trouble(Concern::Lease, Some(why));
            Err(RETRY_WAIT)
        }
    }
}

/// The time at which a renewal is sent.
#[derive(Debug, Clone, Copy)]
struct SendTime {
    at: Instant,
    /// Read before the other clock: this process may stand still in between.
    machine: Duration,
}

impl SendTime {
    fn now() -> Self {
        let machine = machine_time();
        let at = Instant::now();
        Self { at, machine }
    }
}

/// Begins or extends the lease after its renewal was acknowledged. The reaper ends the processes of owned servers
/// in time if this process stands still.
fn set_tenure(core: &Core, grant: u64, sent: SendTime) {
    let tenure = Tenure {
        grant,
        until: sent.at + HOLD,
        until_machine: sent.machine + HOLD,
    };
    let spawner = &core.owned_surroundings.spawner;
    spawner.move_deadline(tenure.until_machine + ENDED_WITHIN);
    *core.tenure.lock() = Some(tenure);
    core.standing.moved.notify_waiters();
}

/// Renews until the lease ends or is another's.
async fn renew(core: &Core, mut record: LeaseRecord) {
    let node = core.settings.node.clone();
    let mut next = Instant::now() + RENEW_EVERY;
    loop {
        let Some(tenure) = core.tenure_now() else {
            return;
        };
        tokio::time::sleep_until(next.min(tenure.until)).await;
        if core.tenure_now().is_none() {
            return;
        }
        let sent = SendTime::now();
        next = sent.at + RENEW_EVERY;
        record.beat += 1;
        let lease = format!("lease.{node}");
        let renewing = async {
            if core.ledger.lock().is_gone(&lease) {
                // A node that finds the lease of another takes servers that have no record.
                book::restore_owners(core).await;
            }
            let revision = core.ledger.lock().revision_of(&lease);
            let renewed = ClusterRecord::Lease(node.clone(), record.clone());
            book::write_over(core, renewed, revision).await
        };
        // The end of the lease is not missed during the requests.
        let written = timeout(tenure.until.saturating_duration_since(sent.at), renewing).await;
        match written {
            Err(_) => return,
            Ok(Ok(Some(_))) => {
                set_tenure(core, record.grant, sent);
                core.set_trouble(Concern::Lease, None);
            }
            Ok(Ok(None)) => {
                // Another node wrote it, or an earlier renewal arrived without its acknowledgement.
                next = sent.at + RETRY_WAIT;
                let is_others = |it: &SeenLease| {
                    let now = &it.record;
                    now.is_revoked || (now.boot, now.grant) != (record.boot, record.grant)
                };
                if core.ledger.lock().leases.get(&node).is_some_and(is_others) {
                    return;
                }
                if tenure.until < sent.at + LEASE_SHORT {
                    report_end(core, tenure);
                }
            }
            Ok(Err(error)) => {
                debug!(%error, "the lease was not renewed");
                next = sent.at + RETRY_WAIT;
                report_end(core, tenure);
            }
        }
    }
}

/// Says when the servers of this node end, if its lease is not renewed.
fn report_end(core: &Core, tenure: Tenure) {
    let left = tenure.until.saturating_duration_since(Instant::now());
    let why = format!(
        "the lease of this node is not renewed: its servers with one owner end in {} s",
        left.as_secs()
    );
    core.set_trouble(Concern::Lease, Some(why));
}

/// Takes servers without an owner, for ever.
pub(crate) async fn take_servers(core: &Core) {
    let mut free_since: HashMap<ServerName, Instant> = HashMap::new();
    let began = Instant::now();
    loop {
        let wanted = core.standing.wanted.notified();
        let is_wanted = tokio::select! {
            () = wanted => true,
            () = sleep(LOOK_EVERY) => false,
        };
        let tenure = core.tenure_now();
        let tenure = tenure.filter(|it| it.until > Instant::now() + TENURE_MIN);
        let Some(tenure) = tenure.filter(|_| !core.standing.is_draining.is_cancelled()) else {
            free_since.clear();
            continue;
        };
        for server in list_of_one(core) {
            let epoch = core.owned.read().get(&server).map(|it| it.epoch);
            if let Some(epoch) = epoch {
                free_since.remove(&server);
                if !is_owner(core, &server, epoch) {
                    warn!(server = %server, "another process owns it now");
                    release(core, Some(&server), true).await;
                }
                continue;
            }
            let free = FreeServers {
                is_wanted,
                began,
                since: &mut free_since,
            };
            look_at(core, tenure, &server, free).await;
        }
    }
}

/// Returns true if the record says that this process owns a server in this epoch.
fn is_owner(core: &Core, server: &ServerName, epoch: u64) -> bool {
    let standing = core.ledger.lock().standing(server);
    let known = match standing {
        Standing::Owned { boot, epoch, .. } => Some((boot, epoch)),
        Standing::Free { .. } => None,
    };
    known == core.boot().map(|boot| (boot, epoch))
}

/// The servers with one owner.
pub(crate) fn list_of_one(core: &Core) -> Vec<ServerName> {
    let specs = core.specs.read();
    let one = specs.values().filter(|it| it.placement == Placement::One);
    one.map(|it| it.name.clone()).collect()
}

/// The looks of this node at servers without an owner.
struct FreeServers<'a> {
    /// A call waits for one.
    is_wanted: bool,
    /// The time of the first look.
    began: Instant,
    /// The time since which each has been free.
    since: &'a mut HashMap<ServerName, Instant>,
}

async fn look_at(core: &Core, tenure: Tenure, server: &ServerName, free: FreeServers<'_>) {
    let standing = core.ledger.lock().standing(server);
    match standing {
        Standing::Owned {
            boot, grant, epoch, ..
        } if Some(boot) == core.boot() => {
            free.since.remove(server);
            if grant == tenure.grant {
                // The acknowledgement of its record was lost.
                core.own(server, epoch);
            }
        }
        Standing::Owned {
            node,
            until,
            lease_revision,
            ..
        } => {
            free.since.remove(server);
            if Instant::now() >= until {
                revoke(core, &node, lease_revision).await;
            }
        }
        Standing::Free {
            revision,
            epoch,
            heir,
        } => {
            let since = *free
                .since
                .entry(server.clone())
                .or_insert_with(Instant::now);
            let others = u32::try_from(core.owned.read().len()).unwrap_or(u32::MAX);
            let delay = match heir {
                Some(node) if node == core.settings.node => Duration::ZERO,
                Some(_) => HEIR_WAIT,
                None if free.is_wanted => Duration::ZERO,
                None => DELAY_PER_SERVER.saturating_mul(others),
            };
            if since.elapsed() >= delay && !may_be_owned(core, server, free.began) {
                take(core, tenure, server, revision, epoch).await;
            }
        }
    }
}

/// Returns true for a free server that another node may own, because NATS has lost its record or the lease of its
/// owner: the node says that it owns or runs the server, or has no lease in the bucket. It has written both again,
/// or has given the server up, when a takeover would be due.
fn may_be_owned(core: &Core, server: &ServerName, began: Instant) -> bool {
    let ledger = core.ledger.lock();
    if began.elapsed() >= TAKE_OVER_AFTER {
        return false;
    }
    if let Some(owner) = ledger.owners.get(server) {
        // An owner that is there writes its record before its lease.
        return !owner.is_released && !ledger.leases.contains_key(&owner.node);
    }
    let lacks_lease = |(node, boot): &(String, Boot)| {
        let lease = ledger.leases.get(node);
        *node != core.settings.node && lease.is_none_or(|it| it.record.boot != *boot)
    };
    began.elapsed() < OTHERS_WAIT
        || core.nodes.claims(server)
        || core.nodes.processes().iter().any(lacks_lease)
}

/// Ends the lease of a silent node. If the node has renewed it meanwhile, nothing happens.
async fn revoke(core: &Core, node: &str, revision: u64) {
    let known = {
        let ledger = core.ledger.lock();
        let key = format!("lease.{node}");
        // A renewal may be lost as well: the lease is restored, and watched from then on.
        let is_same = ledger.revision_of(&key) == revision && !ledger.is_gone(&key);
        ledger.leases.get(node).filter(|_| is_same).cloned()
    };
    let Some(known) = known else { return };
    let revoked = ClusterRecord::Lease(node.to_owned(), known.record.revoked());
    match book::write_over(core, revoked, revision).await {
        Ok(Some(_)) => warn!(node, "it is silent: other nodes take over its servers"),
        Ok(None) => debug!(node, "its lease was renewed"),
        Err(error) => debug!(node, %error, "its lease was not revoked"),
    }
}

async fn take(core: &Core, tenure: Tenure, server: &ServerName, revision: u64, epoch: u64) {
    let Some(boot) = core.boot() else { return };
    let record = OwnerRecord {
        node: core.settings.node.clone(),
        boot,
        grant: tenure.grant,
        epoch,
        is_released: false,
    };
    match book::write_over(core, ClusterRecord::Owner(server.clone(), record), revision).await {
        // The lease may have ended during the request.
        Ok(Some(_)) if core.tenure_now().map(|it| it.grant) == Some(tenure.grant) => {
            core.own(server, epoch);
        }
        Ok(_) => {}
        Err(error) => debug!(server = %server, %error, "it was not taken"),
    }
}

/// Ends the owned servers of this node and hands them over. `is_hurried`: the process is about to be killed.
pub(crate) async fn release(
    core: &Core,
    only: Option<&ServerName>,
    is_hurried: bool,
) -> Vec<String> {
    let leaving: BTreeMap<ServerName, OwnedServer> = {
        let mut owned = core.owned.write();
        match only {
            Some(server) => owned.remove_entry(server).into_iter().collect(),
            None => std::mem::take(&mut *owned),
        }
    };
    let grant = core.tenure_now().map(|it| it.grant);
    let names = leaving.keys().map(ToString::to_string).collect();
    let ending = leaving.into_iter().map(|(server, owned)| async move {
        if !is_hurried {
            owned.calls.close();
            let _ = timeout(DRAIN_WAIT, owned.calls.wait()).await;
        }
        owned.lost.cancel();
        end_fleet(&owned.fleet, is_hurried).await;
        let is_mine = is_owner(core, &server, owned.epoch);
        if let (true, Some(boot), Some(grant)) = (is_mine, core.boot(), grant) {
            let record = OwnerRecord {
                node: core.settings.node.clone(),
                boot,
                grant,
                epoch: owned.epoch,
                is_released: true,
            };
            let writing = book::write(core, ClusterRecord::Owner(server.clone(), record));
            match timeout(NATS_TIMEOUT, writing).await {
                Ok(Ok(true)) => info!(server = %server, "handed over"),
                _ => debug!(server = %server, "its release was not written"),
            }
        }
    });
    futures::future::join_all(ending).await;
    names
}

pub(crate) async fn end_fleet(fleet: &Fleet, is_hurried: bool) {
    if is_hurried {
        fleet.stop().await;
    } else {
        fleet.end().await;
    }
}

/// Gives up the lease when the process ends, so that others need not wait.
pub(crate) async fn leave(core: &Core) {
    if core.tenure.lock().take().is_none() {
        return;
    }
    let node = &core.settings.node;
    let known = core.ledger.lock().leases.get(node).cloned();
    let Some(known) = known.filter(|it| Some(it.record.boot) == core.boot()) else {
        return;
    };
    let left = ClusterRecord::Lease(node.clone(), known.record.revoked());
    if let Err(error) = book::write(core, left).await {
        debug!(%error, "the lease was not given up");
    }
}
