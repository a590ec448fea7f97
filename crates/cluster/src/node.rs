//! This node for commands and for kept results.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use fleet::{ClusterNode, ClusterState, LogHead, LogWitness, NodeState, OwnerState, Placement};
use futures::{FutureExt as _, future::BoxFuture};
use tokio::time::Instant;
use tool::ServerName;

use crate::{
    book,
    bus::{BusError, LinkState, Objects},
    core::{Core, Place},
    frames::Op,
    ledger::{ClusterRecord, SharedRecord, Standing},
    nodes::list_running,
    tenure,
};

/// The longest shared configuration, in bytes: it is one record.
const SHARED_BYTES_MAX: usize = 512 * 1_024;

impl ClusterNode for Core {
    fn absent_node(&self, server: &ServerName) -> Option<String> {
        match (self.place(server), self.specs.read().get(server)) {
            (Place::Nowhere(_), Some(spec)) => match &spec.placement {
                Placement::On(pattern) => Some(pattern.to_string()),
                _ => None,
            },
            _ => None,
        }
    }

    fn node_of(&self, server: &ServerName) -> Option<String> {
        match self.place(server) {
            Place::There(targets, _) if targets.len() == 1 => Some(targets[0].node.clone()),
            _ => None,
        }
    }

    fn state(&self) -> ClusterState {
        let link = self.bus.get().map(|bus| bus.state()).unwrap_or_default();
        let is_connected = link == LinkState::Connected;
        let bus = self.bus.get().filter(|_| is_connected);
        let version = bus.map(|bus| bus.server_version());
        let here = self.beat(false, false);
        let here = NodeState {
            node: here.node,
            is_here: true,
            is_connected,
            silent_s: 0,
            version: here.version,
            running: list_running(&here.running),
            shared_revision: here.shared_revision,
        };
        let others = self.nodes.list().into_iter();
        let others = others.filter(|it| it.node != self.settings.node);
        let shared = self.ledger.lock().shared.clone();
        ClusterState {
            cluster: self.settings.name.clone(),
            link: match link {
                LinkState::Connecting => "connecting",
                LinkState::Connected => "connected",
                LinkState::Lost => "lost",
                LinkState::Refused(_) => "refused",
            }
            .to_owned(),
            nats_version: version,
            trouble: self.trouble(),
            is_loaded: self.standing.is_loaded.load(Ordering::Relaxed),
            is_draining: self.standing.is_draining.is_cancelled(),
            nodes: std::iter::once(here).chain(others).collect(),
            strangers: self.nodes.strangers(),
            owners: list_owners(self),
            shared_revision: shared.as_ref().map_or(0, |it| it.revision),
            shared_by: shared.map(|it| it.node),
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
            push(self, text).await.map_err(|error| error.0)
        }
        .boxed()
    }

    fn drain(&self) -> BoxFuture<'_, Vec<String>> {
        async move {
            self.standing.is_draining.cancel();
            tenure::release(self, None, false).await
        }
        .boxed()
    }

    fn witnesses(&self) -> BoxFuture<'_, Vec<LogWitness>> {
        async move {
            let targets = self.nodes.matching(None);
            let asking = targets.iter().map(async |target| {
                let op = Op::Head(self.settings.node.clone());
                let answer = self.ask(target, None, op).await.ok()?;
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
        let Some(bus) = self.bus.get().cloned() else {
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
            let bus = self.bus.get()?;
            if let Ok(Some(content)) = bus.read_text(Objects::Results, &result_name(handle)).await {
                return Some(content);
            }
            for target in self.nodes.matching(None) {
                let op = Op::Result(handle.to_owned());
                if let Ok(content) = self.ask(&target, None, op).await {
                    return Some(content);
                }
            }
            None
        }
        .boxed()
    }
}

fn result_name(handle: &str) -> String {
    format!("result-{handle}")
}

async fn push(core: &Core, text: String) -> Result<u64, BusError> {
    let known = {
        let ledger = core.ledger.lock();
        ledger.shared.as_ref().map_or(0, |it| it.revision)
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
    let servers = tenure::list_of_one(core);
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
    servers.iter().map(state).collect()
}
