//! Who is logged in where, for people.

use std::sync::Arc;

use fleet::{Asks, LoginPlace, Variables};
use oauth::Record;
use secrets::PrivateFiles;
use serde_json::{Value, json};
use tool::ServerName;

use crate::{
    call_context::CallContext, gateway::Gateway, settings::ServerSettings, survey::survey_now,
};

/// What is kept of a server's login; none where nobody can log in, or nobody ever did. Secrets that
/// its address takes are not read for this.
pub fn login_of(server: &ServerSettings, files: &PrivateFiles) -> Option<Record> {
    let record = record_of(server, files)?;
    record.grant.is_some().then_some(record)
}

/// What is known of logins at a server at which a person may log in; machines log in by themselves.
fn record_of(server: &ServerSettings, files: &PrivateFiles) -> Option<Record> {
    let file = LoginPlace::find_file(&server.spec, &Variables::of_process(), files)?;
    file.read().ok()
}

impl Gateway {
    /// Has the person of this client log in to a server that has not told its tools, and asks the server
    /// for them then. Whether there was a login.
    pub(crate) async fn log_in_first(&self, server: &ServerName, context: &CallContext) -> bool {
        let asks = context.asks.as_ref().filter(|_| context.is_here);
        let Some(asks) = asks.map(|it| it.for_server(server) as Arc<dyn Asks>) else {
            return false;
        };
        let logging_in = self.servers.log_in(server, context.client.as_ref(), &asks);
        let logged_in = context.cancel.run_until_cancelled(logging_in).await;
        if logged_in != Some(true) {
            return false;
        }
        survey_now(self, server).await;
        true
    }

    /// Whether a call of this server's tools would only be told that nobody is logged in, as far as
    /// that is known without asking. `is_stale`: it could not be asked for its tools last time.
    pub fn needs_login(&self, server: &ServerName, is_stale: bool) -> bool {
        if self.servers.needs_login(server) {
            return true;
        }
        let settings = self.settings();
        let server = settings.server(server);
        let record = server.and_then(|it| record_of(it, &settings.private_files()));
        record.is_some_and(|record| match &record.grant {
            Some(grant) => grant.ended.is_some(),
            None => is_stale && record.was_challenged(),
        })
    }
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
