//! The stored record of one server: our registration at its authorization server, and the login.

use files::clock::now_s;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::challenge::Challenge;

/// The stored record of one server. Its `Debug` output shows no secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The server's name in the configuration, for people who read the file.
    pub server: String,
    /// Its address.
    pub url: String,
    /// The caller over HTTP whose login this is; none: it is the login of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    pub(crate) registration: Option<Registration>,
    /// The login, if there is one.
    pub grant: Option<Grant>,
    /// Scopes that the server asked for after the login.
    #[serde(default)]
    pub wanted_scopes: Vec<String>,
    /// The challenge of the last refused request: some servers allow `initialize` to everyone, and send
    /// a challenge only later.
    #[serde(default)]
    pub(crate) challenge: Option<Challenge>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registration {
    /// The registration is valid at this issuer alone.
    pub(crate) issuer: String,
    pub(crate) client: OAuthClient,
    /// The redirect address of the registration. Many authorization servers compare it as text.
    pub(crate) redirect_uri: String,
    /// None: never.
    pub(crate) secret_expires_at: Option<u64>,
    /// True if a later login began with this registration and has not finished. The authorization
    /// server may have removed the registration, and would then show an error in the browser.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_doubtful: bool,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OAuthClient {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    /// The authentication method: `none`, `client_secret_basic`, `client_secret_post`, or
    /// `private_key_jwt` if the secret is a key.
    pub(crate) method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_id: Option<String>,
}

/// A login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Differs for each login; stays the same when the token is renewed.
    pub id: String,
    /// The issuer.
    pub issuer: String,
    /// The scopes of the token, as far as they are known.
    pub scopes: Vec<String>,
    /// The time when the access token expires; none: unknown.
    pub expires_at: Option<u64>,
    /// The time when the token was issued or last renewed.
    pub obtained_at: u64,
    /// The reason why the token cannot be renewed any more, if so: only a new login helps.
    #[serde(default)]
    pub ended: Option<String>,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) resource: Option<String>,
    pub(crate) client: OAuthClient,
    /// The key to which the access token is bound, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proof_key: Option<String>,
}

impl Record {
    /// Returns true if the server has sent a challenge with a refused request.
    pub fn was_challenged(&self) -> bool {
        self.challenge.is_some()
    }
}

/// A token is renewed this many seconds before it expires, since a request takes time.
const RENEW_BEFORE_S: u64 = 30;

impl Grant {
    /// Returns true if the token can be renewed without a person.
    pub fn is_renewable(&self) -> bool {
        self.refresh_token.is_some() && self.ended.is_none()
    }

    /// Returns true if the access token can still be sent. A short-lived token is sent for most of its
    /// lifetime.
    pub(crate) fn is_fresh(&self) -> bool {
        let Some(expires_at) = self.expires_at else {
            return true;
        };
        let life = expires_at.saturating_sub(self.obtained_at);
        now_s() + RENEW_BEFORE_S.min(life / 4) < expires_at
    }

    /// Returns true if the access token has not expired.
    pub(crate) fn is_alive(&self) -> bool {
        self.expires_at.is_none_or(|at| now_s() < at)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("server", &self.server)
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
