//! The uses of a connection, and since when there is none.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// Counts the users of one connection. The keeper closes it only between two uses, so no call is
/// ever sent into a connection that is being stopped for idleness.
#[derive(Debug)]
pub(crate) struct Activity {
    state: Mutex<UseState>,
    unused: Notify,
}

#[derive(Debug)]
struct UseState {
    users: usize,
    idle_since: Instant,
    phase: UsePhase,
    /// True if it is to be closed as soon as it is unused, unless it is called before that.
    is_spare: bool,
    was_called: bool,
    /// When it last answered a call.
    answered: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UsePhase {
    Open,
    /// It is to be closed as soon as it is unused.
    Leaving,
    Closed,
}

impl UseState {
    /// Returns true if it is spare, and was not called.
    fn is_unneeded(&self) -> bool {
        self.is_spare && !self.was_called
    }
}

/// One use of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease(Arc<Activity>);

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        let state = UseState {
            users: 0,
            idle_since: Instant::now(),
            phase: UsePhase::Open,
            is_spare: false,
            was_called: false,
            answered: None,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            unused: Notify::new(),
        })
    }

    /// `None` once the connection was closed.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Lease> {
        let mut state = self.state.lock();
        if state.phase == UsePhase::Closed {
            return None;
        }
        state.users += 1;
        Some(Lease(Arc::clone(self)))
    }

    pub(crate) fn is_used(&self) -> bool {
        self.state.lock().users > 0
    }

    /// The earliest moment at which it can have been idle for so long.
    pub(crate) fn idle_at(&self, idle: Duration) -> Instant {
        let state = self.state.lock();
        let since = if state.users > 0 {
            Instant::now()
        } else {
            state.idle_since
        };
        since + idle
    }

    pub(crate) fn close_if_idle(&self, idle: Duration) -> bool {
        let mut state = self.state.lock();
        let is_idle = state.users == 0 && state.idle_since.elapsed() >= idle;
        if is_idle {
            state.phase = UsePhase::Closed;
        }
        is_idle
    }

    pub(crate) async fn close_when_unused(&self) {
        {
            let mut state = self.state.lock();
            if state.phase == UsePhase::Open {
                state.phase = UsePhase::Leaving;
            }
        }
        self.close_when(|_| true).await;
    }

    async fn close_when(&self, may_close: impl Fn(&UseState) -> bool) {
        loop {
            let unused = self.unused.notified();
            {
                let mut state = self.state.lock();
                if state.users == 0 && may_close(&state) {
                    state.phase = UsePhase::Closed;
                    return;
                }
            }
            unused.await;
        }
    }

    /// Takes note of a call, which may leave something behind in the server; surveys do not.
    pub(crate) fn note_call(&self) {
        self.state.lock().was_called = true;
    }

    pub(crate) fn note_answer(&self) {
        self.state.lock().answered = Some(Instant::now());
    }

    /// The time since it last answered a call; none if it never has.
    pub(crate) fn answered_ago(&self) -> Option<Duration> {
        Some(self.state.lock().answered?.elapsed())
    }

    /// Marks it to be closed as soon as it is unused, unless a call was made or is made before that.
    pub(crate) fn set_spare(&self) {
        self.state.lock().is_spare = true;
        self.unused.notify_waiters();
    }

    /// Waits until it is spare and unused, and closes it.
    pub(crate) async fn close_when_spare(&self) {
        self.close_when(UseState::is_unneeded).await;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.users -= 1;
        state.idle_since = Instant::now();
        // The keeper is woken only if it waits for this.
        let is_leaving = state.phase == UsePhase::Leaving;
        let is_last = state.users == 0 && (is_leaving || state.is_unneeded());
        drop(state);
        if is_last {
            self.0.unused.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::time::{Instant, advance};

    use super::Activity;

    const IDLE: Duration = Duration::from_mins(5);

    #[tokio::test(start_paused = true)]
    async fn a_connection_in_use_is_never_idle() {
        let activity = Activity::new();
        let lease = activity.begin().expect("open");
        advance(IDLE * 2).await;
        assert!(!activity.close_if_idle(IDLE));
        drop(lease);
        assert_eq!(activity.idle_at(IDLE), Instant::now() + IDLE);
        advance(IDLE.saturating_sub(Duration::from_secs(1))).await;
        assert!(!activity.close_if_idle(IDLE));
        advance(Duration::from_secs(1)).await;
        assert!(activity.close_if_idle(IDLE));
        assert!(activity.begin().is_none());
    }

    #[tokio::test]
    async fn a_spare_connection_is_closed_after_its_last_use_unless_it_was_called() {
        let close = |activity: &Arc<Activity>| {
            let activity = Arc::clone(activity);
            tokio::spawn(async move { activity.close_when_spare().await })
        };
        let activity = Activity::new();
        let closing = close(&activity);
        let survey = activity.begin().expect("open");
        activity.set_spare();
        tokio::task::yield_now().await;
        assert!(!closing.is_finished());
        drop(activity.begin().expect("still open"));
        drop(survey);
        closing.await.expect("it ends");
        assert!(activity.begin().is_none());

        let activity = Activity::new();
        let closing = close(&activity);
        let call = activity.begin().expect("open");
        activity.set_spare();
        activity.note_call();
        drop(call);
        tokio::task::yield_now().await;
        assert!(!closing.is_finished());
        assert!(activity.begin().is_some());
        closing.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_to_go_waits_for_its_last_use() {
        let activity = Activity::new();
        let lease = activity.begin().expect("open");
        let closing = tokio::spawn({
            let activity = Arc::clone(&activity);
            async move { activity.close_when_unused().await }
        });
        advance(IDLE).await;
        let later = activity.begin().expect("still open");
        drop(lease);
        advance(IDLE).await;
        assert!(!closing.is_finished());
        drop(later);
        closing.await.expect("it ends");
        assert!(activity.begin().is_none());
    }
}
