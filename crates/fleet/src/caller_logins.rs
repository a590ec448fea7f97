//! Logins of callers over HTTP: each gets an address of ours, where their browser begins the login and
//! to which the authorization server sends it back.

use std::{collections::HashMap, sync::Arc};

use oauth::{AddressReceiver, GrantKind, HostedRedirects, LoginMethod, Redirect, log_in};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::task::AbortOnDropHandle;
use tool::{ClientId, HttpCaller};
use tracing::{debug, info};

use crate::{
    Launch, LoginPlace, Surroundings,
    limits::{LOGIN_OFFER_LIFE, LOGIN_OFFERS_MAX},
    server::Server,
};

/// The path of an address at which a caller logs in; its code follows.
pub(crate) const LOGIN_PATH: &str = "/login/";
/// The path to which authorization servers redirect.
const CALLBACK_PATH: &str = "/login/callback";

/// The logins that callers may begin, and those that wait for a browser.
#[derive(Debug)]
pub struct CallerLogins {
    surroundings: Arc<Surroundings>,
    open: Mutex<OpenLogins>,
}

/// The offers, by the code of their address.
#[derive(Debug, Default)]
struct OpenLogins(HashMap<String, Offer>);

#[derive(Debug)]
struct Offer {
    server: Server,
    caller: Arc<HttpCaller>,
    until: Instant,
    attempt: Option<Attempt>,
    outcome: watch::Sender<Outcome>,
}

/// The outcome of a login: none until it has ended.
type Outcome = Option<Result<(), String>>;

/// A login that waits for its browser.
#[derive(Debug)]
struct Attempt {
    /// The `state` of the redirect that it waits for.
    state: String,
    arrivals: mpsc::Sender<Redirect>,
    _task: AbortOnDropHandle<()>,
}

pub(crate) struct LoginWatch {
    until: Instant,
    outcome: watch::Receiver<Outcome>,
}

impl LoginWatch {
    /// Waits until the login has succeeded, or its address is not valid any more.
    pub(crate) async fn wait(&mut self) -> bool {
        let done = self.outcome.wait_for(|it| matches!(it, Some(Ok(()))));
        let done = tokio::time::timeout_at(self.until, done).await;
        matches!(done, Ok(Ok(_)))
    }
}

/// A login, for the page that asks its person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedLogin {
    /// The server.
    pub server: String,
    /// The caller, as its token names it.
    pub caller: Arc<str>,
}

/// The outcome for a browser that was redirected to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginArrival {
    /// The caller is logged in at this server.
    Done {
        /// The server.
        server: String,
    },
    /// The login failed; the text is for its person.
    Failed(String),
    /// No login waits for this address.
    Unknown,
}

impl CallerLogins {
    pub(crate) fn new(surroundings: Arc<Surroundings>) -> Self {
        Self {
            surroundings,
            open: Mutex::default(),
        }
    }

    /// Returns the address at which the caller of this client logs in to this server: the same one as long
    /// as it is valid. Returns `None` if no login in a browser helps.
    pub(crate) fn offer(&self, server: &Server, client: Option<&ClientId>) -> Option<String> {
        let caller = client?.caller.as_ref()?;
        let login = &server.spec.login;
        let is_remote = matches!(server.spec.launch, Launch::Remote { .. });
        if !is_remote
            || !login.is_of_callers
            || server.taken.caller().is_none()
            || login.settings.grant != GrantKind::AuthorizationCode
        {
            return None;
        }
        let code = self.open.lock().offer(server, caller)?;
        Some(format!("{}{LOGIN_PATH}{code}", caller.origin))
    }

    /// Returns the login with the code of this address.
    pub fn find(&self, code: &str) -> Option<OfferedLogin> {
        let open = self.open.lock();
        let offer = open.0.get(code).filter(|it| it.is_valid())?;
        Some(OfferedLogin {
            server: offer.server.spec.name.to_string(),
            caller: Arc::clone(&offer.caller.name),
        })
    }

    /// Begins the login. Returns the address of the authorization server, or the reason why there is
    /// none, for the person. A login that was begun with the same code before ends.
    pub async fn begin(self: &Arc<Self>, code: &str) -> Result<Url, String> {
        let expired = "this address is not valid any more: call the tool again for a new one";
        let (server, caller) = self.open.lock().restart(code).ok_or(expired)?;
        let place = self.find_place(&server).await?;
        let (arrivals, found) = mpsc::channel(1);
        let redirects = HostedRedirects {
            redirect_uri: format!("{}{CALLBACK_PATH}", caller.origin),
            arrivals: found,
        };
        let (person, address) = AddressReceiver::new();
        let (this, of_offer) = (Arc::clone(self), code.to_owned());
        let logging_in = async move {
            let login = place.login(LoginMethod::Hosted(redirects), &[]);
            let outcome = log_in(login, &person).await.map(drop);
            drop(person);
            let name = server.spec.name.as_str();
            match &outcome {
                Ok(()) => {
                    info!(server = name, caller = &*caller.name, "logged in");
                    server.asking.note_changed_list();
                }
                Err(error) => debug!(server = name, %error, "nobody logged in"),
            }
            this.end(&of_offer, outcome.map_err(|error| error.to_string()));
        };
        let task = AbortOnDropHandle::new(tokio::spawn(logging_in));
        let Ok(url) = address.await else {
            return Err(self.explain_end(code));
        };
        let mut query = url.query_pairs();
        let state = query.find(|(key, _)| key == "state");
        let (_, state) = state.ok_or("the authorization server has no address for a login")?;
        let attempt = Attempt {
            state: state.into_owned(),
            arrivals,
            _task: task,
        };
        let mut open = self.open.lock();
        open.0.get_mut(code).ok_or(expired)?.attempt = Some(attempt);
        Ok(url)
    }

