//! The token of one server, as its requests use it: read from the record, and renewed once for all
//! requests that wait for it.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::{task::spawn_blocking, time::timeout};
use tracing::{debug, info, warn};

use crate::{
    challenge::Challenge,
    error::LoginError,
    machine::machine_grant,
    proof::{Prover, authorization},
    record::{Grant, Record},
    registration::with_secret,
    scopes,
    settings::{GrantKind, LoginSettings},
    store::{LockedRecord, RecordFile, StoreError},
    token,
    web::HttpClient,
};

/// The longest wait for another process that renews the token; that process's own request ends earlier.
const LOCK_WAIT: Duration = Duration::from_secs(45);

/// The shortest time between two attempts to write a renewed grant: a full disk stays full for a while.
const WRITE_AGAIN_EVERY: Duration = Duration::from_secs(10);

/// A token that can be sent.
#[derive(Clone)]
pub struct Bearer {
    token: Arc<str>,
    /// The prover of the key to which the token is bound, if it is bound.
    prover: Option<Arc<Prover>>,
}

impl Bearer {
    /// The token itself, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.token
    }

    /// Returns the headers that a request with a bound token carries in place of
    /// `Authorization: Bearer`. They are valid for that request alone. Returns `None` if the token is not
    /// bound.
    pub fn prove(&self, method: &Method, url: &Url) -> Option<[(HeaderName, HeaderValue); 2]> {
        let prover = self.prover.as_ref()?;
        let proof = prover.prove(method, url, Some(&self.token)).ok()?;
        Some([authorization(&self.token)?, proof])
    }

    /// Returns true if a server refused a request only because its proof lacked something that we know
    /// now, so that the request can be repeated with the same token.
    pub fn can_prove_better(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let prover = self.prover.as_ref();
        prover.is_some_and(|it| it.can_prove_better(status, headers))
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer")
    }
}

/// The reason why there is no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialError {
    /// A person has to log in, for the first time or again.
    LoginNeeded {
        /// True if there was a login that has ended.
        again: bool,
    },
    /// A failure that may be temporary.
    Failed(String),
}

/// The login of one server, shared by everything that sends requests to it. Processes share it through
/// its file. The newest token wins: a failed token never replaces or removes a newer one.
#[derive(Debug)]
pub struct Credential {
    file: RecordFile,
    settings: LoginSettings,
    renewing: tokio::sync::Mutex<()>,
    /// The record that was read last, and the modification time of the file at that moment.
    cached: Mutex<Option<(Option<SystemTime>, Record)>>,
    /// A grant that was issued and is not written yet. The refresh token in the file is spent, so this
    /// grant is used, and written as soon as possible.
    unwritten: Mutex<Option<Unwritten>>,
    /// The prover of the key that was used last. It remembers the nonce that the server requires in
    /// proofs.
    prover: Mutex<Option<(String, Arc<Prover>)>>,
}

/// A grant that only this process has.
#[derive(Debug, Clone)]
struct Unwritten {
    /// The access token in the file. If the file now has another one or none, somebody logged in or out
    /// in the meantime.
    replaces: Option<String>,
    grant: Grant,
    /// The time of the last attempt to write it again.
    tried_at: Option<Instant>,
}

impl Credential {
    /// Makes the login in this file.
    pub fn new(file: RecordFile, settings: LoginSettings) -> Arc<Self> {
        Arc::new(Self {
            file,
            settings,
            renewing: tokio::sync::Mutex::default(),
            cached: Mutex::default(),
            unwritten: Mutex::default(),
            prover: Mutex::default(),
        })
    }

    /// The file that stores the login.
    pub fn file(&self) -> &RecordFile {
        &self.file
    }

    /// Returns the token for the next request, renewed if it is about to expire; `None` if there is no
    /// login. A failed renewal is ignored while the token has not expired.
    pub async fn bearer(self: &Arc<Self>) -> Result<Option<Bearer>, CredentialError> {
        self.write_again().await;
        match self.read()?.grant {
            None if self.is_machine() => self.renew("").await,
            None => Ok(None),
            Some(grant) if grant.is_fresh() => Ok(Some(self.bearer_of(&grant))),
            Some(grant) => match self.renew(&grant.access_token).await {
                Err(_) if grant.is_alive() => Ok(Some(self.bearer_of(&grant))),
                renewed => renewed,
            },
        }
    }

    /// Returns a token that replaces `used`, which is about to expire or was refused. The renewal
    /// continues if the caller stops waiting: a token that was issued but not stored would be lost.
    pub async fn renew(self: &Arc<Self>, used: &str) -> Result<Option<Bearer>, CredentialError> {
        let (this, used) = (Arc::clone(self), used.to_owned());
        let renewing = tokio::spawn(async move { this.renew_in_turn(&used).await });
        renewing
            .await
            .unwrap_or_else(|error| Err(CredentialError::Failed(error.to_string())))
    }

