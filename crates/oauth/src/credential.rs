//! The token of one server, as its requests need it: read, renewed once however many want it.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
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
    settings::{GrantKind, Settings},
    store::{LockedRecord, RecordFile, StoreError},
    token,
    web::Web,
};

/// Another process that renews is waited for so long; its own request ends before that.
const LOCK_WAIT: Duration = Duration::from_secs(45);

/// A token to be sent.
#[derive(Clone)]
pub struct Bearer {
    token: Arc<str>,
    /// Of the key to which it is bound, if it is.
    prover: Option<Arc<Prover>>,
}

impl Bearer {
    /// The token itself, for the one header that it goes into.
    pub fn expose(&self) -> &str {
        &self.token
    }

    /// What a request with a bound token carries in place of `Authorization: Bearer`: it is good for
    /// that request alone. None for a token that is not bound.
    pub fn prove(&self, method: &Method, url: &Url) -> Option<[(HeaderName, HeaderValue); 2]> {
        let prover = self.prover.as_ref()?;
        let proof = prover.prove(method, url, Some(&self.token)).ok()?;
        Some([authorization(&self.token)?, proof])
    }

    /// Whether a server refused a request only because its proof lacks what we know now, so that
    /// the same token is good for another try.
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

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialError {
    /// A person has to log in: for the first time, or again.
    LoginNeeded {
        /// There was a login, and it has ended.
        again: bool,
    },
    /// It may be there in a moment.
    Failed(String),
}

/// The login of one server, for everybody who sends requests to it. Processes share it through its
/// file; the newest token wins, and none is taken away that is newer than the one that failed.
#[derive(Debug)]
pub struct Credential {
    file: RecordFile,
    url: String,
    settings: Settings,
    renewing: tokio::sync::Mutex<()>,
    /// The record as it was read last, and the file's time then.
    cached: Mutex<Option<(Option<SystemTime>, Record)>>,
    /// For the key that was used last, which remembers what the server wants in proofs.
    prover: Mutex<Option<(String, Arc<Prover>)>>,
}

impl Credential {
    /// The login that is kept in this file, for the server at this address.
    pub fn new(file: RecordFile, url: String, settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            file,
            url,
            settings,
            renewing: tokio::sync::Mutex::default(),
            cached: Mutex::default(),
            prover: Mutex::default(),
        })
    }

    /// The file in which it is.
    pub fn file(&self) -> &RecordFile {
        &self.file
    }

    /// The token for the next request, renewed if it is about to end; none where nobody is logged
    /// in. While it has not ended, that it cannot be renewed is no matter.
    pub async fn bearer(self: &Arc<Self>) -> Result<Option<Bearer>, CredentialError> {
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

    /// Another token than this one, which is about to end or was refused. It goes on when the caller
    /// stops waiting: a token that was given and not kept would be lost.
    pub async fn renew(self: &Arc<Self>, used: &str) -> Result<Option<Bearer>, CredentialError> {
        let (this, used) = (Arc::clone(self), used.to_owned());
        let renewing = tokio::spawn(async move { this.renew_in_turn(&used).await });
        renewing
            .await
            .unwrap_or_else(|error| Err(CredentialError::Failed(error.to_string())))
    }

    /// Notes that the server refuses even a token that was just renewed: only a person can help.
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

    /// Notes that the server refuses a token that cannot be renewed, and forgets one that only
    /// seemed to be good.
    pub async fn give_up_unrenewable(self: &Arc<Self>, refused: &Bearer) {
        let is_lost = self.read().is_ok_and(|record| {
            let grant = record.grant.as_ref();
            grant.is_some_and(|it| !it.is_renewable() && it.ended.is_none())
        });
        if is_lost && !self.is_machine() {
            self.give_up(refused).await;
        }
    }

    /// Notes what the server says to a request that it does not let in: the next login starts there.
    pub async fn note_challenge(self: &Arc<Self>, challenge: Challenge) {
        let is_known = |record: Record| record.challenge.as_ref() == Some(&challenge);
        if !self.read().is_ok_and(is_known) {
            self.change(|record| record.challenge = Some(challenge))
                .await;
        }
    }

    /// Notes scopes that the server asks for, so that the next login asks for them.
    pub async fn want_scopes(self: &Arc<Self>, scopes: Vec<String>) {
        self.change(move |record| scopes::add(&mut record.wanted_scopes, scopes))
            .await;
    }

    /// Whether there is, or was, a login.
    pub fn is_known(&self) -> bool {
        self.read().is_ok_and(|record| record.grant.is_some())
    }

    /// Whether a machine's own secret is enough.
    pub fn is_machine(&self) -> bool {
        self.settings.grant != GrantKind::AuthorizationCode
    }

    fn read(&self) -> Result<Record, CredentialError> {
        let changed_at = self.file.changed_at();
        let mut cached = self.cached.lock();
        if let Some((at, record)) = &*cached
            && *at == changed_at
        {
            return Ok(record.clone());
        }
        let record = self.file.read().map_err(|error| fail(&error.into()))?;
        *cached = Some((changed_at, record.clone()));
        Ok(record)
    }

    async fn change(&self, change: impl FnOnce(&mut Record) + Send + 'static) {
        let file = self.file.clone();
        let changed = spawn_blocking(move || file.change(change)).await;
        self.cached.lock().take();
        if let Ok(Err(error)) = changed {
            warn!(%error, "what was learned of a login was not kept");
        }
    }

    async fn renew_in_turn(&self, used: &str) -> Result<Option<Bearer>, CredentialError> {
        let _turn = self.renewing.lock().await;
        if let Some(newer) = self.newer_than(used, &self.read()?) {
            return Ok(Some(newer));
        }
        let file = self.file.clone();
        let locking = timeout(LOCK_WAIT, spawn_blocking(move || file.lock()));
        let locked = match locking.await {
            Ok(Ok(locked)) => locked.map_err(|error| fail(&error.into()))?,
            Ok(Err(error)) => return Err(CredentialError::Failed(error.to_string())),
            Err(_) => {
                let why = "another process does not end its renewal of the login";
                return Err(CredentialError::Failed(why.to_owned()));
            }
        };
        // Somebody else may have renewed it while we waited.
        let renewed = match self.newer_than(used, &locked.record) {
            Some(newer) => Ok(Some(newer)),
            None => self.renew_locked(locked, used).await,
        };
        self.cached.lock().take();
        renewed
    }

    async fn renew_locked(
        &self,
        mut locked: LockedRecord,
        used: &str,
    ) -> Result<Option<Bearer>, CredentialError> {
        let renewed = match locked.record.grant.as_ref() {
            _ if self.is_machine() => machine_grant(&self.file, &self.url, &self.settings).await,
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
                locked.record.grant = Some(grant);
                write(locked).await.map_err(|error| fail(&error.into()))?;
                info!(server, "the login was renewed");
                Ok(Some(token))
            }
            Err(LoginError::Ended(why)) if !self.is_machine() => {
                warn!(server, why, "the login has ended");
                if let Some(grant) = &mut locked.record.grant
                    && grant.access_token == used
                {
                    grant.ended = Some(why);
                    write(locked).await.map_err(|error| fail(&error.into()))?;
                }
                Err(CredentialError::LoginNeeded { again: true })
            }
            Err(error) => {
                debug!(server, %error, "the login was not renewed");
                Err(fail(&error))
            }
        }
    }

    async fn ask_for_renewal(&self, grant: &Grant) -> Result<Grant, LoginError> {
        let bad = || LoginError::Metadata("`url` is no address".to_owned());
        let server = Url::parse(&self.url).map_err(|_| bad())?;
        let web = Web::of(&server).await?;
        let renewed = token::renew(&web, &with_secret(grant, &self.settings)).await?;
        Ok(Grant {
            client: grant.client.clone(),
            ..renewed
        })
    }

    /// The token that is kept, if it is another one and can be sent.
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

async fn write(locked: LockedRecord) -> Result<(), StoreError> {
    let writing = spawn_blocking(move || locked.write());
    writing.await.map_err(std::io::Error::other)?
}

fn fail(error: &LoginError) -> CredentialError {
    CredentialError::Failed(format!("the login was not renewed: {error}"))
}
