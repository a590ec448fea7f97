//! Calls that a person allowed for a session, and calls that wait for their answer.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use ::policy::Allowance;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The most that one session remembers; after that a person is asked again.
const ALLOWED_MAX: usize = 1_000;

/// Answers of the person of one session, or of one request that stands alone.
#[derive(Debug)]
pub(crate) struct Allowed {
    scope: Scope,
    state: Mutex<State>,
}

/// How long "this session" lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Session,
    Request,
}

#[derive(Debug, Default)]
struct State {
    allowed: HashSet<String>,
    /// Calls that were refused, and the number of arrivals by then: the answer is that of the calls
    /// that waited for it.
    refused: HashMap<String, u64>,
    arrivals: u64,
    waiting: usize,
    turns: HashMap<String, Arc<AsyncMutex<()>>>,
}

impl Allowed {
    pub(crate) fn new(scope: Scope) -> Self {
        Self {
            scope,
            state: Mutex::default(),
        }
    }

    pub(crate) fn is_of_session(&self) -> bool {
        self.scope == Scope::Session
    }

    pub(crate) fn has(&self, call: &str) -> bool {
        self.state.lock().allowed.contains(call)
    }

    /// Waits until the person is asked nothing else. A client of a request that stands alone takes
    /// several questions at once, so there only calls of one key wait for one another.
    pub(crate) async fn take_turn(&self, call: String) -> Turn<'_> {
        let (arrival, turn) = {
            let mut state = self.state.lock();
            state.arrivals += 1;
            state.waiting += 1;
            let of = if self.is_of_session() { "" } else { &call };
            let turn = Arc::clone(state.turns.entry(of.to_owned()).or_default());
            (state.arrivals, turn)
        };
        let waiting = Waiting {
            allowed: self,
            call,
            arrival,
        };
        Turn {
            _guard: turn.lock_owned().await,
            waiting,
        }
    }
}

/// A call that waits for an answer, or for its turn to be asked about.
#[derive(Debug)]
struct Waiting<'a> {
    allowed: &'a Allowed,
    call: String,
    arrival: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.allowed.state.lock();
        state.waiting -= 1;
        if state.waiting == 0 {
            state.refused.clear();
            state.turns.clear();
        }
    }
}

/// A call whose person may be asked; the next one waits until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    waiting: Waiting<'a>,
    _guard: OwnedMutexGuard<()>,
}

impl Turn<'_> {
    /// The answer that was given while it waited: whether the call is allowed.
    pub(crate) fn find_answer(&self) -> Option<bool> {
        let Waiting {
            allowed,
            call,
            arrival,
        } = &self.waiting;
        let state = allowed.state.lock();
        if state.allowed.contains(call) {
            return Some(true);
        }
        let refused = state.refused.get(call);
        refused
            .is_some_and(|arrivals| arrival <= arrivals)
            .then_some(false)
    }

    /// Allows the call for as long as the scope lasts.
    pub(crate) fn allow(&self) {
        let mut state = self.waiting.allowed.state.lock();
        if state.allowed.len() < ALLOWED_MAX {
            state.allowed.insert(self.waiting.call.clone());
        }
    }

    /// Refuses the calls of the same key that wait; a later one is asked about again.
    pub(crate) fn refuse(&self) {
        let mut state = self.waiting.allowed.state.lock();
        let arrivals = state.arrivals;
        state.refused.insert(self.waiting.call.clone(), arrivals);
    }
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
