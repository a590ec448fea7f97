//! What is remembered from one look of a watcher to the next.

use std::{collections::BTreeMap, time::SystemTime};

use parking_lot::Mutex;
use tool::ServerName;

/// What the figures for a watcher need beside what is so now.
#[derive(Debug)]
pub(crate) struct Scrapes {
    pub(crate) began: SystemTime,
    pub(crate) starts: Mutex<BTreeMap<ServerName, Starts>>,
}

/// Starts of a server. Those of a client that left are no longer said by anybody, and still counted.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    gone: u64,
    seen: u64,
}

impl Scrapes {
    pub(crate) fn begin() -> Self {
        Self {
            began: SystemTime::now(),
            starts: Mutex::default(),
        }
    }
}

impl Starts {
    /// All of them, where so many are said now. Less than before: some are gone.
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
