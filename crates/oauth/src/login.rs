//! A login from its beginning to its end, and a logout.

use std::time::Duration;

use futures::future::BoxFuture;
use http::HeaderMap;
use reqwest::Url;
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use crate::{
    authorization::{Authorization, Rejected},
    device,
    discovery::{Guard, discover},
    error::LoginError,
    listener::{CameBack, Listener},
    metadata::Issuer,
    record::{Client, Grant, Record, Registration},
    registration::{known, register},
    settings::{GrantKind, Settings},
    store::{RecordFile, StoreError},
    token::{self, Given},
    web::Web,
};

/// A person has to find a password, and a second factor.
const WAIT: Duration = Duration::from_mins(5);

/// Who logs in, as far as a login needs to know.
pub trait Person: Send + Sync {
    /// Sends the person to an address, by showing or by opening it.
    fn visit(&self, url: &Url);
    /// Has the person enter a code at an address.
    fn enter(&self, url: &Url, code: &str);
    /// Says that what came is not what is waited for.
    fn reject(&self, why: &LoginError);
    /// The next address that the person pastes; waits for ever where there is nowhere to.
    fn pasted(&self) -> BoxFuture<'_, String>;
}

/// How a person agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In a browser that comes back to this machine, or whose last address is pasted.
    Browser,
    /// By a code, on another device.
    Device,
}

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
    let bad = || LoginError::Metadata("`url` is no address".to_owned());
    let server = Url::parse(login.url).map_err(|_| bad())?;
    let web = Web::of(&server).await?;
    let record = login.file.read()?;
    let (headers, before) = (login.headers.clone(), record.challenge.as_ref());
    let guard = discover(&web, &server, headers, login.settings, before).await?;
    let attempt = Attempt {
        scopes: choose_scopes(&guard, login.settings, login.scopes, &record),
        login: &login,
        web,
        guard,
        record,
    };
    let grant = match (login.settings.grant, login.way) {
        (GrantKind::ClientCredentials, _) => attempt.as_machine().await?,
        (GrantKind::AuthorizationCode, Way::Browser) => attempt.by_browser(person).await?,
        (GrantKind::AuthorizationCode, Way::Device) => attempt.by_device(person).await?,
    };
    let logged_in = LoggedIn {
        issuer: grant.issuer.clone(),
        scopes: grant.scopes.clone(),
        expires_at: grant.expires_at,
        is_renewable: grant.is_renewable(),
    };
    change(login.file, move |record| {
        record.grant = Some(grant);
        record.wanted_scopes.clear();
    })
    .await?;
    Ok(logged_in)
}

