//! The information that a server reports about itself when a connection is opened.

use std::collections::BTreeSet;

use tool::Capability;

use crate::Spoken;

/// The information that a server reported about itself in the handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// From `serverInfo`, on one line and cut to a bound, as the version is.
    pub name: Option<String>,
    /// From `serverInfo`.
    pub version: Option<String>,
    /// The server's instructions to its client, cut to a bound.
    pub instructions: Option<String>,
    /// The revision both agreed on, and how messages travel.
    pub spoken: Spoken,
    /// It has the capability `tools`.
    pub offers_tools: bool,
    /// The other capabilities that the server announced.
    pub capabilities: BTreeSet<Capability>,
}
