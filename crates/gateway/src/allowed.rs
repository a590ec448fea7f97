//! What a person allowed: for a session, or for good.

use std::{collections::HashSet, fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard};

/// The most that one session remembers; after that a person is asked again.
const ALLOWED_MAX: usize = 1_000;

/// What the person of one session allowed for as long as it lasts.
#[derive(Debug, Default)]
pub(crate) struct Allowed {
    calls: Mutex<HashSet<String>>,
    /// A person is asked one thing after another: an answer may settle the next.
    turns: AsyncMutex<()>,
}

impl Allowed {
    pub(crate) fn has(&self, call: &str) -> bool {
        self.calls.lock().contains(call)
    }

    pub(crate) fn add(&self, call: String) {
        let mut allowed = self.calls.lock();
        if allowed.len() < ALLOWED_MAX {
            allowed.insert(call);
        }
    }

    /// Waits until the person is asked nothing else.
    pub(crate) async fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turns.lock().await
    }
}

/// A call that a person allows for good: a rule to be put before the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// `tool`, `prompt` or `resource`.
    pub key: &'static str,
    /// The server.
    pub server: String,
    /// The own name of the tool or prompt, or the resource's URI.
    pub name: String,
    /// The client that it is for; empty: a person at the command line.
    pub client: String,
}

/// Writes an allowance down; the error is in a person's words. May block.
#[derive(Clone)]
pub struct OnAlways(Arc<Write>);

type Write = dyn Fn(&Allowance) -> Result<(), String> + Send + Sync;

impl OnAlways {
    /// Made of what writes.
    pub fn new(write: impl Fn(&Allowance) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    pub(crate) fn write(&self, allowance: &Allowance) -> Result<(), String> {
        (self.0)(allowance)
    }
}

impl fmt::Debug for OnAlways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnAlways")
    }
}
