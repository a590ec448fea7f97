//! One login in progress: the authorization server, our client there, and the ways to get a token.

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
    listener::{Listener, Redirect},
    metadata::Issuer,
    person::{HostedRedirects, Person},
    proof::{self, Prover},
    random::random_text,
    record::{Grant, OAuthClient, Record, Registration},
    registration::{known, register},
    settings::LoginSettings,
    store::{RecordFile, change},
    token::{TokenClient, TokenResponse, grant},
    web::HttpClient,
};

/// Long enough for a person to find a password and a second factor.
const WAIT: Duration = Duration::from_mins(5);

pub(crate) struct Attempt<'a> {
    pub(crate) settings: &'a LoginSettings,
    pub(crate) guard: Guard,
    pub(crate) scopes: Vec<String>,
    /// The file with our registration.
    file: &'a RecordFile,
    web: HttpClient,
    /// True if other logins use the same registration.
    is_shared: bool,
    /// Our registration when the login began.
    registered: Option<Registration>,
    /// The key to which the token will be bound, and its stored form; none if the server does not
    /// require a bound token.
    proof: Option<(Prover, String)>,
}

impl<'a> Attempt<'a> {
    /// Discovers the authorization server of the server of this file. `scopes` are requested in
    /// addition to the discovered ones.
    pub(crate) async fn begin(
        file: &RecordFile,
        registration: &'a RecordFile,
        headers: HeaderMap,
        settings: &'a LoginSettings,
        scopes: &[String],
    ) -> Result<Self, LoginError> {
        let bad = || LoginError::Metadata("`url` is not a valid address".to_owned());
        let server = Url::parse(&file.url).map_err(|_| bad())?;
        let web = HttpClient::of(&server).await?;
        let record = file.read()?;
        let before = record.challenge.as_ref();
        let guard = discover(&web, &server, headers, settings, before).await?;
        Ok(Self {
            settings,
            scopes: choose_scopes(&guard, settings, scopes, &record),
            proof: make_proof(&guard)?,
            registered: registration.read()?.registration,
            is_shared: file != registration,
            file: registration,
            web,
            guard,
        })
    }

    pub(crate) fn issuer(&self) -> &Issuer {
        &self.guard.issuer
    }

    /// Returns what sends requests to this authorization server as this client.
    fn token_client<'b>(&'b self, client: &'b OAuthClient) -> TokenClient<'b> {
        TokenClient {
            web: &self.web,
            issuer: &self.issuer().metadata.issuer,
            client,
            resource: self.guard.resource.as_deref(),
            prover: self.proof.as_ref().map(|(prover, _)| prover),
        }
    }

    /// Logs in by a browser that is redirected to `hosted`, or to this machine.
    pub(crate) async fn by_browser(
        &self,
        hosted: Option<HostedRedirects>,
        person: &dyn Person,
    ) -> Result<Grant, LoginError> {
        // Checked first, so that no client is registered for a login that is refused.
        self.issuer().authorization(self.settings.assumes_pkce)?;
        let mut listening = JoinSet::new();
        let (redirect_uri, arrivals) = match hosted {
            Some(hosted) => (hosted.redirect_uri, hosted.arrivals),
            None => {
                let listener = self.listen().await?;
                let redirect_uri = listener.redirect_uri.clone();
                let (sender, arrivals) = mpsc::channel(1);
                listening.spawn(listener.listen(sender));
                (redirect_uri, arrivals)
            }
        };
        let client = self.client(&redirect_uri, false).await?;
        let authorization = Authorization::begin(
            self.issuer(),
            &client,
            &redirect_uri,
            self.guard.resource.as_deref(),
            &self.scopes,
            self.settings,
        )?;
        person.visit(&authorization.url);
        let grant = self
            .by_code(&client, &authorization, arrivals, person)
            .await;
        // The listener ends when the browser has its page.
        listening.join_next().await;
        grant
    }

