//! Logins that a page began: a person visits an address, and the daemon waits for the end.

use std::{collections::BTreeMap, sync::Arc};

use fleet::{Availability, LoginPlace};
use gateway::{Gateway, ServerSettings, api::ServerRow, survey};
use oauth::{AddressReceiver, LoginError, LoginMethod, log_in};
use parking_lot::Mutex;
use tool::ServerName;

use crate::error::ApiError;

/// The logins that go on, and those that failed, by server.
#[derive(Debug, Default)]
pub(crate) struct Logins(Mutex<BTreeMap<String, LoginAttempt>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum LoginAttempt {
    /// The person is at this address.
    Waits(String),
    /// It failed, for this reason.
    Failed(String),
}

impl Logins {
    /// Returns the last login at a server, unless it succeeded.
    fn find(&self, server: &str) -> Option<LoginAttempt> {
        self.0.lock().get(server).cloned()
    }

    /// Adds the last login at a server to its row.
    pub(crate) fn add_to(&self, row: &mut ServerRow) {
        match self.find(&row.name) {
            Some(LoginAttempt::Waits(address)) => row.login_address = Some(address),
            // It says more than the need for a login.
            Some(LoginAttempt::Failed(why)) if row.state == Availability::LoginRequired => {
                row.why = Some(why);
            }
            _ => {}
        }
    }

    /// Begins a login, and returns the address that the person visits; the one of a login that goes on,
    /// if there is one. The login ends after some minutes without the person.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        gateway: &Arc<Gateway>,
        server: &ServerSettings,
    ) -> Result<String, ApiError> {
        let name = server.spec.name.clone();
        if let Some(LoginAttempt::Waits(address)) = self.find(name.as_str()) {
            return Ok(address);
        }
        let files = gateway.settings().private_files();
        let found = LoginPlace::find(&server.spec, &gateway::resolver(&files), &files).await;
        let place = match found {
            Ok(Some(place)) => place,
            Ok(None) => {
                let why = "it is a local server, or its `headers` have an `Authorization`";
                return Err(ApiError::conflict(format!("{name} needs no login: {why}")));
            }
            Err(failure) => {
                let hint = failure.hint.clone();
                let error = ApiError::conflict(format!("{name}: {failure}"));
                return Err(error.next(hint.unwrap_or_else(|| format!("proxy login {name}"))));
            }
        };
        let (person, address) = AddressReceiver::new();
        let waiting = tokio::spawn(visit(place, person));
        let Ok(address) = address.await.map(String::from) else {
            let ended = waiting.await.map_err(anyhow::Error::from)?;
            let why = ended.map_or_else(|error| error.to_string(), |()| "logged in".to_owned());
            let status = hyper::StatusCode::BAD_GATEWAY;
            return Err(
                ApiError::new(status, "login_failed", format!("{name}: {why}"))
                    .next(format!("proxy login {name}")),
            );
        };
        self.note(&name, Some(LoginAttempt::Waits(address.clone())));
        let (logins, gateway) = (Arc::clone(self), Arc::clone(gateway));
        tokio::spawn(async move {
            let ended = waiting.await.map_err(|error| error.to_string());
            if let Err(why) = ended.and_then(|it| it.map_err(|error| error.to_string())) {
                let why = format!("the login failed: {why}");
                return logins.note(&name, Some(LoginAttempt::Failed(why)));
            }
            logins.note(&name, None);
            let mut mended = gateway.servers.list_mended();
            if !mended.contains(&name) {
                mended.push(name);
            }
            survey::get_to_know(Arc::clone(&gateway.catalog), mended).await;
        });
        Ok(address)
    }

    fn note(&self, server: &ServerName, attempt: Option<LoginAttempt>) {
        let mut attempts = self.0.lock();
        match attempt {
            Some(attempt) => attempts.insert(server.to_string(), attempt),
            None => attempts.remove(server.as_str()),
        };
    }
}

async fn visit(place: LoginPlace, person: AddressReceiver) -> Result<(), LoginError> {
    let login = place.login(LoginMethod::Browser, &[]);
    log_in(login, &person).await.map(|_| ())
}
