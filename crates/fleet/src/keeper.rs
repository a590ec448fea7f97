//! The task that owns a server: it starts the server on demand, supervises it, and ends it.

#[cfg(test)]
mod tests;

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use futures::FutureExt as _;
use processes::Pace;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    ServerSpec,
    asking::Asking,
    changes::{Changes, OnListChanged},
    child::{Running, Surroundings},
    ending::Ending,
    eras::{Era, Eras},
    error::Failure,
    limits::{
        HEALTHY_AFTER, IN_USE_WITHIN, LAUNCHED_ANSWER_WAIT, ORPHAN_ANSWER_WAIT, REST_MAX, REST_MIN,
    },
    link::{Link, OpenError, Opening},
    roots::Roots,
    secrets_named::{forget_printed, have_printed, with_secrets},
    server::{Place, Server, Stage},
    taken::{Taken, templates},
    vitals::Vitals,
};

pub(crate) struct Keeper {
    spec: Arc<ServerSpec>,
    taken: Arc<Taken>,
    surroundings: Arc<Surroundings>,
    changes: Arc<Changes>,
    stage: watch::Sender<Stage>,
    wanted: Arc<Notify>,
    rested: Arc<Notify>,
    vitals: Arc<Vitals>,
    asking: Arc<Asking>,
    ending: Ending,
    /// Its calls may finish; then it ends.
    retired: CancellationToken,
    /// Whose place it takes: it starts nothing before that one has ended.
    before: Option<watch::Receiver<Stage>>,
    /// Failures in a row.
    tries: u32,
    era: Era,
    eras: Arc<Eras>,
    /// The same server in its newest revision, where this one is spoken to otherwise.
    newest: Option<watch::Receiver<Stage>>,
}

impl Keeper {
    pub(crate) fn new(
        spec: ServerSpec,
        taken: Taken,
        surroundings: Arc<Surroundings>,
        changes: Arc<Changes>,
        ending: Ending,
        place: &Place<'_>,
        roots: Roots,
    ) -> (Self, Server) {
        let (server, stage) = Server::new(spec, taken, place, roots, &changes);
        let keeper = Self {
            spec: Arc::clone(&server.spec),
            taken: Arc::clone(&server.taken),
            surroundings,
            changes,
            stage,
            wanted: Arc::clone(&server.wanted),
            rested: Arc::clone(&server.rested),
            vitals: Arc::clone(&server.vitals),
            asking: Arc::clone(&server.asking),
            ending,
            retired: server.retired.clone(),
            before: place.before.map(|it| it.stage.clone()),
            tries: 0,
            era: server.era,
            newest: server.newest.clone(),
            eras: Arc::clone(&server.eras),
        };
        (keeper, server)
    }

    /// Runs until told to stop. Each line is one stage of the server's life.
    pub(crate) async fn run(mut self) {
        self.await_predecessor().await;
        while self.stopped().await.is_continue() {
            if let Some((link, running)) = self.starting().await {
                self.ready(link, running).await;
            }
            self.resting().await;
        }
        self.stage.send_replace(Stage::Ended);
    }

    async fn await_predecessor(&mut self) {
        if let Some(mut before) = self.before.take() {
            let ended = before.wait_for(|stage| matches!(stage, Stage::Ended));
            tokio::select! {
                () = self.ending.begun() => {}
                _ = ended => {}
            }
        }
    }

