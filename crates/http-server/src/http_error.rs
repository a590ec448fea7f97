//! The error response to a refused request: a status, and a message with the next step.

use std::borrow::Cow;

use http_core::Refusal;
use hyper::{
    StatusCode,
    header::{ALLOW, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE},
};
use jsonrpc::frame;

#[derive(Debug)]
pub(super) struct HttpError {
    pub(super) status: StatusCode,
    pub(super) why: Why,
    /// The error code of JSON-RPC.
    pub(super) code: i32,
    pub(super) message: String,
    /// The id of the request, as it was received.
    pub(super) id: Option<String>,
    pub(super) header: Option<Box<(HeaderName, Cow<'static, str>)>>,
    /// True if the connection is closed and the rest of the request is not read.
    pub(super) closes: bool,
}

/// The cause of an error, which decides if it is logged for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Possible abuse, logged under this heading.
    Abuse(&'static str),
    /// A credential that does not admit its request. Logged as abuse, and in the audit log.
    Credential(&'static str),
    /// A mistake of the client, perhaps one under development.
    Mistake,
}

/// The seconds that a client should wait if there is no room for its request.
const RETRY_AFTER_S: &str = "5";

impl From<Refusal> for HttpError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Host(host) => Self::host(&host),
            Refusal::Origin(origin) => Self::origin(&origin),
            Refusal::Site => Self::origin("unknown"),
            Refusal::MediaType => Self::mistake(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "send `Content-Type: application/json`",
            ),
        }
    }
}

impl HttpError {
    /// Returns true if the request had a credential that does not admit it.
    pub(super) fn is_of_credential(&self) -> bool {
        matches!(self.why, Why::Credential(_))
    }

    fn new(status: StatusCode, why: Why, message: impl Into<String>) -> Self {
        Self {
            status,
            why,
            code: frame::INVALID_REQUEST,
            message: message.into(),
            id: None,
            header: None,
            closes: false,
        }
    }

    fn with(mut self, name: HeaderName, value: impl Into<Cow<'static, str>>) -> Self {
        self.header = Some(Box::new((name, value.into())));
        self
    }