    /// Records that the server refuses even a token that was just renewed: only a new login by a person
    /// helps.
    pub async fn give_up(self: &Arc<Self>, refused: &Bearer) {
        let refused = refused.clone();
        self.change(move |record| {
            if let Some(grant) = &mut record.grant
                && *grant.access_token == *refused.token
            {
                grant
                    .ended
                    .get_or_insert_with(|| "the server refuses its tokens".to_owned());
            }
        })
        .await;
    }

    /// Records that the server refuses a token that cannot be renewed, so that the login counts as ended.
    /// Does nothing for a machine's login, or one that has ended already.
    pub async fn give_up_unrenewable(self: &Arc<Self>, refused: &Bearer) {
        let is_lost = self.read().is_ok_and(|record| {
            let grant = record.grant.as_ref();
            grant.is_some_and(|it| !it.is_renewable() && it.ended.is_none())
        });
        if is_lost && !self.is_machine() {
            self.give_up(refused).await;
        }
    }

    /// Stores the challenge of a refused request: the next login starts from it.
    pub async fn note_challenge(self: &Arc<Self>, challenge: Challenge) {
        let is_known = |record: Record| record.challenge.as_ref() == Some(&challenge);
        if !self.read().is_ok_and(is_known) {
            self.change(|record| record.challenge = Some(challenge))
                .await;
        }
    }

    /// Stores scopes that the server requires, so that the next login requests them.
    pub async fn want_scopes(self: &Arc<Self>, scopes: Vec<String>) {
        self.change(move |record| scopes::add(&mut record.wanted_scopes, scopes))
            .await;
    }

    /// Returns true if there is a login, or was one.
    pub fn is_known(&self) -> bool {
        self.read().is_ok_and(|record| record.grant.is_some())
    }

    /// Returns true if tokens are requested without a person, by a machine's own credentials.
    pub fn is_machine(&self) -> bool {
        self.settings.grant != GrantKind::AuthorizationCode
    }

    fn read(&self) -> Result<Record, CredentialError> {
        let changed_at = self.file.changed_at();
        let mut cached = self.cached.lock();
        if let Some((at, record)) = &*cached
            && *at == changed_at
        {
            return Ok(self.with_unwritten(record.clone()));
        }
        let record = self.file.read().map_err(|error| fail(&error.into()))?;
        *cached = Some((changed_at, record.clone()));
        Ok(self.with_unwritten(record))
    }

    /// Returns the record with the grant that is not written yet, unless that grant is out of date.
    fn with_unwritten(&self, mut record: Record) -> Record {
        let mut unwritten = self.unwritten.lock();
        let kept = record.grant.as_ref().map(|it| &it.access_token);
        unwritten.take_if(|it| it.replaces.as_ref() != kept);
        if let Some(Unwritten { grant, .. }) = &*unwritten {
            record.grant = Some(grant.clone());
        }
        record
    }

    async fn change(self: &Arc<Self>, change: impl FnOnce(&mut Record) + Send + 'static) {
        let this = Arc::clone(self);
        let changing = spawn_blocking(move || match this.file.lock() {
            Ok(mut locked) => {
                locked.record = this.with_unwritten(locked.record);
                change(&mut locked.record);
                this.write_locked(&locked)
            }
            Err(error) => {
                this.change_unwritten(change);
                Err(error)
            }
        });
        let changed = changing.await;
        self.cached.lock().take();
        if let Ok(Err(error)) = changed {
            warn!(%error, "the record of a login was not updated");
        }
    }

    /// Changes the grant that only this process has.
    fn change_unwritten(&self, change: impl FnOnce(&mut Record)) {
        if let Some(unwritten) = &mut *self.unwritten.lock() {
            let grant = Some(unwritten.grant.clone());
            let mut record = Record {
                grant,
                ..Record::default()
            };
            change(&mut record);
            if let Some(grant) = record.grant {
                unwritten.grant = grant;
            }
        }
    }

    /// Writes the record. If that fails, this process keeps the changed grant in memory. Blocks.
    fn write_locked(&self, locked: &LockedRecord) -> Result<(), StoreError> {
        let written = locked.write();
        let mut unwritten = self.unwritten.lock();
        if written.is_ok() {
            *unwritten = None;
        } else if let (Some(unwritten), Some(grant)) = (&mut *unwritten, &locked.record.grant) {
            unwritten.grant = grant.clone();
        }
        written
    }

    async fn write(self: &Arc<Self>, locked: LockedRecord) -> Result<(), StoreError> {
        let this = Arc::clone(self);
        let writing = spawn_blocking(move || this.write_locked(&locked));
        writing.await.map_err(std::io::Error::other)?
    }

