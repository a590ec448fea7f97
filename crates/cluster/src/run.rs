//! The tasks of a node: they connect, listen, renew and take over, until they are dropped.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::StreamExt as _;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tracing::{debug, info};

use crate::{
    book,
    bus::{Bus, BusError, LinkState, ParcelError},
    core::{Concern, Core, NO_BUS},
    frames::Beat,
    incoming::Incoming,
    nodes::BEAT_EVERY,
    settings::ReadAccess,
    tenure,
    witness::write_heads,
};

/// The time after which settings that cannot be used are read again: a secret may be added.
const SETTINGS_WAIT: Duration = Duration::from_secs(5);

/// The least time between answers to nodes that introduce themselves.
const ANSWER_EVERY: Duration = Duration::from_millis(100);

/// Runs the node, for ever.
pub(crate) async fn run(core: Arc<Core>, access: ReadAccess) {
    let bus = loop {
        let connected = match access().await {
            Ok(access) => Bus::connect(&core.settings, &access)
                .await
                .map_err(|error| error.0),
            Err(failure) => Err(failure.to_string()),
        };
        match connected {
            Ok(bus) => break bus,
            Err(why) => core.set_trouble(Concern::Link, Some(why)),
        }
        sleep(SETTINGS_WAIT).await;
    };
    core.set_trouble(Concern::Link, None);
    let _ = core.bus.set(Arc::clone(&bus));
    let incoming = Arc::new(Incoming::default());
    let (loaded, is_loaded) = watch::channel(false);
    let keeping = async {
        let _ = is_loaded.clone().wait_for(|it| *it).await;
        tokio::join!(
            tenure::keep_lease(&core),
            tenure::take_servers(&core),
            book::restore(&core)
        );
    };
    let ended = tokio::join!(
        core.exchanges.receive(&bus),
        incoming.serve(&core, &bus),
        listen(&core, &bus),
        book::follow(&core, &bus, || {
            core.standing.is_loaded.store(true, Ordering::Relaxed);
            loaded.send_replace(true);
            core.pins_changed.send_modify(|count| *count += 1);
        }),
        keeping,
        watch_link(&core, &bus),
        write_heads(&core),
    );
    debug!(?ended, "the node ended");
}

/// Sends and receives the messages of presence.
async fn listen(core: &Core, bus: &Bus) -> Result<(), BusError> {
    let mut beats = bus.listen("node.*").await?;
    let mut next = Instant::now();
    let mut sent = Instant::now() - ANSWER_EVERY;
    let mut is_new = true;
    let mut connection = 0;
    loop {
        tokio::select! {
            () = sleep_until(next) => {}
            () = bus.reconnected(&mut connection) => is_new = true,
            message = beats.next() => {
                let Some(message) = message else { return Ok(()) };
                let sender = message.subject.clone();
                match bus.open::<Beat>(message).await {
                    Ok(beat) if beat.from == bus.boot() => {}
                    Ok(beat) => {
                        let asks = beat.head.is_new;
                        let node = beat.head.node.clone();
                        if core.nodes.note(beat.from, beat.head) {
                            info!(node = %printable::one_line_of(&node, 60), "a node of the cluster");
                        }
                        core.standing.moved.notify_waiters();
                        if asks {
                            next = next.min(sent + ANSWER_EVERY);
                        }
                    }
                    Err(ParcelError::NotOurs(_)) => {
                        let node = sender.rsplit('.').next().unwrap_or_default();
                        if core.nodes.note_stranger(node) {
                            let node = printable::one_line_of(node, 60);
                            tracing::warn!(node, "a node has another key, and is ignored");
                        }
                    }
                    Err(error) => debug!(%error, "a message of a node"),
                }
                continue;
            }
        }
        if bus.is_connected() {
            bus.send(&core.presence(), None, &core.beat(is_new, false), b"")
                .await?;
            is_new = false;
        }
        sent = Instant::now();
        next = sent + BEAT_EVERY;
    }
}

/// Says when there is no connection, or one to a server that is too old.
async fn watch_link(core: &Core, bus: &Bus) {
    loop {
        let trouble = match bus.state() {
            LinkState::Refused(why) => Some(why),
            LinkState::Lost => Some(because(bus, "the connection to NATS is lost")),
            LinkState::Connecting => Some(because(bus, NO_BUS)),
            LinkState::Connected => None,
        };
        core.set_trouble(Concern::Link, trouble);
        sleep(Duration::from_secs(1)).await;
    }
}

fn because(bus: &Bus, what: &str) -> String {
    match bus.failure() {
        Some(why) => format!("{what}: {why}"),
        None => what.to_owned(),
    }
}