    /// Waits for the code of the browser, and exchanges it.
    async fn by_code(
        &self,
        client: &OAuthClient,
        authorization: &Authorization,
        arrivals: mpsc::Receiver<Redirect>,
        person: &dyn Person,
    ) -> Result<Grant, LoginError> {
        let waiting = wait_for_code(authorization, arrivals, person);
        let code = timeout(WAIT, waiting).await;
        let code = code.map_err(|_| LoginError::TimedOut(WAIT.as_secs() / 60))??;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", authorization.redirect_uri.as_str()),
            ("code_verifier", authorization.verifier.as_str()),
        ];
        self.exchange(client, &form).await
    }

    /// Listens at the port of our registration if that port is free.
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
        let kept = self.registered.as_ref();
        kept.filter(|it| it.issuer == self.issuer().metadata.issuer)
    }

    async fn client(
        &self,
        redirect_uri: &str,
        with_device: bool,
    ) -> Result<OAuthClient, LoginError> {
        let kept = self.kept();
        if let Some(client) = known(self.issuer(), self.settings, kept, redirect_uri) {
            if kept.is_none_or(|it| it.client != client) {
                return Ok(client);
            }
            if self.is_still_known(&client).await? {
                self.doubt(&client).await?;
                return Ok(client);
            }
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

    /// Returns true if the authorization server still knows a client that it registered earlier. To
    /// find out, it sends a refresh token that was never issued: the browser would show the error of an
    /// unknown client and never be redirected back. If the request fails, the client counts as known.
    async fn is_still_known(&self, client: &OAuthClient) -> Result<bool, LoginError> {
        let invented = random_text()?;
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", invented.as_str()),
        ];
        let answered = self
            .token_client(client)
            .post(&self.issuer().token, &form)
            .await;
        let error = answered.ok().and_then(|answer| answer.error_code());
        let is_unknown = matches!(
            error.as_deref(),
            Some("invalid_client" | "unauthorized_client")
        );
        Ok(!is_unknown)
    }

    /// Records that a login begins with an earlier registration. If that login never finishes, for
    /// whatever reason, the next login registers again.
    async fn doubt(&self, client: &OAuthClient) -> Result<(), LoginError> {
        // Logins of several callers run at the same time: one that does not finish says nothing.
        if self.is_shared {
            return Ok(());
        }
        let id = client.id.clone();
        change(self.file, move |record| {
            let registration = record.registration.as_mut();
            if let Some(registration) = registration.filter(|it| it.client.id == id) {
                registration.is_doubtful = true;
            }
        })
        .await?;
        Ok(())
    }

    pub(crate) async fn by_device(&self, person: &dyn Person) -> Result<Grant, LoginError> {
        // It is never visited, but a registration requires one.
        let redirect_uri = "http://127.0.0.1/device";
        let client = self.client(redirect_uri, true).await?;
        let (token_client, issuer) = (self.token_client(&client), self.issuer());
        let waiting = device::begin(&token_client, issuer, &self.scopes).await?;
        let url = waiting.url(&self.web)?;
        person.enter(&url, &crate::error::shown(&waiting.user_code));
        let entered = timeout(WAIT, waiting.wait(&token_client, issuer)).await;
        let given = entered.map_err(|_| LoginError::TimedOut(WAIT.as_secs() / 60))??;
        self.grant(given, &client)
    }

    pub(crate) async fn exchange(
        &self,
        client: &OAuthClient,
        form: &[(&str, &str)],
    ) -> Result<Grant, LoginError> {
        let token_client = self.token_client(client);
        match token_client.request_token(&self.issuer().token, form).await {
            Ok(given) => self.grant(given, client),
            Err(LoginError::Ended(why)) => {
                // The authorization server may no longer know our client: the next login registers
                // again.
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

    fn grant(&self, given: TokenResponse, client: &OAuthClient) -> Result<Grant, LoginError> {
        let resource = self.guard.resource.clone();
        let key = self.proof.as_ref().map(|(_, kept)| kept.as_str());
        let mut grant = grant(given, self.issuer(), client, resource, &self.scopes, key)?;
        if self.settings.client_id.is_some() {
            grant.client.secret = None;
        }
        Ok(grant)
    }
}

/// Makes a key for a token that the server requires to be bound, if the authorization server can bind
/// tokens.
fn make_proof(guard: &Guard) -> Result<Option<(Prover, String)>, LoginError> {
    let known = &guard.issuer.metadata.dpop_signing_alg_values_supported;
    if !guard.is_bound || !known.iter().any(|it| it == proof::ALGORITHM) {
        return Ok(None);
    }
    let (key, kept) = SigningKey::generate()?;
    Ok(Some((Prover::new(key), kept)))
}

/// Returns the scopes of the configuration, else those of the challenge, else all that the server
/// supports. Adds the scopes that were requested in addition and, if there are any, those of the
/// earlier login. Adds the scope for refresh tokens if the issuer supports it.
fn choose_scopes(
    guard: &Guard,
    settings: &LoginSettings,
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
    if guard.issuer.metadata.scopes_supported.contains(&offline) {
        scopes.push(offline);
    }
    let mut seen = std::collections::HashSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    scopes
}

/// Returns the code from the browser's redirect or from the address that the person pastes. A response
/// that belongs to another login is reported to the person and does not end this login.
async fn wait_for_code(
    authorization: &Authorization,
    mut found: mpsc::Receiver<Redirect>,
    person: &dyn Person,
) -> Result<String, LoginError> {
    loop {
        let (url, browser) = tokio::select! {
            Some(came_back) = found.recv() => (came_back.url.clone(), Some(came_back)),
            text = person.pasted() => match read_pasted(&text, authorization) {
                Some(url) => (url, None),
                None => {
                    let why = "paste the whole address to which the browser was redirected".to_owned();
                    person.reject(&LoginError::Foreign(why));
                    continue;
                }
            },
        };
        let read = authorization.read(&url);
        if let Some(browser) = browser {
            browser.respond(read.is_ok());
        }
        match read {
            Ok(code) => return Ok(code),
            Err(Rejected::Final(error)) => return Err(error),
            Err(Rejected::Foreign(error)) => person.reject(&error),
        }
    }
}

/// Reads what the person pasted: the address that a browser on another machine failed to open, or the
/// part of it after `?`.
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

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use parking_lot::Mutex;
    use secrets::PrivateFiles;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    const REDIRECT: &str = "http://127.0.0.1:1/callback";

    /// Registers clients, and answers every code with this error. Returns the requested paths.
    async fn authorization_server(error: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !is_whole(&request) {
                    assert!(stream.read_buf(&mut request).await.unwrap() > 0);
                }
                let text = String::from_utf8_lossy(&request);
                let path = text.split(' ').nth(1).unwrap().to_owned();
                let body = if path == "/register" {
                    r#"{"client_id":"new"}"#.to_owned()
                } else {
                    format!(r#"{{"error":"{error}"}}"#)
                };
                let status = if path == "/register" {
                    "201 Created"
                } else {
                    "400 Bad Request"
                };
                seen.lock().push(path);
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close"
                );
                let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        (origin, asked)
    }

    fn is_whole(request: &[u8]) -> bool {
        let text = String::from_utf8_lossy(request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return false;
        };
        let length = head
            .lines()
            .find_map(|it| it.strip_prefix("content-length: "));
        length.is_none_or(|it| body.len() >= it.parse().unwrap())
    }

    /// Returns the id of the client in a login that begins with a stored registration.
    async fn client_of(state: &Path, origin: &str) -> String {
        let file = RecordFile::of(&PrivateFiles::plain(state), "any", origin);
        let server = Url::parse(origin).unwrap();
        let web = HttpClient::of(&server).await.unwrap();
        let issuer = Issuer::assume(&web, origin).unwrap();
        let settings = LoginSettings::default();
        let attempt = Attempt {
            settings: &settings,
            guard: Guard {
                issuer,
                resource: None,
                challenged: Vec::new(),
                offered: Vec::new(),
                is_bound: false,
            },
            scopes: Vec::new(),
            is_shared: false,
            registered: file.read().unwrap().registration,
            file: &file,
            web,
            proof: None,
        };
        attempt.client(REDIRECT, false).await.unwrap().id
    }

    fn register_before(state: &Path, origin: &str) {
        let file = RecordFile::of(&PrivateFiles::plain(state), "any", origin);
        let client = OAuthClient {
            id: "old".to_owned(),
            secret: None,
            method: "none".to_owned(),
            key_id: None,
        };
        let registration = Registration {
            issuer: origin.to_owned(),
            client,
            redirect_uri: REDIRECT.to_owned(),
            secret_expires_at: None,
            is_doubtful: false,
        };
        file.change(|record| record.registration = Some(registration))
            .unwrap();
    }

    #[tokio::test]
    async fn a_client_that_the_authorization_server_forgot_registers_anew() {
        for error in ["invalid_client", "unauthorized_client"] {
            let state = tempfile::tempdir().unwrap();
            let (origin, asked) = authorization_server(error).await;
            register_before(state.path(), &origin);
            assert_eq!(client_of(state.path(), &origin).await, "new");
            assert_eq!(*asked.lock(), ["/token", "/register"]);
        }
    }

    #[tokio::test]
    async fn a_client_whose_login_did_not_come_to_its_end_registers_anew() {
        let state = tempfile::tempdir().unwrap();
        let (origin, asked) = authorization_server("invalid_grant").await;
        register_before(state.path(), &origin);
        assert_eq!(client_of(state.path(), &origin).await, "old");
        assert_eq!(*asked.lock(), ["/token"]);
        // The same holds for every way in which a login can end.
        assert_eq!(client_of(state.path(), &origin).await, "new");
        assert_eq!(*asked.lock(), ["/token", "/register"]);
        assert_eq!(client_of(state.path(), &origin).await, "new");
    }
}
