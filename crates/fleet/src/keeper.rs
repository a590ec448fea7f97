//! The task that owns a server: it starts the server on demand, supervises it, and ends it.

#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use futures::FutureExt as _;
use processes::Pace;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    child::{Running, Surroundings},
    eras::Era,
    error::Failure,
    limits::{
        HEALTHY_AFTER, IN_USE_WITHIN, LAUNCHED_ANSWER_WAIT, ORPHAN_ANSWER_WAIT, REST_MAX, REST_MIN,
    },
    link::{Link, OpenError, Opening},
    secrets_named::{forget_printed, have_printed, with_secrets},
    server::{Server, Stage},
    taken::templates,
};

/// The end of a fleet, which its keepers wait for. A hurry is an end as well.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    /// Cancelled when every server is to end, in order.
    pub(crate) begun: CancellationToken,
    /// Cancelled when every server is to end in a hurry.
    pub(crate) hurried: CancellationToken,
}

impl Ending {
    pub(crate) fn new() -> Self {
        let hurried = CancellationToken::new();
        Self {
            begun: hurried.child_token(),
            hurried,
        }
    }
}

pub(crate) struct Keeper {
    pub(crate) server: Server,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) stage: watch::Sender<Stage>,
    pub(crate) ending: Ending,
    /// The processes that this one replaces. Nothing is started before they have ended.
    pub(crate) before: Vec<watch::Receiver<Stage>>,
    /// Failures in a row.
    pub(crate) tries: u32,
}

impl Keeper {
    /// Runs until the fleet stops or the server is retired. Each line is one stage of its life. The
    /// stages with a large state (11 KB) are boxed, so that a server that is not called does not hold it.
    pub(crate) async fn run(mut self) {
        self.await_predecessors().await;
        while self.stopped().await.is_continue() {
            if let Some((link, running)) = Box::pin(self.starting()).await {
                Box::pin(self.ready(link, running)).await;
            }
            self.resting().await;
        }
        self.stage.send_replace(Stage::Ended);
    }

    async fn await_predecessors(&mut self) {
        for mut before in std::mem::take(&mut self.before) {
            let ended = before.wait_for(|stage| matches!(stage, Stage::Ended));
            let _ = self.ending.begun.run_until_cancelled(ended).await;
        }
    }

    async fn stopped(&self) -> ControlFlow<()> {
        tokio::select! {
            biased;
            () = self.ending.begun.cancelled() => ControlFlow::Break(()),
            () = self.server.retired.cancelled() => ControlFlow::Break(()),
            () = self.server.wanted.notified() => ControlFlow::Continue(()),
        }
    }

    async fn starting(&mut self) -> Option<(Arc<Link>, Option<Running>)> {
        self.stage.send_replace(Stage::Starting);
        let began = Instant::now();
        let opened = tokio::select! {
            biased;
            () = self.ending.begun.cancelled() => return None,
            () = self.server.interrupted.cancelled() => return None,
            opened = self.open() => opened,
        };
        let server = self.server.spec.name.as_str();
        match opened {
            Ok((link, running)) => {
                let pid = running.as_ref().and_then(|it| it.tree.id());
                let starts = self.server.vitals.started(pid);
                let ms = began.elapsed().as_millis();
                info!(server, pid, starts, ms, "ready");
                let eras = &self.server.eras;
                eras.note_start(self.server.era, &link.about.spoken);
                // Its tools may have changed since its last run. The list of one caller says nothing
                // new about that of all.
                if self.server.taken.caller().is_none() {
                    self.server.asking.note_changed_list();
                }
                Some((Arc::new(link), running))
            }
            Err(error) => {
                if self.is_refused(&error) {
                    info!(server, "refused the handshake");
                    // Its callers use the process that speaks the newest revision.
                    self.server.retired.cancel();
                } else if self.server.era == Era::Newest && !self.server.is_spare {
                    self.server.eras.note_failed_start();
                }
                let failure = error.into_failure();
                warn!(server, %failure, "did not start");
                self.fail(failure);
                None
            }
        }
    }

