//! The refusal of a request: a status, a sentence, the next step.

use std::borrow::Cow;

use hyper::{
    StatusCode,
    header::{ALLOW, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE},
};
use jsonrpc::frame;

#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) why: Why,
    /// Of JSON-RPC.
    pub(super) code: i32,
    pub(super) message: String,
    /// Of the request, as it came.
    pub(super) id: Option<String>,
    pub(super) header: Option<Box<(HeaderName, Cow<'static, str>)>>,
    /// The rest of the request is not read.
    pub(super) closes: bool,
}

/// The reason of a refusal: decides whether it is logged for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Logged under this heading.
    Abuse(&'static str),
    /// A mistake of the client, perhaps one under development.
    Mistake,
}

/// The time that a client that found no room waits, in seconds.
const RETRY_AFTER_S: &str = "5";

impl Refusal {
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

    pub(super) fn host(host: &str) -> Self {
        let message = format!(
            "no such host here: {host:?}. Use the address that we listen on, or add the name to \
             http.allowed_hosts"
        );
        Self::new(StatusCode::FORBIDDEN, Why::Abuse("host"), message)
    }

    pub(super) fn origin(origin: &str) -> Self {
        let message = format!(
            "this web page may not call: {origin:?}. Add it to http.allowed_origins if it may"
        );
        Self::new(StatusCode::FORBIDDEN, Why::Abuse("origin"), message)
    }

    pub(super) fn no_token() -> Self {
        let message = "a token is needed: send `Authorization: Bearer TOKEN`";
        let challenge = r#"Bearer realm="proxy""#;
        Self::new(StatusCode::UNAUTHORIZED, Why::Abuse("no token"), message)
            .with(WWW_AUTHENTICATE, challenge)
    }

    pub(super) fn wrong_token() -> Self {
        let message = "this token is none of ours: compare it with [http.tokens]";
        let challenge = r#"Bearer realm="proxy", error="invalid_token""#;
        Self::new(StatusCode::UNAUTHORIZED, Why::Abuse("wrong token"), message)
            .with(WWW_AUTHENTICATE, challenge)
    }

    /// Refuses a client whose tokens come from an authorization server, which the challenge names.
    pub(super) fn login_needed(challenge: String, why: Option<&str>) -> Self {
        let (message, about) = match why {
            Some(why) => (format!("this token is not taken: {why}"), "wrong token"),
            None => ("a token is needed".to_owned(), "no token"),
        };
        Self::new(StatusCode::UNAUTHORIZED, Why::Abuse(about), message)
            .with(WWW_AUTHENTICATE, challenge)
    }

    /// The token is good, and for other things than this.
    pub(super) fn scope_needed(challenge: String) -> Self {
        let message = "this token has none of the scopes that let a client in (http.oauth.scopes)";
        Self::new(StatusCode::FORBIDDEN, Why::Abuse("scope"), message)
            .with(WWW_AUTHENTICATE, challenge)
    }

    /// Tokens cannot be verified at the moment.
    pub(super) fn no_keys(why: &str) -> Self {
        let message = format!("no token can be checked now: {why}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Why::Abuse("keys"), message)
            .with(RETRY_AFTER, RETRY_AFTER_S)
    }

    pub(super) fn too_large(max: usize) -> Self {
        let message = format!("a message may have {} KiB (http.max_body_kib)", max / 1_024);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, Why::Abuse("body"), message).closing()
    }

    pub(super) fn too_slow() -> Self {
        let message = "the body did not arrive in time (http.receive_timeout_s), or others needed \
                       its place (http.max_requests)";
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            Why::Abuse("slow body"),
            message,
        )
        .closing()
    }

    pub(super) fn too_many_requests(max: usize) -> Self {
        let message = format!(
            "too many requests in flight: {max} of all clients, half of them of one session, \
             token or address (http.max_requests). Try again"
        );
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Why::Abuse("requests"),
            message,
        )
        .with(RETRY_AFTER, RETRY_AFTER_S)
        .closing()
    }

    pub(super) fn too_many_sessions(max: usize) -> Self {
        let message = format!(
            "{max} sessions are open, or half as many of yours (http.max_sessions): try again"
        );
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Why::Abuse("sessions"),
            message,
        )
        .with(RETRY_AFTER, RETRY_AFTER_S)
    }

    /// For a session that the process after us can take up.
    pub(super) fn stopping() -> Self {
        let message = "this server is stopping: try again, the session goes on with the next";
        Self::mistake(StatusCode::SERVICE_UNAVAILABLE, message).with(RETRY_AFTER, RETRY_AFTER_S)
    }

    pub(super) fn no_session() -> Self {
        let message = "no such session (any more): send `initialize` without Mcp-Session-Id";
        Self::mistake(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn session_needed() -> Self {
        let message = "Mcp-Session-Id is missing: send the one that `initialize` answered with";
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
            "nothing here: MCP is at /mcp, and there are /healthz and /readyz",
        )
    }

    pub(super) fn method(allowed: &'static str) -> Self {
        let message = format!("this is for {allowed}");
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

    /// The request it is about.
    pub(super) fn about(mut self, id: Option<&str>) -> Self {
        self.id = id.map(str::to_owned);
        self
    }

    fn closing(mut self) -> Self {
        self.closes = true;
        self
    }
}
