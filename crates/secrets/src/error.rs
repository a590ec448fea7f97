//! The error of resolving a secret.

/// The reason why a secret cannot be resolved. It holds no part of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ResolveError {
    /// A sentence without a full stop.
    pub why: String,
    /// The next step.
    pub hint: Option<String>,
}
