//! The connection of a client.

use std::{path::PathBuf, sync::Arc};

use fleet::Variables;

/// The connection of one client.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// The folder it works in, where we know.
    pub cwd: Option<PathBuf>,
    /// Its environment, from which servers are filled in; none where it has told none, and ours
    /// counts.
    pub variables: Option<Arc<Variables>>,
    /// The process that we talk to: the client's relay.
    pub pid: Option<u32>,
    /// `stdio` or `http`, for people.
    pub transport: &'static str,
    /// The name of the token that let it in, over HTTP: clients of different tokens share nothing.
    pub token: Option<Arc<str>>,
    /// How the audit log names what let it in, over HTTP: `token NAME` or `oauth SUBJECT`.
    pub caller: Option<Arc<str>>,
    /// The table of `[clients]` that holds for it, whatever name it announces; none: that name's.
    pub rule: Option<Arc<str>>,
    /// Its person sits at this machine, so that a browser that comes back to it finds us.
    pub is_here: bool,
    /// It asks once and is gone: it is in no list, and has no servers of its own.
    pub is_stateless: bool,
}
