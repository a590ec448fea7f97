//! The sessions of clients that begin with `initialize`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::DashMap;
use gateway::{Connection, Gateway, Opening, Out, Session, StreamRouter};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};
use tokio_util::task::TaskTracker;

use super::{
    limits::STOP_WAIT,
    peer::Peer,
    places::{Entered, Place, Places, State},
    refusal::Refusal,
};
use crate::settings::Limits;

/// A session whose client never came back after `initialize` lives no longer than this: whoever
/// opens many fills the house only for so long.
const HALF_OPEN: Duration = Duration::from_mins(1);

/// The interval at which idle sessions are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Sessions {
    open: DashMap<String, Arc<Entry>>,
    places: Arc<Places>,
    idle: Duration,
    /// Requests that one session may have in flight.
    requests_max: usize,
    /// Sessions that are coming to their end.
    ending: TaskTracker,
}

/// A session that has begun.
pub(super) struct Begun {
    pub(super) id: String,
    pub(super) used: SessionUse,
    /// Another one had to go for it.
    pub(super) has_replaced: bool,
}

pub(super) struct Entry {
    pub(super) session: Arc<Session>,
    pub(super) router: Arc<StreamRouter>,
    /// The token that began it; no other may use it.
    token: Option<Arc<str>>,
    used_at: Mutex<Instant>,
    /// Requests and streams that are open now.
    uses: AtomicUsize,
    /// Half of what all may have in flight: no client takes the room of the others.
    pub(super) requests: Arc<Semaphore>,
    /// The client came back after `initialize`.
    is_confirmed: AtomicBool,
    place: Place,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").finish_non_exhaustive()
    }
}

impl Sessions {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            open: DashMap::new(),
            places: Places::new(limits.sessions_max),
            idle: limits.session_idle,
            requests_max: limits.requests_max.div_ceil(2),
            ending: TaskTracker::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.places.is_full()
    }

    /// A new session under a name that nobody can guess.
    pub(super) fn begin(&self, gateway: &Arc<Gateway>, peer: &Peer) -> Result<Begun, Refusal> {
        let entered = self.places.enter(peer.who(), State::New);
        let full = |_| Refusal::too_many_sessions(self.places.max());
        let Entered { place, gone } = entered.map_err(full)?;
        if let Some(number) = gone {
            self.end_holder_of(number);
        }
        let router = Arc::new(StreamRouter::default());
        let connection = Connection {
            transport: "http",
            token: peer.token.clone(),
            ..Connection::default()
        };
        let out = Out::Router(Arc::clone(&router));
        let entry = Arc::new(Entry {
            session: Session::new(Arc::clone(gateway), connection, out, Opening::Handshake),
            router,
            token: peer.token.clone(),
            used_at: Mutex::new(Instant::now()),
            uses: AtomicUsize::new(0),
            requests: Arc::new(Semaphore::new(self.requests_max)),
            is_confirmed: AtomicBool::new(false),
            place,
        });
        let id = new_id();
        self.open.insert(id.clone(), Arc::clone(&entry));
        Ok(Begun {
            id,
            used: SessionUse::of(entry),
            has_replaced: gone.is_some(),
        })
    }

    /// The session of this name, if this peer may use it.
    pub(super) fn find(&self, id: &str, peer: &Peer) -> Result<SessionUse, Refusal> {
        let entry = self.open.get(id).map(|entry| Arc::clone(&entry));
        let entry = entry.filter(|entry| entry.token == peer.token);
        let entry = entry.ok_or_else(Refusal::no_session)?;
        if !entry.is_confirmed.swap(true, Ordering::Relaxed) {
            entry.place.set(State::Busy);
        }
        Ok(SessionUse::of(entry))
    }

    fn end_holder_of(&self, place: u64) {
        let mut open = self.open.iter();
        let id = open.find(|it| it.place.number == place);
        let id = id.map(|it| it.key().clone());
        drop(open);
        if let Some(id) = id {
            self.end(&id);
        }
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
        self.router.close();
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

    fn used_at(&self) -> MutexGuard<'_, Instant> {
        self.used_at.lock()
    }
}

/// A request or a stream of a session; while there is one, the session is not idle.
#[derive(Debug)]
pub(super) struct SessionUse(pub(super) Arc<Entry>);

impl SessionUse {
    fn of(entry: Arc<Entry>) -> Self {
        entry.uses.fetch_add(1, Ordering::Relaxed);
        Self(entry)
    }
}

impl Drop for SessionUse {
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

    /// A gateway without servers, and the folder it lives in.
    fn gateway() -> (tempfile::TempDir, Arc<Gateway>) {
        let folder = tempfile::tempdir().unwrap();
        let settings = gateway::Settings::in_folder(folder.path().join("state"));
        (folder, Gateway::new(settings).unwrap())
    }

    const LIMITS: Limits = Limits {
        body_bytes_max: 1 << 20,
        header_bytes_max: 1 << 14,
        connections_max: 8,
        sessions_max: 3,
        requests_max: 8,
        session_idle: Duration::from_mins(10),
        receive_timeout: Duration::from_mins(1),
        stall_timeout: Duration::from_mins(1),
    };

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_is_idle_and_gives_its_place_back() {
        let (_folder, gateway) = gateway();
        let sessions = Arc::new(Sessions::new(&LIMITS));
        let peer = Peer {
            token: None,
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        let begin = || sessions.begin(&gateway, &peer).map(|it| (it.id, it.used));
        let (replaced, used) = begin().unwrap();
        drop(used);
        let (confirmed, used) = begin().unwrap();
        drop(used);
        drop(sessions.find(&confirmed, &peer).unwrap());
        let (busy, in_use) = begin().unwrap();
        drop(sessions.find(&busy, &peer).unwrap());
        let (half_open, used) = begin().unwrap();
        drop(used);
        assert!(!sessions.open.contains_key(&replaced));
        drop(sessions.find(&half_open, &peer).unwrap());
        assert!(begin().is_err() && sessions.is_full());
        sessions.end(&half_open);
        sessions.ending.close();
        sessions.ending.wait().await;
        sessions.ending.reopen();
        let (half_open, used) = begin().unwrap();
        drop(used);
        let expiring = tokio::spawn(expire(Arc::clone(&sessions)));
        let is_there = |id: &str| sessions.open.contains_key(id);

        sleep(HALF_OPEN + LOOK_EVERY).await;
        assert!(!is_there(&half_open) && is_there(&confirmed) && is_there(&busy));
        sleep(Duration::from_mins(10)).await;
        assert!(!is_there(&confirmed) && is_there(&busy));
        drop(in_use);
        sleep(Duration::from_mins(10) + LOOK_EVERY).await;
        assert!(!is_there(&busy));
        sessions.end_all().await;
        assert!(!sessions.is_full());
        expiring.abort();
    }
}
