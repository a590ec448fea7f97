//! The bucket of records: writes by compare-and-swap, and one watch.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use async_nats::jetstream::kv::{Entry, Operation, UpdateErrorKind, Watch};
use futures::StreamExt as _;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, warn};

use crate::{
    bus::{Bus, BusError, NATS_TIMEOUT},
    core::{Concern, Core, NO_BUS},
    ledger::{ClusterRecord, Loss, LostRecord},
    settings::Role,
};

/// The time between two looks at the bucket: a watch can hang after a reconnect, and a purge or a removed
/// message is no news for it.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The time before another look at a bucket that seems to differ from the ledger: news may be on their way.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The time before a look at the bucket after a write failed. The watch brings what another node wrote.
const DOUBT_WAIT: Duration = Duration::from_millis(300);

/// The time before another attempt to watch.
const RETRY_WAIT: Duration = Duration::from_millis(500);

/// The time between two looks at records that the bucket lost.
const RESTORE_EVERY: Duration = Duration::from_millis(250);

/// The time after which a node restores the record of another one, for each node before it in the order of
/// names: one of them is enough.
const RESTORE_WAIT: Duration = Duration::from_secs(1);

/// The time after which the state of the cluster names a lost record.
const LOSS_SHOWN_AFTER: Duration = Duration::from_secs(3);

/// Writes a record over the revision that is known. Returns false if another node was faster.
pub(crate) async fn write(core: &Core, record: ClusterRecord) -> Result<bool, BusError> {
    let key = record.key();
    let revision = core.ledger.lock().revision_of(&key);
    write_over(core, record, revision)
        .await
        .map(|it| it.is_some())
}

/// Writes a record over this revision; 0: there is none. Returns the new revision.
pub(crate) async fn write_over(
    core: &Core,
    record: ClusterRecord,
    revision: u64,
) -> Result<Option<u64>, BusError> {
    let no_bus = || BusError(NO_BUS.to_owned());
    let bus = core.bus.get().ok_or_else(no_bus)?;
    let key = record.key();
    let (_, sealed) = bus.seal.seal(&key, &record.text());
    let book = timeout(NATS_TIMEOUT, bus.book())
        .await
        .map_err(BusError::of)??;
    let writing = timeout(NATS_TIMEOUT, book.update(&key, sealed, revision));
    let written = writing.await.map_err(BusError::of).and_then(|it| match it {
        Ok(written) => Ok(Some(written)),
        Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
        Err(error) => Err(BusError::of(error)),
    });
    if let Ok(Some(written)) = written {
        core.ledger.lock().note(record, written, Instant::now());
        core.standing.moved.notify_waiters();
        core.set_trouble(Concern::Writes, None);
        return Ok(Some(written));
    }
    match &written {
        Err(error) => {
            let why = format!("the record {key} was not written: {error}");
            core.set_trouble(Concern::Writes, Some(why));
        }
        Ok(_) => *core.standing.refused.lock() = Some((key, revision)),
    }
    core.standing.doubted.notify_one();
    written
}

/// Keeps the ledger up to date. `on_loaded` is called whenever all records have been read.
pub(crate) async fn follow(core: &Core, bus: &Bus, on_loaded: impl Fn()) {
    let mut connection = 0;
    loop {
        if !bus.is_connected() {
            bus.reconnected(&mut connection).await;
            // A server that is too old is looked at again later.
            if !bus.is_connected() {
                sleep(RETRY_WAIT).await;
                continue;
            }
        }
        if let Err(error) = watch(core, bus, &mut connection, &on_loaded).await {
            debug!(%error, "the records are not watched");
            let why = format!("the records of the cluster are read again: {error}");
            core.set_trouble(Concern::Records, Some(why));
            // NATS may have lost its data.
            bus.forget_buckets().await;
            sleep(RETRY_WAIT).await;
        }
    }
}

