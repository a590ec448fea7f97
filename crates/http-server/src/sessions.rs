//! The sessions of clients that begin with `initialize`. A session that is not open any more, because
//! it was idle or the process was restarted, is resumed when its client comes back.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use dashmap::DashMap;
use gateway::{Announcement, Gateway, Opening};
use http_core::{Entered, HolderState, Places};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::{
    complaints::Complaints,
    http_error::HttpError,
    open_session::{OpenSession, SessionUse},
    peer::ClientIdentity,
    session_id::{Signed, Signer, Tag},
};
use crate::settings::{Limits, STOP_WAIT};

/// The interval between checks for idle sessions.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The number of ended sessions that are remembered; an older one is resumed if its client sends another
/// request.
const ENDED_MAX: usize = 4_096;

pub(super) struct Sessions {
    gateway: Arc<Gateway>,
    signer: Signer,
    open: DashMap<String, Arc<OpenSession>>,
    /// Locked while a session is resumed, so that this happens once.
    closed: Mutex<Closed>,
    places: Arc<Places>,
    idle: Duration,
    /// The limit of concurrent requests of one session.
    requests_max: usize,
    /// The sessions that are ending.
    ending: TaskTracker,
    complaints: Arc<Complaints>,
}

/// The sessions that cannot be resumed.
#[derive(Default)]
struct Closed {
    /// The server is shutting down.
    all: bool,
    /// Sessions ended by their clients, the most recent last.
    ended: VecDeque<Tag>,
}

impl Sessions {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        signer: Signer,
        limits: &Limits,
        complaints: Arc<Complaints>,
    ) -> Self {
        Self {
            gateway,
            signer,
            open: DashMap::new(),
            closed: Mutex::default(),
            places: Places::new(limits.sessions_max),
            idle: limits.session_idle,
            requests_max: limits.requests_max.div_ceil(2),
            ending: TaskTracker::new(),
            complaints,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.places.is_full()
    }

    /// Begins a session of a client with this announcement, and returns it with its id.
    pub(super) fn begin(
        &self,
        announced: &Announcement,
        peer: &ClientIdentity,
    ) -> Result<(String, SessionUse), HttpError> {
        let token = peer.connection.token.as_deref();
        let id = self.signer.make_id(announced, token);
        let used = self.open(&id, peer, None)?;
        Ok((id, used))
    }

    /// Returns the session with this id, if this client may use it.
    pub(super) fn find(&self, id: &str, peer: &ClientIdentity) -> Result<SessionUse, HttpError> {
        if let Some(used) = self.find_open(id, peer)? {
            if used.0.session.is_ended() {
                self.close(id, peer)?;
                return Err(HttpError::no_session());
            }
            return Ok(used);
        }
        let signed = self.read(id, peer)?;
        let closed = self.closed.lock();
        // Another request may have resumed it meanwhile.
        if let Some(used) = self.find_open(id, peer)? {
            return Ok(used);
        }
        if closed.ended.contains(&signed.tag) {
            return Err(HttpError::no_session());
        }
        if closed.all {
            return Err(HttpError::stopping());
        }
        let used = self.open(id, peer, Some(&signed))?;
        tracing::debug!(client = signed.announced.name, "resumed a session");
        Ok(used)
    }

    fn find_open(&self, id: &str, peer: &ClientIdentity) -> Result<Option<SessionUse>, HttpError> {
        let Some(entry) = self.open.get(id).map(|entry| Arc::clone(&entry)) else {
            return Ok(None);
        };
        if !entry.is_of(peer) {
            return Err(HttpError::no_session());
        }
        entry.confirm();
        Ok(Some(SessionUse::of(entry)))
    }

    /// Returns the content of the id, if we issued it to this client.
    fn read(&self, id: &str, peer: &ClientIdentity) -> Result<Signed, HttpError> {
        let signed = self.signer.read(id, peer.connection.token.as_deref());
        signed.ok_or_else(HttpError::no_session)
    }

    /// Opens a session; without a handshake if its client sent a signed id.
    fn open(
        &self,
        id: &str,
        peer: &ClientIdentity,
        signed: Option<&Signed>,
    ) -> Result<SessionUse, HttpError> {
        let (opening, state) = match signed {
            None => (Opening::Handshake, HolderState::New),
            Some(_) => (Opening::None, HolderState::Busy),
        };
        let entered = self.places.enter(peer.who(), state);
        let full = |_| HttpError::too_many_sessions(self.places.max());
        let Entered { place, evicted } = entered.map_err(full)?;
        if let Some(number) = evicted {
            self.end_holder_of(number);
            let max = self.places.max();
            let why = format!(
                "{max} are open, or half as many of one client (http.max_sessions); those that were \
                 not used after `initialize` are ended first"
            );
            self.complaints.log("sessions", &why);
        }
        let entry = OpenSession::new(&self.gateway, peer, opening, self.requests_max, place);
        if let Some(signed) = signed {
            entry.session.recall(&signed.announced);
        }
        self.open.insert(id.to_owned(), Arc::clone(&entry));
        Ok(SessionUse::of(entry))
    }

    /// Ends a session permanently at its client's request, whether it is open or not.
    pub(super) fn close(&self, id: &str, peer: &ClientIdentity) -> Result<(), HttpError> {
        let signed = self.read(id, peer)?;
        let mut closed = self.closed.lock();
        if closed.ended.contains(&signed.tag) {
            return Err(HttpError::no_session());
        }
        if closed.ended.len() >= ENDED_MAX {
            closed.ended.pop_front();
        }
        closed.ended.push_back(signed.tag);
        self.end(id);
        Ok(())
    }

    fn end_holder_of(&self, place: u64) {
        let mut open = self.open.iter();
        let id = open.find(|it| it.place_number() == place);
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
        self.closed.lock().all = true;
        let ids: Vec<String> = self.open.iter().map(|it| it.key().clone()).collect();
        for id in ids {
            self.end(&id);
        }
        self.ending.close();
        let _ = timeout(STOP_WAIT, self.ending.wait()).await;
    }

    fn end_idle(&self) {
        for entry in &self.open {
            entry.resumable.forget_answered();
        }
        let idle = self.open.iter().filter(|it| it.is_idle(self.idle));
        let ids: Vec<String> = idle.map(|it| it.key().clone()).collect();
        for id in ids {
            self.end(&id);
        }
    }
}

