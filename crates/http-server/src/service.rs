//! The service that all requests share.

use std::sync::Arc;

use gateway::Gateway;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    complaints::Complaints,
    endpoint::Endpoint,
    gate::Gate,
    places::Places,
    session_id::Signer,
    session_key::{load_key, make_key},
    sessions::Sessions,
    settings::Limits,
};

/// Everything that requests share.
pub(super) struct Service {
    pub(super) gateway: Arc<Gateway>,
    pub(super) gate: Gate,
    pub(super) limits: Limits,
    pub(super) gives_sessions: bool,
    pub(super) gives_metrics: bool,
    pub(super) tls: Option<tokio_rustls::TlsAcceptor>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) complaints: Complaints,
    pub(super) connections: TaskTracker,
    /// Cancelled when we stop.
    pub(super) stopping: CancellationToken,
    pub(super) connection_places: Arc<Places>,
    /// Bodies that arrive.
    pub(super) reading_places: Arc<Places>,
    /// Requests that are being answered.
    pub(super) request_places: Arc<Places>,
}

impl Service {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        settings: Endpoint,
        stopping: CancellationToken,
    ) -> Self {
        let limits = settings.limits;
        // Without sessions, no session is resumed.
        let key = if let Some(key) = settings.session_key {
            key
        } else if settings.sessions {
            load_key(&gateway.settings().state_dir)
        } else {
            make_key()
        };
        let signer = Signer::new(&key);
        Self {
            sessions: Arc::new(Sessions::new(Arc::clone(&gateway), signer, &limits)),
            gate: Gate::new(&settings),
            gives_sessions: settings.sessions,
            gives_metrics: settings.metrics,
            tls: settings.tls,
            complaints: Complaints::default(),
            connections: TaskTracker::new(),
            stopping,
            connection_places: Places::new(limits.connections_max),
            reading_places: Places::new(limits.requests_max),
            request_places: Places::new(limits.requests_max),
            limits,
            gateway,
        }
    }
}
