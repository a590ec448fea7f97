//! Turns of sessions: calls of one session at a time, in the order in which they came. Calls that
//! ask their client nothing go together, whichever session makes them.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// A session; none is a caller without one.
pub(crate) type Session = Option<u64>;

/// Counts the calls under way by session, and lets in those of another session when they are over.
/// A call waits behind those that wait already, so no session keeps the others out.
#[derive(Debug, Default, Clone)]
pub(crate) struct SessionTurns {
    state: Arc<Mutex<State>>,
    /// A call has begun to wait.
    wanted: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    under_way: HashMap<Session, UnderWay>,
    /// Sessions whose clients are being asked, and how often.
    asked: HashMap<Session, usize>,
    waiting: VecDeque<Waiting>,
    next: u64,
}

/// The calls of one session that are under way.
#[derive(Debug, Default)]
struct UnderWay {
    /// Calls that may ask.
    asking: usize,
    quiet: usize,
}

/// One call, as far as its turn depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entrant {
    pub(crate) session: Session,
    /// It asks nothing, as far as is known: it may go with quiet calls of other sessions.
    pub(crate) is_quiet: bool,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    entrant: Entrant,
    turn: oneshot::Sender<Turn>,
}

/// A call under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: SessionTurns,
    entrant: Entrant,
}

/// A place in the queue; dropped before its turn, it is given up.
struct Place<'a> {
    turns: &'a SessionTurns,
    number: u64,
    turn: oneshot::Receiver<Turn>,
}

/// The client of a session is being asked, until this is dropped.
#[derive(Debug)]
pub(crate) struct Asked {
    turns: SessionTurns,
    session: Session,
}

impl SessionTurns {
    /// Waits for the turn of a call. `waits`: it matters which calls of other sessions are under
    /// way. Dropping the future gives the place in the queue up.
    pub(crate) async fn enter(&self, entrant: Entrant, waits: bool) -> Turn {
        let mut place = {
            let mut state = self.state.lock();
            let is_next = state.waiting.is_empty() || state.is_asked(entrant.session);
            if !waits || is_next && state.admits(entrant) {
                return self.admit(&mut state, entrant);
            }
            state.next += 1;
            let (number, (sender, turn)) = (state.next, oneshot::channel());
            state.waiting.push_back(Waiting {
                number,
                entrant,
                turn: sender,
            });
            Place {
                turns: self,
                number,
                turn,
            }
        };
        self.wanted.notify_waiters();
        let turn = (&mut place.turn).await;
        turn.expect("a waiting call is kept until it is let in")
    }

    /// Waits until a call of another session waits.
    pub(crate) async fn until_wanted(&self, session: Session) {
        loop {
            let wanted = self.wanted.notified();
            if self.is_wanted(session) {
                return;
            }
            wanted.await;
        }
    }

    /// Returns true if a call of another session waits.
    pub(crate) fn is_wanted(&self, session: Session) -> bool {
        let state = self.state.lock();
        let mut waiting = state.waiting.iter();
        waiting.any(|it| it.entrant.session != session)
    }

    /// Notes that the client of a session is being asked: its further calls wait behind nobody, for
    /// its answer may need them, and those who wait need the answer.
    pub(crate) fn note_asked(&self, session: Session) -> Asked {
        *self.state.lock().asked.entry(session).or_default() += 1;
        self.admit_waiting();
        Asked {
            turns: self.clone(),
            session,
        }
    }

    fn admit(&self, state: &mut State, entrant: Entrant) -> Turn {
        let under_way = state.under_way.entry(entrant.session).or_default();
        *under_way.count(entrant) += 1;
        Turn {
            turns: self.clone(),
            entrant,
        }
    }

    /// Lets in those at the head of the queue, and those of sessions that are asked.
    fn admit_waiting(&self) {
        loop {
            let (sender, turn) = {
                let mut state = self.state.lock();
                let mut waiting = state.waiting.iter().enumerate();
                let next = waiting.position(|(place, it)| {
                    let is_next = place == 0 || state.is_asked(it.entrant.session);
                    is_next && state.admits(it.entrant)
                });
                let Some(next) = next.and_then(|next| state.waiting.remove(next)) else {
                    return;
                };
                (next.turn, self.admit(&mut state, next.entrant))
            };
            // One that gave its place up meanwhile gives its turn back here.
            let _ = sender.send(turn);
        }
    }
}

