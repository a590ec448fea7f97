//! The uses of a connection, and since when there is none.

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::Instant};

/// Counts the users of one connection. The keeper closes it only between two uses, so no call is
/// ever sent into a connection that is being stopped for idleness.
#[derive(Debug)]
pub(crate) struct Activity {
    state: Mutex<State>,
    unused: Notify,
}

#[derive(Debug)]
struct State {
    users: usize,
    idle_since: Instant,
    is_closed: bool,
    /// It is closed as soon as nobody uses it, and to further uses at once.
    is_shut: bool,
    was_called: bool,
    /// When it last answered a call.
    answered: Option<Instant>,
}

/// One use of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease(Arc<Activity>);

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        let state = State {
            users: 0,
            idle_since: Instant::now(),
            is_closed: false,
            is_shut: false,
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
        let mut state = self.lock();
        if state.is_closed || state.is_shut {
            return None;
        }
        state.users += 1;
        Some(Lease(Arc::clone(self)))
    }

    /// The earliest moment at which it can have been idle for so long.
    pub(crate) fn idle_at(&self, idle: Duration) -> Instant {
        let state = self.lock();
        let since = if state.users > 0 {
            Instant::now()
        } else {
            state.idle_since
        };
        since + idle
    }

    /// Closes it if nobody has used it for so long.
    pub(crate) fn close_if_idle(&self, idle: Duration) -> bool {
        let mut state = self.lock();
        state.is_closed = state.users == 0 && state.idle_since.elapsed() >= idle;
        state.is_closed
    }

    /// Closes it as soon as nobody uses it.
    pub(crate) async fn close_when_unused(&self) {
        loop {
            let unused = self.unused.notified();
            if self.close_if_idle(Duration::ZERO) {
                return;
            }
            unused.await;
        }
    }

    /// Takes note of a call, which may leave something behind in the server; surveys do not.
    pub(crate) fn note_call(&self) {
        self.lock().was_called = true;
    }

    /// Takes note of the answer to a call.
    pub(crate) fn note_answer(&self) {
        self.lock().answered = Some(Instant::now());
    }

    /// How long ago it last answered a call.
    pub(crate) fn answered_ago(&self) -> Option<Duration> {
        Some(self.lock().answered?.elapsed())
    }

    /// Closes it to further uses unless it was called.
    pub(crate) fn shut_if_never_called(&self) {
        let mut state = self.lock();
        state.is_shut |= !state.was_called;
        drop(state);
        self.unused.notify_waiters();
    }

    /// Waits until it is shut and nobody uses it.
    pub(crate) async fn shut(&self) {
        loop {
            let unused = self.unused.notified();
            let is_over = {
                let state = self.lock();
                state.is_shut && state.users == 0
            };
            if is_over {
                return;
            }
            unused.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.users -= 1;
        state.idle_since = Instant::now();
        drop(state);
        self.0.unused.notify_waiters();
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
    async fn a_connection_is_shut_for_another_only_before_its_first_call() {
        let activity = Activity::new();
        let survey = activity.begin().expect("open");
        activity.shut_if_never_called();
        assert!(activity.begin().is_none());
        let shut = tokio::spawn({
            let activity = Arc::clone(&activity);
            async move { activity.shut().await }
        });
        tokio::task::yield_now().await;
        assert!(!shut.is_finished());
        drop(survey);
        shut.await.expect("it ends");

        let activity = Activity::new();
        activity.note_call();
        activity.shut_if_never_called();
        assert!(activity.begin().is_some());
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
