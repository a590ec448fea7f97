//! The one task that owns a server: it starts it when somebody wants it, watches it, and ends
//! it.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    Era, ServerSpec,
    child::Running,
    error::Failure,
    limits::{HEALTHY_AFTER, OBITUARY_WAIT, REST_MAX, REST_MIN, REST_WAIT_MAX},
    link::Link,
};

/// What a server is doing now.
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

/// What everybody but the keeper holds of a server.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) spec: Arc<ServerSpec>,
    stage: watch::Receiver<Stage>,
    wanted: Arc<Notify>,
}

/// Why a server is not ready.
#[derive(Debug)]
pub(crate) struct NotReady {
    pub(crate) failure: Failure,
    pub(crate) tries: u32,
}

pub(crate) struct Keeper {
    spec: Arc<ServerSpec>,
    stage: watch::Sender<Stage>,
    wanted: Arc<Notify>,
    stop: CancellationToken,
    /// Failures in a row.
    tries: u32,
    /// The era that worked last, so that no start pays for a wrong guess twice.
    is_modern: AtomicBool,
}

impl Keeper {
    pub(crate) fn new(spec: ServerSpec, stop: CancellationToken) -> (Self, Server) {
        let spec = Arc::new(spec);
        let (sender, stage) = watch::channel(Stage::Stopped { last: None });
        let wanted = Arc::new(Notify::new());
        let server = Server {
            spec: Arc::clone(&spec),
            stage,
            wanted: Arc::clone(&wanted),
        };
        let is_modern = AtomicBool::new(spec.era == Some(Era::Modern));
        let keeper = Self {
            spec,
            stage: sender,
            wanted,
            stop,
            tries: 0,
            is_modern,
        };
        (keeper, server)
    }

    /// Runs until told to stop. Each line is one stage of the server's life.
    pub(crate) async fn run(mut self) {
        while self.stopped().await.is_continue() {
            if let Some((link, running)) = self.starting().await {
                self.ready(link, running).await;
            }
            self.resting().await;
        }
        self.stage.send_replace(Stage::Ended);
    }

    async fn stopped(&self) -> ControlFlow<()> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => ControlFlow::Break(()),
            () = self.wanted.notified() => ControlFlow::Continue(()),
        }
    }

    async fn starting(&mut self) -> Option<(Arc<Link>, Option<Running>)> {
        self.stage.send_replace(Stage::Starting);
        let began = Instant::now();
        let opened = {
            let opening = Link::open(&self.spec, self.era());
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
                info!(server, pid, ms = began.elapsed().as_millis(), "ready");
                self.is_modern
                    .store(link.about().era() == Era::Modern, Ordering::Relaxed);
                Some((Arc::new(link), running))
            }
            Err(failure) => {
                warn!(server, %failure, "did not start");
                self.fail(failure);
                None
            }
        }
    }

    fn era(&self) -> Era {
        if self.is_modern.load(Ordering::Relaxed) {
            Era::Modern
        } else {
            Era::Legacy
        }
    }

    async fn ready(&mut self, link: Arc<Link>, mut running: Option<Running>) {
        let began = Instant::now();
        self.stage.send_replace(Stage::Ready(Arc::clone(&link)));
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = link.ended() => {
                let failure = match &mut running {
                    Some(running) => running.autopsy().await,
                    None => Failure::new("the connection ended"),
                };
                warn!(server = %self.spec.name, %failure, "ended by itself");
                if began.elapsed() >= HEALTHY_AFTER {
                    self.tries = 0;
                }
                self.fail(failure);
            }
        }
        link.close().await;
        if let Some(running) = running {
            running.stop().await;
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
    pub(crate) async fn ready(&self) -> Result<Arc<Link>, NotReady> {
        let mut stage = self.stage.clone();
        let mut asked = false;
        loop {
            let now = stage.borrow_and_update().clone();
            match now {
                Stage::Ready(link) if !link.has_ended() => return Ok(link),
                Stage::Ready(_) => {}
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

    /// Why the server that was ready a moment ago is gone.
    pub(crate) async fn obituary(&self) -> Failure {
        let mut stage = self.stage.clone();
        let told = timeout(OBITUARY_WAIT, async {
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
