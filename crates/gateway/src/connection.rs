//! The connection of a client.

use std::{path::PathBuf, sync::Arc};

use fleet::Variables;

/// The connection of one client.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// The client's working folder, if it is known.
    pub cwd: Option<PathBuf>,
    /// The client's environment, which fills in variables of servers; `None` if the client sent
    /// none, and our own environment is used.
    pub variables: Option<Arc<Variables>>,
    /// The process at the other end: the client's relay.
    pub pid: Option<u32>,
    /// `stdio` or `http`, for people.
    pub transport: &'static str,
    /// The name of its token, over HTTP: clients of different tokens share nothing.
    pub token: Option<Arc<str>>,
    /// The name of its credential in the audit log, over HTTP: `token NAME` or `oauth SUBJECT`.
    pub caller: Option<Arc<str>>,
    /// The table of `[clients]` that applies to it, whatever name it announces; `None`: that name's
    /// table.
    pub rule: Option<Arc<str>>,
    /// Its person uses this machine, so that a browser redirect to this machine reaches us.
    pub is_here: bool,
    /// The client sends one request and disconnects: it is in no list, and has no servers of its
    /// own.
    pub is_stateless: bool,
}
