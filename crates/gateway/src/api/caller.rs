//! The sender of a request of the control API.

use tokio_util::sync::CancellationToken;
use tool::ClientId;

/// The sender of a request.
#[derive(Debug, Clone)]
pub struct ApiCaller {
    /// The client that a call belongs to, if servers differ by client.
    pub(super) client: Option<ClientId>,
    /// The name of the sender in logs: `shell` or `page`.
    pub(super) transport: &'static str,
    /// Cancelled when the sender does not wait for the reply any more.
    pub(super) gone: CancellationToken,
}

impl ApiCaller {
    /// Makes the caller of a page.
    pub fn page(gone: CancellationToken) -> Self {
        Self {
            client: None,
            transport: "page",
            gone,
        }
    }
}