    /// Returns true if a start failed because the server rejects the handshake. If the server may be
    /// down, a missing response does not count as a rejection.
    fn is_refused(&self, error: &OpenError) -> bool {
        let newest = self.server.newest.as_ref().map(|it| it.borrow().clone());
        let is_down = matches!(
            newest,
            Some(Stage::Resting { .. } | Stage::Stopped { last: Some(_) })
        );
        let may_refuse = match error {
            OpenError::WrongRevision(_) => true,
            OpenError::Unanswered(_) | OpenError::Silent(_) => !is_down,
            OpenError::Failed(_) => false,
        };
        self.server.era == Era::Handshake && may_refuse && self.server.eras.note_refusal()
    }

    /// Opens the connection; retries once if the server rejects a secret of its login that a command printed
    /// for an earlier start. The other secrets of a remote server are renewed below
    /// (`wire/address.rs`).
    async fn open(&self) -> Result<(Link, Option<Running>), OpenError> {
        let resolver = self.surroundings.secrets.as_deref();
        let has_printed = have_printed(self.server.spec.login.templates(), resolver);
        let opened = self.open_once().await;
        let is_denied = matches!(&opened, Err(OpenError::Failed(failure)) if failure.is_denied);
        if is_denied && self.forget_printed() && has_printed {
            return self.open_once().await;
        }
        opened
    }

    /// Makes commands that print secrets of the login run again. Returns true if there are any.
    fn forget_printed(&self) -> bool {
        let resolver = self.surroundings.secrets.as_deref();
        forget_printed(self.server.spec.login.templates(), resolver)
    }

    async fn open_once(&self) -> Result<(Link, Option<Running>), OpenError> {
        let resolver = self.surroundings.secrets.as_deref();
        let named = || templates(&self.server.spec);
        let has_printed = have_printed(named(), resolver);
        let variables = with_secrets(named(), &self.server.taken.values, resolver).await?;
        let opening = Opening {
            spec: &self.server.spec,
            variables: &variables,
            surroundings: &self.surroundings,
            asking: &self.server.asking,
            has_printed,
        };
        let guess = self.server.eras.guess(self.server.era);
        match self.server.era {
            Era::Newest => Ok(opening.open(guess.as_ref()).await?),
            Era::Handshake => opening.open_with(guess).await,
        }
    }

    async fn ready(&mut self, link: Arc<Link>, mut running: Option<Running>) {
        // Read now: a child has no process id after it was reaped.
        let pid = running.as_ref().and_then(|it| it.tree.id());
        let began = Instant::now();
        self.stage.send_replace(Stage::Ready(Arc::clone(&link)));
        // From here on, a caller asks for a start only if the connection is closed.
        self.discard_wanted();
        let end = tokio::select! {
            biased;
            () = self.ending.begun.cancelled() => End::Stop,
            () = link.ended() => End::ByItself,
            () = close_when_idle(&link, self.server.spec.idle_timeout) => End::Idle,
            () = close_when_retired(&link, &self.server.retired) => End::Retired,
            () = self.server.interrupted.cancelled() => End::Interrupted,
            () = link.activity.close_when_spare() => End::Spare,
            () = wait_until_orphaned(&link, running.as_mut()) => End::ByItself,
        };
        let mut failure = None;
        if matches!(end, End::ByItself) {
            let mut why = match &mut running {
                Some(running) => running.exit_reason().await,
                None => link.exit_reason(),
            };
            // The server may accept the value that the command prints now.
            if why.is_denied && self.forget_printed() {
                why.is_lasting = false;
            }
            let (server, starts) = (self.server.spec.name.as_str(), self.server.vitals.starts());
            warn!(server, pid, starts, failure = %why, "ended unexpectedly");
            if began.elapsed() >= HEALTHY_AFTER {
                self.tries = 0;
            }
            link.set_end(why.clone());
            link.give_up();
            failure = self.rest_unless_it_answered(&link, why);
        }
        link.set_end(match end {
            End::Interrupted => Failure::restarted(),
            _ => Failure::stopping(),
        });
        link.close().await;
        if let Some(running) = running {
            self.stop_child(running, &end).await;
        }
        link.give_up();
        self.server.vitals.ended();
        if failure.is_some() {
            self.restart(&link, failure);
        }
        if let End::Idle | End::Spare = end {
            let why = match end {
                End::Idle => "it was idle",
                _ => "its callers use the process with a handshake",
            };
            info!(server = %self.server.spec.name, why, "stopped");
            self.tries = 0;
            self.discard_wanted();
            self.stage.send_replace(Stage::Stopped { last: None });
        }
    }