/// Watches until the connection was opened again, or the watch missed a record.
async fn watch(
    core: &Core,
    bus: &Bus,
    connection: &mut u64,
    on_loaded: &impl Fn(),
) -> Result<(), BusError> {
    let book = timeout(NATS_TIMEOUT, bus.book())
        .await
        .map_err(BusError::of)??;
    let watching = timeout(NATS_TIMEOUT, book.watch_with_history(">"));
    let mut entries = watching
        .await
        .map_err(BusError::of)?
        .map_err(BusError::of)?;
    read_all(core, bus, &mut entries).await?;
    on_loaded();
    let mut before = None;
    let mut next_look = Instant::now() + LOOK_EVERY;
    loop {
        tokio::select! {
            entry = entries.next() => note(core, bus, found(entry)?),
            () = bus.reconnected(connection) => return Ok(()),
            () = core.standing.doubted.notified() => {
                next_look = next_look.min(Instant::now() + DOUBT_WAIT);
            }
            () = sleep_until(next_look) => {
                if is_refused(core) {
                    let what = "a write over the newest revision that is known was refused";
                    return Err(BusError(what.to_owned()));
                }
                before = compare(core, bus, before).await?;
                next_look = Instant::now() + if before.is_some() { LOOK_AGAIN } else { LOOK_EVERY };
            }
        }
    }
}

/// Reads all records, and finds those that the bucket lost.
async fn read_all(core: &Core, bus: &Bus, entries: &mut Watch) -> Result<(), BusError> {
    let look = look(bus).await?;
    core.ledger.lock().begin_read();
    let mut is_whole = look.keys == 0;
    while !is_whole {
        let entry = timeout(NATS_TIMEOUT, entries.next()).await;
        let entry = found(entry.map_err(BusError::of)?)?;
        is_whole = entry.delta == 0;
        note(core, bus, entry);
    }
    let mut ledger = core.ledger.lock();
    ledger.end_read(look.newest, &core.settings.node, Instant::now());
    let lost = ledger.list_lost();
    drop(ledger);
    let mut lost = lost.iter().filter(|it| it.loss == Loss::Gone);
    if let Some(first) = lost.next() {
        let (first, more) = (first.record.key(), lost.count());
        warn!(first, more, "NATS has lost records: they are written again");
    }
    core.set_trouble(Concern::Records, None);
    core.set_trouble(Concern::Writes, None);
    core.standing.moved.notify_waiters();
    Ok(())
}

fn found<E: std::fmt::Display>(entry: Option<Result<Entry, E>>) -> Result<Entry, BusError> {
    let ended = || BusError("the watch ended".to_owned());
    entry.ok_or_else(ended)?.map_err(BusError::of)
}

/// The state of the bucket.
struct Look {
    /// The last revision that it gave to any key.
    newest: u64,
    keys: usize,
}

async fn look(bus: &Bus) -> Result<Look, BusError> {
    let looking = async {
        let book = bus.book().await?;
        let state = book.stream.get_info().await.map_err(BusError::of)?.state;
        Ok(Look {
            newest: state.last_sequence,
            keys: usize::try_from(state.subjects_count).unwrap_or(usize::MAX),
        })
    };
    timeout(NATS_TIMEOUT, looking).await.map_err(BusError::of)?
}

/// Compares the bucket with the ledger. Returns a look that shows a difference, which fails the next comparison
/// if it is still there: news may be on their way.
async fn compare(core: &Core, bus: &Bus, before: Option<Look>) -> Result<Option<Look>, BusError> {
    let (newest, keys) = {
        let ledger = core.ledger.lock();
        (ledger.newest, ledger.count_keys())
    };
    let look = look(bus).await?;
    let has_less = |look: &Look| look.newest < newest || look.keys < keys;
    if let Some(before) = before {
        if before.newest > newest {
            return Err(BusError("the watch missed a record".to_owned()));
        }
        if has_less(&look) {
            return Err(BusError("NATS has lost records".to_owned()));
        }
    }
    Ok((has_less(&look) || look.newest > newest).then_some(look))
}

/// Returns true if a write was refused over a revision that the ledger still has for the newest.
fn is_refused(core: &Core) -> bool {
    let refused = core.standing.refused.lock().take();
    refused.is_some_and(|(key, revision)| core.ledger.lock().revision_of(&key) == revision)
}