    pub(super) fn mistake(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, Why::Mistake, message)
    }

    fn abuse(status: StatusCode, about: &'static str, message: impl Into<String>) -> Self {
        Self::new(status, Why::Abuse(about), message)
    }

    /// There is no room now, or no answer.
    fn busy(about: &'static str, message: String) -> Self {
        Self::abuse(StatusCode::SERVICE_UNAVAILABLE, about, message)
            .with(RETRY_AFTER, RETRY_AFTER_S)
    }

    fn host(host: &str) -> Self {
        let message = format!(
            "unknown host {host:?}. Use the address that the proxy listens on, or add the name to \
             http.allowed_hosts"
        );
        Self::abuse(StatusCode::FORBIDDEN, "host", message)
    }

    fn origin(origin: &str) -> Self {
        let message = format!(
            "web pages of the origin {origin:?} are not allowed. Add it to http.allowed_origins to allow it"
        );
        Self::abuse(StatusCode::FORBIDDEN, "origin", message)
    }

    pub(super) fn no_token() -> Self {
        let message = "a token is required: send `Authorization: Bearer TOKEN`";
        let challenge = r#"Bearer realm="proxy""#;
        Self::abuse(StatusCode::UNAUTHORIZED, "no token", message).with(WWW_AUTHENTICATE, challenge)
    }

    pub(super) fn wrong_token() -> Self {
        let message = "unknown token: compare it with [http.tokens]";
        let challenge = r#"Bearer realm="proxy", error="invalid_token""#;
        let why = Why::Credential("wrong token");
        Self::new(StatusCode::UNAUTHORIZED, why, message).with(WWW_AUTHENTICATE, challenge)
    }

    /// Refuses a client whose tokens come from an authorization server, which the challenge names.
    pub(super) fn login_needed(challenge: String, why: Option<&'static str>) -> Self {
        let (message, kind) = match why {
            // Each reason is a kind of its own.
            Some(why) => (
                format!("this token is rejected: {why}"),
                Why::Credential(why),
            ),
            None => ("a token is required".to_owned(), Why::Abuse("no token")),
        };
        Self::new(StatusCode::UNAUTHORIZED, kind, message).with(WWW_AUTHENTICATE, challenge)
    }

    /// The token is valid, but has none of the required scopes.
    pub(super) fn scope_needed(challenge: String) -> Self {
        let message = "this token has none of the required scopes (http.oauth.scopes)";
        Self::new(StatusCode::FORBIDDEN, Why::Credential("scope"), message)
            .with(WWW_AUTHENTICATE, challenge)
    }

    /// Tokens cannot be verified at the moment.
    pub(super) fn no_keys(why: &str) -> Self {
        let message = format!("tokens cannot be verified at the moment: {why}");
        Self::busy("keys", message)
    }

    pub(super) fn too_large(max: usize) -> Self {
        let message = format!(
            "a message has at most {} KiB (http.max_body_kib)",
            max / 1_024
        );
        Self::abuse(StatusCode::PAYLOAD_TOO_LARGE, "body", message).closing()
    }

    pub(super) fn too_slow() -> Self {
        let message = "the body did not arrive in time, or other clients needed its place";
        Self::abuse(StatusCode::REQUEST_TIMEOUT, "slow body", message).closing()
    }

    pub(super) fn too_many_requests(max: usize) -> Self {
        let message = format!(
            "too many requests in flight: {max} of all clients, half of them of one session, \
             token or address. Try again"
        );
        Self::busy("requests", message).closing()
    }

    pub(super) fn too_many_sessions(max: usize) -> Self {
        let message = format!(
            "{max} sessions are open, or half as many of yours (http.max_sessions): try again"
        );
        Self::busy("sessions", message)
    }

    /// The server is stopping, and its successor can resume the session.
    pub(super) fn stopping() -> Self {
        let message = "this server is stopping: try again, its successor resumes the session";
        Self::mistake(StatusCode::SERVICE_UNAVAILABLE, message).with(RETRY_AFTER, RETRY_AFTER_S)
    }

    pub(super) fn no_session() -> Self {
        let message = "unknown or ended session: send `initialize` without Mcp-Session-Id";
        Self::mistake(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn session_needed() -> Self {
        let message = "Mcp-Session-Id is missing: send the one from the response to `initialize`";
        Self::mistake(StatusCode::BAD_REQUEST, message)
    }

    /// The headers do not match the body.
    pub(super) fn mismatch(message: impl Into<String>) -> Self {
        Self {
            code: jsonrpc::mcp::HEADER_MISMATCH,
            ..Self::mistake(StatusCode::BAD_REQUEST, message)
        }
    }

    pub(super) fn nowhere() -> Self {
        Self::mistake(
            StatusCode::NOT_FOUND,
            "not found: MCP is at /mcp, and there are /healthz and /readyz",
        )
    }

    pub(super) fn no_profile() -> Self {
        Self::mistake(
            StatusCode::NOT_FOUND,
            "the configuration has no profile of this name: MCP without one is at /mcp",
        )
    }

    pub(super) fn method(allowed: &'static str) -> Self {
        let message = format!("only {allowed} is allowed here");
        Self::mistake(StatusCode::METHOD_NOT_ALLOWED, message).with(ALLOW, allowed)
    }

    pub(super) fn unreadable(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            ..Self::mistake(StatusCode::BAD_REQUEST, message)
        }
    }

    /// A method that this revision does not have.
    pub(super) fn no_method(message: String) -> Self {
        Self {
            code: frame::METHOD_NOT_FOUND,
            ..Self::mistake(StatusCode::NOT_FOUND, message)
        }
    }

    /// Sets the id of the refused request.
    pub(super) fn about(mut self, id: Option<&str>) -> Self {
        self.id = id.map(str::to_owned);
        self
    }

    fn closing(mut self) -> Self {
        self.closes = true;
        self
    }
}
