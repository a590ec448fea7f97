//! An open session, and its use.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use gateway::{Connection, Gateway, Opening, Out, Session, StreamRouter};
use http_core::{HeldPlace, HolderState};
use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::Instant};

use super::{peer::ClientIdentity, resume::ResumableStreams};

/// The lifetime of a session whose client never came back after `initialize`: a client that opens many
/// occupies the places only for this time.
pub(super) const HALF_OPEN: Duration = Duration::from_mins(1);

pub(super) struct OpenSession {
    pub(super) session: Arc<Session>,
    pub(super) router: Arc<StreamRouter>,
    /// The streams that its client may resume.
    pub(super) resumable: Arc<ResumableStreams>,
    /// The connection that began it; requests with another token or profile are refused.
    connection: Connection,
    used_at: Mutex<Instant>,
    /// The number of open requests and streams.
    uses: AtomicUsize,
    /// Permits for half of all concurrent requests, so that no client uses up those of the others.
    pub(super) requests: Arc<Semaphore>,
    /// True if the client has sent a request after `initialize`.
    is_confirmed: AtomicBool,
    place: HeldPlace,
}

impl OpenSession {
    /// Opens a session of this client. A session without a handshake is a resumed one.
    pub(super) fn new(
        gateway: &Arc<Gateway>,
        peer: &ClientIdentity,
        opening: Opening,
        requests_max: usize,
        place: HeldPlace,
    ) -> Arc<Self> {
        let router = Arc::new(StreamRouter::default());
        let connection = peer.connection.clone();
        let out = Out::Router(Arc::clone(&router));
        Arc::new(Self {
            session: Session::new(Arc::clone(gateway), connection.clone(), out, opening),
            router,
            resumable: Arc::default(),
            connection,
            used_at: Mutex::new(Instant::now()),
            uses: AtomicUsize::new(0),
            requests: Arc::new(Semaphore::new(requests_max)),
            is_confirmed: AtomicBool::new(opening == Opening::None),
            place,
        })
    }

    pub(super) fn is_of(&self, peer: &ClientIdentity) -> bool {
        let (own, other) = (&self.connection, &peer.connection);
        own.token == other.token && own.profile == other.profile
    }

    /// Notes the caller of a request, which is read when its call begins.
    pub(super) fn note_caller(&self, peer: &ClientIdentity) {
        let caller = peer.connection.http_caller.load_full();
        self.connection.http_caller.store(caller);
    }

    pub(super) fn place_number(&self) -> u64 {
        self.place.number
    }

    /// Records that the client sent a request after `initialize`: the session now keeps its place.
    pub(super) fn confirm(&self) {
        if !self.is_confirmed.swap(true, Ordering::Relaxed) {
            self.place.set(HolderState::Busy);
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
        self.used_at.lock().elapsed() >= limit
    }
}

/// A request or a stream of a session, which is not idle until this is dropped.
pub(super) struct SessionUse(pub(super) Arc<OpenSession>);

impl SessionUse {
    pub(super) fn of(entry: Arc<OpenSession>) -> Self {
        entry.uses.fetch_add(1, Ordering::Relaxed);
        Self(entry)
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        *self.0.used_at.lock() = Instant::now();
        self.0.uses.fetch_sub(1, Ordering::Relaxed);
    }
}
