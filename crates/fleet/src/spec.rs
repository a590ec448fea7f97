//! What it takes to start a server. Holding a [`ServerSpec`] means that it was checked.

use std::time::Duration;

use tool::ServerName;

use crate::{Era, Template};

/// A server we can start or connect.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub name: ServerName,
    pub launch: Launch,
    /// From spawn or connect to the end of the handshake.
    pub start_timeout: Duration,
    /// For one call, unless the call says otherwise.
    pub call_timeout: Duration,
    /// The protocol era this server spoke last time, if we know: the guess to begin with.
    pub era: Option<Era>,
}

/// The two ways to reach a server. The texts are templates: they are expanded each time the
/// server starts, so a variable may be set or changed while we run.
#[derive(Debug, Clone)]
pub enum Launch {
    /// A child process that speaks over its stdin and stdout.
    Child {
        command: Template,
        args: Vec<Template>,
        env: Vec<(String, Template)>,
        cwd: Option<Template>,
    },
    /// A server over streamable HTTP.
    Remote {
        url: Template,
        headers: Vec<(String, Template)>,
    },
}
