//! Why there is no secret.

/// Why there is no secret. No part of one is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ResolveError {
    /// A sentence without a full stop.
    pub why: String,
    /// The next step.
    pub hint: Option<String>,
}
