//! The state that is kept between two scrapes of the metrics.

use std::{collections::BTreeMap, time::SystemTime};

use parking_lot::Mutex;
use tool::ServerName;

/// The past values that the metrics need besides the current ones.
#[derive(Debug)]
pub(crate) struct Scrapes {
    pub(crate) began: SystemTime,
    pub(crate) starts: Mutex<BTreeMap<ServerName, Starts>>,
}

/// The starts of a server. Those for a client that left are no longer reported by anyone, and still
/// counted.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    gone: u64,
    seen: u64,
}

impl Starts {
    /// The total number of starts, of which `now` are reported. A smaller number than before means
    /// that clients left.
    pub(crate) fn count(&mut self, now: u64) -> u64 {
        self.gone += self.seen.saturating_sub(now);
        self.seen = now;
        self.gone + now
    }
}

#[cfg(test)]
mod tests {
    use super::Starts;

    #[test]
    fn starts_of_clients_that_left_are_still_counted() {
        let mut starts = Starts::default();
        assert_eq!(
            [1, 3, 3, 1, 2].map(|now| starts.count(now)),
            [1, 3, 3, 3, 4]
        );
    }
}
