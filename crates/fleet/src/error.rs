//! Errors of requests to a server, by the caller's reaction to them.

use std::{error::Error, fmt, iter::successors, time::Duration};

use jsonrpc::ProtocolError;
use printable::Redactor;
use tool::ServerName;

use crate::{
    awaited::{Awaited, LoginNeeded},
    obstacle::Obstacle,
    request::Refusal,
};

/// Tells if a call that failed may have been executed. Only `No` is safe to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// It did not reach the server.
    No,
    /// It was sent, and has no response.
    Maybe,
}

/// The reason why a server is not available. Its texts are masked: they contain no secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// True if a person restarted the server during the call.
    pub is_restart: bool,
    /// A change by a person after which a restart may succeed at once.
    pub awaited: Option<Box<Awaited>>,
}

impl Failure {
    /// Creates a failure that may be temporary.
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            ..Self::default()
        }
    }

    /// Creates the failure of a server that ends with the program.
    pub(crate) fn stopping() -> Self {
        Self::new("the proxy is stopping")
    }

    /// Creates the failure of calls that a restart of their server ended.
    pub(crate) fn restarted() -> Self {
        Self {
            is_restart: true,
            ..Self::new("it was restarted")
        }
    }

    /// Returns the login that is needed, if the failure is a missing login.
    pub fn login(&self) -> Option<&LoginNeeded> {
        self.awaited.as_ref()?.login.as_ref()
    }

    /// Creates the permanent failure of a server that requires authentication.
    pub(crate) fn denial(why: String) -> Self {
        let hint = "set `headers.Authorization` of this server";
        Self {
            is_denied: true,
            ..Self::new(why).lasting().hint(hint)
        }
    }

    /// Creates the failure of an unreachable remote server; `place` is its host and port, if its URL
    /// contains no secret.
    pub(crate) fn unreachable(why: &str, obstacle: Obstacle, place: Option<&str>) -> Self {
        // reqwest writes this before every cause.
        let why = why.replace("error sending request: client error (Connect): ", "");
        let there = place.map_or_else(|| "there".to_owned(), |place| format!("at {place}"));
        let (what, hint) = match obstacle {
            Obstacle::NothingListens => (
                format!("nothing listens {there}: "),
                "start the server, or look at host and port of `url`",
            ),
            Obstacle::UnknownHost => (
                match place.and_then(|place| place.rsplit_once(':')) {
                    Some((host, _)) => format!("no host has the name {host}: "),
                    None => "the host is unknown: ".to_owned(),
                },
                "look at `url`, and at the network",
            ),
            Obstacle::Distrusted => (
                format!("the certificate {there} is not trusted: "),
                "name your authority's file in `SSL_CERT_FILE`, or look at the clock",
            ),
            Obstacle::NotTls => (
                format!("the server does not speak TLS {there}: "),
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
            Obstacle::ServerFails => (String::new(), "the server itself failed: try again later"),
        };
        Self::new(what + &why).hint(hint)
    }

    pub(crate) fn lasting(mut self) -> Self {
        self.is_lasting = true;
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

/// The reason why a request over a connection has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The connection was lost; the request did not reach the server.
    #[error("the connection ended")]
    Unsent,
    /// The connection was lost; the request may have been executed. The number is that of the bytes sent
    /// before it, if known.
    #[error("the connection ended")]
    Lost(Option<u64>),
    /// The connection to the server failed: the request did not reach it.
    #[error("{0}")]
    Unreached(String),
    /// The request failed although the connection may live.
    #[error("{0}")]
    Failed(String),
    /// The server requires authentication, or more permissions: nothing was executed.
    #[error("{}", .0.why)]
    Denied(Denied),
    #[error("{} (error {})", .0.message, .0.code)]
    Protocol(ProtocolError),
}

impl RequestError {
    /// Masks the secrets in an error that the server wrote.
    pub(crate) fn mask(self, redactor: &Redactor) -> Self {
        match self {
            Self::Protocol(error) => Self::Protocol(error.map(|text| redactor.apply(text))),
            other => other,
        }
    }
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
    let causes = successors(error.source(), |&cause| cause.source());
    causes
        .map(ToString::to_string)
        .fold(error.to_string(), |text, cause| {
            if text.contains(&cause) {
                text
            } else {
                format!("{text}: {cause}")
            }
        })
}

/// The reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The configuration has no server of this name.
    #[error("no server `{0}`")]
    UnknownServer(ServerName),

    /// The server did not start, or ended during the call.
    #[error("server `{server}` is not available: {failure}")]
    Unavailable {
        /// The server that was called.
        server: ServerName,
        /// Why it is not available.
        failure: Failure,
        /// Failed starts in a row; 0 if the server ended during the call.
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

    /// The rules changed while the call waited, and no longer allow it: it did not start.
    #[error("{0}")]
    Refused(Refusal),

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

impl CallError {
    pub(crate) fn unavailable(server: &ServerName, failure: Failure, tries: u32, ran: Ran) -> Self {
        Self::Unavailable {
            server: server.clone(),
            failure,
            tries,
            ran,
        }
    }

    /// Adds the address of ours at which the caller logs in.
    pub(crate) fn with_login_address(mut self, address: Option<String>) -> Self {
        if let Self::Unavailable { failure, .. } = &mut self
            && let Some(awaited) = &mut failure.awaited
            && let Some(login) = &mut awaited.login
        {
            login.address = address;
        }
        self
    }
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
    /// Its server asks questions that name no call, and all processes that it may have answered other
    /// clients.
    #[error("was answering other clients, and answers one at a time since it asks them questions")]
    OtherClients,
}

fn explain_delay(held_up: Option<&HeldUp>) -> String {
    held_up.map_or_else(String::new, |why| format!(": it {why}"))
}

/// The reason why a survey has no list of tools.
#[derive(Debug, thiserror::Error)]
#[error("{failure}{}", failure.hint.as_ref().map(|hint| format!(" (hint: {hint})")).unwrap_or_default())]
pub struct SurveyError {
    /// The reason why there is no list.
    pub failure: Failure,
}
