//! Counts consecutive daemons that end before they send a message.

use std::time::Duration;

use tokio::time::Instant;

/// The number of such daemons in a row after which no other is started for the time of `REST`.
const SILENT_MAX: u32 = 5;
const REST: Duration = Duration::from_secs(10);

/// The daemons that a session has lost.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    /// The number of daemons in a row that ended before they sent a message.
    silent: u32,
    last: Option<Instant>,
}

impl Deaths {
    pub(super) fn record_message(&mut self) {
        self.silent = 0;
    }

    pub(super) fn record_death(&mut self) {
        self.silent += 1;
        self.last = Some(Instant::now());
    }

    /// Checks that another daemon may be started. The error is for the client.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_recent = self.last.is_some_and(|at| at.elapsed() < REST);
        if self.silent < SILENT_MAX || !is_recent {
            return Ok(());
        }
        let (times, rest) = (self.silent, REST.as_secs());
        Err(format!(
            "it ended {times} times in a row before it answered a request. It is restarted after \
            {rest} s; `proxy logs` shows the reason"
        ))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn daemons_that_end_without_a_word_are_started_a_few_times_and_then_after_a_rest() {
        let mut deaths = Deaths::default();
        // A daemon that was killed after it sent a message is not counted.
        for _ in 0..SILENT_MAX * 2 {
            deaths.record_message();
            deaths.record_death();
            assert_eq!(deaths.check(), Ok(()));
        }
        deaths.record_message();
        for _ in 1..SILENT_MAX {
            deaths.record_death();
            assert_eq!(deaths.check(), Ok(()));
        }
        deaths.record_death();
        let why = deaths.check().unwrap_err();
        assert!(why.contains("5 times in a row"), "{why}");
        advance(REST).await;
        assert_eq!(deaths.check(), Ok(()));
        deaths.record_death();
        assert!(deaths.check().is_err());
        advance(REST).await;
        deaths.record_message();
        deaths.record_death();
        assert_eq!(deaths.check(), Ok(()));
    }
}
