//! Errors of a login, and the next step for each.

use printable::one_line_of;

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
    #[error("{url} is not asked: {why}")]
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
        "{0} does not say that it checks PKCE with S256, so a code that was stolen would be worth a token"
    )]
    NoPkce(String),
    /// The authorization server does not register clients.
    #[error("{0} registers no clients by itself")]
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
    #[error("the answer does not belong to this login: {0}")]
    Foreign(String),
    /// The authorization server or the person refused.
    #[error("the login was refused: {0}")]
    Refused(String),
    /// The token request failed.
    #[error("no token was given: {0}")]
    NoToken(String),
    /// The refresh token or the client is no longer valid: only a new login helps.
    #[error("the login has ended: {0}")]
    Ended(String),
    /// The person did not log in within the time limit.
    #[error("nobody logged in within {0} minutes")]
    TimedOut(u64),
    /// The port is in use.
    #[error("port {port} cannot be listened on: {why}")]
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
    #[error("the system gives no random numbers")]
    Randomness,
}

impl LoginError {
    /// Returns the next step, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoAuthorizationServer(_) => {
                "if it takes a key, set `headers.Authorization`, such as `Bearer ${secret:NAME}`"
            }
            Self::NoPkce(_) => {
                "if its documentation says that it does, write `oauth.pkce = \"assumed\"`"
            }
            Self::NoRegistration(_) | Self::RegistrationRefused { .. } => {
                "register a client there by hand, and write `oauth.client_id` (and \
                 `oauth.client_secret = \"${secret:NAME}\"` if it gave one, `oauth.callback_port` \
                 if it wants a fixed address)"
            }
            Self::TimedOut(_) => {
                "if the browser showed an error of the authorization server, log in once more: a \
                 client that registered by itself registers anew then"
            }
            Self::Port { .. } => "end what listens there, or write another `oauth.callback_port`",
            Self::Address { .. } => {
                "if it is your own network, the server's `url` has to be there as well"
            }
            _ => return None,
        })
    }

    /// Returns true if another attempt may succeed a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Http { .. } | Self::Store(_) | Self::Randomness)
    }
}

/// Returns text from a remote server in a form that is safe to show.
pub(crate) fn shown(text: &str) -> String {
    one_line_of(text, SAID_CHARS_MAX)
}
