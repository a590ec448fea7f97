//! Turns of sessions: calls of one session at a time, in the order in which they came.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// A session; none is a caller without one.
type Session = Option<u64>;

/// Counts the calls under way by session, and lets in those of another session when they are over.
/// A call waits behind those that wait already, so no session keeps the others out.
#[derive(Debug, Default, Clone)]
pub(crate) struct SessionTurns {
    state: Arc<Mutex<State>>,
    /// Somebody has begun to wait.
    wanted: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<Session, usize>,
    waiting: VecDeque<(Session, oneshot::Sender<Turn>)>,
}

/// A call under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: SessionTurns,
    session: Session,
}

impl SessionTurns {
    /// `waits`: no call of another session may be under way.
    pub(crate) async fn enter(&self, session: Session, waits: bool) -> Turn {
        let turn = {
            let mut state = self.state.lock();
            if !waits || state.waiting.is_empty() && state.admits(session) {
                return self.admit(&mut state, session);
            }
            let (sender, turn) = oneshot::channel();
            state.waiting.push_back((session, sender));
            turn
        };
        self.wanted.notify_waiters();
        turn.await
            .expect("a waiting call is kept until it is let in")
    }

    /// Waits until somebody waits.
    pub(crate) async fn until_wanted(&self) {
        loop {
            let wanted = self.wanted.notified();
            if self.state.lock().is_wanted() {
                return;
            }
            wanted.await;
        }
    }

    fn admit(&self, state: &mut State, session: Session) -> Turn {
        *state.calls.entry(session).or_default() += 1;
        Turn {
            turns: self.clone(),
            session,
        }
    }

    /// Lets in those at the head of the queue. One that waits no more gives its turn back at once.
    fn admit_waiting(&self) {
        loop {
            let (sender, turn) = {
                let mut state = self.state.lock();
                let next = state.waiting.front().map(|(session, _)| *session);
                if !next.is_some_and(|session| state.admits(session)) {
                    return;
                }
                let Some((session, sender)) = state.waiting.pop_front() else {
                    return;
                };
                (sender, self.admit(&mut state, session))
            };
            let _ = sender.send(turn);
        }
    }
}

impl State {
    fn is_wanted(&self) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|(_, turn)| !turn.is_closed())
    }

    fn admits(&self, session: Session) -> bool {
        self.calls.keys().all(|under_way| *under_way == session)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        if let Some(calls) = state.calls.get_mut(&self.session) {
            *calls -= 1;
            if *calls == 0 {
                state.calls.remove(&self.session);
            }
        }
        drop(state);
        self.turns.admit_waiting();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn calls_of_one_session_go_together_and_of_two_in_turn() {
        let turns = SessionTurns::default();
        let first = turns.enter(Some(1), false).await;
        let also_first = turns.enter(Some(1), true).await;
        let mut second = Box::pin(turns.enter(Some(2), true));
        assert!((&mut second).now_or_never().is_none());
        // It came later than the other session, and waits behind it.
        let mut late = Box::pin(turns.enter(Some(1), true));
        assert!((&mut late).now_or_never().is_none());
        drop(first);
        assert!((&mut second).now_or_never().is_none());
        drop(also_first);
        let turn = second.await;
        assert!((&mut late).now_or_never().is_none());
        drop(turn);
        drop(late.await);
    }

    #[tokio::test]
    async fn one_that_waits_no_more_keeps_nobody_out() {
        let turns = SessionTurns::default();
        let first = turns.enter(Some(1), true).await;
        let mut given_up = Box::pin(turns.enter(Some(2), true));
        assert!((&mut given_up).now_or_never().is_none());
        let mut third = Box::pin(turns.enter(Some(3), true));
        assert!((&mut third).now_or_never().is_none());
        drop(given_up);
        drop(first);
        third.await;
    }
}
