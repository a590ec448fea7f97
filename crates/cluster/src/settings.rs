//! The settings of a cluster.

use std::{fmt, path::PathBuf, time::Duration};

use fleet::{Failure, Template};
use futures::future::BoxFuture;

/// The cluster that this process belongs to. Secrets are not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    /// The name of the cluster; it begins all subjects and buckets.
    pub name: String,
    /// The name of this node, unique in the cluster.
    pub node: String,
    /// The addresses of NATS servers.
    pub nats: Vec<Template>,
    /// The text that signs and encrypts everything that is shared. NATS never has it.
    pub key: Template,
    /// The content of a NATS credentials file.
    pub credentials: Option<Template>,
    /// The certificates (PEM) that NATS servers are checked with, instead of those of the system.
    pub tls_ca: Option<Template>,
    /// The certificate (PEM) that this node presents, and its key.
    pub tls_identity: Option<(Template, Template)>,
    /// The time for which kept results are shared.
    pub result_life: Duration,
    /// Calls fail until this node has the configuration that nodes share.
    pub require_shared: bool,
}

impl ClusterSettings {
    /// Everything that is filled in before the first connection.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let files = self.credentials.iter().chain(&self.tls_ca);
        let identity = self.tls_identity.iter().flat_map(|(cert, key)| [cert, key]);
        self.nats
            .iter()
            .chain([&self.key])
            .chain(files)
            .chain(identity)
    }
}

/// The same settings with their secrets.
#[derive(Clone)]
pub struct ClusterAccess {
    /// The addresses of NATS servers.
    pub nats: Vec<String>,
    /// The key of the cluster.
    pub key: String,
    /// The content of a NATS credentials file.
    pub credentials: Option<String>,
    /// The certificates (PEM) that NATS servers are checked with, instead of those of the system.
    pub tls_ca: Option<PathBuf>,
    /// The certificate (PEM) that this node presents, and its key.
    pub tls_identity: Option<(PathBuf, PathBuf)>,
}

impl fmt::Debug for ClusterAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterAccess")
    }
}

/// Reads the secrets of the settings. It may be called again after a failure.
pub type ReadAccess =
    Box<dyn Fn() -> BoxFuture<'static, Result<ClusterAccess, Failure>> + Send + Sync>;

/// The fewest characters of a cluster's key: it is derived without delay, so it must not be guessable.
pub const KEY_CHARS_MIN: usize = 32;

/// The part that a process has in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It runs servers for other nodes.
    Member {
        /// Identifies its machine and state folder: a daemon that was restarted there takes its own
        /// servers back at once.
        home: u64,
    },
    /// It only calls: a command that runs for a moment.
    Guest,
}
