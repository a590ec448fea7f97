//! Decisions about definitions that the nodes of a cluster share: a definition that one node accepted or refused
//! is accepted or refused at all.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cluster::{Cluster, PinsRecord};
use gateway::Gateway;
use registry::{OwnPins, SharedPins, adopt_pins};
use tokio::{task::spawn_blocking, time::sleep};
use tool::ServerName;
use tracing::{debug, warn};

/// The time between two looks at decisions of this node: they may come from another process.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The versions of the shared pins that were adopted.
type Adopted = BTreeMap<ServerName, u64>;

/// Adopts decisions of other nodes, and shares those of this one. Runs until it is dropped.
pub(crate) async fn share_pins(cluster: Arc<Cluster>, gateway: Arc<Gateway>) {
    let mut records = cluster.pins_changed();
    let mut lists = gateway.catalog.lists_changed.subscribe();
    let mut adopted = Adopted::new();
    let mut own = OwnPins::default();
    loop {
        if let Some(shared) = cluster.pins() {
            adopt(&cluster, &gateway, &shared, &mut adopted).await;
            own = share_own(&cluster, &gateway, &shared, own).await;
        }
        tokio::select! {
            changed = records.changed() => if changed.is_err() { return },
            changed = lists.changed() => if changed.is_err() { return },
            () = sleep(LOOK_EVERY) => {}
        }
    }
}

/// Adopts each version that is new, all at once: a node that starts has one of each server.
async fn adopt(
    cluster: &Cluster,
    gateway: &Arc<Gateway>,
    shared: &BTreeMap<ServerName, PinsRecord>,
    adopted: &mut Adopted,
) {
    let mut news = Vec::new();
    let mut versions = Adopted::new();
    for (server, record) in shared {
        let before = adopted.get(server).copied();
        if before == Some(record.version) || !is_about(cluster, server, record) {
            continue;
        }
        let Ok(pins) = serde_json::from_str::<SharedPins>(&record.text) else {
            warn!(%server, node = record.node, "its shared pins cannot be read");
            continue;
        };
        // A refusal of this node that the others do not know yet is kept.
        news.push((server.clone(), pins, before.is_none()));
        versions.insert(server.clone(), record.version);
    }
    if news.is_empty() {
        return;
    }
    let registry = gateway.catalog.registry.clone();
    match spawn_blocking(move || adopt_pins(&registry, &news)).await {
        Ok(Ok(is_changed)) => {
            adopted.extend(versions);
            if is_changed {
                gateway.catalog.lists_changed.send_replace(());
            }
        }
        // The pins of this node cannot be trusted, which `doctor` says.
        Ok(Err(error)) => debug!(%error, "shared pins were not adopted"),
        Err(_) => {}
    }
}

/// Shares the decisions of this node that others do not know.
async fn share_own(
    cluster: &Cluster,
    gateway: &Arc<Gateway>,
    shared: &BTreeMap<ServerName, PinsRecord>,
    mut own: OwnPins,
) -> OwnPins {
    let registry = gateway.catalog.registry.clone();
    let reading = spawn_blocking(move || {
        let texts = list_texts(own.read(&registry));
        (own, texts)
    });
    let Ok((own, texts)) = reading.await else {
        return OwnPins::default();
    };
    for (server, text) in texts {
        let known = shared.get(&server);
        let (Some(scope), false) = (
            cluster.pins_scope(&server),
            known.is_some_and(|it| it.text == text || !is_about(cluster, &server, it)),
        ) else {
            continue;
        };
        let over = known.map_or(0, |it| it.version);
        let written = cluster.write_pins(server.clone(), (scope, text), over);
        if let Err(why) = written.await {
            debug!(%server, why, "its pins were not shared");
        }
    }
    own
}

/// Returns true if shared pins are about the server that this node has under its name.
fn is_about(cluster: &Cluster, server: &ServerName, record: &PinsRecord) -> bool {
    cluster.pins_scope(server).as_ref() == Some(&record.scope)
}

fn list_texts(pins: &BTreeMap<String, SharedPins>) -> Vec<(ServerName, String)> {
    let text = |(server, pins): (&String, &SharedPins)| {
        Some((server.parse().ok()?, serde_json::to_string(pins).ok()?))
    };
    pins.iter().filter_map(text).collect()
}