/// Asks for a machine's token, which needs no person.
pub(crate) async fn machine_grant(
    file: &RecordFile,
    url: &str,
    settings: &Settings,
) -> Result<Grant, LoginError> {
    let bad = || LoginError::Metadata("`url` is no address".to_owned());
    let server = Url::parse(url).map_err(|_| bad())?;
    let web = Web::of(&server).await?;
    let record = file.read()?;
    let before = record.challenge.as_ref();
    let guard = discover(&web, &server, HeaderMap::new(), settings, before).await?;
    let login = Login {
        file,
        url,
        headers: HeaderMap::new(),
        settings,
        scopes: &[],
        way: Way::Browser,
    };
    let attempt = Attempt {
        scopes: choose_scopes(&guard, settings, &[], &record),
        login: &login,
        web,
        guard,
        record,
    };
    attempt.as_machine().await
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

/// The grant with the secret of the configuration, which is not kept beside it.
pub(crate) fn with_secret(grant: &Grant, settings: &Settings) -> Grant {
    let mut grant = grant.clone();
    if settings.client_id.as_ref() == Some(&grant.client.id) {
        let secret = settings.client_secret.as_ref();
        grant.client.secret = secret.map(|it| it.expose().to_owned());
    }
    grant
}

async fn change(
    file: &RecordFile,
    change: impl FnOnce(&mut Record) + Send + 'static,
) -> Result<(), StoreError> {
    let file = file.clone();
    let changing = tokio::task::spawn_blocking(move || file.change(change).map(drop));
    changing.await.map_err(std::io::Error::other)?
}

/// Those of the configuration, else those that the challenge asks for, else all that the server
/// knows; with those that were asked for besides, and of an earlier login those that it had when
/// more are asked for. And the one for being renewed, where the issuer has it.
fn choose_scopes(
    guard: &Guard,
    settings: &Settings,
    more: &[String],
    record: &Record,
) -> Vec<String> {
    let mut found = [&settings.scopes, &guard.challenged, &guard.offered].into_iter();
    let mut scopes = found
        .find(|all| !all.is_empty())
        .cloned()
        .unwrap_or_default();
    let is_step_up = !record.wanted_scopes.is_empty() || !more.is_empty();
    let before = record.grant.iter().filter(|_| is_step_up);
    let before = before.flat_map(|grant| &grant.scopes);
    scopes.extend(before.chain(&record.wanted_scopes).chain(more).cloned());
    let offline = "offline_access".to_owned();
    if guard.issuer.said.scopes_supported.contains(&offline) {
        scopes.push(offline);
    }
    let mut seen = std::collections::HashSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    scopes
}

/// A login under way.
struct Attempt<'a> {
    login: &'a Login<'a>,
    web: Web,
    guard: Guard,
    scopes: Vec<String>,
    /// As it was when it began.
    record: Record,
}

impl Attempt<'_> {
    fn issuer(&self) -> &Issuer {
        &self.guard.issuer
    }

    fn resource(&self) -> Option<&str> {
        self.guard.resource.as_deref()
    }

    async fn by_browser(&self, person: &dyn Person) -> Result<Grant, LoginError> {
        let settings = self.login.settings;
        // Refused before anybody is registered for it.
        self.issuer().authorization(settings.assumes_pkce)?;
        let listener = self.listen().await?;
        let client = self.client(listener.redirect_uri(), false).await?;
        let authorization = Authorization::begin(
            self.issuer(),
            &client,
            listener.redirect_uri(),
            self.resource(),
            &self.scopes,
            settings,
        )?;
        let (sender, found) = mpsc::channel(1);
        let mut listening = JoinSet::new();
        listening.spawn(listener.listen(sender));
        person.visit(&authorization.url);
        let waiting = wait_for_code(&authorization, found, person);
        let minutes = WAIT.as_secs() / 60;
        let code = timeout(WAIT, waiting).await;
        let code = code.map_err(|_| LoginError::TimedOut(minutes))??;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", authorization.redirect_uri.as_str()),
            ("code_verifier", authorization.verifier.as_str()),
        ];
        self.exchange(&client, &form).await
    }

    /// At the port for which we are registered, where that is free.
    async fn listen(&self) -> Result<Listener, LoginError> {
        let settings = self.login.settings;
        let host = settings.callback_host;
        let kept = self.kept().and_then(|it| Url::parse(&it.redirect_uri).ok());
        let kept = kept.and_then(|url| url.port());
        if let (None, Some(port)) = (settings.callback_port, kept)
            && let Ok(listener) = Listener::bind(host, Some(port)).await
        {
            return Ok(listener);
        }
        Listener::bind(host, settings.callback_port).await
    }

    fn kept(&self) -> Option<&Registration> {
        let kept = self.record.registration.as_ref();
        kept.filter(|it| it.issuer == self.issuer().said.issuer)
    }

    async fn client(&self, redirect_uri: &str, with_device: bool) -> Result<Client, LoginError> {
        let kept = self.kept();
        if let Some(client) = known(self.issuer(), self.login.settings, kept, redirect_uri) {
            return Ok(client);
        }
        let registering = register(&self.web, self.issuer(), redirect_uri, with_device);
        let registration = registering.await?;
        let client = registration.client.clone();
        change(self.login.file, |record| {
            record.registration = Some(registration);
        })
        .await?;
        Ok(client)
    }

    async fn by_device(&self, person: &dyn Person) -> Result<Grant, LoginError> {
        // It is never visited; a registration needs one.
        let redirect_uri = "http://127.0.0.1/device";
        let client = self.client(redirect_uri, true).await?;
        let (web, issuer) = (&self.web, self.issuer());
        let waiting = device::begin(web, issuer, &client, self.resource(), &self.scopes).await?;
        person.enter(&waiting.url(web)?, &crate::error::shown(&waiting.user_code));
        let entered = timeout(WAIT, waiting.wait(web, issuer, &client, self.resource())).await;
        let given = entered.map_err(|_| LoginError::TimedOut(WAIT.as_secs() / 60))??;
        self.grant(given, &client)
    }

    async fn as_machine(&self) -> Result<Grant, LoginError> {
        let client = known(self.issuer(), self.login.settings, None, "");
        let client = client.filter(|client| client.secret.is_some());
        let client = client.ok_or_else(|| {
            let what = "`oauth.grant = \"client_credentials\"` needs `oauth.client_id` and \
                        `oauth.client_secret`";
            LoginError::Metadata(what.to_owned())
        })?;
        let scope = self.scopes.join(" ");
        let mut form = vec![("grant_type", "client_credentials")];
        form.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        self.exchange(&client, &form).await
    }

    async fn exchange(&self, client: &Client, form: &[(&str, &str)]) -> Result<Grant, LoginError> {
        let asking = token::ask(
            &self.web,
            &self.issuer().token,
            client,
            self.resource(),
            form,
        );
        match asking.await {
            Ok(given) => self.grant(given, client),
            Err(LoginError::Ended(why)) => {
                // It may be that we are no longer known there: the next login registers anew.
                if self.login.settings.client_id.is_none() {
                    let id = client.id.clone();
                    change(self.login.file, move |record| {
                        record.registration.take_if(|it| it.client.id == id);
                    })
                    .await?;
                }
                Err(LoginError::NoToken(why))
            }
            Err(error) => Err(error),
        }
    }

    fn grant(&self, given: Given, client: &Client) -> Result<Grant, LoginError> {
        let resource = self.guard.resource.clone();
        let mut grant = token::grant(given, self.issuer(), client, resource, &self.scopes)?;
        if self.login.settings.client_id.is_some() {
            grant.client.secret = None;
        }
        Ok(grant)
    }
}

