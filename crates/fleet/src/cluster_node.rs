//! This process as a node of a cluster, for commands and for kept results. The crate `cluster` implements
//! it.

use std::fmt;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tool::ServerName;

use crate::{Availability, RunState};

/// A node of a cluster.
pub trait ClusterNode: fmt::Debug + Send + Sync {
    /// Returns the cluster as this node sees it.
    fn state(&self) -> ClusterState;

    /// Replaces the shared configuration, which is TOML. Returns its revision.
    fn push(&self, text: String) -> BoxFuture<'_, Result<u64, String>>;

    /// Hands every server with one owner over to other nodes, and takes none until the process ends. Returns
    /// the names of these servers.
    fn drain(&self) -> BoxFuture<'_, Vec<String>>;

    /// Asks all connected nodes for the newest line of this node's audit log that they have.
    fn witnesses(&self) -> BoxFuture<'_, Vec<LogWitness>>;

    /// Copies a kept result for all nodes. Returns at once.
    fn share_result(&self, handle: &str, content: Bytes);

    /// Reads a kept result of another node.
    fn fetch_result<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Option<Bytes>>;

    /// Returns the nodes that would run a server, if none of them is connected.
    fn absent_node(&self, server: &ServerName) -> Option<String>;

    /// Returns the node that runs a server now, if it is another one.
    fn node_of(&self, server: &ServerName) -> Option<String>;
}

/// The newest call in an audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    /// The number of its line.
    pub number: u64,
    /// The digest of its line.
    pub digest: String,
}

/// A line of this node's audit log that another node has in its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogWitness {
    /// The other node.
    pub node: String,
    /// The line.
    pub head: LogHead,
}

/// The cluster as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClusterState {
    /// Its name.
    pub cluster: String,
    /// The connection to NATS: `connected`, `connecting`, `lost` or `refused`.
    pub link: String,
    /// The version of the NATS server, if one is connected.
    pub nats_version: Option<String>,
    /// The reason why this node does not take part, or not fully.
    pub trouble: Option<String>,
    /// True if the records of the cluster have been read since the last connection.
    pub is_loaded: bool,
    /// True if this node owns no server and takes none.
    pub is_draining: bool,
    /// All nodes, this one first.
    pub nodes: Vec<NodeState>,
    /// Nodes that have another key.
    pub strangers: Vec<String>,
    /// The servers with one owner.
    pub owners: Vec<OwnerState>,
    /// The revision of the newest shared configuration; 0: there is none.
    pub shared_revision: u64,
    /// The node that pushed it.
    pub shared_by: Option<String>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeState {
    /// Its name.
    pub node: String,
    /// True for this node.
    pub is_here: bool,
    /// True if it sent a message in the last ten seconds, and is not leaving.
    pub is_connected: bool,
    /// The seconds since its last message.
    pub silent_s: u64,
    /// The version of its program.
    pub version: String,
    /// The servers that run there.
    pub running: Vec<NodeServer>,
    /// The revision of the shared configuration that is in effect there; 0: none.
    pub shared_revision: u64,
}

/// A server that runs on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeServer {
    /// Its name.
    pub server: String,
    /// Its state: ready, starting or down.
    pub state: Availability,
}

impl NodeServer {
    /// Lists the servers that are not stopped.
    pub fn list<'a>(running: impl IntoIterator<Item = (&'a ServerName, RunState)>) -> Vec<Self> {
        let named = |(name, state): (&ServerName, RunState)| Self {
            server: name.to_string(),
            state: state.into(),
        };
        running.into_iter().map(named).collect()
    }
}

/// A server with one owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnerState {
    /// The server.
    pub server: String,
    /// The node that owns it.
    pub node: Option<String>,
    /// The number of its owners so far.
    pub epoch: u64,
    /// The seconds after which another node takes it over, unless its owner sends a message.
    pub takeover_s: Option<u64>,
}
