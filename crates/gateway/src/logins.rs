//! Who is logged in where, for people.

use fleet::{LoginPlace, Variables};
use oauth::Record;
use secrets::PrivateFiles;
use serde_json::{Value, json};

use crate::settings::ServerSettings;

/// What is kept of a server's login; none where nobody can log in, or nobody ever did. Secrets that
/// its address takes are not read for this.
pub fn login_of(server: &ServerSettings, files: &PrivateFiles) -> Option<Record> {
    let record = record_of(server, files)?;
    record.grant.is_some().then_some(record)
}

/// What is known of logins at a server at which a person may log in; machines log in by themselves.
pub(crate) fn record_of(server: &ServerSettings, files: &PrivateFiles) -> Option<Record> {
    let file = LoginPlace::find_file(&server.spec, &Variables::of_process(), files)?;
    file.read().ok()
}

/// The same as JSON. No token is in it.
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