    async fn renew_in_turn(
        self: &Arc<Self>,
        used: &str,
    ) -> Result<Option<Bearer>, CredentialError> {
        let _turn = self.renewing.lock().await;
        if let Some(newer) = self.newer_than(used, &self.read()?) {
            return Ok(Some(newer));
        }
        let file = self.file.clone();
        let locking = timeout(LOCK_WAIT, spawn_blocking(move || file.lock()));
        let Ok(locking) = locking.await else {
            let why = "another process has not finished renewing the login";
            return Err(CredentialError::Failed(why.to_owned()));
        };
        let locking = locking.map_err(|error| CredentialError::Failed(error.to_string()))?;
        let mut locked = locking.map_err(|error| fail(&error.into()))?;
        let kept = locked.record.grant.as_ref();
        let kept = kept.map(|it| it.access_token.clone());
        locked.record = self.with_unwritten(locked.record);
        // Another process or request may have renewed it while this one waited.
        let renewed = match self.newer_than(used, &locked.record) {
            Some(newer) => Ok(Some(newer)),
            None => self.renew_locked(locked, used, kept).await,
        };
        self.cached.lock().take();
        renewed
    }

    async fn renew_locked(
        self: &Arc<Self>,
        mut locked: LockedRecord,
        used: &str,
        kept: Option<String>,
    ) -> Result<Option<Bearer>, CredentialError> {
        let renewed = match locked.record.grant.as_ref() {
            before if self.is_machine() => machine_grant(&self.file, &self.settings, before).await,
            None => return Ok(None),
            Some(grant) if grant.ended.is_some() => {
                return Err(CredentialError::LoginNeeded { again: true });
            }
            Some(grant) => self.ask_for_renewal(grant).await,
        };
        let server = locked.record.server.clone();
        match renewed {
            Ok(grant) => {
                let token = self.bearer_of(&grant);
                locked.record.grant = Some(grant.clone());
                self.write_renewed(locked, grant, kept).await;
                info!(server, "the login was renewed");
                Ok(Some(token))
            }
            Err(LoginError::Ended(why)) if !self.is_machine() => {
                warn!(server, why, "the login has ended");
                if let Some(grant) = &mut locked.record.grant
                    && grant.access_token == used
                {
                    grant.ended = Some(why);
                    let written = self.write(locked).await;
                    written.map_err(|error| fail(&error.into()))?;
                }
                Err(CredentialError::LoginNeeded { again: true })
            }
            Err(error) => {
                debug!(server, %error, "the login was not renewed");
                Err(fail(&error))
            }
        }
    }

    /// Writes a renewed grant. If that fails, the grant is kept in the memory of this process.
    async fn write_renewed(
        self: &Arc<Self>,
        locked: LockedRecord,
        grant: Grant,
        replaces: Option<String>,
    ) {
        let server = locked.record.server.clone();
        *self.unwritten.lock() = Some(Unwritten {
            replaces,
            grant,
            tried_at: None,
        });
        if let Err(error) = self.write(locked).await {
            warn!(
                server, %error,
                "the renewed login cannot be written: this process uses it and retries; if it ends \
                 first, a new login is needed"
            );
        }
    }

    /// Tries again to write a grant that could not be written. Does not try on every request, and does
    /// not wait for another process.
    async fn write_again(self: &Arc<Self>) {
        let is_due = match &mut *self.unwritten.lock() {
            Some(Unwritten { tried_at, .. })
                if tried_at.is_none_or(|at| at.elapsed() >= WRITE_AGAIN_EVERY) =>
            {
                *tried_at = Some(Instant::now());
                true
            }
            _ => false,
        };
        if !is_due {
            return;
        }
        let this = Arc::clone(self);
        let writing = spawn_blocking(move || {
            let Some(mut locked) = this.file.try_lock()? else {
                return Ok(());
            };
            locked.record = this.with_unwritten(locked.record);
            if this.unwritten.lock().is_none() {
                return Ok(());
            }
            this.write_locked(&locked)
        });
        if let Ok(Err(error)) = writing.await {
            debug!(%error, "the renewed login still cannot be written");
        }
        self.cached.lock().take();
    }

    async fn ask_for_renewal(&self, grant: &Grant) -> Result<Grant, LoginError> {
        let bad = || LoginError::Metadata("`url` is not a valid address".to_owned());
        let server = Url::parse(&self.file.url).map_err(|_| bad())?;
        let web = HttpClient::of(&server).await?;
        let renewed = token::renew(&web, &with_secret(grant, &self.settings)).await?;
        Ok(Grant {
            client: grant.client.clone(),
            ..renewed
        })
    }

    /// Returns the stored token if it differs from `used` and can be sent.
    fn newer_than(&self, used: &str, record: &Record) -> Option<Bearer> {
        let grant = record.grant.as_ref()?;
        (grant.access_token != used && grant.is_fresh()).then(|| self.bearer_of(grant))
    }

