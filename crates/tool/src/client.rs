//! The client that calls a tool.

use std::{path::PathBuf, sync::Arc};

/// A client that calls. A call of a person at the command line has no `ClientId`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientId {
    /// The number of its connection, which may have servers of its own; `None` if it sends one
    /// request and disconnects.
    pub connection: Option<u64>,
    /// The folder it works in, if it is known.
    pub folder: Option<PathBuf>,
    /// A unique name that stays the same after a restart: results are kept for it.
    pub name: Arc<str>,
}
