//! The handle on a server: what stage it is in, and a way to have it ready.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Arc, atomic::AtomicBool},
};

use tokio::{
    sync::{Mutex, Notify, Semaphore, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Scope, ServerSpec, ServerState, State,
    activity::Lease,
    asking::Asking,
    changes::Changes,
    eras::{Era, Eras},
    error::Failure,
    limits::REST_WAIT_MAX,
    link::Link,
    roots::Roots,
    taken::{Taken, takes_variables},
    vitals::Vitals,
};

/// The stage of a server's life.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    /// No process, no connection; it starts when it is wanted.
    Stopped {
        last: Option<Failure>,
    },
    Starting,
    Ready(Arc<Link>),
    /// It failed; it is not started again before `until`.
    Resting {
        failure: Failure,
        tries: u32,
        until: Instant,
    },
    /// The fleet is stopping: nothing starts any more.
    Ended,
}

/// The handle on a server that everybody but the keeper holds.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) spec: Arc<ServerSpec>,
    /// The values that it gets when it is started.
    pub(crate) taken: Arc<Taken>,
    /// True if clients may have one process each, or one separate from others.
    pub(crate) is_personal: bool,
    /// One permit for each call that may run at one time.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) asking: Arc<Asking>,
    pub(crate) era: Era,
    pub(crate) eras: Arc<Eras>,
    /// The stage of the process that speaks the newest revision, where this is the same server
    /// spoken to with a handshake.
    pub(crate) newest: Option<watch::Receiver<Stage>>,
    pub(crate) stage: watch::Receiver<Stage>,
    pub(crate) wanted: Arc<Notify>,
    /// Ends its rest: what it waits for has come.
    pub(crate) rested: Arc<Notify>,
    /// Held by whoever has a person log in.
    pub(crate) login_turn: Arc<Mutex<()>>,
    pub(crate) retired: CancellationToken,
}

/// The place of a new server among the others of its name.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place<'a> {
    pub(crate) era: Era,
    /// The server whose place it takes: it is counted on, and waited for.
    pub(crate) before: Option<&'a Server>,
    /// The shared one, beside which it runs for some of the clients.
    pub(crate) beside: Option<&'a Server>,
    /// It is the same as that one, but for its era.
    pub(crate) is_twin: bool,
}

/// Why a server is not ready.
#[derive(Debug)]
pub(crate) struct NotReady {
    pub(crate) failure: Failure,
    pub(crate) tries: u32,
}

/// An open connection, kept open while this is held.
#[derive(Debug)]
pub(crate) struct LeasedLink {
    pub(crate) link: Arc<Link>,
    _lease: Lease,
}

impl LeasedLink {
    /// Keeps the connection open no longer.
    pub(crate) fn release(self) -> Arc<Link> {
        self.link
    }
}

impl Server {
    /// The handle, and the sender of its stages, which is the keeper's.
    pub(crate) fn new(
        spec: ServerSpec,
        taken: Taken,
        place: &Place<'_>,
        roots: Roots,
        changes: &Arc<Changes>,
    ) -> (Self, watch::Sender<Stage>) {
        let (sender, stage) = watch::channel(Stage::Stopped { last: None });
        let (before, beside) = (place.before, place.beside);
        let twin = beside.filter(|_| place.is_twin);
        let calls_max = spec.calls_max;
        let calls_max = calls_max.map_or(Semaphore::MAX_PERMITS, NonZeroUsize::get);
        let places = || Arc::new(Semaphore::new(calls_max.min(Semaphore::MAX_PERMITS)));
        let is_personal = spec.scope == Scope::Client || takes_variables(&spec);
        let names_no_call = beside.map(|it| it.asking.share_names_no_call());
        let names_no_call = names_no_call.unwrap_or_else(|| {
            let did = before.is_some_and(|it| it.asking.names_no_call());
            Arc::new(AtomicBool::new(spec.asks_clients || did))
        });
        let asking = Asking::new(&spec.name, Arc::clone(changes), roots, names_no_call);
        let eras = || Arc::new(Eras::of(&spec, before.map(|it| &*it.eras)));
        let server = Self {
            is_personal,
            taken: Arc::new(taken),
            places: twin.map_or_else(places, |it| Arc::clone(&it.places)),
            vitals: before.map_or_else(Arc::default, |it| Arc::clone(&it.vitals)),
            asking: Arc::new(asking),
            era: place.era,
            eras: beside.map_or_else(eras, |it| Arc::clone(&it.eras)),
            newest: twin.map(|it| it.stage.clone()),
            login_turn: twin.map_or_else(Arc::default, |it| Arc::clone(&it.login_turn)),
            spec: Arc::new(spec),
            stage,
            wanted: Arc::default(),
            rested: Arc::default(),
            retired: CancellationToken::new(),
        };
        (server, sender)
    }

