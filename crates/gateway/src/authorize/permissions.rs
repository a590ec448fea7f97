//! Calls that a person allowed for a session, and calls that wait for their answer.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The most remembered answers of either kind; beyond it a person is asked again.
const ANSWERS_MAX: usize = 1_000;

/// Answers of the person of one session, or of one request that stands alone.
#[derive(Debug)]
pub(crate) struct Permissions {
    scope: PermissionScope,
    state: Mutex<PermissionState>,
}

/// The scope of "this session".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionScope {
    Session,
    Request,
}

#[derive(Debug, Default)]
struct PermissionState {
    allowed: HashSet<String>,
    /// Refused calls, each with the number of arrivals at that moment: the refusal applies to all
    /// calls that had arrived before it.
    refused: HashMap<String, u64>,
    turns: HashMap<String, Arc<AsyncMutex<()>>>,
    arrivals: u64,
    under_way: usize,
}

impl Permissions {
    pub(crate) fn new(scope: PermissionScope) -> Self {
        Self {
            scope,
            state: Mutex::default(),
        }
    }

    pub(crate) fn is_of_session(&self) -> bool {
        self.scope == PermissionScope::Session
    }

    pub(crate) fn has(&self, call: &str) -> bool {
        self.state.lock().allowed.contains(call)
    }

    /// Counts a call that arrives now.
    pub(crate) fn arrive(self: &Arc<Self>) -> Arrival {
        let mut state = self.state.lock();
        state.arrivals += 1;
        state.under_way += 1;
        Arrival {
            allowed: Arc::clone(self),
            number: state.arrivals,
        }
    }
}

/// A call from its arrival to its end.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) allowed: Arc<Permissions>,
    number: u64,
}

impl Arrival {
    /// Waits until the person has no other open question. A client whose requests stand alone
    /// accepts several questions at once, so there only calls of one key wait for one another.
    pub(crate) async fn take_turn(&self, call: String) -> QuestionTurn<'_> {
        let of = if self.allowed.is_of_session() {
            ""
        } else {
            &call
        };
        let turn = {
            let mut state = self.allowed.state.lock();
            Arc::clone(state.turns.entry(of.to_owned()).or_default())
        };
        QuestionTurn {
            _guard: turn.lock_owned().await,
            arrival: self,
            call,
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let mut state = self.allowed.state.lock();
        state.under_way -= 1;
        if state.under_way == 0 {
            state.refused.clear();
            state.turns.clear();
        }
    }
}

/// The turn of a call whose person may be asked; the next call waits until it is dropped.
#[derive(Debug)]
pub(crate) struct QuestionTurn<'a> {
    arrival: &'a Arrival,
    call: String,
    _guard: OwnedMutexGuard<()>,
}

impl QuestionTurn<'_> {
    /// The answer that was given since the call arrived: true if the call is allowed.
    pub(crate) fn find_answer(&self) -> Option<bool> {
        let state = self.arrival.allowed.state.lock();
        if state.allowed.contains(&self.call) {
            return Some(true);
        }
        let arrivals = state.refused.get(&self.call)?;
        (self.arrival.number <= *arrivals).then_some(false)
    }

    /// Allows the call for the lifetime of the scope.
    pub(crate) fn allow(&self) {
        let mut state = self.arrival.allowed.state.lock();
        if state.allowed.len() < ANSWERS_MAX {
            state.allowed.insert(self.call.clone());
        }
    }

    /// Refuses the calls of the same key that have arrived; the person is asked again about later
    /// ones.
    pub(crate) fn refuse(&self) {
        let mut state = self.arrival.allowed.state.lock();
        let arrivals = state.arrivals;
        if state.refused.len() < ANSWERS_MAX {
            state.refused.insert(self.call.clone(), arrivals);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join_all};

    use super::*;

    /// Three calls take turns, two of them for the same thing.
    async fn take_turns(scope: PermissionScope) -> Vec<&'static str> {
        let allowed = Arc::new(Permissions::new(scope));
        let calls = [(); 3].map(|()| allowed.arrive());
        let mut order = Vec::new();
        let first = calls[0].take_turn("a".to_owned()).await;
        let mut same = Box::pin(calls[1].take_turn("a".to_owned()));
        let mut other = Box::pin(calls[2].take_turn("b".to_owned()));
        assert!(same.as_mut().now_or_never().is_none(), "it waits");
        if let Some(other) = other.as_mut().now_or_never() {
            assert_eq!(other.find_answer(), None);
            order.push("other at once");
        }
        first.refuse();
        drop(first);
        assert_eq!(same.await.find_answer(), Some(false));
        order.push("same");
        if order.len() == 1 {
            assert_eq!(other.await.find_answer(), None);
            order.push("other");
        }
        let arrival = allowed.arrive();
        let later = arrival.take_turn("a".to_owned()).await;
        assert_eq!(later.find_answer(), None, "a later call is asked about");
        later.allow();
        drop(later);
        assert!(allowed.has("a") && !allowed.has("b"));
        order
    }

    #[tokio::test]
    async fn a_no_settles_the_calls_that_had_come_before_it() {
        assert_eq!(
            take_turns(PermissionScope::Session).await,
            ["same", "other"]
        );
        // Questions of one request go out together.
        let order = take_turns(PermissionScope::Request).await;
        assert_eq!(order, ["other at once", "same"]);
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_no_once_its_calls_have_ended() {
        let allowed = Arc::new(Permissions::new(PermissionScope::Session));
        let calls: Vec<Arrival> = (0..50).map(|_| allowed.arrive()).collect();
        let turn = calls[0].take_turn("a".to_owned()).await;
        turn.refuse();
        let waiting = calls.iter().map(|call| call.take_turn("a".to_owned()));
        assert!(join_all(waiting).now_or_never().is_none(), "they wait");
        drop(turn);
        drop(calls);
        let state = allowed.state.lock();
        assert_eq!(
            (state.under_way, state.refused.len(), state.turns.len()),
            (0, 0, 0)
        );
    }
}
