//! The client that calls a tool.

use std::{path::PathBuf, sync::Arc};

/// A client that calls tools. A call from the command line has no `ClientId`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientId {
    /// The number of its connection, which may have servers of its own; `None` if it sends one
    /// request and disconnects.
    pub connection: Option<u64>,
    /// The working folder of the client, if it is known.
    pub folder: Option<PathBuf>,
    /// A unique name that stays the same after a restart; kept results belong to this name.
    pub name: Arc<str>,
}
