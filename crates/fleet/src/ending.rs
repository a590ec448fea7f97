//! The signal to their keepers to end all servers.

use tokio_util::sync::CancellationToken;

/// The end of a fleet. A hurry is an end as well.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    begun: CancellationToken,
    hurried: CancellationToken,
}

impl Ending {
    pub(crate) fn new() -> Self {
        let hurried = CancellationToken::new();
        Self {
            begun: hurried.child_token(),
            hurried,
        }
    }

    /// Has every server end, in order.
    pub(crate) fn begin(&self) {
        self.begun.cancel();
    }

    /// Has every server end in a hurry.
    pub(crate) fn hurry(&self) {
        self.hurried.cancel();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Returns when servers are to end.
    pub(crate) async fn begun(&self) {
        self.begun.cancelled().await;
    }

    /// Returns when they are to end in a hurry.
    pub(crate) async fn hurried(&self) {
        self.hurried.cancelled().await;
    }
}