    fn bearer_of(&self, grant: &Grant) -> Bearer {
        let prover = grant.proof_key.as_ref().and_then(|key| {
            let mut last = self.prover.lock();
            if last.as_ref().is_none_or(|(used, _)| used != key) {
                *last = Some((key.clone(), Arc::new(Prover::of_text(key)?)));
            }
            last.as_ref().map(|(_, prover)| Arc::clone(prover))
        });
        Bearer {
            token: Arc::from(grant.access_token.as_str()),
            prover,
        }
    }
}

fn fail(error: &LoginError) -> CredentialError {
    CredentialError::Failed(format!("the login was not renewed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, sync::Arc};

    use secrets::PrivateFiles;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::{Credential, CredentialError, Grant, LoginSettings, RecordFile};
    use crate::record::OAuthClient;

    fn ended_grant(token_endpoint: String) -> Grant {
        Grant {
            id: "1".to_owned(),
            issuer: token_endpoint.clone(),
            scopes: Vec::new(),
            expires_at: Some(1),
            obtained_at: 0,
            ended: None,
            access_token: "first".to_owned(),
            refresh_token: Some("once".to_owned()),
            token_endpoint,
            revocation_endpoint: None,
            resource: None,
            client: OAuthClient {
                id: "c".to_owned(),
                secret: None,
                method: "none".to_owned(),
                key_id: None,
            },
            proof_key: None,
        }
    }

    /// Issues one token, and moves the folder of logins away while it does so, so that nothing can be
    /// written. A second request finds no server.
    async fn give_once(listener: TcpListener, folder: &Path) {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let mut request = Vec::new();
        while !String::from_utf8_lossy(&request).contains("refresh_token=once") {
            assert!(
                stream.read_buf(&mut request).await.unwrap() > 0,
                "{request:?}"
            );
        }
        fs::rename(folder.join("auth"), folder.join("aside")).unwrap();
        let body = r#"{"access_token":"second","token_type":"Bearer","expires_in":3600,"refresh_token":"twice"}"#;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }

    /// A login whose renewed grant is in memory alone; its file can be written again.
    async fn renew_unwritten(state: &Path) -> Arc<Credential> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let file = RecordFile::of(&PrivateFiles::plain(state), "any", &address);
        let grant = ended_grant(format!("{address}/token"));
        file.change(|record| record.grant = Some(grant)).unwrap();
        let credential = Credential::new(file, LoginSettings::default());
        let (bearer, ()) = tokio::join!(credential.bearer(), give_once(listener, state));
        assert_eq!(bearer.unwrap().unwrap().expose(), "second");
        fs::rename(state.join("aside"), state.join("auth")).unwrap();
        credential
    }

    #[tokio::test]
    async fn a_renewed_login_that_cannot_be_written_is_used_and_written_later() {
        let state = tempfile::tempdir().unwrap();
        let credential = renew_unwritten(state.path()).await;
        let file = credential.file().clone();
        let kept = |file: &RecordFile| file.read().unwrap().grant.unwrap();
        assert_eq!(kept(&file).access_token, "first");
        let again = credential.bearer().await.unwrap().unwrap();
        assert_eq!(again.expose(), "second");
        assert_eq!(kept(&file).access_token, "second");
        assert_eq!(kept(&file).refresh_token.as_deref(), Some("twice"));

        // A login that was made in the meantime wins.
        file.change(|record| {
            if let Some(grant) = &mut record.grant {
                grant.access_token = "third".to_owned();
            }
        })
        .unwrap();
        assert_eq!(
            credential.bearer().await.unwrap().unwrap().expose(),
            "third"
        );
    }

    #[tokio::test]
    async fn a_login_that_is_not_written_yet_waits_for_nobody_and_ends_as_others_do() {
        let state = tempfile::tempdir().unwrap();
        let credential = renew_unwritten(state.path()).await;
        let file = credential.file().clone();
        let held = file.lock().unwrap();
        let bearer = credential.bearer().await.unwrap().unwrap();
        assert_eq!(bearer.expose(), "second");
        drop(held);
        credential.give_up(&bearer).await;
        let ended = file.read().unwrap().grant.unwrap();
        assert_eq!(ended.access_token, "second");
        assert!(ended.ended.is_some());
        let renewed = credential.renew(bearer.expose()).await;
        assert_eq!(
            renewed.map(drop),
            Err(CredentialError::LoginNeeded { again: true })
        );
    }

    #[tokio::test]
    async fn a_logout_ends_a_login_that_is_not_written_yet() {
        let state = tempfile::tempdir().unwrap();
        let credential = renew_unwritten(state.path()).await;
        let file = credential.file().clone();
        file.change(|record| record.grant = None).unwrap();
        assert!(credential.bearer().await.unwrap().is_none());
        assert_eq!(file.read().unwrap().grant, None);
    }
}
