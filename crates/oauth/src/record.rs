//! What is kept of one server: how we are registered where it is guarded, and the login.

use files::clock::now_s;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::challenge::Challenge;

/// Everything that is kept of one server. What prints it shows no secret.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The server's name in the configuration, for people who look.
    pub server: String,
    /// Its address.
    pub url: String,
    /// How we are known where it is guarded.
    pub(crate) registration: Option<Registration>,
    /// The login, if there is one.
    pub grant: Option<Grant>,
    /// Scopes that the server asked for after the login.
    #[serde(default)]
    pub wanted_scopes: Vec<String>,
    /// What the server said when it refused a request last: some let everybody begin, and ask later.
    #[serde(default)]
    pub(crate) challenge: Option<Challenge>,
}

/// A registration that an authorization server made for us.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registration {
    /// It is good there and nowhere else.
    pub(crate) issuer: String,
    pub(crate) client: Client,
    /// It was made for this address, and many compare it as a text.
    pub(crate) redirect_uri: String,
    /// None: never.
    pub(crate) secret_expires_at: Option<u64>,
    /// A later login began with it and has not come to its end: the authorization server may have
    /// forgotten it, and shows the browser an error then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_doubtful: bool,
}

/// Who we are at an authorization server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    /// How the secret is shown: `none`, `client_secret_basic`, `client_secret_post`, or
    /// `private_key_jwt`, where it is a key.
    pub(crate) method: String,
    /// The name of that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_id: Option<String>,
}

/// A login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Another one for each login; the same over every renewal.
    pub id: String,
    /// Who gave it.
    pub issuer: String,
    /// The scopes that it has, as far as that was said.
    pub scopes: Vec<String>,
    /// When the access token ends; none: nobody said.
    pub expires_at: Option<u64>,
    /// When it was had or renewed last.
    pub obtained_at: u64,
    /// Why it cannot be renewed any more, if so: only a new login helps.
    #[serde(default)]
    pub ended: Option<String>,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) resource: Option<String>,
    pub(crate) client: Client,
    /// The key to which the access token is bound, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proof_key: Option<String>,
}

impl Record {
    /// Whether the server has asked for a token when it refused a request.
    pub fn was_challenged(&self) -> bool {
        self.challenge.is_some()
    }
}

/// A token is renewed so long before its end, in seconds: a request takes time.
const RENEW_BEFORE_S: u64 = 30;

impl Grant {
    /// Whether it can be renewed without a person.
    pub fn is_renewable(&self) -> bool {
        self.refresh_token.is_some() && self.ended.is_none()
    }

    /// Whether the access token can still be sent. A short-lived one is good for most of its life.
    pub(crate) fn is_fresh(&self) -> bool {
        let Some(expires_at) = self.expires_at else {
            return true;
        };
        let life = expires_at.saturating_sub(self.obtained_at);
        now_s() + RENEW_BEFORE_S.min(life / 4) < expires_at
    }

    /// Whether the access token has not ended yet.
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

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
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
