//! Turns of sessions: calls of one session at a time, in the order of their arrival. Calls without
//! questions of different sessions run together.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    hash::Hash,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// A session; `None` is a caller without one.
pub(crate) type Session = Option<u64>;

/// Counts the running calls by session, and admits those of another session after them. Calls queue in
/// order, so no session keeps the others out.
#[derive(Debug, Default, Clone)]
pub(crate) struct SessionTurns {
    state: Arc<Mutex<TurnQueue>>,
    /// Notified when a call begins to wait.
    wanted: Arc<Notify>,
}

#[derive(Debug, Default)]
struct TurnQueue {
    /// The number of running calls of each kind.
    under_way: HashMap<Entrant, usize>,
    /// The sessions with an open question.
    asked: HashMap<Session, usize>,
    /// Those among them whose question names no call.
    asked_without_call: HashMap<Session, usize>,
    waiting: VecDeque<Waiting>,
}

/// The properties of a call on which its turn depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Entrant {
    pub(crate) session: Session,
    /// True if it causes no question, as far as is known: it may run beside quiet calls of other sessions.
    pub(crate) is_quiet: bool,
}

#[derive(Debug)]
struct Waiting {
    entrant: Entrant,
    turn: oneshot::Sender<SessionTurn>,
}

/// A running call, until it is dropped.
#[derive(Debug)]
pub(crate) struct SessionTurn {
    turns: SessionTurns,
    entrant: Entrant,
}

/// A place in the queue. It is given up when it is dropped.
struct QueuePlace<'a> {
    turns: &'a SessionTurns,
    turn: oneshot::Receiver<SessionTurn>,
}

/// An open question to the client of a session, until it is dropped.
#[derive(Debug)]
pub(crate) struct AskedSession {
    turns: SessionTurns,
    session: Session,
    names_no_call: bool,
}

impl SessionTurns {
    /// Waits for the turn of a call. Dropping the future gives up the place in the queue.
    pub(crate) async fn enter(&self, entrant: Entrant) -> SessionTurn {
        let mut place = {
            let mut state = self.state.lock();
            if state.admits_now(entrant) {
                return self.admit(&mut state, entrant);
            }
            let (sender, turn) = oneshot::channel();
            state.waiting.push_back(Waiting {
                entrant,
                turn: sender,
            });
            QueuePlace { turns: self, turn }
        };
        self.wanted.notify_waiters();
        let turn = (&mut place.turn).await;
        turn.expect("a waiting call is kept until it is let in")
    }

    /// Returns the turn of a call if it need not wait. Others notice nothing of a call that would have to.
    pub(crate) fn try_enter(&self, entrant: Entrant) -> Option<SessionTurn> {
        let mut state = self.state.lock();
        let admits = state.admits_now(entrant);
        admits.then(|| self.admit(&mut state, entrant))
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

    pub(crate) fn count_waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    pub(crate) fn is_wanted(&self, session: Session) -> bool {
        let state = self.state.lock();
        let mut waiting = state.waiting.iter();
        waiting.any(|it| it.entrant.session != session)
    }

    /// Records an open question to the client of a session. Its further calls do not queue: the answer may
    /// need them, and the waiting calls need the answer. A question that names no call keeps calls of other
    /// sessions out: a further one would be nobody's.
    pub(crate) fn note_asked(&self, session: Session, names_no_call: bool) -> AskedSession {
        let mut state = self.state.lock();
        *state.asked.entry(session).or_default() += 1;
        if names_no_call {
            *state.asked_without_call.entry(session).or_default() += 1;
        }
        drop(state);
        self.admit_waiting();
        AskedSession {
            turns: self.clone(),
            session,
            names_no_call,
        }
    }

    fn admit(&self, state: &mut TurnQueue, entrant: Entrant) -> SessionTurn {
        *state.under_way.entry(entrant).or_default() += 1;
        SessionTurn {
            turns: self.clone(),
            entrant,
        }
    }

    /// Admits the calls at the head of the queue, and those of sessions with an open question.
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
            // A call that gave up its place meanwhile returns its turn here.
            let _ = sender.send(turn);
        }
    }
}

impl TurnQueue {
    fn is_asked(&self, session: Session) -> bool {
        self.asked.contains_key(&session)
    }

    /// Returns true if a call that arrives now need not wait.
    fn admits_now(&self, entrant: Entrant) -> bool {
        let is_next = self.waiting.is_empty() || self.is_asked(entrant.session);
        is_next && self.admits(entrant)
    }

    fn admits(&self, entrant: Entrant) -> bool {
        let mut others = self.under_way.keys();
        others.all(|it| {
            let may_ask = !it.is_quiet || self.asked_without_call.contains_key(&it.session);
            it.session == entrant.session || entrant.is_quiet && !may_ask
        })
    }
}

/// Takes one from a count, which is removed at zero.
fn take_one<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

