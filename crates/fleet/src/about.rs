//! What a server tells of itself when a connection is opened.

use crate::Era;

/// What a server told of itself in the handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// From `serverInfo`, on one line and cut to a bound, as the version is.
    pub name: Option<String>,
    /// From `serverInfo`.
    pub version: Option<String>,
    /// The server's instructions to its client, cut to a bound.
    pub instructions: Option<String>,
    /// The protocol revision both agreed on; with `+sse` behind it where they speak HTTP+SSE.
    pub protocol: String,
    /// Whether it has the capability `tools`.
    pub offers_tools: bool,
}

impl About {
    pub fn era(&self) -> Era {
        Era::of(&self.protocol)
    }
}
