//! The handle on a server: its stage, and the way to an open connection.

use std::{collections::HashMap, num::NonZeroUsize, ops::Deref, sync::Arc};

use tokio::{
    sync::{Mutex, Notify, Semaphore, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tool::{Digest, ServerName};

use crate::{
    CallError, Ran, Request, RunState, ServerScope, ServerSpec, ServerState,
    activity::Lease,
    asking::{Asking, Habits},
    changes::Changes,
    eras::{Era, Eras},
    error::Failure,
    limits::REST_WAIT_MAX,
    link::Link,
    roots::Roots,
    taken::{TakenVariables, is_of_callers, takes_variables},
    vitals::Vitals,
};

#[derive(Debug, Clone)]
pub(crate) enum Stage {
    /// It has no process and no connection. A request for a start starts it.
    Stopped {
        last: Option<Failure>,
    },
    Starting,
    Ready(Arc<Link>),
    /// It failed, and is not started before `until`.
    Resting {
        failure: Failure,
        tries: u32,
        until: Instant,
    },
    /// The fleet is stopping: nothing starts any more.
    Ended,
}

/// The handle on a server, which its callers and its keeper share.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<ServerParts>);

/// The parts of a server, in one allocation: a call clones the handle several times.
#[derive(Debug)]
pub(crate) struct ServerParts {
    pub(crate) spec: ServerSpec,
    /// The variables that it gets at its start.
    pub(crate) taken: TakenVariables,
    /// True if clients may use different processes.
    pub(crate) is_personal: bool,
    /// True if each caller over HTTP has an instance of its own.
    pub(crate) is_of_callers: bool,
    /// The permits of concurrent calls.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) asking: Arc<Asking>,
    pub(crate) era: Era,
    pub(crate) eras: Arc<Eras>,
    /// True if it runs calls that would wait for those of other clients. Its failures say nothing of the
    /// server: some can run only once.
    pub(crate) is_spare: bool,
    /// The stage of the process of the newest revision, if this is the process of the same server with a
    /// handshake.
    pub(crate) newest: Option<watch::Receiver<Stage>>,
    pub(crate) stage: watch::Receiver<Stage>,
    pub(crate) wanted: Notify,
    /// Ends its rest: the awaited change has been made.
    pub(crate) rested: Notify,
    /// Held while a person is asked to log in.
    pub(crate) login_turn: Arc<Mutex<()>>,
    pub(crate) retired: CancellationToken,
    /// Cancelled when it is to end although calls are running, after it was retired.
    pub(crate) interrupted: CancellationToken,
}

/// The relations of a new instance to the others of the same server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Siblings<'a> {
    pub(crate) era: Era,
    /// The instance that it replaces. Its counts go on, and the new one starts after its end.
    pub(crate) before: Option<&'a Server>,
    /// Further processes that end before the new one starts.
    pub(crate) spares_before: &'a [Server],
    /// The shared instance, beside which it runs for some of the clients.
    pub(crate) beside: Option<&'a Server>,
    /// True if it differs from the shared instance in its era only.
    pub(crate) is_twin: bool,
    /// True if it runs calls that would wait for those of other clients at the instance beside it.
    pub(crate) is_spare: bool,
}

impl<'a> Siblings<'a> {
    /// Those of an instance that runs beside the shared one.
    pub(crate) fn beside(shared: &'a Server, era: Era) -> Self {
        Self {
            era,
            beside: Some(shared),
            ..Self::default()
        }
    }
}

/// Clients whose servers have the same key share one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ProcessKey {
    pub(crate) server: ServerName,
    /// The digest of the values that it is started with.
    pub(crate) variables: Digest,
    pub(crate) era: Era,
    /// 0 for the usual process; the others run calls that would wait for those of other clients.
    pub(crate) spare: u8,
}

impl ProcessKey {
    pub(crate) fn new(shared: &Server, variables: Digest, era: Era) -> Self {
        Self {
            server: shared.spec.name.clone(),
            variables,
            era,
            spare: 0,
        }
    }

    /// The key of the process with a handshake beside a shared server that speaks a newer revision too.
    pub(crate) fn of_twin(shared: &Server) -> Self {
        Self::new(shared, shared.taken.key, Era::Handshake)
    }
}

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
    /// Begins a lease. Returns `None` once the connection was closed.
    fn begin(link: Arc<Link>) -> Option<Self> {
        let lease = link.activity.begin()?;
        Some(Self {
            link,
            _lease: lease,
        })
    }

    /// Ends the lease.
    pub(crate) fn release(self) -> Arc<Link> {
        self.link
    }
}

impl Deref for Server {
    type Target = ServerParts;

    fn deref(&self) -> &ServerParts {
        &self.0
    }
}

