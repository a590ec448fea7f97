//! The one task that owns a server: it starts it when somebody wants it, watches it, and ends
//! it.

use std::{
    collections::HashMap, convert::Infallible, num::NonZeroUsize, ops::ControlFlow, sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    ServerSpec, ServerState, Spoken, State,
    activity::Lease,
    changes::{Changes, OnListChanged},
    child::{Running, Surroundings},
    error::Failure,
    limits::{EXIT_REASON_WAIT, HEALTHY_AFTER, REST_MAX, REST_MIN, REST_WAIT_MAX},
    link::Link,
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
    /// One permit a call that may be under way.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) vitals: Arc<Vitals>,
    stage: watch::Receiver<Stage>,
    wanted: Arc<Notify>,
    retired: CancellationToken,
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

pub(crate) struct Keeper {
    spec: Arc<ServerSpec>,
    surroundings: Arc<Surroundings>,
    changes: Arc<Changes>,
    stage: watch::Sender<Stage>,
    wanted: Arc<Notify>,
    vitals: Arc<Vitals>,
    stop: CancellationToken,
    /// Its calls may finish; then it ends.
    retired: CancellationToken,
    /// Whose place it takes: it starts nothing before that one has ended.
    before: Option<watch::Receiver<Stage>>,
    /// Failures in a row.
    tries: u32,
    /// The guess that worked last, so that no start pays for a wrong guess twice.
    spoken: Spoken,
}

impl Keeper {
    pub(crate) fn new(
        spec: ServerSpec,
        surroundings: Arc<Surroundings>,
        changes: Arc<Changes>,
        stop: CancellationToken,
        before: Option<&Server>,
    ) -> (Self, Server) {
        let spec = Arc::new(spec);
        let (sender, stage) = watch::channel(Stage::Stopped { last: None });
        let wanted = Arc::new(Notify::new());
        let places = spec
            .calls_max
            .map_or(Semaphore::MAX_PERMITS, NonZeroUsize::get);
        let server = Server {
            spec: Arc::clone(&spec),
            places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            vitals: before.map_or_else(Arc::default, |it| Arc::clone(&it.vitals)),
            stage,
            wanted: Arc::clone(&wanted),
            retired: CancellationToken::new(),
        };
        let spoken = spec.spoken.clone().unwrap_or_default();
        let keeper = Self {
            spec,
            surroundings,
            changes,
            stage: sender,
            wanted,
            vitals: Arc::clone(&server.vitals),
            stop,
            retired: server.retired.clone(),
            before: before.map(|it| it.stage.clone()),
            tries: 0,
            spoken,
        };
        (keeper, server)
    }

    /// Runs until told to stop. Each line is one stage of the server's life.
    pub(crate) async fn run(mut self) {
        self.predecessor_ended().await;
        while self.stopped().await.is_continue() {
            if let Some((link, running)) = self.starting().await {
                self.ready(link, running).await;
            }
            self.resting().await;
        }
        self.stage.send_replace(Stage::Ended);
    }

    async fn predecessor_ended(&mut self) {
        if let Some(mut before) = self.before.take() {
            let ended = before.wait_for(|stage| matches!(stage, Stage::Ended));
            tokio::select! {
                () = self.stop.cancelled() => {}
                _ = ended => {}
            }
        }
    }

    async fn stopped(&self) -> ControlFlow<()> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => ControlFlow::Break(()),
            () = self.retired.cancelled() => ControlFlow::Break(()),
            () = self.wanted.notified() => ControlFlow::Continue(()),
        }
    }

    async fn starting(&mut self) -> Option<(Arc<Link>, Option<Running>)> {
        self.stage.send_replace(Stage::Starting);
        let began = Instant::now();
        let on_list_changed: OnListChanged = {
            let (changes, name) = (Arc::clone(&self.changes), self.spec.name.clone());
            Arc::new(move || changes.note(&name))
        };
        let opened = {
            let opening = Link::open(
                &self.spec,
                &self.surroundings,
                &on_list_changed,
                &self.spoken,
            );
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                opened = opening => opened,
            }
        };
        let server = self.spec.name.as_str();
        match opened {
            Ok((link, running)) => {
                let pid = running.as_ref().and_then(Running::id);
                let starts = self.vitals.started(pid);
                let ms = began.elapsed().as_millis();
                info!(server, pid, starts, ms, "ready");
                self.spoken = link.about().spoken.clone();
                // Its tools may be others than when it was last here.
                self.changes.note(&self.spec.name);
                Some((Arc::new(link), running))
            }
            Err(failure) => {
                warn!(server, %failure, "did not start");
                self.fail(failure);
                None
            }
        }
    }

    async fn ready(&mut self, link: Arc<Link>, mut running: Option<Running>) {
        // Asked now: a child that was waited for has no number any more.
        let pid = running.as_ref().and_then(Running::id);
        let began = Instant::now();
        self.stage.send_replace(Stage::Ready(Arc::clone(&link)));
        let end = tokio::select! {
            biased;
            () = self.stop.cancelled() => End::Stop,
            () = link.ended() => End::ByItself,
            () = idle(&link, self.spec.idle_timeout) => End::Idle,
            () = retired(&link, &self.retired) => End::Retired,
            never = reap_leader(running.as_mut()) => match never {},
        };
        if matches!(end, End::ByItself) {
            let failure = match &mut running {
                Some(running) => running.exit_reason().await,
                None => link.exit_reason(),
            };
            let (server, starts) = (self.spec.name.as_str(), self.vitals.starts());
            warn!(server, pid, starts, %failure, "ended by itself");
            if began.elapsed() >= HEALTHY_AFTER {
                self.tries = 0;
            }
            self.fail(failure);
        }
        link.close().await;
        if let Some(running) = running {
            running.stop().await;
        }
        self.vitals.ended();
        if matches!(end, End::Idle) {
            info!(server = %self.spec.name, "stopped, nobody called for long");
            self.tries = 0;
            self.forget_wishes();
            self.stage.send_replace(Stage::Stopped { last: None });
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.tries += 1;
        let rest = if failure.is_lasting {
            REST_MAX
        } else {
            rest(self.tries)
        };
        let until = Instant::now() + rest;
        let tries = self.tries;
        self.stage.send_replace(Stage::Resting {
            failure,
            tries,
            until,
        });
    }

    async fn resting(&self) {
        let Stage::Resting { failure, until, .. } = self.stage.borrow().clone() else {
            return;
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.retired.cancelled() => {}
            () = sleep_until(until) => {}
        }
        self.forget_wishes();
        self.stage.send_replace(Stage::Stopped {
            last: Some(failure),
        });
    }
}

