//! Errors of a login, and the next step for each.

use printable::{mask_secrets, one_line_of};

/// The most that is shown of a remote server's text, in characters.
const SAID_CHARS_MAX: usize = 200;

/// The reason why a login failed. Text from remote servers is on one line, shortened, and hides
/// nothing; it holds no token, code or secret.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The server asks for no login, or does not name its authorization server.
    #[error("{0} names no authorization server")]
    NoAuthorizationServer(String),
    /// The metadata of the server is invalid.
    #[error("{0}")]
    Metadata(String),
    /// A server names an address to which we must not send requests.
    #[error("no request is sent to {url}: {why}")]
    Address {
        /// The address, without its query.
        url: String,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// There was no response, or it could not be read.
    #[error("{url}: {why}")]
    Http {
        /// The address, without its query.
        url: String,
        /// The failure.
        why: String,
    },
    /// The authorization server does not say that it checks PKCE.
    #[error(
        "{0} does not announce PKCE with S256, without which a stolen code could be exchanged for a token"
    )]
    NoPkce(String),
    /// The authorization server does not register clients.
    #[error("{0} does not register clients dynamically")]
    NoRegistration(String),
    /// The authorization server refused to register our client.
    #[error("{issuer} refused to register a client: {why}")]
    RegistrationRefused {
        /// The authorization server.
        issuer: String,
        /// Its error.
        why: String,
    },
    /// The browser was redirected with a response that does not belong to this login.
    #[error("the response does not belong to this login: {0}")]
    Foreign(String),
    /// The authorization server or the person refused.
    #[error("the login was refused: {0}")]
    Refused(String),
    /// The token request failed.
    #[error("no token was issued: {0}")]
    NoToken(String),
    /// The refresh token or the client is no longer valid: only a new login helps.
    #[error("the login has ended: {0}")]
    Ended(String),
    /// The person did not log in within the time limit.
    #[error("no login within {0} minutes")]
    TimedOut(u64),
    /// The port is in use.
    #[error("cannot listen on port {port}: {why}")]
    Port {
        /// The port.
        port: u16,
        /// The error of the system.
        why: String,
    },
    /// The record cannot be stored.
    #[error("{0}")]
    Store(#[from] crate::store::StoreError),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Randomness,
}

impl LoginError {
    /// Returns the next step, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoAuthorizationServer(_) => {
                "if the server accepts an API key, set `headers.Authorization`, such as `Bearer ${secret:NAME}`"
            }
            Self::NoPkce(_) => {
                "if its documentation says that it supports PKCE, write `oauth.pkce = \"assumed\"`"
            }
            Self::NoRegistration(_) | Self::RegistrationRefused { .. } => {
                "register a client there by hand, and write `oauth.client_id` (and \
                 `oauth.client_secret = \"${secret:NAME}\"` if it has a secret, \
                 `oauth.callback_port` if it requires a fixed redirect address)"
            }
            Self::TimedOut(_) => {
                "if the browser showed an error of the authorization server, log in again: that \
                 registers the client again"
            }
            Self::Port { .. } => {
                "stop the program that listens there, or set another `oauth.callback_port`"
            }
            Self::Address { .. } => {
                "if that network is yours, the `url` of the server must be in it too"
            }
            _ => return None,
        })
    }

    /// Returns true if another attempt may succeed a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Http { .. } | Self::Store(_) | Self::Randomness)
    }
}

/// Returns text from a remote server in a form that is safe to show: on one line, shortened, and without
/// texts that look like a secret.
pub(crate) fn shown(text: &str) -> String {
    one_line_of(&mask_secrets(text, None), SAID_CHARS_MAX)
}
