//! The handle on a server: what stage it is in, and a way to have it ready.

use std::{collections::HashMap, num::NonZeroUsize, sync::Arc};

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
    eras::Eras,
    error::Failure,
    limits::REST_WAIT_MAX,
    link::Link,
    question::Asks,
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
    /// What it gets when it is started.
    pub(crate) taken: Arc<Taken>,
    /// Clients may have one each, or one apart from others.
    pub(crate) is_personal: bool,
    /// One permit a call that may be under way.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) asking: Arc<Asking>,
    pub(crate) eras: Arc<Eras>,
    pub(crate) stage: watch::Receiver<Stage>,
    pub(crate) wanted: Arc<Notify>,
    /// Ends its rest: what it waits for has come.
    pub(crate) rested: Arc<Notify>,
    /// Held by whoever has a person log in.
    pub(crate) login_turn: Arc<Mutex<()>>,
    pub(crate) retired: CancellationToken,
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
    /// The handle, and the sender of its stages, which is the keeper's. It is counted on where
    /// the server before it was.
    pub(crate) fn new(
        spec: ServerSpec,
        taken: Taken,
        before: Option<&Self>,
        roots: Roots,
        changes: &Arc<Changes>,
    ) -> (Self, watch::Sender<Stage>) {
        let (sender, stage) = watch::channel(Stage::Stopped { last: None });
        let places = spec
            .calls_max
            .map_or(Semaphore::MAX_PERMITS, NonZeroUsize::get);
        let is_personal = spec.scope == Scope::Client || takes_variables(&spec);
        let asks_clients = spec.asks_clients || before.is_some_and(|it| it.asking.names_no_call());
        let asking = Asking::new(&spec.name, Arc::clone(changes), roots, asks_clients);
        let server = Self {
            is_personal,
            taken: Arc::new(taken),
            places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            vitals: before.map_or_else(Arc::default, |it| Arc::clone(&it.vitals)),
            asking: Arc::new(asking),
            eras: Arc::new(Eras::of(&spec)),
            spec: Arc::new(spec),
            stage,
            wanted: Arc::default(),
            rested: Arc::default(),
            login_turn: Arc::default(),
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

    /// The same for a call. A server that speaks both eras, and was not called since it was started,
    /// is started anew where its caller is of before.
    pub(crate) async fn ready_for(
        &self,
        caller: Option<&Arc<dyn Asks>>,
    ) -> Result<LeasedLink, NotReady> {
        let wants_handshake = caller.is_some_and(|it| self.eras.note_caller(&self.spec, it));
        let leased = self.ready().await?;
        if wants_handshake && leased.link.about().spoken.revision.is_stateless() {
            leased.link.activity().shut_if_never_called();
            drop(leased);
            let leased = self.ready().await?;
            leased.link.activity().note_call();
            return Ok(leased);
        }
        leased.link.activity().note_call();
        Ok(leased)
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

    /// Whether both are handles on the same one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spec, &other.spec)
    }

    /// Lets it finish its calls, and no more.
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
        self.vitals
            .state(&self.spec, state, clients, memory, questions)
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
