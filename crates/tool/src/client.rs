//! Who calls a tool.

use std::{path::PathBuf, sync::Arc};

/// A client that calls. A person at the command line is none: a call of theirs has no `ClientId`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientId {
    /// The number of its connection, which may have servers of its own; none where it asks once and
    /// is gone.
    pub connection: Option<u64>,
    /// The folder it works in, where that is known.
    pub folder: Option<PathBuf>,
    /// A name that tells it from others and that it has again after a restart: results are kept
    /// for it.
    pub name: Arc<str>,
}
