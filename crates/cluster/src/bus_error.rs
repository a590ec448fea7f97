//! Failures of NATS, and its time limit.

use std::time::Duration;

/// The time that one request to NATS may take.
pub(crate) const NATS_TIMEOUT: Duration = Duration::from_millis(2_500);

/// NATS did not do as it was asked; the text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BusError(pub(crate) String);

impl BusError {
    pub(crate) fn of(error: impl std::fmt::Display) -> Self {
        Self(printable::one_line_of(&error.to_string(), 300))
    }
}
