//! Who is logged in where, for people.

use std::path::Path;

use fleet::{LoginPlace, Variables};
use oauth::Record;
use serde_json::{Value, json};

use crate::settings::ServerSettings;

/// What is kept of a server's login; none where nobody can log in, or nobody ever did. Secrets that
/// its address takes are not read for this.
pub fn login_of(server: &ServerSettings, state_dir: &Path) -> Option<Record> {
    let place = LoginPlace::of(&server.spec, &Variables::of_process(), None, state_dir);
    let record = place.ok()??.file.read().ok()?;
    record.grant.is_some().then_some(record)
}

/// The same as JSON. No token is in it.
pub fn describe_login(server: &ServerSettings, state_dir: &Path) -> Value {
    let record = login_of(server, state_dir);
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
