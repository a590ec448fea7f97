//! The client that calls a tool.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

/// A client that calls tools. A call from the command line has no `ClientId`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientId {
    /// The number of its connection, which may have servers of its own; `None` if it sends one
    /// request and disconnects.
    pub connection: Option<u64>,
    /// The working folder of the client, if it is known.
    pub folder: Option<Arc<Path>>,
    /// A unique name that stays the same after a restart; kept results belong to this name.
    pub name: Arc<str>,
    /// The caller whose token the request carries, if servers may differ between callers.
    pub caller: Option<Arc<HttpCaller>>,
}

/// The caller of a request over HTTP, as its token names it. Its debug output has no values.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpCaller {
    /// Its unique name: `token NAME` or `oauth SUBJECT`; empty where no token is required.
    pub name: Arc<str>,
    /// The values that servers may get: `caller:subject`, and `caller:HEADER` for the headers of the
    /// request that the configuration names, in lower case.
    pub values: BTreeMap<String, String>,
    /// The address at which its browser reaches us, without a path.
    pub origin: Arc<str>,
}

impl HttpCaller {
    /// Begins the name of each value.
    pub const PREFIX: &str = "caller:";
    /// The name of the value with the whole request header of this name.
    pub const AUTHORIZATION: &str = "caller:authorization";
    /// The name of the value with the subject of an OAuth token, or the name of a configured one.
    pub const SUBJECT: &str = "caller:subject";

    /// The bearer token of the request.
    pub fn token(&self) -> Option<&str> {
        let header = self.values.get(Self::AUTHORIZATION)?;
        header.split_once(' ').map(|(_, token)| token.trim())
    }
}

impl fmt::Debug for HttpCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpCaller({})", self.name)
    }
}
