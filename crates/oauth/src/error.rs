//! Why a login failed, and what to do.

use printable::one_line_of;

/// Of what a stranger says, in characters.
const SAID_CHARS_MAX: usize = 200;

/// Why a login failed. What strangers said is on one line, shortened, and hides nothing; no token,
/// code or secret is in it.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The server asks for no login, or says nowhere who guards it.
    #[error("{0} names no authorization server")]
    NoAuthorizationServer(String),
    /// What it says of itself does not hold.
    #[error("{0}")]
    Metadata(String),
    /// An address is one that a stranger must not send us to.
    #[error("{url} is not asked: {why}")]
    Address {
        /// The address, without its query.
        url: String,
        /// Which rule it breaks.
        why: &'static str,
    },
    /// Nothing came back that could be read.
    #[error("{url}: {why}")]
    Http {
        /// The address, without its query.
        url: String,
        /// What happened.
        why: String,
    },
    /// The authorization server does not say that it checks PKCE.
    #[error(
        "{0} does not say that it checks PKCE with S256, so a code that was stolen would be worth a token"
    )]
    NoPkce(String),
    /// Nobody registers clients there.
    #[error("{0} registers no clients by itself")]
    NoRegistration(String),
    /// It registers clients, and not us.
    #[error("{issuer} refused to register a client: {why}")]
    RegistrationRefused {
        /// The authorization server.
        issuer: String,
        /// What it said.
        why: String,
    },
    /// The browser came back with something that does not belong to this login.
    #[error("the answer does not belong to this login: {0}")]
    Foreign(String),
    /// The authorization server, or the person, said no.
    #[error("the login was refused: {0}")]
    Refused(String),
    /// The token request failed.
    #[error("no token was given: {0}")]
    NoToken(String),
    /// The refresh token, or the client, is no longer good: only a new login helps.
    #[error("the login has ended: {0}")]
    Ended(String),
    /// Nobody came back in time.
    #[error("nobody logged in within {0} minutes")]
    TimedOut(u64),
    /// The port is taken.
    #[error("port {port} cannot be listened on: {why}")]
    Port {
        /// Which.
        port: u16,
        /// Why not.
        why: String,
    },
    /// What was learned cannot be kept.
    #[error("{0}")]
    Store(#[from] crate::store::StoreError),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Randomness,
}

impl LoginError {
    /// The next step, where there is one.
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

    /// Whether the same may work in a moment.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Http { .. } | Self::Store(_) | Self::Randomness)
    }
}

/// What a stranger said, fit to be shown.
pub(crate) fn shown(text: &str) -> String {
    one_line_of(text, SAID_CHARS_MAX)
}
