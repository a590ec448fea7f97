//! Transports of messages.

/// A transport of messages between a client and a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transport {
    /// Lines over the standard input and output of a child process.
    #[default]
    Stdio,
    /// Streamable HTTP: each message is posted to one address and answered in the response.
    StreamableHttp,
    /// HTTP+SSE of revision 2024-11-05: one stream of events carries all messages of the server.
    Sse,
}

impl Transport {
    /// Returns the name under which the transport is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "streamable-http",
            Self::Sse => "sse",
        }
    }

    /// Parses a name that [`Transport::as_str`] returns.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Stdio, Self::StreamableHttp, Self::Sse];
        all.into_iter().find(|transport| transport.as_str() == name)
    }
}