    /// The open connection, started if need be. A caller that comes in a short rest waits for
    /// its end; a start that fails while we wait is the answer.
    pub(crate) async fn ready(&self) -> Result<LeasedLink, NotReady> {
        let mut stage = self.stage.clone();
        let mut asked = false;
        loop {
            let now = stage.borrow_and_update().clone();
            match now {
                Stage::Ready(link) => {
                    // One that has ended or is being stopped is replaced in a moment.
                    if let Some(lease) = link.activity().begin()
                        && !link.has_ended()
                    {
                        return Ok(LeasedLink {
                            link,
                            _lease: lease,
                        });
                    }
                }
                Stage::Starting => asked = true,
                Stage::Stopped {
                    last: Some(failure),
                } if asked => {
                    return Err(NotReady { failure, tries: 1 });
                }
                Stage::Stopped { .. } => {
                    asked = true;
                    self.wanted.notify_one();
                }
                Stage::Resting {
                    failure,
                    tries,
                    until,
                } => {
                    let rest = until.saturating_duration_since(Instant::now());
                    if failure.awaited.as_ref().is_some_and(|it| it.has_come()) {
                        asked = false;
                        self.rested.notify_one();
                    } else if asked || rest > REST_WAIT_MAX {
                        return Err(NotReady { failure, tries });
                    }
                }
                Stage::Ended => return Err(NotReady::stopping()),
            }
            if stage.changed().await.is_err() {
                return Err(NotReady::stopping());
            }
        }
    }

    /// The same for a call. A process of the newest revision that was only surveyed ends, where
    /// those who call have one with a handshake.
    pub(crate) async fn ready_for_call(&self) -> Result<LeasedLink, NotReady> {
        let leased = self.ready().await?;
        leased.link.activity().note_call();
        let newest = self.newest.as_ref().map(|it| it.borrow().clone());
        if let Some(Stage::Ready(link)) = newest {
            link.activity().set_spare();
        }
        Ok(leased)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(&*self.stage.borrow(), Stage::Ready(link) if !link.has_ended())
    }

    /// The connection, if it is open now; nothing is started.
    pub(crate) fn open_now(&self) -> Option<LeasedLink> {
        let Stage::Ready(link) = self.stage.borrow().clone() else {
            return None;
        };
        let lease = link.activity().begin()?;
        Some(LeasedLink {
            link,
            _lease: lease,
        })
    }

    /// Has it started, whether or not anybody calls.
    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Returns true if both are handles of the same server.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spec, &other.spec)
    }

    /// Lets the server finish its running calls, and accepts no new ones.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.is_cancelled()
    }

    pub(crate) fn state(&self, clients: Vec<u64>, memory: &HashMap<i32, u64>) -> ServerState {
        let state = match &*self.stage.borrow() {
            Stage::Stopped { .. } | Stage::Ended => State::Stopped,
            Stage::Starting => State::Starting,
            Stage::Ready(_) => State::Ready,
            Stage::Resting { .. } => State::Resting,
        };
        let questions = self.asking.list_open();
        let revision = self.eras.revision(self.era);
        self.vitals
            .state(&self.spec, state, revision, clients, memory, questions)
    }

    /// The last failure, when the server is not ready because of one.
    pub(crate) fn last_failure(&self) -> Option<Failure> {
        match &*self.stage.borrow() {
            Stage::Stopped { last } => last.clone(),
            Stage::Resting { failure, .. } => Some(failure.clone()),
            Stage::Starting | Stage::Ready(_) | Stage::Ended => None,
        }
    }
}

impl NotReady {
    fn stopping() -> Self {
        let failure = Failure::stopping();
        Self { failure, tries: 0 }
    }
}
