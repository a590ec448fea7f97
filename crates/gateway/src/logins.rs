//! The logins at servers, for people.

use fleet::{LoginPlace, Variables};
use oauth::Record;
use secrets::PrivateFiles;
use serde_json::{Value, json};

use crate::settings::ServerSettings;

/// The stored login of a server; `None` if the server has no login, or nobody has ever logged in.
/// Secrets in the server's address are not read for this.
pub fn login_of(server: &ServerSettings, files: &PrivateFiles) -> Option<Record> {
    let record = record_of(server, files)?;
    record.grant.is_some().then_some(record)
}

/// The login record of a server that people log in to; machines log in by themselves.
pub(crate) fn record_of(server: &ServerSettings, files: &PrivateFiles) -> Option<Record> {
    let file = LoginPlace::find_file(&server.spec, &Variables::of_process(), files)?;
    file.read().ok()
}

/// The login as JSON, without tokens.
pub fn describe_login(server: &ServerSettings, files: &PrivateFiles) -> Value {
    let record = login_of(server, files);
    let Some(grant) = record.as_ref().and_then(|record| record.grant.as_ref()) else {
        return Value::Null;
    };
    json!({
        "issuer": grant.issuer,
        "scopes": grant.scopes,
        "obtained_at": grant.obtained_at,
        "expires_at": grant.expires_at,
        "is_renewable": grant.is_renewable(),
        "ended": grant.ended,
    })
}
