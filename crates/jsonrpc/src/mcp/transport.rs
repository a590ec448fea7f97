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
    /// The name under which it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "streamable-http",
            Self::Sse => "sse",
        }
    }

    /// Reads a name as [`Transport::as_str`] writes it.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Stdio, Self::StreamableHttp, Self::Sse];
        all.into_iter().find(|transport| transport.as_str() == name)
    }
}
