//! The eras of the protocol, read from its revisions.

/// The ways to open a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, over HTTP+SSE: the only way of some remote servers of 2024-11-05.
    Older,
    /// `initialize`: revisions up to 2025-11-25.
    Legacy,
    /// `server/discover`: 2026-07-28 and later.
    Modern,
}

/// Stands behind the revision of a server that speaks HTTP+SSE only, so that whoever keeps the
/// revision knows how to open the connection next time.
pub(crate) const OLDER_SUFFIX: &str = "+sse";

impl Era {
    /// The era of a protocol revision such as `2025-11-25`.
    pub fn of(revision: &str) -> Self {
        if revision.ends_with(OLDER_SUFFIX) {
            Self::Older
        } else if revision >= "2026-07-28" {
            Self::Modern
        } else {
            Self::Legacy
        }
    }
}
