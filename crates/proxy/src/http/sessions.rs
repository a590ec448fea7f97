//! The sessions of clients that begin with `initialize`.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::DashMap;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};
use tokio_util::task::TaskTracker;

use super::{Caller, STOP_WAIT, refusal::Refusal};
use crate::{
    config::HttpLimits,
    front::{Front, Opening, Out, Seat, Session, Switchboard},
};

/// A session whose client never came back after `initialize` lives no longer than this: whoever
/// opens many fills the house only for so long.
const HALF_OPEN: Duration = Duration::from_mins(1);

/// How often idle sessions are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Sessions {
    open: DashMap<String, Arc<Entry>>,
    places: Arc<Semaphore>,
    max: usize,
    idle: Duration,
    /// Requests that one session may have in flight.
    requests_max: usize,
    /// Sessions that are coming to their end.
    ending: TaskTracker,
}

pub(super) struct Entry {
    pub(super) session: Arc<Session>,
    pub(super) board: Arc<Switchboard>,
    /// The token that began it; no other may use it.
    token: Option<Arc<str>>,
    used_at: Mutex<Instant>,
    /// Requests and streams that are open now.
    uses: AtomicUsize,
    /// Half of what all may have in flight: no client takes the room of the others.
    pub(super) requests: Arc<Semaphore>,
    /// The client came back after `initialize`.
    is_confirmed: AtomicBool,
    _place: OwnedSemaphorePermit,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}

impl Sessions {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        Self {
            open: DashMap::new(),
            places: Arc::new(Semaphore::new(limits.sessions_max)),
            max: limits.sessions_max,
            idle: limits.session_idle,
            requests_max: limits.requests_max.div_ceil(2),
            ending: TaskTracker::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.places.available_permits() == 0
    }

    /// A new session under a name that nobody can guess.
    pub(super) fn begin(
        &self,
        front: &Arc<Front>,
        caller: &Caller,
    ) -> Result<(String, Use), Refusal> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| Refusal::too_many_sessions(self.max))?;
        let board = Arc::new(Switchboard::default());
        let seat = Seat {
            transport: "http",
            token: caller.token.clone(),
            ..Seat::default()
        };
        let out = Out::Board(Arc::clone(&board));
        let entry = Arc::new(Entry {
            session: Session::new(Arc::clone(front), seat, out, Opening::Handshake),
            board,
            token: caller.token.clone(),
            used_at: Mutex::new(Instant::now()),
            uses: AtomicUsize::new(0),
            requests: Arc::new(Semaphore::new(self.requests_max)),
            is_confirmed: AtomicBool::new(false),
            _place: place,
        });
        let id = new_id();
        self.open.insert(id.clone(), Arc::clone(&entry));
        Ok((id, Use::of(entry)))
    }

    /// The session of this name, if this caller may use it.
    pub(super) fn find(&self, id: &str, caller: &Caller) -> Result<Use, Refusal> {
        let entry = self.open.get(id).map(|entry| Arc::clone(&entry));
        let entry = entry.filter(|entry| entry.token == caller.token);
        let entry = entry.ok_or_else(Refusal::no_session)?;
        entry.is_confirmed.store(true, Ordering::Relaxed);
        Ok(Use::of(entry))
    }

    pub(super) fn end(&self, id: &str) {
        if let Some((_, entry)) = self.open.remove(id) {
            self.ending.spawn(async move { entry.end().await });
        }
    }

    pub(super) async fn end_all(&self) {
        let ids: Vec<String> = self.open.iter().map(|it| it.key().clone()).collect();
        for id in ids {
            self.end(&id);
        }
        self.ending.close();
        let _ = timeout(STOP_WAIT, self.ending.wait()).await;
    }

    fn end_idle(&self) {
        let idle = self.open.iter().filter(|it| it.is_idle(self.idle));
        let ids: Vec<String> = idle.map(|it| it.key().clone()).collect();
        for id in ids {
            self.end(&id);
        }
    }
}

/// Ends what nobody uses any more, for ever.
pub(super) async fn expire(sessions: Arc<Sessions>) {
    loop {
        sleep(LOOK_EVERY.min(sessions.idle)).await;
        sessions.end_idle();
    }
}

impl Entry {
    async fn end(&self) {
        self.board.close();
        self.session.end(false).await;
    }

    fn is_idle(&self, idle: Duration) -> bool {
        if self.uses.load(Ordering::Relaxed) > 0 || self.session.is_busy() {
            return false;
        }
        let limit = if self.is_confirmed.load(Ordering::Relaxed) {
            idle
        } else {
            idle.min(HALF_OPEN)
        };
        self.used_at().elapsed() >= limit
    }

    fn used_at(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request or a stream of a session; while there is one, the session is not idle.
#[derive(Debug)]
pub(super) struct Use(pub(super) Arc<Entry>);

impl Use {
    fn of(entry: Arc<Entry>) -> Self {
        entry.uses.fetch_add(1, Ordering::Relaxed);
        Self(entry)
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        *self.0.used_at() = Instant::now();
        self.0.uses.fetch_sub(1, Ordering::Relaxed);
    }
}

fn new_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Overrides, load};

    /// A front without servers, and the folder it lives in.
    fn front() -> (tempfile::TempDir, Arc<Front>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        std::fs::write(&file, "[http]\nmax_sessions = 3\nsession_idle_s = 600").unwrap();
        let overrides = Overrides {
            config: Some(file),
            state_dir: Some(folder.path().join("state")),
            ..Overrides::default()
        };
        let config = load(&overrides, &Environment::default()).unwrap();
        (folder, Front::new(config).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_is_idle_and_gives_its_place_back() {
        let (_folder, front) = front();
        let sessions = Arc::new(Sessions::new(&front.config().http.limits));
        let caller = Caller { token: None };
        let begin = || sessions.begin(&front, &caller);
        let (half_open, used) = begin().unwrap();
        drop(used);
        let (confirmed, used) = begin().unwrap();
        drop(used);
        drop(sessions.find(&confirmed, &caller).unwrap());
        let (busy, in_use) = begin().unwrap();
        assert!(begin().is_err() && sessions.is_full());
        let expiring = tokio::spawn(expire(Arc::clone(&sessions)));
        let is_there = |id: &str| sessions.open.contains_key(id);

        sleep(HALF_OPEN + LOOK_EVERY).await;
        assert!(!is_there(&half_open) && is_there(&confirmed) && is_there(&busy));
        sleep(Duration::from_mins(10)).await;
        assert!(!is_there(&confirmed) && is_there(&busy));
        drop(in_use);
        sleep(HALF_OPEN + LOOK_EVERY).await;
        assert!(!is_there(&busy));
        sessions.end_all().await;
        assert_eq!(sessions.places.available_permits(), 3);
        expiring.abort();
    }
}