impl Keeper {
    /// A wish that came while the server was starting was granted or refused by that start; left
    /// standing, it would start the server again for nobody.
    fn forget_wishes(&self) {
        let mut wish = std::pin::pin!(self.wanted.notified());
        let _ = wish.as_mut().enable();
    }
}

/// The ways in which a connection ends.
enum End {
    Stop,
    ByItself,
    Idle,
    Retired,
}

/// Waits for the child itself and no further: under a wrapper that was killed, the server may live
/// on and be called, and the wrapper must not stay a zombie.
async fn reap_leader(running: Option<&mut Running>) -> Infallible {
    if let Some(running) = running {
        running.reap_leader().await;
    }
    std::future::pending().await
}

/// Returns when nobody has used the connection for so long, and closes it to further uses.
async fn idle(link: &Link, timeout: Option<Duration>) {
    let Some(timeout) = timeout else {
        return std::future::pending().await;
    };
    while !link.activity().close_if_idle(timeout) {
        sleep_until(link.activity().idle_at(timeout)).await;
    }
}

/// Returns when the server has no place any more and its calls are done.
async fn retired(link: &Link, retired: &CancellationToken) {
    retired.cancelled().await;
    link.activity().close_when_unused().await;
}

/// Doubles with each failure, and varies by a quarter so that servers that failed together do
/// not start together.
fn rest(tries: u32) -> Duration {
    let doubled = REST_MIN
        .saturating_mul(1 << (tries - 1).min(16))
        .min(REST_MAX);
    let mut byte = [0];
    // Without randomness the rest is merely not varied.
    let _ = getrandom::fill(&mut byte);
    doubled.mul_f64(1.0 - f64::from(byte[0]) / 255.0 / 4.0)
}

impl Server {
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
                    if asked || rest > REST_WAIT_MAX {
                        return Err(NotReady { failure, tries });
                    }
                }
                Stage::Ended => return Err(ended()),
            }
            if stage.changed().await.is_err() {
                return Err(ended());
            }
        }
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

    /// Lets it finish its calls, and no more.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.is_cancelled()
    }

    pub(crate) fn state(&self, client: Option<u64>, memory: &HashMap<i32, u64>) -> ServerState {
        let state = match &*self.stage.borrow() {
            Stage::Stopped { .. } | Stage::Ended => State::Stopped,
            Stage::Starting => State::Starting,
            Stage::Ready(_) => State::Ready,
            Stage::Resting { .. } => State::Resting,
        };
        self.vitals.state(&self.spec, state, client, memory)
    }

    /// Why the server that was ready a moment ago is gone.
    pub(crate) async fn exit_reason(&self) -> Failure {
        let mut stage = self.stage.clone();
        let told = timeout(EXIT_REASON_WAIT, async {
            loop {
                match stage.borrow_and_update().clone() {
                    Stage::Stopped {
                        last: Some(failure),
                    }
                    | Stage::Resting { failure, .. } => {
                        return failure;
                    }
                    _ => {}
                }
                if stage.changed().await.is_err() {
                    return ended().failure;
                }
            }
        });
        told.await
            .unwrap_or_else(|_| Failure::new("it ended under the call"))
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

fn ended() -> NotReady {
    let failure = Failure::new("the proxy is stopping");
    NotReady { failure, tries: 0 }
}
