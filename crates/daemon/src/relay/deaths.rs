//! Counts consecutive daemons that end before they send a message.

use std::time::Duration;

use tokio::time::Instant;

/// After so many in a row no other is started for a while: each costs a start, and none has helped.
const SILENT_MAX: u32 = 5;
const REST: Duration = Duration::from_secs(10);

/// The daemons that a session has lost.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    /// Those in a row that ended before they said anything.
    silent: u32,
    last: Option<Instant>,
}

impl Deaths {
    /// Takes note of a word of the daemon.
    pub(super) fn note_life(&mut self) {
        self.silent = 0;
    }

    pub(super) fn note_death(&mut self) {
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
            "it ended {times} times in a row before it answered anything. It is started again after \
             {rest} s; `proxy daemon logs` shows why it ends"
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
        // Those that are killed at work are none of these.
        for _ in 0..SILENT_MAX * 2 {
            deaths.note_life();
            deaths.note_death();
            assert_eq!(deaths.check(), Ok(()));
        }
        deaths.note_life();
        for _ in 1..SILENT_MAX {
            deaths.note_death();
            assert_eq!(deaths.check(), Ok(()));
        }
        deaths.note_death();
        let why = deaths.check().unwrap_err();
        assert!(why.contains("5 times in a row"), "{why}");
        advance(REST).await;
        assert_eq!(deaths.check(), Ok(()));
        deaths.note_death();
        assert!(deaths.check().is_err());
        advance(REST).await;
        deaths.note_life();
        deaths.note_death();
        assert_eq!(deaths.check(), Ok(()));
    }
}
