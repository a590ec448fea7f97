//! The logins at servers, for people.

use fleet::{LoginPlace, Variables};
use oauth::Record;
use secrets::PrivateFiles;
use serde::{Deserialize, Serialize};

use crate::settings::ServerSettings;

/// The login record of a server that people log in to; machines log in by themselves.
pub(crate) fn record_of(server: &ServerSettings, files: &PrivateFiles) -> Option<Record> {
    let file = LoginPlace::find_file(&server.spec, &Variables::of_process(), files)?;
    file.read().ok()
}

/// A login without its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoginStatus {
    /// The issuer of the token.
    pub issuer: String,
    /// The scopes of the token, as far as they are known.
    pub scopes: Vec<String>,
    /// The time when the token was issued or last renewed, in seconds since 1970.
    pub obtained_at: u64,
    /// The time when the token expires, if known.
    pub expires_at: Option<u64>,
    /// True if the token can be renewed without a person.
    pub is_renewable: bool,
    /// The reason why the token cannot be renewed any more, if so.
    pub ended: Option<String>,
}

/// Returns the stored login of a server; `None` if the server has no login, or nobody ever logged in.
/// Secrets in the server's address are not read for this.
pub fn describe_login(server: &ServerSettings, files: &PrivateFiles) -> Option<LoginStatus> {
    let grant = record_of(server, files)?.grant?;
    Some(LoginStatus {
        is_renewable: grant.is_renewable(),
        issuer: grant.issuer,
        scopes: grant.scopes,
        obtained_at: grant.obtained_at,
        expires_at: grant.expires_at,
        ended: grant.ended,
    })
}
