//! An open session, and its use.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gateway::{Connection, Gateway, Opening, Out, Session, StreamRouter};
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Semaphore, time::Instant};

use super::{
    peer::Peer,
    places::{Place, State},
    resume::ResumableStreams,
};

/// The lifetime of a session whose client never came back after `initialize`: a client that opens many
/// occupies the places only for this time.
pub(super) const HALF_OPEN: Duration = Duration::from_mins(1);

pub(super) struct Entry {
    pub(super) session: Arc<Session>,
    pub(super) router: Arc<StreamRouter>,
    /// The streams that its client may take up again.
    pub(super) resumable: Arc<ResumableStreams>,
    /// The token that began it; no other may use it.
    token: Option<Arc<str>>,
    used_at: Mutex<Instant>,
    /// Requests and streams that are open now.
    uses: AtomicUsize,
    /// Permits for half of the requests that may run for all: no client uses up the share of the others.
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

impl Entry {
    /// A session of this peer. One that opens without a handshake has a client that came back.
    pub(super) fn new(
        gateway: &Arc<Gateway>,
        peer: &Peer,
        opening: Opening,
        requests_max: usize,
        place: Place,
    ) -> Arc<Self> {
        let router = Arc::new(StreamRouter::default());
        let connection = Connection {
            transport: "http",
            token: peer.token.clone(),
            caller: peer.caller.clone(),
            rule: peer.rule.clone(),
            is_here: peer.is_here,
            ..Connection::default()
        };
        let out = Out::Router(Arc::clone(&router));
        Arc::new(Self {
            session: Session::new(Arc::clone(gateway), connection, out, opening),
            router,
            resumable: Arc::default(),
            token: peer.token.clone(),
            used_at: Mutex::new(Instant::now()),
            uses: AtomicUsize::new(0),
            requests: Arc::new(Semaphore::new(requests_max)),
            is_confirmed: AtomicBool::new(opening == Opening::None),
            place,
        })
    }

    pub(super) fn is_of(&self, peer: &Peer) -> bool {
        self.token == peer.token
    }

    pub(super) fn place_number(&self) -> u64 {
        self.place.number
    }

    /// Its client came back: it keeps its place from here on.
    pub(super) fn confirm(&self) {
        if !self.is_confirmed.swap(true, Ordering::Relaxed) {
            self.place.set(State::Busy);
        }
    }

    pub(super) async fn end(&self) {
        self.router.close();
        self.resumable.close();
        self.session.end(false).await;
    }

    pub(super) fn is_idle(&self, idle: Duration) -> bool {
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
    pub(super) fn of(entry: Arc<Entry>) -> Self {
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