/// Writes records again that the bucket lost, for ever. The lease of this node is renewed, and not restored.
pub(crate) async fn restore(core: &Core) {
    if core.role == Role::Guest {
        return std::future::pending().await;
    }
    let mut lost_since: BTreeMap<String, Instant> = BTreeMap::new();
    loop {
        sleep(RESTORE_EVERY).await;
        let lost = core.ledger.lock().list_lost();
        let keys: BTreeSet<String> = lost.iter().map(|it| it.record.key()).collect();
        lost_since.retain(|key, _| keys.contains(key));
        let mut shown = Vec::new();
        for LostRecord { record, loss } in lost {
            let key = record.key();
            let since = *lost_since.entry(key.clone()).or_insert_with(Instant::now);
            let wait = restore_wait(core, &record, loss);
            if wait.is_some_and(|wait| since.elapsed() >= wait)
                && let Err(error) = write(core, record).await
            {
                debug!(key, %error, "a lost record was not written");
            }
            if loss == Loss::Gone && since.elapsed() >= LOSS_SHOWN_AFTER {
                shown.push(key);
            }
        }
        let why = format!("NATS has lost records of the cluster: {}", shown.join(", "));
        core.set_trouble(Concern::Lost, (!shown.is_empty()).then_some(why));
    }
}

/// Writes the records of the servers that this node owns, if the bucket lost them.
pub(crate) async fn restore_owners(core: &Core) {
    let lost = core.ledger.lock().list_lost();
    for LostRecord { record, .. } in lost {
        let ClusterRecord::Owner(server, _) = &record else {
            continue;
        };
        let is_owned = core.owned.read().contains_key(server);
        if is_owned {
            let written = write(core, record).await;
            debug!(?written, "the record of an owner was lost");
        }
    }
}

/// The time for which a record must be lost before this node restores it; `None`: it does not.
fn restore_wait(core: &Core, record: &ClusterRecord, loss: Loss) -> Option<Duration> {
    let node = &core.settings.node;
    match record {
        ClusterRecord::Owner(server, _) if core.owned.read().contains_key(server) => {
            return Some(Duration::ZERO);
        }
        ClusterRecord::Lease(of, _) if of == node => return None,
        _ => {}
    }
    // Nodes with two keys would replace each other's records for ever.
    if loss == Loss::Foreign {
        return None;
    }
    if record.node() == node {
        return Some(Duration::ZERO);
    }
    let before = core.nodes.connected().range(..node.clone()).count();
    let before = u32::try_from(before).unwrap_or(u32::MAX);
    Some(RESTORE_WAIT.saturating_mul(before.saturating_add(1)))
}

fn note(core: &Core, bus: &Bus, entry: Entry) {
    let (key, revision) = (entry.key, entry.revision);
    let mut ledger = core.ledger.lock();
    if entry.operation != Operation::Put {
        ledger.note_other(&key, revision, Loss::Gone);
        drop(ledger);
        core.standing.moved.notify_waiters();
        return;
    }
    let opened = bus.seal.open(&key, &entry.value).ok();
    let record = opened.and_then(|it| ClusterRecord::read(&key, &it.text));
    let Some(record) = record else {
        ledger.note_other(&key, revision, Loss::Foreign);
        drop(ledger);
        let stranger = key.strip_prefix("lease.");
        if !stranger.is_some_and(|node| core.nodes.note_stranger(node)) {
            return;
        }
        let key = printable::one_line_of(&key, 60);
        warn!(key, "a record was not sealed with the key of this cluster");
        return;
    };
    let is_news = ledger.note(record.clone(), revision, Instant::now());
    drop(ledger);
    if is_news {
        take(core, record);
    }
}

fn take(core: &Core, record: ClusterRecord) {
    match record {
        ClusterRecord::List(server, list) => {
            if list.node != core.settings.node && core.is_shared(&server) {
                // A full queue: the list is read when it is next needed.
                let _ = core.changed.try_send(server);
            }
        }
        ClusterRecord::Shared(shared) => {
            core.shared.send_replace(Some(shared));
        }
        ClusterRecord::Pins(..) => core.pins_changed.send_modify(|count| *count += 1),
        ClusterRecord::Lease(..) | ClusterRecord::Owner(..) => {}
    }
    core.standing.moved.notify_waiters();
}