/// Ends unused sessions, in an endless loop.
pub(super) async fn expire(sessions: Arc<Sessions>) {
    loop {
        sleep(LOOK_EVERY.min(sessions.idle)).await;
        sessions.end_idle();
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::open_session::HALF_OPEN;

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

    fn nobody() -> Announcement {
        Announcement::default()
    }

    fn codex() -> Announcement {
        Announcement {
            name: Some("codex".to_owned()),
            capabilities: "ef".to_owned(),
        }
    }

    const KEY: [u8; 32] = [7; 32];

    /// The sessions of a process; the next one has the same key.
    fn sessions(gateway: &Arc<Gateway>) -> Arc<Sessions> {
        let signer = Signer::new(&KEY);
        let gateway = Arc::clone(gateway);
        Arc::new(Sessions::new(gateway, signer, &LIMITS, Arc::default()))
    }

    fn peer(token: Option<&str>) -> ClientIdentity {
        let connection = gateway::Connection {
            token: token.map(Arc::from),
            is_here: true,
            ..gateway::Connection::default()
        };
        ClientIdentity {
            connection,
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        }
    }

    #[track_caller]
    fn check_refused<T>(answer: Result<T, HttpError>, status: u16) {
        assert_eq!(answer.err().unwrap().status.as_u16(), status);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_is_idle_and_gives_its_place_back() {
        let (_folder, gateway) = gateway();
        let (sessions, peer) = (sessions(&gateway), peer(None));
        let begin = || sessions.begin(&nobody(), &peer);
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
        // The client of a session that was idle resumes it.
        drop(sessions.find(&confirmed, &peer).unwrap());
        sessions.end_all().await;
        assert!(!sessions.is_full());
        expiring.abort();
    }

    #[tokio::test]
    async fn a_session_of_an_earlier_process_is_taken_up_by_its_token_alone() {
        let (_folder, gateway) = gateway();
        let (mine, other) = (peer(Some("mine")), peer(Some("other")));
        let (id, begun) = sessions(&gateway).begin(&codex(), &mine).unwrap();
        drop(begun);
        let next = sessions(&gateway);
        check_refused(next.find(&id, &other), 404);
        check_refused(next.find(&id, &peer(None)), 404);
        check_refused(next.find(&format!("{id}A"), &mine), 404);
        check_refused(next.close(&id, &other), 404);
        let taken_up = next.find(&id, &mine).unwrap();
        assert!(format!("{:?}", taken_up.0.session).contains("codex"));
        let again = next.find(&id, &mine).unwrap();
        assert!(Arc::ptr_eq(&again.0, &taken_up.0));
        check_refused(next.find(&id, &other), 404);
        // Of a token's places, two, it has one.
        let (second, _) = next.begin(&nobody(), &mine).unwrap();
        drop(next.find(&second, &mine).unwrap());
        let (third, _) = sessions(&gateway).begin(&nobody(), &mine).unwrap();
        check_refused(next.find(&third, &mine), 503);
        next.end_all().await;
        check_refused(next.find(&id, &mine), 503);
    }

    #[tokio::test]
    async fn a_session_that_its_client_ended_stays_ended() {
        let (_folder, gateway) = gateway();
        let (peer, sessions) = (peer(None), sessions(&gateway));
        let end = || {
            let (id, _) = sessions.begin(&nobody(), &peer).unwrap();
            sessions.close(&id, &peer).unwrap();
            id
        };
        let first = end();
        check_refused(sessions.find(&first, &peer), 404);
        check_refused(sessions.close(&first, &peer), 404);
        // One that is not open ends as well.
        let foreign = self::sessions(&gateway);
        let (closed, _) = foreign.begin(&nobody(), &peer).unwrap();
        sessions.close(&closed, &peer).unwrap();
        check_refused(sessions.find(&closed, &peer), 404);
        assert!(sessions.open.is_empty());

        for _ in 0..ENDED_MAX {
            let id = sessions.signer.make_id(&nobody(), None);
            sessions.close(&id, &peer).unwrap();
        }
        assert_eq!(sessions.closed.lock().ended.len(), ENDED_MAX);
    }
}
