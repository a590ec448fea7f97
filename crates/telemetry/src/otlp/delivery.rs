//! The delivery state of spans.

use std::time::SystemTime;

/// The delivery of spans since the program started.
#[derive(Debug, Clone, Default)]
pub struct Delivery {
    /// The scheme, host and port of the collector; none before the first span is sent.
    pub to: Option<String>,
    /// The number of spans that the collector accepted.
    pub sent: u64,
    /// The number of spans that were dropped: the queue was full, or the collector refused them.
    pub dropped: u64,
    /// The time of the last attempt.
    pub last: Option<SystemTime>,
    /// The error of that attempt; none if it succeeded.
    pub failure: Option<String>,
}
