//! What became of spans, for whoever asks.

use std::time::SystemTime;

/// What became of spans since the program began.
#[derive(Debug, Clone, Default)]
pub struct Delivery {
    /// The scheme, host and port of the collector; none before the first span is sent.
    pub to: Option<String>,
    /// Spans that the collector took.
    pub sent: u64,
    /// Spans that nobody got: the queue was full, or the collector refused them.
    pub dropped: u64,
    /// When something was last tried.
    pub last: Option<SystemTime>,
    /// Why that failed; none: it did not.
    pub failure: Option<String>,
}
