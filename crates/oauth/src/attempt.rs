//! One login under way: who guards the server, who we are there, and the ways to a token.

use std::time::Duration;

use http::HeaderMap;
use reqwest::Url;
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use crate::{
    authorization::{Authorization, Rejected},
    device,
    discovery::{Guard, discover},
    error::LoginError,
    jwt::SigningKey,
    listener::{CameBack, Listener},
    metadata::Issuer,
    person::Person,
    proof::{self, Prover},
    record::{Client, Grant, Record, Registration},
    registration::{known, register},
    settings::Settings,
    store::{RecordFile, change},
    token::{Asker, Given, grant},
    web::Web,
};

/// A person has to find a password, and a second factor.
const WAIT: Duration = Duration::from_mins(5);

/// A login under way.
pub(crate) struct Attempt<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) guard: Guard,
    pub(crate) scopes: Vec<String>,
    file: &'a RecordFile,
    web: Web,
    /// As it was when it began.
    record: Record,
    /// The key to which the token will be bound, and as it is kept; none where the server does not
    /// ask for that.
    proof: Option<(Prover, String)>,
}

impl<'a> Attempt<'a> {
    /// Finds out who guards the server at this address. `scopes` are asked for besides those that
    /// are found out.
    pub(crate) async fn begin(
        file: &'a RecordFile,
        url: &str,
        headers: HeaderMap,
        settings: &'a Settings,
        scopes: &[String],
    ) -> Result<Self, LoginError> {
        let bad = || LoginError::Metadata("`url` is no address".to_owned());
        let server = Url::parse(url).map_err(|_| bad())?;
        let web = Web::of(&server).await?;
        let record = file.read()?;
        let before = record.challenge.as_ref();
        let guard = discover(&web, &server, headers, settings, before).await?;
        Ok(Self {
            settings,
            scopes: choose_scopes(&guard, settings, scopes, &record),
            proof: make_proof(&guard)?,
            file,
            web,
            guard,
            record,
        })
    }

    pub(crate) fn issuer(&self) -> &Issuer {
        &self.guard.issuer
    }

    /// Asks this authorization server as this client.
    fn asker<'b>(&'b self, client: &'b Client) -> Asker<'b> {
        Asker {
            web: &self.web,
            issuer: &self.issuer().said.issuer,
            client,
            resource: self.guard.resource.as_deref(),
            prover: self.proof.as_ref().map(|(prover, _)| prover),
        }
    }

    pub(crate) async fn by_browser(&self, person: &dyn Person) -> Result<Grant, LoginError> {
        let settings = self.settings;
        // Refused before anybody is registered for it.
        self.issuer().authorization(settings.assumes_pkce)?;
        let listener = self.listen().await?;
        let client = self.client(listener.redirect_uri(), false).await?;
        let authorization = Authorization::begin(
            self.issuer(),
            &client,
            listener.redirect_uri(),
            self.guard.resource.as_deref(),
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
        let settings = self.settings;
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
        if let Some(client) = known(self.issuer(), self.settings, kept, redirect_uri) {
            return Ok(client);
        }
        let registering = register(&self.web, self.issuer(), redirect_uri, with_device);
        let registration = registering.await?;
        let client = registration.client.clone();
        change(self.file, |record| {
            record.registration = Some(registration);
        })
        .await?;
        Ok(client)
    }

    pub(crate) async fn by_device(&self, person: &dyn Person) -> Result<Grant, LoginError> {
        // It is never visited; a registration needs one.
        let redirect_uri = "http://127.0.0.1/device";
        let client = self.client(redirect_uri, true).await?;
        let (asker, issuer) = (self.asker(&client), self.issuer());
        let waiting = device::begin(&asker, issuer, &self.scopes).await?;
        let url = waiting.url(&self.web)?;
        person.enter(&url, &crate::error::shown(&waiting.user_code));
        let entered = timeout(WAIT, waiting.wait(&asker, issuer)).await;
        let given = entered.map_err(|_| LoginError::TimedOut(WAIT.as_secs() / 60))??;
        self.grant(given, &client)
    }

    pub(crate) async fn exchange(
        &self,
        client: &Client,
        form: &[(&str, &str)],
    ) -> Result<Grant, LoginError> {
        match self.asker(client).ask(&self.issuer().token, form).await {
            Ok(given) => self.grant(given, client),
            Err(LoginError::Ended(why)) => {
                // It may be that we are no longer known there: the next login registers anew.
                if self.settings.client_id.is_none() {
                    let id = client.id.clone();
                    change(self.file, move |record| {
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
        let key = self.proof.as_ref().map(|(_, kept)| kept.as_str());
        let mut grant = grant(given, self.issuer(), client, resource, &self.scopes, key)?;
        if self.settings.client_id.is_some() {
            grant.client.secret = None;
        }
        Ok(grant)
    }
}

/// A key for a token that the server wants to be bound, where the authorization server binds any.
fn make_proof(guard: &Guard) -> Result<Option<(Prover, String)>, LoginError> {
    let known = &guard.issuer.said.dpop_signing_alg_values_supported;
    if !guard.is_bound || !known.iter().any(|it| it == proof::ALGORITHM) {
        return Ok(None);
    }
    let (key, kept) = SigningKey::generate()?;
    Ok(Some((Prover::new(key), kept)))
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