    /// Continues the login to which this address of a redirected browser belongs, and waits for its end.
    pub async fn arrive(&self, url: Url) -> LoginArrival {
        let state = url.query_pairs().find(|(key, _)| key == "state");
        let state = state.map(|(_, value)| value.into_owned());
        let waiting = state.and_then(|state| self.open.lock().waiting(&state));
        let Some((server, arrivals, mut outcome)) = waiting else {
            return LoginArrival::Unknown;
        };
        let (redirect, is_its) = Redirect::new(url);
        if arrivals.send(redirect).await.is_err() || !is_its.await.unwrap_or_default() {
            let ended = outcome.borrow().clone();
            return match ended {
                Some(Err(why)) => LoginArrival::Failed(why),
                _ => LoginArrival::Unknown,
            };
        }
        let ended = outcome.wait_for(Option::is_some).await;
        match ended.ok().and_then(|it| it.clone()) {
            Some(Ok(())) => LoginArrival::Done { server },
            Some(Err(why)) => LoginArrival::Failed(why),
            None => LoginArrival::Unknown,
        }
    }

    /// Returns what waits for the login with this address.
    pub(crate) fn watch(&self, address: &str) -> Option<LoginWatch> {
        let code = address.rsplit('/').next().unwrap_or_default();
        let open = self.open.lock();
        let offer = open.0.get(code)?;
        Some(LoginWatch {
            until: offer.until,
            outcome: offer.outcome.subscribe(),
        })
    }

    async fn find_place(&self, server: &Server) -> Result<LoginPlace, String> {
        let (spec, values) = (&server.spec, &server.taken.values);
        let place = LoginPlace::resolve(spec, values, &self.surroundings).await;
        let place = place.map_err(|failure| failure.why)?;
        if self.surroundings.private.is_none() {
            return Err("no logins are kept here".to_owned());
        }
        let place = place.filter(|it| it.file.caller().is_some());
        place.ok_or_else(|| "the server needs no login of its callers".to_owned())
    }

    fn end(&self, code: &str, outcome: Result<(), String>) {
        let mut open = self.open.lock();
        let is_done = outcome.is_ok();
        let Some(offer) = open.0.get_mut(code) else {
            return;
        };
        offer.outcome.send_replace(Some(outcome));
        if is_done {
            open.0.remove(code);
        }
    }

    fn explain_end(&self, code: &str) -> String {
        let open = self.open.lock();
        let ended = open.0.get(code).map(|it| it.outcome.borrow().clone());
        match ended {
            Some(Some(Err(why))) => why,
            _ => "the login ended before it began".to_owned(),
        }
    }
}

impl OpenLogins {
    fn offer(&mut self, server: &Server, caller: &Arc<HttpCaller>) -> Option<String> {
        let name = &server.spec.name;
        let is_same = |it: &Offer| it.server.spec.name == *name && it.caller.name == caller.name;
        self.0.retain(|_, it| it.is_valid());
        if let Some((code, offer)) = self.0.iter_mut().find(|(_, it)| is_same(it)) {
            // The server may have been replaced since.
            offer.server = server.clone();
            return Some(code.clone());
        }
        if self.0.len() >= LOGIN_OFFERS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, it)| it.until);
            let oldest = oldest.map(|(code, _)| code.clone());
            oldest.and_then(|code| self.0.remove(&code));
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let code = format!("{:032x}", u128::from_be_bytes(bytes));
        let offer = Offer {
            server: server.clone(),
            caller: Arc::clone(caller),
            until: Instant::now() + LOGIN_OFFER_LIFE,
            attempt: None,
            outcome: watch::Sender::default(),
        };
        self.0.insert(code.clone(), offer);
        Some(code)
    }

    /// Ends the login that was begun with this code before.
    fn restart(&mut self, code: &str) -> Option<(Server, Arc<HttpCaller>)> {
        let offer = self.0.get_mut(code).filter(|it| it.is_valid())?;
        offer.attempt = None;
        offer.outcome.send_replace(None);
        Some((offer.server.clone(), Arc::clone(&offer.caller)))
    }

    fn waiting(
        &self,
        state: &str,
    ) -> Option<(String, mpsc::Sender<Redirect>, watch::Receiver<Outcome>)> {
        let (offer, attempt) = self.0.values().find_map(|offer| {
            let attempt = offer.attempt.as_ref().filter(|it| it.state == state)?;
            Some((offer, attempt))
        })?;
        let server = offer.server.spec.name.to_string();
        Some((server, attempt.arrivals.clone(), offer.outcome.subscribe()))
    }
}

impl Offer {
    fn is_valid(&self) -> bool {
        Instant::now() < self.until
    }
}
