//! Refused requests are logged once in ten minutes for each kind, so that no client can fill the log.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::http_error::{HttpError, Why};

/// The time after a log line in which no other of that kind is written.
const QUIET: Duration = Duration::from_mins(10);

/// The time of the last log line of each kind.
#[derive(Debug, Default)]
pub(super) struct Complaints(Mutex<HashMap<&'static str, Instant>>);

impl Complaints {
    /// Logs a refusal. Returns true if a line was written.
    pub(super) fn log_error(&self, error: &HttpError) -> bool {
        match error.why {
            Why::Abuse(about) | Why::Credential(about) => self.log(about, &error.message),
            Why::Mistake => {
                tracing::debug!(why = error.message, "refused a request");
                false
            }
        }
    }

    /// Logs what was refused over HTTP. Returns true if a line was written.
    pub(super) fn log(&self, about: &'static str, why: &str) -> bool {
        let now = Instant::now();
        let mut logged = self.0.lock();
        let is_new = logged
            .get(about)
            .is_none_or(|at| now.duration_since(*at) >= QUIET);
        if is_new {
            logged.insert(about, now);
            drop(logged);
            tracing::warn!(about, why, "refused over HTTP");
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_logged_once_in_ten_minutes() {
        let complaints = Complaints::default();
        assert!(complaints.log("host", "x") && complaints.log("origin", "x"));
        assert!(!complaints.log("host", "y"));
        tokio::time::advance(QUIET).await;
        assert!(complaints.log("host", "x"));
    }
}
