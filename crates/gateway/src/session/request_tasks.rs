//! The tasks that answer the requests of one client.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::out::key;

/// The most calls in progress of one client; a further one is refused.
const CALLS_MAX: usize = 1_024;

/// The most calls that run at one time; the others wait. At most so many responses wait in memory
/// for a client that does not read, besides those in its outbox.
const CALLS_AT_ONCE: usize = 128;

/// The most requests of one client that listen to changes at one time.
const LISTENERS_MAX: usize = 16;

pub(super) struct RequestTasks {
    pub(super) calls: TaskTracker,
    /// Requests that listen to changes; they are answered when the session ends.
    pub(super) listeners: TaskTracker,
    /// One permit per running call; a call that was only read from the input needs none.
    turns: Semaphore,
    /// By the key of their request id.
    running: Mutex<HashMap<String, CancellationToken>>,
    /// Cancelled when the client is gone.
    pub(super) gone: CancellationToken,
}

impl RequestTasks {
    pub(super) fn new(gone: CancellationToken) -> Self {
        Self {
            calls: TaskTracker::new(),
            listeners: TaskTracker::new(),
            turns: Semaphore::new(CALLS_AT_ONCE),
            running: Mutex::default(),
            gone,
        }
    }

    /// Registers a call and returns the token that cancels it, or why it is refused.
    pub(super) fn begin_call(&self, id: &str) -> Result<CancellationToken, String> {
        if self.calls.len() >= CALLS_MAX {
            return Err(format!("more than {CALLS_MAX} calls under way"));
        }
        Ok(self.begin(id))
    }

    /// Registers a request that listens, and returns the token that cancels it, or why it is refused.
    pub(super) fn begin_listener(&self, id: &str) -> Result<CancellationToken, String> {
        if self.listeners.len() >= LISTENERS_MAX {
            return Err(format!("more than {LISTENERS_MAX} requests to listen"));
        }
        Ok(self.begin(id))
    }

    fn begin(&self, id: &str) -> CancellationToken {
        let cancel = self.gone.child_token();
        self.running.lock().insert(key(id), cancel.clone());
        cancel
    }

    /// Waits until the call may run; `None` if it is cancelled first.
    pub(super) async fn take_turn(
        &self,
        cancel: &CancellationToken,
    ) -> Option<SemaphorePermit<'_>> {
        if let Ok(turn) = self.turns.try_acquire() {
            return Some(turn);
        }
        let turn = cancel.run_until_cancelled(self.turns.acquire()).await;
        turn.and_then(Result::ok)
    }

    /// Removes a request that needs no cancellation any more.
    pub(super) fn remove(&self, id: &str) {
        self.running.lock().remove(&key(id));
    }

    /// Cancels a request by its id in any spelling, if it is one of these.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let request = self.running.lock().get(&key(id)).cloned();
        request.inspect(CancellationToken::cancel).is_some()
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Waits until the calls have finished, for `grace` at most; then cancels the others.
    pub(super) async fn end_calls(&self, grace: Duration) {
        self.calls.close();
        let _ = timeout(grace, self.calls.wait()).await;
        self.gone.cancel();
        self.calls.wait().await;
    }

    /// Waits until the requests that listen were answered, for `wait` at most.
    pub(super) async fn end_listeners(&self, wait: Duration) {
        self.listeners.close();
        let _ = timeout(wait, self.listeners.wait()).await;
    }
}
