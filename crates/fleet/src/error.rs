//! Errors between us and a server, by the caller's reaction to them.

use std::{error::Error, fmt, time::Duration};

use jsonrpc::ProtocolError;
use tool::ServerName;

use crate::{awaited::Awaited, login_needed::LoginNeeded, wire::Obstacle};

/// Tells if a call that failed may have been executed. Only `No` is safe to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// It did not reach the server.
    No,
    /// It was on its way, and nothing came back.
    Maybe,
}

/// Why a server is not there. Texts are masked: no secret of the configuration is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A sentence without a full stop.
    pub why: String,
    /// The most informative line that the server wrote to stderr, if it wrote anything.
    pub stderr: Option<String>,
    /// The next step, if we know one.
    pub hint: Option<String>,
    /// True if the failure is permanent, so that an early retry is useless.
    pub is_lasting: bool,
    /// True if the server denied access.
    pub is_denied: bool,
    /// A change by a person after which a try is worth its while at once.
    pub awaited: Option<Box<Awaited>>,
}

impl Failure {
    /// A failure of which no more is known; it may go away.
    pub fn new(why: impl Into<String>) -> Self {
        let why = why.into();
        Self {
            why,
            stderr: None,
            hint: None,
            is_lasting: false,
            is_denied: false,
            awaited: None,
        }
    }

    /// Of a server that is ended because we end.
    pub(crate) fn stopping() -> Self {
        Self::new("the proxy is stopping")
    }

    /// The login that a person has to make, if it is that.
    pub fn login(&self) -> Option<&LoginNeeded> {
        self.awaited.as_ref()?.login.as_ref()
    }

    /// Creates the permanent failure of a server that requires authentication.
    pub(crate) fn denial(why: String) -> Self {
        let denied = Self::new(why).lasting().denied();
        denied.hint("set `headers.Authorization` of this server")
    }

    /// Creates the failure of an unreachable remote server; `place` is its host and port, if its URL
    /// contains no secret.
    pub(crate) fn unreachable(why: &str, obstacle: Obstacle, place: Option<&str>) -> Self {
        // reqwest's own words in front of every cause.
        let why = why.replace("error sending request: client error (Connect): ", "");
        let there = place.map_or_else(|| "there".to_owned(), |place| format!("at {place}"));
        let (what, hint) = match obstacle {
            Obstacle::NothingListens => (
                format!("nothing listens {there}: "),
                "start the server, or look at host and port of `url`",
            ),
            Obstacle::UnknownHost => (
                match place.and_then(|place| place.rsplit_once(':')) {
                    Some((host, _)) => format!("no host has this name: {host}: "),
                    None => "no host has this name: ".to_owned(),
                },
                "look at `url`, and at the network",
            ),
            Obstacle::Distrusted => (
                format!("the certificate {there} is not trusted: "),
                "name your authority's file in `SSL_CERT_FILE`, or look at the clock",
            ),
            Obstacle::NotTls => (
                format!("no TLS is spoken {there}: "),
                "write `http://` in `url`, or the port of `https://`",
            ),
            Obstacle::NoEndpoint => (
                String::new(),
                "no MCP endpoint is there: look at the path of `url`, which mostly ends in `/mcp` or \
                 `/sse`",
            ),
            Obstacle::Redirected => (
                String::new(),
                "write that address in `url`, if it is trusted with the headers",
            ),
            Obstacle::ServerFails => (
                String::new(),
                "it is the server's own trouble: ask again later",
            ),
        };
        Self::new(what + &why).hint(hint)
    }

    pub(crate) fn lasting(mut self) -> Self {
        self.is_lasting = true;
        self
    }

    pub(crate) fn denied(mut self) -> Self {
        self.is_denied = true;
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text came from the server, or from an intermediary in front of it.
        f.write_str(&printable::one_line(&self.why))?;
        match &self.stderr {
            Some(stderr) => write!(f, "; stderr: {}", printable::one_line(stderr)),
            None => Ok(()),
        }
    }
}

/// Why a request over a connection brought no result.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The connection was lost; the request did not reach the server.
    Unsent,
    /// The connection was lost; the request may have been executed. The number is that of the bytes sent
    /// before it, if known.
    Lost(Option<u64>),
    /// The connection to the server failed: the request did not reach it.
    Unreached(String),
    /// The request failed although the connection may live.
    Failed(String),
    /// The server requires authentication, or more permissions: nothing was executed.
    Denied(Denied),
    Protocol(ProtocolError),
}

/// A request that the server refused for lack of authentication or permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    /// A sentence without secrets.
    pub(crate) why: String,
    /// True if the client is not authenticated (HTTP 401). Otherwise it is not authorized.
    pub(crate) is_unknown: bool,
}

/// Formats an error with all its sources: the outermost one often says only "error sending request".
pub(crate) fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// Why a call gave no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The configuration has no server of this name.
    #[error("no server `{0}`")]
    UnknownServer(ServerName),

    /// The server did not start, or died under the call.
    #[error("server `{server}` is not available: {failure}")]
    Unavailable {
        /// The server that was called.
        server: ServerName,
        /// Why it is not there.
        failure: Failure,
        /// Starts that failed in a row; 0 when the server died under the call.
        tries: u32,
        /// `No` when it was never ready.
        ran: Ran,
    },

    /// The call timed out; the server was notified that it is cancelled.
    #[error("no answer from `{server}` within {} ms{}", limit.as_millis(), explain_delay(held_up.as_ref()))]
    TimedOut {
        /// The server that was called.
        server: ServerName,
        /// The limit that was reached.
        limit: Duration,
        /// `No` when the server was still starting.
        ran: Ran,
        /// Set if the call waited for calls of other clients to end.
        held_up: Option<HeldUp>,
    },

    /// The client cancelled its call; no caller reads this error.
    #[error("cancelled")]
    Cancelled,

    /// The server answered with a protocol error.
    #[error("`{server}` answered with error {}: {}", printable::one_line(&error.code), printable::one_line(&error.message))]
    Protocol {
        /// The server that was called.
        server: ServerName,
        /// Its answer, without secrets.
        error: ProtocolError,
    },
}

/// The reason why a call waited for calls of other clients. Its text continues after the server's
/// name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeldUp {
    /// Its server asked another client something.
    #[error("waits for an answer that {client} is asked for")]
    Question {
        /// The name that the client gave itself, on one line.
        client: String,
    },
    /// Its server may ask questions without naming the call that they belong to.
    #[error("was answering other clients, and answers one at a time since it asks them questions")]
    OtherClients,
}

fn explain_delay(held_up: Option<&HeldUp>) -> String {
    held_up.map_or_else(String::new, |why| format!(": it {why}"))
}

/// Why a survey brought no list of tools.
#[derive(Debug, thiserror::Error)]
#[error("{failure}{}", failure.hint.as_ref().map(|hint| format!(" (hint: {hint})")).unwrap_or_default())]
pub struct SurveyError {
    /// The reason why there is no list.
    pub failure: Failure,
}
