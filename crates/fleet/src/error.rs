//! What can go wrong between us and a server, by what the caller would do about it.

use std::{error::Error, fmt, time::Duration};

use jsonrpc::ProtocolError;
use tool::ServerName;

/// Whether a call that failed may have acted. Only `No` is safe to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    No,
    Maybe,
}

/// Why a server is not there. Texts are masked: no secret of the configuration is in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub why: String,
    /// The end of what the server wrote to stderr, if anything.
    pub stderr: Option<String>,
    pub hint: Option<String>,
    /// It will not go away by itself, so there is no use in trying soon.
    pub is_lasting: bool,
}

impl Failure {
    pub fn new(why: impl Into<String>) -> Self {
        let why = why.into();
        Self {
            why,
            stderr: None,
            hint: None,
            is_lasting: false,
        }
    }

    /// Of a server that wants to know who asks, and will not change its mind by itself.
    pub(crate) fn denial(why: String) -> Self {
        Self::new(why)
            .lasting()
            .hint("set `headers.Authorization` of this server")
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
        // What a server, or whoever stands before it, said of itself.
        f.write_str(&printable::one_line(&self.why))?;
        match &self.stderr {
            Some(stderr) => write!(f, "; stderr ends: {}", printable::one_line(stderr)),
            None => Ok(()),
        }
    }
}

/// Why a request over a connection brought no result.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The connection is gone; the request may have been acted on.
    Lost,
    /// The request failed although the connection may live.
    Failed(String),
    Protocol(ProtocolError),
}

/// An error with everything below it: the outermost one often says only "error sending request".
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
    #[error("no server `{0}`")]
    UnknownServer(ServerName),

    #[error("server `{server}` is not available: {failure}")]
    Unavailable {
        server: ServerName,
        failure: Failure,
        /// Starts that failed in a row; 0 when the server died under the call.
        tries: u32,
        ran: Ran,
    },

    #[error("no answer from `{server}` within {} ms", limit.as_millis())]
    TimedOut {
        server: ServerName,
        limit: Duration,
        /// `No` when the server was still starting.
        ran: Ran,
    },

    /// The client took its call back; nobody waits for this.
    #[error("cancelled")]
    Cancelled,

    #[error("`{server}` answered with error {}: {}", printable::one_line(&error.code), printable::one_line(&error.message))]
    Protocol {
        server: ServerName,
        error: ProtocolError,
    },
}

/// Why a survey brought no list of tools.
#[derive(Debug, thiserror::Error)]
#[error("{failure}{}", failure.hint.as_ref().map(|hint| format!(" (hint: {hint})")).unwrap_or_default())]
pub struct SurveyError {
    pub failure: Failure,
}
