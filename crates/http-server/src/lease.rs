//! The resources of a request, until its response is sent.

use std::sync::Arc;

use gateway::Session;
use tokio::sync::OwnedSemaphorePermit;

use super::{open_session::SessionUse, places::HeldPlace};

/// The places and the session that a request holds until its response is sent; all are released
/// when it is dropped.
#[derive(Debug, Default)]
pub(super) struct RequestLease {
    pub(super) _place: Option<HeldPlace>,
    pub(super) _in_session: Option<OwnedSemaphorePermit>,
    pub(super) _session: Option<SessionUse>,
    pub(super) _stateless: Option<StatelessSession>,
}

impl RequestLease {
    /// The lease of a session's stream.
    pub(super) fn of_stream(session: SessionUse) -> Self {
        Self {
            _session: Some(session),
            ..Self::default()
        }
    }
}

/// A session for one request. When its client disconnects, the call is cancelled.
pub(super) struct StatelessSession(pub(super) Arc<Session>);

impl std::fmt::Debug for StatelessSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StatelessSession")
    }
}

impl Drop for StatelessSession {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
