//! `proxy cluster`: the state of the cluster, and changes of it.

use std::{sync::Arc, time::Duration};

use fleet::{ClusterState, Servers};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::reply::ShellReply;

/// The time that a process which has just begun to connect gets.
const CONNECT_WAIT: Duration = Duration::from_secs(3);

/// The time within which a daemon applies what was pushed. A command without a daemon does not.
const APPLY_WAIT: Duration = Duration::from_secs(1);

/// A command about the cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterVerb {
    /// Shows the nodes, as JSON of [`ClusterState`].
    Status,
    /// Shares this configuration, which is TOML.
    Push(String),
    /// Hands the servers of this node over.
    Drain,
    /// Returns the lines of this node's audit log that other nodes have, as JSON of [`fleet::LogWitness`].
    Witnesses,
}

/// Answers a command about the cluster.
pub(super) async fn answer(servers: &Arc<dyn Servers>, verb: ClusterVerb) -> ShellReply {
    let Some(node) = servers.cluster() else {
        let told = "error: this configuration is not part of a cluster\nhint: add a `[cluster]` table, \
                        or join one: `proxy cluster join`";
        return ShellReply::nothing(told.to_owned());
    };
    let until = Instant::now() + CONNECT_WAIT;
    while is_young(&node.state()) && Instant::now() < until {
        sleep(Duration::from_millis(50)).await;
    }
    match verb {
        ClusterVerb::Status => {
            let state = serde_json::to_string(&node.state());
            ShellReply::hit(state.unwrap_or_default())
        }
        ClusterVerb::Witnesses => {
            while node.state().nodes.len() < 2 && Instant::now() < until {
                sleep(Duration::from_millis(50)).await;
            }
            let witnesses = serde_json::to_string(&node.witnesses().await);
            ShellReply::hit(witnesses.unwrap_or_default())
        }
        ClusterVerb::Push(text) => match node.push(text).await {
            Ok(revision) => {
                let until = Instant::now() + APPLY_WAIT;
                let is_applied = || node.state().nodes[0].shared_revision >= revision;
                while !is_applied() && Instant::now() < until {
                    sleep(Duration::from_millis(20)).await;
                }
                ShellReply {
                    told: format!("shared as revision {revision}"),
                    is_hit: true,
                    ..ShellReply::default()
                }
            }
            Err(why) => ShellReply::nothing(format!("error: {why}")),
        },
        ClusterVerb::Drain => {
            let servers = node.drain().await;
            let told = if servers.is_empty() {
                "no server with one owner ran here".to_owned()
            } else {
                format!("handed over: {}", servers.join(", "))
            };
            ShellReply {
                told: format!("{told}\nthis node takes no server until its daemon is restarted"),
                is_hit: true,
                ..ShellReply::default()
            }
        }
    }
}

/// Returns true for a node that is still connecting, or has not read the records.
fn is_young(state: &ClusterState) -> bool {
    state.link == "connecting" || (state.link == "connected" && !state.is_loaded)
}
