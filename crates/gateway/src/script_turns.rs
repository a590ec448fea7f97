//! Limits the number of concurrent scripts: each is a process with memory of its own.
//!
//! A script takes a turn of its session first and one of all sessions second, both in the order of
//! arrival. So a session that starts a hundred scripts has four of them in the queue of all
//! sessions, and another session waits for those four at most. Scripts at different levels of
//! nesting take different turns: a script that waits for a nested script holds no turn that the
//! nested one needs.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use script::NESTING_MAX;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::caller::Caller;

/// The concurrent scripts of one session, at each level of nesting. A script mostly waits for tools,
/// of which it calls up to 16 at once, so a few scripts are as fast as many.
const SESSION_MAX: usize = 4;

/// The concurrent scripts of all sessions, at each level of nesting: 32 processes, which take about
/// 20 MiB each and 128 MiB of script memory at most.
const OVERALL_MAX: [usize; NESTING_MAX] = [16, 8, 8];

type Levels = [Arc<Semaphore>; NESTING_MAX];

#[derive(Debug)]
pub(crate) struct ScriptTurns {
    overall: Levels,
    sessions: Mutex<HashMap<ScriptSession, Weak<Levels>>>,
}

/// The session that a script belongs to; for requests that stand alone their caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ScriptSession {
    Connection(u64),
    Caller(Caller),
}

/// A turn, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ScriptTurn {
    _session: OwnedSemaphorePermit,
    _overall: OwnedSemaphorePermit,
    /// Kept alive as long as a turn of it is held or waited for.
    _levels: Arc<Levels>,
}

impl Default for ScriptTurns {
    fn default() -> Self {
        Self {
            overall: OVERALL_MAX.map(|max| Arc::new(Semaphore::new(max))),
            sessions: Mutex::default(),
        }
    }
}

impl ScriptTurns {
    /// Waits for a turn for a script at nesting level `depth`.
    pub(crate) async fn take(&self, session: ScriptSession, depth: usize) -> Option<ScriptTurn> {
        let levels = self.levels_of(session);
        let level = depth.clamp(1, NESTING_MAX) - 1;
        let of_session = Arc::clone(&levels[level]).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.overall[level])
            .acquire_owned()
            .await
            .ok()?;
        Some(ScriptTurn {
            _session: of_session,
            _overall: of_all,
            _levels: levels,
        })
    }

    fn levels_of(&self, session: ScriptSession) -> Arc<Levels> {
        let mut sessions = self.sessions.lock();
        if let Some(levels) = sessions.get(&session).and_then(Weak::upgrade) {
            return levels;
        }
        sessions.retain(|_, levels| levels.strong_count() > 0);
        let levels = [(); NESTING_MAX].map(|()| Arc::new(Semaphore::new(SESSION_MAX)));
        let levels = Arc::new(levels);
        sessions.insert(session, Arc::downgrade(&levels));
        levels
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::join_all};

    use super::*;

    fn of(number: u64) -> ScriptSession {
        ScriptSession::Connection(number)
    }

    #[tokio::test]
    async fn a_session_with_many_scripts_delays_no_other() {
        let turns = ScriptTurns::default();
        let mut first = join_all((0..SESSION_MAX).map(|_| turns.take(of(1), 1))).await;
        let mut waits = Box::pin(turns.take(of(1), 1));
        assert!((&mut waits).now_or_never().is_none());
        let other = turns.take(of(2), 1).now_or_never();
        assert!(other.flatten().is_some());
        first.pop();
        assert!(waits.now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn all_sessions_together_have_a_bound_and_wait_in_the_order_in_which_they_came() {
        let turns = ScriptTurns::default();
        let many = (0..OVERALL_MAX[0]).map(|number| turns.take(of(number as u64), 1));
        let mut taken = join_all(many).await;
        let mut second = Box::pin(turns.take(of(100), 1));
        assert!((&mut second).now_or_never().is_none());
        let mut third = Box::pin(turns.take(of(101), 1));
        assert!((&mut third).now_or_never().is_none());
        // Those within others are not kept by them.
        assert!(turns.take(of(0), 2).now_or_never().flatten().is_some());
        taken.pop();
        assert!((&mut third).now_or_never().is_none());
        assert!(second.now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn a_turn_that_nobody_waits_for_any_more_is_free() {
        let turns = ScriptTurns::default();
        let taken = join_all((0..SESSION_MAX).map(|_| turns.take(of(1), 1))).await;
        let mut given_up = Box::pin(turns.take(of(1), 1));
        assert!((&mut given_up).now_or_never().is_none());
        drop((given_up, taken));
        let again = join_all((0..SESSION_MAX).map(|_| turns.take(of(1), 1))).now_or_never();
        assert!(again.is_some_and(|all| all.iter().all(Option::is_some)));
        assert_eq!(turns.sessions.lock().len(), 1);
    }
}
