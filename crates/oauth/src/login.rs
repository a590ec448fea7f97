//! Login and logout.

use http::HeaderMap;
use reqwest::Url;

use crate::{
    attempt::Attempt,
    error::LoginError,
    person::{LoginMethod, Person},
    record::Grant,
    registration::with_secret,
    settings::{GrantKind, LoginSettings},
    store::{RecordFile, StoreError, change},
    token,
    web::HttpClient,
};

/// The parameters of a login.
#[derive(Debug)]
pub struct Login<'a> {
    /// The file that stores the login.
    pub file: &'a RecordFile,
    /// The file that stores our registration, which several logins may share.
    pub registration: &'a RecordFile,
    /// Further headers of requests to the server.
    pub headers: HeaderMap,
    /// The settings of the server in the configuration.
    pub settings: &'a LoginSettings,
    /// Scopes in addition to the discovered ones.
    pub scopes: &'a [String],
    /// The way in which the person consents.
    pub way: LoginMethod,
}

/// Logs in and stores the login, which replaces an earlier one. Waits for the person, for five minutes
/// at most.
pub async fn log_in(login: Login<'_>, person: &dyn Person) -> Result<Grant, LoginError> {
    let (file, settings) = (login.file, login.settings);
    let beginning = Attempt::begin(
        file,
        login.registration,
        login.headers,
        settings,
        login.scopes,
    );
    let attempt = beginning.await?;
    let grant = match (settings.grant, login.way) {
        (GrantKind::AuthorizationCode, LoginMethod::Browser) => {
            attempt.by_browser(None, person).await?
        }
        (GrantKind::AuthorizationCode, LoginMethod::Hosted(redirects)) => {
            attempt.by_browser(Some(redirects), person).await?
        }
        (GrantKind::AuthorizationCode, LoginMethod::Device) => attempt.by_device(person).await?,
        _ => attempt.as_machine().await?,
    };
    let logged_in = grant.clone();
    change(file, move |record| {
        if let Some(registration) = &mut record.registration {
            registration.is_doubtful &= registration.client.id != grant.client.id;
        }
        record.grant = Some(grant);
        record.wanted_scopes.clear();
    })
    .await?;
    Ok(logged_in)
}

/// Revokes the login at the authorization server, and removes it here even if that fails. With
/// `forgets_registration`, the next login registers again. The inner error is that of the revocation.
pub async fn log_out(
    file: &RecordFile,
    settings: &LoginSettings,
    forgets_registration: bool,
) -> Result<Result<bool, LoginError>, StoreError> {
    let grant = file.read()?.grant;
    let revoked = match (&grant, Url::parse(&file.url)) {
        (Some(grant), Ok(server)) => match HttpClient::of(&server).await {
            Ok(web) => token::revoke(&web, &with_secret(grant, settings)).await,
            Err(error) => Err(error),
        },
        _ => Ok(()),
    };
    let was_there = grant.is_some();
    if was_there || forgets_registration {
        change(file, move |record| {
            record.grant = None;
            record.wanted_scopes.clear();
            if forgets_registration {
                record.registration = None;
            }
        })
        .await?;
    }
    Ok(revoked.map(|()| was_there))
}
