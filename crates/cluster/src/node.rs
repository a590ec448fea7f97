//! This node for commands and for kept results.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use fleet::{ClusterNode, ClusterState, LogHead, LogWitness, NodeState, OwnerState};
use futures::{FutureExt as _, future::BoxFuture};
use tokio::time::Instant;
use tool::ServerName;

use crate::{
    book,
    bus::{Bus, BusError, LinkState, Objects},
    core::Core,
    frames::Op,
    ledger::{ClusterRecord, SharedRecord, Standing},
    nodes::{Target, list_running},
    tenure,
};

/// The longest shared configuration, in bytes: it is one record.
const SHARED_BYTES_MAX: usize = 512 * 1_024;

/// A handle to this node.
#[derive(Debug)]
pub(crate) struct Node(pub(crate) Arc<Core>);

impl ClusterNode for Node {
    fn state(&self) -> ClusterState {
        let core = &self.0;
        let link = core.bus.get().map(|bus| bus.state()).unwrap_or_default();
        let is_connected = matches!(link, LinkState::Connected(_));
        let here = core.beat(false, false);
        let here = NodeState {
            node: here.node,
            is_here: true,
            is_connected,
            silent_s: 0,
            version: here.version,
            running: list_running(&here.running),
            shared_revision: here.shared_revision,
        };
        let others = core.nodes.list().into_iter();
        let name = here.node.clone();
        let others = others.filter(move |it| it.node != name);
        let shared = core.ledger.lock().shared.clone();
        ClusterState {
            cluster: core.settings.name.clone(),
            link: match link {
                LinkState::Connecting => "connecting",
                LinkState::Connected(_) => "connected",
                LinkState::Lost => "lost",
                LinkState::Refused(_) => "refused",
            }
            .to_owned(),
            nats_version: core
                .bus
                .get()
                .filter(|_| is_connected)
                .map(|bus| bus.server_version()),
            trouble: core.standing.trouble.lock().clone(),
            is_loaded: core.standing.is_loaded.load(Ordering::Relaxed),
            is_draining: core.standing.is_draining.is_cancelled(),
            nodes: std::iter::once(here).chain(others).collect(),
            strangers: core.nodes.strangers(),
            owners: list_owners(core),
            shared_revision: shared.as_ref().map_or(0, |it| it.record.revision),
            shared_by: shared.map(|it| it.record.node),
        }
    }

    fn push(&self, text: String) -> BoxFuture<'_, Result<u64, String>> {
        async move {
            if text.len() > SHARED_BYTES_MAX {
                return Err(format!(
                    "the servers, rules and clients have {} bytes, over {SHARED_BYTES_MAX}",
                    text.len()
                ));
            }
            push(&self.0, text).await.map_err(|error| error.0)
        }
        .boxed()
    }

    fn drain(&self) -> BoxFuture<'_, Vec<String>> {
        async move {
            self.0.standing.is_draining.cancel();
            tenure::release(&self.0, None, false).await
        }
        .boxed()
    }

    fn witnesses(&self) -> BoxFuture<'_, Vec<LogWitness>> {
        async move {
            let core = &self.0;
            let Some(bus) = core.bus.get() else {
                return Vec::new();
            };
            let targets = core.nodes.matching(None);
            let asking = targets.iter().map(async |target| {
                let op = Op::Head(core.settings.node.clone());
                let answer = ask(core, bus, target, op).await?;
                let head: Option<LogHead> = serde_json::from_slice(&answer).ok()?;
                let node = target.node.clone();
                Some(LogWitness { node, head: head? })
            });
            let heads = futures::future::join_all(asking).await;
            heads.into_iter().flatten().collect()
        }
        .boxed()
    }

    fn share_result(&self, handle: &str, content: Bytes) {
        let Some(bus) = self.0.bus.get().cloned() else {
            return;
        };
        let handle = handle.to_owned();
        tokio::spawn(async move {
            if let Err(error) = bus
                .put_text(Objects::Results, &result_name(&handle), &content)
                .await
            {
                tracing::debug!(%error, "a kept result was not copied to the cluster");
            }
        });
    }

    fn fetch_result<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Option<Bytes>> {
        async move {
            let core = &self.0;
            let bus = core.bus.get()?;
            if let Ok(Some(content)) = bus.read_text(Objects::Results, &result_name(handle)).await {
                return Some(content);
            }
            for target in core.nodes.matching(None) {
                let op = Op::Result(handle.to_owned());
                if let Some(content) = ask(core, bus, &target, op).await {
                    return Some(content);
                }
            }
            None
        }
        .boxed()
    }
}

/// Asks a node for something that belongs to no server.
async fn ask(core: &Core, bus: &Arc<Bus>, target: &Target, op: Op) -> Option<Bytes> {
    let exchange = core.exchanges.begin(bus, target, None, op).await.ok()?;
    let server = ServerName::built_in();
    exchange.finish(&core.nodes, &server, |_| {}).await.ok()
}

fn result_name(handle: &str) -> String {
    format!("result-{handle}")
}

async fn push(core: &Core, text: String) -> Result<u64, BusError> {
    let known = {
        let ledger = core.ledger.lock();
        ledger.shared.as_ref().map_or(0, |it| it.record.revision)
    };
    // NATS may have lost its data, and nodes know the revision that they apply.
    let known = known.max(*core.applied_revision.lock());
    let record = SharedRecord {
        revision: known + 1,
        node: core.settings.node.clone(),
        text,
    };
    if !book::write(core, ClusterRecord::Shared(record.clone())).await? {
        let what =
            "another node pushed at the same time: look at `proxy cluster status`, and push again";
        return Err(BusError(what.to_owned()));
    }
    let revision = record.revision;
    core.shared.send_replace(Some(record));
    Ok(revision)
}

fn list_owners(core: &Core) -> Vec<OwnerState> {
    let specs = core.specs.read();
    let one = specs
        .values()
        .filter(|it| it.placement == fleet::Placement::One);
    let ledger = core.ledger.lock();
    let state = |name: &ServerName| match ledger.standing(name) {
        Standing::Owned {
            node, epoch, until, ..
        } => {
            let left = until.saturating_duration_since(Instant::now()).as_secs();
            OwnerState {
                server: name.to_string(),
                node: Some(node),
                epoch,
                takeover_s: (left < 10).then_some(left),
            }
        }
        Standing::Free { epoch, .. } => OwnerState {
            server: name.to_string(),
            node: None,
            epoch: epoch - 1,
            takeover_s: None,
        },
    };
    one.map(|it| state(&it.name)).collect()
}
