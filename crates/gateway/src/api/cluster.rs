//! The state of the cluster, and changes of it.

use std::time::Duration;

use fleet::{ClusterState, LogWitness};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::error::ApiError;
use crate::gateway::Gateway;

/// The time that a process which has just begun to connect gets.
const CONNECT_WAIT: Duration = Duration::from_secs(3);

/// The time within which a daemon applies what was pushed. A command without a daemon does not.
const APPLY_WAIT: Duration = Duration::from_secs(1);

/// A request about the cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterRequest {
    /// Reads the nodes.
    Status,
    /// Shares this configuration, which is TOML.
    Push(String),
    /// Hands the servers of this node over.
    Drain,
    /// Reads the lines of this node's audit log that other nodes have.
    Witnesses,
}

/// The reply to a request about the cluster.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterReply {
    /// The cluster as this node sees it.
    Status(ClusterState),
    /// The revision of a shared configuration.
    Shared(u64),
    /// The servers that were handed over.
    HandedOver(Vec<String>),
    /// The lines of this node's audit log that other nodes have.
    Witnesses(Vec<LogWitness>),
}

pub(super) async fn answer(
    gateway: &Gateway,
    request: ClusterRequest,
) -> Result<ClusterReply, ApiError> {
    let Some(node) = gateway.servers.cluster() else {
        let why = "this configuration is not part of a cluster";
        let step = "add a `[cluster]` table, or join one: `proxy cluster join`";
        return Err(ApiError::new("no_cluster", why).next(step));
    };
    let until = Instant::now() + CONNECT_WAIT;
    while is_young(&node.state()) && Instant::now() < until {
        sleep(Duration::from_millis(50)).await;
    }
    Ok(match request {
        ClusterRequest::Status => ClusterReply::Status(node.state()),
        ClusterRequest::Witnesses => {
            while node.state().nodes.len() < 2 && Instant::now() < until {
                sleep(Duration::from_millis(50)).await;
            }
            ClusterReply::Witnesses(node.witnesses().await)
        }
        ClusterRequest::Push(text) => {
            let pushed = node.push(text).await;
            let revision = pushed.map_err(|why| ApiError::new("push_failed", why))?;
            let until = Instant::now() + APPLY_WAIT;
            let is_applied = || node.state().nodes[0].shared_revision >= revision;
            while !is_applied() && Instant::now() < until {
                sleep(Duration::from_millis(20)).await;
            }
            ClusterReply::Shared(revision)
        }
        ClusterRequest::Drain => ClusterReply::HandedOver(node.drain().await),
    })
}

/// Returns true for a node that is still connecting, or has not read the records.
fn is_young(state: &ClusterState) -> bool {
    state.link == "connecting" || (state.link == "connected" && !state.is_loaded)
}
