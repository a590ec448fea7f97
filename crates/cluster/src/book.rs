//! The bucket of records: writes by compare-and-swap, and one watch.

use std::time::Duration;

use async_nats::jetstream::kv::{Entry, Operation, UpdateErrorKind};
use futures::StreamExt as _;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::{
    bus::{Bus, BusError, NATS_TIMEOUT},
    core::{Core, NO_BUS},
    ledger::ClusterRecord,
};

/// The time between two looks at the newest revision: a watch can hang after a reconnect.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The time before another attempt to watch.
const RETRY_WAIT: Duration = Duration::from_millis(500);

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
    match writing.await.map_err(BusError::of)? {
        Ok(written) => {
            core.ledger.lock().note(record, written, Instant::now());
            core.standing.moved.notify_waiters();
            Ok(Some(written))
        }
        Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
        Err(error) => Err(BusError::of(error)),
    }
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
    let newest = newest_revision(bus).await?;
    {
        let mut ledger = core.ledger.lock();
        if newest < ledger.newest {
            warn!("NATS has lost records: they are written again");
            ledger.forget_revisions();
        }
    }
    let mut awaited = Some(newest);
    let mut looked = Instant::now();
    loop {
        if awaited.is_some_and(|it| core.ledger.lock().newest >= it) {
            awaited = None;
            on_loaded();
        }
        tokio::select! {
            entry = entries.next() => {
                let entry = entry.ok_or_else(|| BusError("the watch ended".to_owned()))?;
                note(core, bus, entry.map_err(BusError::of)?);
            }
            () = bus.reconnected(connection) => return Ok(()),
            () = tokio::time::sleep_until(looked + LOOK_EVERY) => {
                looked = Instant::now();
                let newest = newest_revision(bus).await?;
                sleep(RETRY_WAIT).await;
                if core.ledger.lock().newest < newest && awaited.is_none() {
                    awaited = Some(newest);
                } else if awaited.is_some() {
                    return Err(BusError("the watch missed a record".to_owned()));
                }
            }
        }
    }
}

async fn newest_revision(bus: &Bus) -> Result<u64, BusError> {
    let looking = async {
        let book = bus.book().await?;
        let info = book.stream.get_info().await.map_err(BusError::of)?;
        Ok(info.state.last_sequence)
    };
    timeout(NATS_TIMEOUT, looking).await.map_err(BusError::of)?
}

fn note(core: &Core, bus: &Bus, entry: Entry) {
    let (key, revision) = (entry.key, entry.revision);
    let mut ledger = core.ledger.lock();
    if entry.operation != Operation::Put {
        ledger.note_other(&key, revision);
        drop(ledger);
        core.standing.moved.notify_waiters();
        return;
    }
    let opened = bus.seal.open(&key, &entry.value).ok();
    let record = opened.and_then(|it| ClusterRecord::read(&key, &it.text));
    let Some(record) = record else {
        ledger.note_other(&key, revision);
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
