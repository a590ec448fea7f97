//! Nodes that share their servers over NATS: placement, ownership, calls between nodes (0042).
//!
//! [`Cluster`] implements `Servers` over the servers of this node and those of others. It does not know the
//! configuration file, the index, or the three tools.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod book;
mod bus;
mod bus_error;
mod cluster;
mod core;
mod frames;
mod incoming;
mod ledger;
mod lists;
mod node;
mod nodes;
mod objects;
mod outgoing;
mod own;
mod remote_client;
mod remote_watch;
mod routing;
mod run;
mod seal;
mod settings;
mod tenure;
mod witness;

pub use cluster::Cluster;
pub use ledger::{PinsRecord, SharedRecord};
pub use own::{NoData, OwnData};
pub use settings::{ClusterAccess, ClusterSettings, KEY_CHARS_MIN, ReadAccess, Role};