    async fn stopped(&self) -> ControlFlow<()> {
        tokio::select! {
            biased;
            () = self.ending.begun() => ControlFlow::Break(()),
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
            let opening = self.open(&on_list_changed);
            tokio::select! {
                biased;
                () = self.ending.begun() => return None,
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
                self.eras.note_start(self.era, &link.about().spoken);
                // Its tools may have changed since it last ran.
                self.changes.note(&self.spec.name);
                Some((Arc::new(link), running))
            }
            Err(error) => {
                if self.is_refused(&error) {
                    info!(server, "takes no handshake");
                    // Its callers go to the one that speaks the newest revision.
                    self.retired.cancel();
                } else if self.era == Era::Newest {
                    self.eras.note_failed_start();
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
        let newest = self.newest.as_ref().map(|it| it.borrow().clone());
        let is_down = matches!(
            newest,
            Some(Stage::Resting { .. } | Stage::Stopped { last: Some(_) })
        );
        let may_refuse = match error {
            OpenError::WrongRevision(_) => true,
            OpenError::Unanswered(_) | OpenError::Silent(_) => !is_down,
            OpenError::Failed(_) => false,
        };
        self.era == Era::Handshake && may_refuse && self.eras.note_refusal()
    }

    /// Opens the connection; retries once if the server rejects a secret that a command printed for an
    /// earlier start.
    async fn open(
        &self,
        on_list_changed: &OnListChanged,
    ) -> Result<(Link, Option<Running>), OpenError> {
        let resolver = self.surroundings.secrets.as_deref();
        let has_printed = have_printed(templates(&self.spec), resolver);
        let opened = self.open_once(on_list_changed).await;
        let is_denied = matches!(&opened, Err(OpenError::Failed(failure)) if failure.is_denied);
        if is_denied && self.forget_printed() && has_printed {
            return self.open_once(on_list_changed).await;
        }
        opened
    }

    /// Makes commands that print secrets of the server run again. Returns true if there are any.
    fn forget_printed(&self) -> bool {
        let resolver = self.surroundings.secrets.as_deref();
        forget_printed(templates(&self.spec), resolver)
    }

    async fn open_once(
        &self,
        on_list_changed: &OnListChanged,
    ) -> Result<(Link, Option<Running>), OpenError> {
        let resolver = self.surroundings.secrets.as_deref();
        let named = templates(&self.spec);
        let variables = with_secrets(named, &self.taken.values, resolver).await?;
        let opening = Opening {
            spec: &self.spec,
            variables: &variables,
            surroundings: &self.surroundings,
            on_list_changed,
            asking: &self.asking,
        };
        let guess = self.eras.guess(self.era);
        match self.era {
            Era::Newest => opening
                .open(guess.as_ref())
                .await
                .map_err(OpenError::Failed),
            Era::Handshake => opening.open_with(guess).await,
        }
    }

    async fn ready(&mut self, link: Arc<Link>, mut running: Option<Running>) {
        // Asked now: a child that was waited for has no number any more.
        let pid = running.as_ref().and_then(Running::id);
        let began = Instant::now();
        self.stage.send_replace(Stage::Ready(Arc::clone(&link)));
        let end = tokio::select! {
            biased;
            () = self.ending.begun() => End::Stop,
            () = link.ended() => End::ByItself,
            () = close_when_idle(&link, self.spec.idle_timeout) => End::Idle,
            () = close_when_retired(&link, &self.retired) => End::Retired,
            () = link.activity().close_when_spare() => End::Spare,
            () = be_orphaned(&link, running.as_mut()) => End::ByItself,
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
            let (server, starts) = (self.spec.name.as_str(), self.vitals.starts());
            warn!(server, pid, starts, failure = %why, "ended by itself");
            if began.elapsed() >= HEALTHY_AFTER {
                self.tries = 0;
            }
            link.tell_end(why.clone());
            link.give_up();
            failure = self.rest_unless_it_answered(&link, why);
        }
        link.tell_end(Failure::stopping());
        link.close().await;
        if let Some(running) = running {
            self.stop_child(running, &end).await;
        }
        link.give_up();
        self.vitals.ended();
        if failure.is_some() {
            self.begin_anew(&link, failure);
        }
        if let End::Idle | End::Spare = end {
            let why = match end {
                End::Idle => "nobody called for long",
                _ => "those who call are spoken to with a handshake",
            };
            info!(server = %self.spec.name, why, "stopped");
            self.tries = 0;
            self.forget_wishes();
            self.stage.send_replace(Stage::Stopped { last: None });
        }
    }

    /// Ends the child and all it started, at the pace of those who wait for that.
    async fn stop_child(&self, mut running: Running, end: &End) {
        if let End::Idle | End::Spare = end {
            tokio::select! {
                () = self.ending.begun() => {}
                () = running.stop(Pace::Unhurried) => return,
            }
        }
        tokio::select! {
            () = self.ending.hurried() => {}
            () = running.stop(Pace::Orderly) => return,
        }
        running.stop(Pace::Hurried).await;
    }

    /// A server that had answered may be started again at once; one that had not rests first. Why
    /// it ended, if it may.
    fn rest_unless_it_answered(&mut self, link: &Link, why: Failure) -> Option<Failure> {
        if link.activity().answered_ago().is_some() && !why.is_lasting {
            self.tries = 0;
            return Some(why);
        }
        self.fail(why);
        None
    }

    /// Leaves the server to its next call, or starts it ahead of that if it is in use. It starts so
    /// once at most for each call that it answered.
    fn begin_anew(&self, link: &Link, failure: Option<Failure>) {
        self.forget_wishes();
        self.stage.send_replace(Stage::Stopped { last: failure });
        if link
            .activity()
            .answered_ago()
            .is_some_and(|ago| ago < IN_USE_WITHIN)
        {
            self.wanted.notify_one();
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
        // Said of an earlier rest.
        let _ = self.rested.notified().now_or_never();
        tokio::select! {
            () = self.ending.begun() => {}
            () = self.retired.cancelled() => {}
            () = self.rested.notified() => {}
            () = sleep_until(until) => {}
        }
        self.forget_wishes();
        self.stage.send_replace(Stage::Stopped {
            last: Some(failure),
        });
    }
}

impl Keeper {
    /// Discards requests that came while the server was starting: that start has answered them, and
    /// they would start the server again without a caller.
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
    /// Its callers use another process.
    Spare,
}

/// Returns when the child has exited and no other process answers in its place. A server whose
/// launcher exited continues and is called; a process that merely holds the pipes of a dead server
/// does not answer. The child is reaped, so that it is not a zombie.
async fn be_orphaned(link: &Link, running: Option<&mut Running>) {
    if let Some(running) = running {
        let wait = if running.has_left() {
            LAUNCHED_ANSWER_WAIT
        } else {
            ORPHAN_ANSWER_WAIT
        };
        running.reap_leader().await;
        if !link.answers_within(wait).await {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Returns when the connection was idle for this time, and closes it for further uses.
async fn close_when_idle(link: &Link, timeout: Option<Duration>) {
    let Some(timeout) = timeout else {
        return std::future::pending().await;
    };
    while !link.activity().close_if_idle(timeout) {
        sleep_until(link.activity().idle_at(timeout)).await;
    }
}

/// Returns when the server has no place any more and its calls are done.
async fn close_when_retired(link: &Link, retired: &CancellationToken) {
    retired.cancelled().await;
    link.activity().close_when_unused().await;
}

/// Doubles with each failure, and varies by a quarter so that servers that failed together do
/// not start together.
pub(crate) fn choose_rest(tries: u32) -> Duration {
    let doubled = REST_MIN
        .saturating_mul(1 << (tries - 1).min(16))
        .min(REST_MAX);
    let mut byte = [0];
    // Without randomness the rest is merely not varied.
    let _ = getrandom::fill(&mut byte);
    doubled.mul_f64(1.0 - f64::from(byte[0]) / 255.0 / 4.0)
}
