//! A login from its beginning to its end, and a logout.

use http::HeaderMap;
use reqwest::Url;

use crate::{
    attempt::Attempt,
    error::LoginError,
    person::{Person, Way},
    registration::with_secret,
    settings::{GrantKind, Settings},
    store::{RecordFile, StoreError, change},
    token,
    web::Web,
};

/// A login that is wanted.
#[derive(Debug)]
pub struct Login<'a> {
    /// Where it is kept.
    pub file: &'a RecordFile,
    /// The server.
    pub url: &'a str,
    /// What else the server gets with a request.
    pub headers: HeaderMap,
    /// What is said of it in the configuration.
    pub settings: &'a Settings,
    /// Scopes besides those that are found out.
    pub scopes: &'a [String],
    /// How the person agrees.
    pub way: Way,
}

/// A login that was made.
#[derive(Debug)]
pub struct LoggedIn {
    /// Who gave it.
    pub issuer: String,
    /// What it may do, as far as that was said.
    pub scopes: Vec<String>,
    /// When its token ends; none: nobody said.
    pub expires_at: Option<u64>,
    /// Whether it is renewed without a person.
    pub is_renewable: bool,
}

/// Logs in and keeps the login; one that was there before is replaced. Waits for the person, five
/// minutes at most.
pub async fn log_in(login: Login<'_>, person: &dyn Person) -> Result<LoggedIn, LoginError> {
    let attempt = Attempt::begin(
        login.file,
        login.url,
        login.headers,
        login.settings,
        login.scopes,
    )
    .await?;
    let grant = match (login.settings.grant, login.way) {
        (GrantKind::AuthorizationCode, Way::Browser) => attempt.by_browser(person).await?,
        (GrantKind::AuthorizationCode, Way::Device) => attempt.by_device(person).await?,
        _ => attempt.as_machine().await?,
    };
    let logged_in = LoggedIn {
        issuer: grant.issuer.clone(),
        scopes: grant.scopes.clone(),
        expires_at: grant.expires_at,
        is_renewable: grant.is_renewable(),
    };
    change(login.file, move |record| {
        if let Some(registration) = &mut record.registration {
            registration.is_doubtful &= registration.client.id != grant.client.id;
        }
        record.grant = Some(grant);
        record.wanted_scopes.clear();
    })
    .await?;
    Ok(logged_in)
}

/// Has the authorization server forget the login, and forgets it here whatever that says. With
/// `forgets_registration`, the next login registers anew. The error is what the server said.
pub async fn log_out(
    file: &RecordFile,
    url: &str,
    settings: &Settings,
    forgets_registration: bool,
) -> Result<Result<bool, LoginError>, StoreError> {
    let grant = file.read()?.grant;
    let told = match (&grant, Url::parse(url)) {
        (Some(grant), Ok(server)) => match Web::of(&server).await {
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
    Ok(told.map(|()| was_there))
}
