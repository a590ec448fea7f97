//! The service that all requests share.

use std::sync::Arc;

use gateway::Gateway;
use http_core::Places;
use tokio_util::sync::CancellationToken;

use super::{
    complaints::Complaints, endpoint::Endpoint, session_id::Signer, session_key::load_key,
    sessions::Sessions,
};

pub(super) struct Service {
    pub(super) gateway: Arc<Gateway>,
    pub(super) endpoint: Endpoint,
    pub(super) sessions: Arc<Sessions>,
    pub(super) complaints: Arc<Complaints>,
    /// Cancelled when we stop.
    pub(super) stopping: CancellationToken,
    /// Bodies that arrive.
    pub(super) reading_places: Arc<Places>,
    /// Requests that are being answered.
    pub(super) request_places: Arc<Places>,
}

impl Service {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        endpoint: Endpoint,
        stopping: CancellationToken,
    ) -> Self {
        let limits = &endpoint.limits;
        let load = || load_key(&gateway.settings().state_dir);
        let signer = Signer::new(&endpoint.session_key.unwrap_or_else(load));
        let complaints = Arc::<Complaints>::default();
        let sessions = Sessions::new(
            Arc::clone(&gateway),
            signer,
            limits,
            Arc::clone(&complaints),
        );
        Self {
            sessions: Arc::new(sessions),
            complaints,
            stopping,
            reading_places: Places::new(limits.requests_max),
            request_places: Places::new(limits.requests_max),
            endpoint,
            gateway,
        }
    }
}