impl Server {
    /// Creates a handle, and the sender of its stages for the keeper.
    pub(crate) fn new(
        spec: ServerSpec,
        taken: TakenVariables,
        siblings: &Siblings<'_>,
        roots: Roots,
        changes: &Arc<Changes>,
    ) -> (Self, watch::Sender<Stage>) {
        let (sender, stage) = watch::channel(Stage::Stopped { last: None });
        let (before, beside) = (siblings.before, siblings.beside);
        let twin = beside.filter(|_| siblings.is_twin);
        let first = beside.filter(|_| siblings.is_spare);
        let calls_max = spec.calls_max;
        let calls_max = calls_max.map_or(Semaphore::MAX_PERMITS, NonZeroUsize::get);
        let places = || Arc::new(Semaphore::new(calls_max.min(Semaphore::MAX_PERMITS)));
        let is_personal = spec.scope == ServerScope::Client || takes_variables(&spec);
        let known = beside.or(before).map(|it| Arc::clone(&it.asking.habits));
        let habits = known.unwrap_or_else(|| Arc::new(Habits::of_asking(&spec.asking_calls)));
        let asking = Asking::new(&spec.name, Arc::clone(changes), roots, habits);
        let eras = || Arc::new(Eras::of(&spec, before.map(|it| &*it.eras)));
        let parts = ServerParts {
            is_personal,
            is_of_callers: is_of_callers(&spec),
            taken,
            places: twin
                .or(first)
                .map_or_else(places, |it| Arc::clone(&it.places)),
            vitals: before.map_or_else(Arc::default, |it| Arc::clone(&it.vitals)),
            asking: Arc::new(asking),
            era: siblings.era,
            eras: beside.map_or_else(eras, |it| Arc::clone(&it.eras)),
            is_spare: siblings.is_spare,
            newest: twin
                .map(|it| it.stage.clone())
                .or_else(|| first.and_then(|it| it.newest.clone())),
            login_turn: twin
                .or(first)
                .map_or_else(Arc::default, |it| Arc::clone(&it.login_turn)),
            spec,
            stage,
            wanted: Notify::new(),
            rested: Notify::new(),
            retired: CancellationToken::new(),
            interrupted: CancellationToken::new(),
        };
        (Self(Arc::new(parts)), sender)
    }

    /// Returns the open connection, and starts the server if necessary. Waits for the end of a short
    /// rest. Fails if a start fails meanwhile.
    pub(crate) async fn ready(&self) -> Result<LeasedLink, NotReady> {
        // Most calls find an open connection.
        if let Some(leased) = self.open_now().filter(|it| !it.link.has_ended()) {
            return Ok(leased);
        }
        let mut stage = self.stage.clone();
        let mut asked = false;
        loop {
            let now = stage.borrow_and_update().clone();
            match now {
                Stage::Ready(link) => {
                    let leased = LeasedLink::begin(link);
                    if let Some(leased) = leased.filter(|it| !it.link.has_ended()) {
                        return Ok(leased);
                    }
                    // It has ended or is being stopped: a stop for idleness has less time from now on.
                    self.wanted.notify_one();
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

    /// Returns the open connection for a call. If its process has a handshake, the process of the newest
    /// revision ends if it was only surveyed. Fails if the server is retired, or if the rules no longer
    /// allow the request: no such call starts. All calls pass here immediately before they are sent.
    pub(crate) async fn ready_for_call(&self, request: &Request) -> Result<LeasedLink, CallError> {
        let retired = || NotReady::stopping().into_error(&self.spec.name);
        if self.is_retired() {
            return Err(retired());
        }
        let leased = self.ready().await;
        let leased = leased.map_err(|error| error.into_error(&self.spec.name))?;
        request.check_start().await.map_err(CallError::Refused)?;
        // It may have been retired while it started, or during the check.
        if self.is_retired() {
            return Err(retired());
        }
        leased.link.activity.note_call();
        let newest = self.newest.as_ref().map(|it| it.borrow().clone());
        if let Some(Stage::Ready(link)) = newest {
            link.activity.set_spare();
        }
        Ok(leased)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(&*self.stage.borrow(), Stage::Ready(link) if !link.has_ended())
    }

    /// Returns true if it starts, or has running calls.
    pub(crate) fn is_in_use(&self) -> bool {
        match &*self.stage.borrow() {
            Stage::Ready(link) => link.activity.is_used(),
            Stage::Starting => true,
            Stage::Stopped { .. } | Stage::Resting { .. } | Stage::Ended => false,
        }
    }

    /// Returns the connection if it is open. Starts nothing.
    pub(crate) fn open_now(&self) -> Option<LeasedLink> {
        match &*self.stage.borrow() {
            Stage::Ready(link) => LeasedLink::begin(Arc::clone(link)),
            _ => None,
        }
    }

    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Returns true if both are handles of the same server.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Ends the server after its running calls; it accepts no new ones.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }

    /// Returns true if its keeper is done: no process of it runs, and none will.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(&*self.stage.borrow(), Stage::Ended)
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.is_cancelled()
    }

    pub(crate) fn state(&self, clients: Vec<u64>, memory: &HashMap<i32, u64>) -> ServerState {
        let state = match &*self.stage.borrow() {
            Stage::Stopped { last: None } | Stage::Ended => RunState::Stopped,
            Stage::Stopped { last: Some(_) } | Stage::Resting { .. } => RunState::Down,
            Stage::Starting => RunState::Starting,
            Stage::Ready(_) => RunState::Ready,
        };
        ServerState {
            clients,
            caller: self.taken.caller().map(str::to_owned),
            revision: self.eras.revision(self.era),
            questions: self.asking.list_open(),
            waiting_calls: self.asking.count_waiting(),
            ..self.vitals.state(self.spec.name.clone(), state, memory)
        }
    }

    /// Returns the failure because of which the server is not ready.
    pub(crate) fn last_failure(&self) -> Option<Failure> {
        match &*self.stage.borrow() {
            Stage::Stopped { last } => last.clone(),
            Stage::Resting { failure, .. } => Some(failure.clone()),
            Stage::Starting | Stage::Ready(_) | Stage::Ended => None,
        }
    }
}

impl NotReady {
    pub(crate) fn into_error(self, server: &ServerName) -> CallError {
        CallError::unavailable(server, self.failure, self.tries, Ran::No)
    }

    pub(crate) fn stopping() -> Self {
        let failure = Failure::stopping();
        Self { failure, tries: 0 }
    }
}