impl State {
    fn is_asked(&self, session: Session) -> bool {
        self.asked.contains_key(&session)
    }

    fn admits(&self, entrant: Entrant) -> bool {
        let mut others = self.under_way.iter();
        others.all(|(session, calls)| {
            *session == entrant.session || entrant.is_quiet && calls.asking == 0
        })
    }
}

impl UnderWay {
    fn count(&mut self, entrant: Entrant) -> &mut usize {
        if entrant.is_quiet {
            &mut self.quiet
        } else {
            &mut self.asking
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        if let Some(calls) = state.under_way.get_mut(&self.entrant.session) {
            *calls.count(self.entrant) -= 1;
            if calls.asking + calls.quiet == 0 {
                state.under_way.remove(&self.entrant.session);
            }
        }
        drop(state);
        self.turns.admit_waiting();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        state.waiting.retain(|it| it.number != self.number);
        drop(state);
        self.turns.admit_waiting();
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        if let Some(count) = state.asked.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                state.asked.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures::FutureExt as _;

    use super::*;

    fn asking(session: u64) -> Entrant {
        Entrant {
            session: Some(session),
            is_quiet: false,
        }
    }

    fn quiet(session: u64) -> Entrant {
        Entrant {
            is_quiet: true,
            ..asking(session)
        }
    }

    /// The turn of a call that waits; none: it has begun to.
    fn now<F: Future<Output = Turn>>(entering: &mut Pin<Box<F>>) -> Option<Turn> {
        entering.as_mut().now_or_never()
    }

    #[tokio::test]
    async fn calls_of_one_session_go_together_and_of_two_in_turn() {
        let turns = SessionTurns::default();
        let first = turns.enter(asking(1), false).await;
        let also_first = turns.enter(asking(1), true).await;
        let mut second = Box::pin(turns.enter(asking(2), true));
        assert!(now(&mut second).is_none());
        // It came later than the other session, and waits behind it.
        let mut late = Box::pin(turns.enter(asking(1), true));
        assert!(now(&mut late).is_none());
        drop((first, also_first));
        let second = second.await;
        assert!(now(&mut late).is_none());
        drop(second);
        late.await;
    }

    #[tokio::test]
    async fn a_call_that_was_given_up_holds_nobody_up() {
        let turns = SessionTurns::default();
        let first = turns.enter(asking(1), true).await;
        let mut given_up = Box::pin(turns.enter(asking(2), true));
        assert!(now(&mut given_up).is_none());
        let mut third = Box::pin(turns.enter(asking(1), true));
        assert!(now(&mut third).is_none());
        assert!(turns.is_wanted(Some(1)));
        drop(given_up);
        // The session whose calls are under way waits behind nobody any more.
        let third = now(&mut third).unwrap();
        assert!(!turns.is_wanted(Some(1)));
        let _fourth = turns.enter(asking(1), true).now_or_never().unwrap();
        drop((first, third));
    }

    #[tokio::test]
    async fn quiet_calls_of_two_sessions_go_together_and_one_that_may_ask_goes_alone() {
        let turns = SessionTurns::default();
        let first = turns.enter(quiet(1), true).await;
        let second = turns.enter(quiet(2), true).now_or_never().unwrap();
        let mut asks = Box::pin(turns.enter(asking(2), true));
        assert!(now(&mut asks).is_none());
        // It would keep the one before it out.
        let mut third = Box::pin(turns.enter(quiet(3), true));
        assert!(now(&mut third).is_none());
        drop(first);
        let asks = now(&mut asks).unwrap();
        assert!(now(&mut third).is_none());
        drop((asks, second));
        third.await;
    }

    #[tokio::test]
    async fn a_session_that_is_asked_waits_behind_nobody() {
        let turns = SessionTurns::default();
        let call = turns.enter(asking(1), true).await;
        let mut other = Box::pin(turns.enter(asking(2), true));
        assert!(now(&mut other).is_none());
        let mut before = Box::pin(turns.enter(asking(1), true));
        assert!(now(&mut before).is_none());
        let asked = turns.note_asked(Some(1));
        let before = now(&mut before).unwrap();
        let after = turns.enter(asking(1), true).now_or_never().unwrap();
        drop(asked);
        let mut late = Box::pin(turns.enter(asking(1), true));
        assert!(now(&mut late).is_none());
        drop((call, before, after));
        assert!(now(&mut other).is_some());
    }
}
