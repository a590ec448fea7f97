//! The way a socket gets into the process of a daemon.

use std::{path::PathBuf, process::Stdio};

/// The means by which a daemon that we start gets its socket.
pub(crate) struct HandOver {
    /// Its stdin, which may be the socket.
    pub(crate) stdin: Stdio,
    /// The path at which it binds the socket itself; we hold the lock.
    pub(crate) path: Option<PathBuf>,
}