impl SessionTurn {
    /// Records that the running call asks: calls of other sessions that come later wait for its end.
    pub(crate) fn note_question(&mut self) {
        let mut state = self.turns.state.lock();
        take_one(&mut state.under_way, self.entrant);
        self.entrant.is_quiet = false;
        *state.under_way.entry(self.entrant).or_default() += 1;
    }
}

impl Drop for SessionTurn {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        take_one(&mut state.under_way, self.entrant);
        let has_waiting = !state.waiting.is_empty();
        drop(state);
        if has_waiting {
            self.turns.admit_waiting();
        }
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.turn.close();
        let mut state = self.turns.state.lock();
        state.waiting.retain(|it| !it.turn.is_closed());
        drop(state);
        self.turns.admit_waiting();
    }
}

impl Drop for AskedSession {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        take_one(&mut state.asked, self.session);
        if self.names_no_call {
            take_one(&mut state.asked_without_call, self.session);
        }
        drop(state);
        self.turns.admit_waiting();
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
    fn now<F: Future<Output = SessionTurn>>(entering: &mut Pin<Box<F>>) -> Option<SessionTurn> {
        entering.as_mut().now_or_never()
    }

    #[tokio::test]
    async fn calls_of_one_session_go_together_and_of_two_in_turn() {
        let turns = SessionTurns::default();
        let first = turns.enter(asking(1)).await;
        let also_first = turns.enter(asking(1)).await;
        let mut second = Box::pin(turns.enter(asking(2)));
        assert!(now(&mut second).is_none());
        // It came later than the other session, and waits behind it.
        let mut late = Box::pin(turns.enter(asking(1)));
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
        let first = turns.enter(asking(1)).await;
        let mut given_up = Box::pin(turns.enter(asking(2)));
        assert!(now(&mut given_up).is_none());
        let mut third = Box::pin(turns.enter(asking(1)));
        assert!(now(&mut third).is_none());
        assert!(turns.is_wanted(Some(1)));
        drop(given_up);
        // The session whose calls are under way waits behind nobody any more.
        let third = now(&mut third).unwrap();
        assert!(!turns.is_wanted(Some(1)));
        let _fourth = turns.enter(asking(1)).now_or_never().unwrap();
        drop((first, third));
    }

    #[tokio::test]
    async fn quiet_calls_of_two_sessions_go_together_and_one_that_may_ask_goes_alone() {
        let turns = SessionTurns::default();
        let first = turns.enter(quiet(1)).await;
        let second = turns.enter(quiet(2)).now_or_never().unwrap();
        let mut asks = Box::pin(turns.enter(asking(2)));
        assert!(now(&mut asks).is_none());
        // It would keep the one before it out.
        let mut third = Box::pin(turns.enter(quiet(3)));
        assert!(now(&mut third).is_none());
        drop(first);
        let asks = now(&mut asks).unwrap();
        assert!(now(&mut third).is_none());
        drop((asks, second));
        third.await;
    }

    #[tokio::test]
    async fn a_session_that_is_asked_keeps_quiet_calls_of_others_out_until_it_is_not() {
        let turns = SessionTurns::default();
        let _call = turns.enter(quiet(1)).await;
        // The stream of the call carries this one: any other is asked by its own call.
        let named = turns.note_asked(Some(1), false);
        drop(turns.enter(quiet(2)).now_or_never().unwrap());
        let asked = turns.note_asked(Some(1), true);
        let mut other = Box::pin(turns.enter(quiet(2)));
        assert!(now(&mut other).is_none() && turns.count_waiting() == 1);
        drop(named);
        assert!(now(&mut other).is_none());
        drop(asked);
        assert!(now(&mut other).is_some() && turns.count_waiting() == 0);
    }

    #[tokio::test]
    async fn a_call_that_turns_out_to_ask_keeps_others_out_until_its_end() {
        let turns = SessionTurns::default();
        let mut first = turns.enter(quiet(1)).await;
        let also_quiet = turns.enter(quiet(1)).await;
        drop(turns.try_enter(quiet(2)).unwrap());
        first.note_question();
        assert!(turns.try_enter(quiet(2)).is_none() && turns.count_waiting() == 0);
        let mut other = Box::pin(turns.enter(quiet(2)));
        assert!(now(&mut other).is_none());
        drop(first);
        let _other = now(&mut other).unwrap();
        drop(also_quiet);
    }

    #[tokio::test]
    async fn a_session_that_is_asked_waits_behind_nobody() {
        let turns = SessionTurns::default();
        let call = turns.enter(asking(1)).await;
        let mut other = Box::pin(turns.enter(asking(2)));
        assert!(now(&mut other).is_none());
        let mut before = Box::pin(turns.enter(asking(1)));
        assert!(now(&mut before).is_none());
        let asked = turns.note_asked(Some(1), true);
        let before = now(&mut before).unwrap();
        let after = turns.enter(asking(1)).now_or_never().unwrap();
        drop(asked);
        let mut late = Box::pin(turns.enter(asking(1)));
        assert!(now(&mut late).is_none());
        drop((call, before, after));
        assert!(now(&mut other).is_some());
    }
}