/// The code that the browser brings, or that is in the address that the person pastes. What belongs
/// to another login is told, and does not end this one.
async fn wait_for_code(
    authorization: &Authorization,
    mut found: mpsc::Receiver<CameBack>,
    person: &dyn Person,
) -> Result<String, LoginError> {
    loop {
        let (url, browser) = tokio::select! {
            Some(came_back) = found.recv() => (came_back.url.clone(), Some(came_back)),
            text = person.pasted() => match read_pasted(&text, authorization) {
                Some(url) => (url, None),
                None => {
                    let why = "paste the whole address to which the browser was sent".to_owned();
                    person.reject(&LoginError::Foreign(why));
                    continue;
                }
            },
        };
        let read = authorization.read(&url);
        if let Some(browser) = browser {
            browser.tell(read.is_ok()).await;
        }
        match read {
            Ok(code) => return Ok(code),
            Err(Rejected::Final(error)) => return Err(error),
            Err(Rejected::Foreign(error)) => person.reject(&error),
        }
    }
}

/// A browser on another machine shows an address that leads nowhere; that, or what stands behind its
/// `?`, is pasted.
fn read_pasted(text: &str, authorization: &Authorization) -> Option<Url> {
    let text = text.trim();
    let url = if text.starts_with("http://") || text.starts_with("https://") {
        Url::parse(text).ok()?
    } else {
        let query = text.trim_start_matches('?');
        Url::parse(&format!("{}?{query}", authorization.redirect_uri)).ok()?
    };
    url.query_pairs()
        .any(|(key, _)| key == "state")
        .then_some(url)
}