    /// Ends the child and its descendants: faster if a caller waits for the next start, and still faster
    /// if the fleet is stopping, or if the server had its grace before a restart.
    async fn stop_child(&self, mut running: Running, end: &End) {
        if let End::Idle | End::Spare = end {
            tokio::select! {
                () = self.ending.begun.cancelled() => {}
                () = self.server.wanted.notified() => {}
                () = running.stop(Pace::Unhurried) => return,
            }
        }
        if !matches!(end, End::Interrupted) {
            tokio::select! {
                () = self.ending.hurried.cancelled() => {}
                () = running.stop(Pace::Orderly) => return,
            }
        }
        running.stop(Pace::Hurried).await;
    }

    /// Returns the failure of a server that had answered a call: it may restart at once. Any other
    /// server rests first.
    fn rest_unless_it_answered(&mut self, link: &Link, why: Failure) -> Option<Failure> {
        if link.activity.answered_ago().is_some() && !why.is_lasting {
            self.tries = 0;
            return Some(why);
        }
        self.fail(why);
        None
    }

    /// Waits for the next call, or restarts the server at once if it is in use: at most once for each
    /// call that it answered.
    fn restart(&self, link: &Link, failure: Option<Failure>) {
        self.discard_wanted();
        self.stage.send_replace(Stage::Stopped { last: failure });
        let answered_ago = link.activity.answered_ago();
        if answered_ago.is_some_and(|ago| ago < IN_USE_WITHIN) {
            self.server.wanted.notify_one();
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.tries += 1;
        let rest = if failure.is_lasting {
            REST_MAX
        } else {
            choose_rest(self.tries)
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
        // A notification of an earlier rest does not count.
        let _ = self.server.rested.notified().now_or_never();
        tokio::select! {
            () = self.ending.begun.cancelled() => {}
            () = self.server.retired.cancelled() => {}
            () = self.server.rested.notified() => {}
            () = sleep_until(until) => {}
        }
        self.discard_wanted();
        self.stage.send_replace(Stage::Stopped {
            last: Some(failure),
        });
    }

    /// Discards requests for a start that came while the server was starting: they would start it again
    /// without a caller.
    fn discard_wanted(&self) {
        let mut wanted = std::pin::pin!(self.server.wanted.notified());
        let _ = wanted.as_mut().enable();
    }
}

/// The ways in which a connection ends.
enum End {
    Stop,
    ByItself,
    Idle,
    Retired,
    /// It restarts, and calls were still running after their grace.
    Interrupted,
    /// Its callers use another process.
    Spare,
}

/// Returns when the child has exited and no other process answers over its pipes. A server whose
/// launcher exited goes on and is called; a process that only holds the pipes of a dead server open
/// does not answer. The child is reaped, so that it is not a zombie. Without a child it never returns.
async fn wait_until_orphaned(link: &Link, running: Option<&mut Running>) {
    if let Some(running) = running {
        let wait = if running.tree.has_left() {
            LAUNCHED_ANSWER_WAIT
        } else {
            ORPHAN_ANSWER_WAIT
        };
        running.tree.reap_leader().await;
        if !link.answers_within(wait).await {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Waits until the connection was idle for this time, and closes it to further uses.
async fn close_when_idle(link: &Link, timeout: Option<Duration>) {
    let Some(timeout) = timeout else {
        return std::future::pending().await;
    };
    while !link.activity.close_if_idle(timeout) {
        sleep_until(link.activity.idle_at(timeout)).await;
    }
}

/// Waits until the server is retired and its calls have ended.
async fn close_when_retired(link: &Link, retired: &CancellationToken) {
    retired.cancelled().await;
    link.activity.close_when_unused().await;
}

/// Returns the rest before the next start. It doubles with each failure and varies by up to a quarter,
/// so that servers that failed together do not start together.
pub(crate) fn choose_rest(tries: u32) -> Duration {
    let doubled = REST_MIN
        .saturating_mul(1 << (tries - 1).min(16))
        .min(REST_MAX);
    let mut byte = [0];
    // Without random bytes the rest does not vary.
    let _ = getrandom::fill(&mut byte);
    doubled.mul_f64(1.0 - f64::from(byte[0]) / 255.0 / 4.0)
}
