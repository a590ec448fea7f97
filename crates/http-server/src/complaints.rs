//! Refused requests are logged once and then counted, so that no client can fill the log.

use std::{io, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::http_error::{HttpError, Why};

/// The time after a log line in which further refusals of that kind are only counted.
const QUIET: Duration = Duration::from_mins(10);

#[derive(Debug, Default)]
pub(super) struct Complaints(Mutex<Vec<Complaint>>);

#[derive(Debug)]
struct Complaint {
    about: &'static str,
    logged_at: Instant,
    /// The number of refusals since then.
    unlogged: u64,
}

impl Complaints {
    /// Logs a refusal. Returns true if it is new in its kind, and not only counted.
    pub(super) fn log_error(&self, error: &HttpError) -> bool {
        match error.why {
            Why::Abuse(about) | Why::Credential(about) => self.log(about, &error.message),
            Why::Mistake => {
                tracing::debug!(why = error.message, "refused a request");
                false
            }
        }
    }

    pub(super) fn log_connections(&self, max: usize) {
        let why = format!(
            "{max} are open, or half as many from one address (http.max_connections); idle ones \
             are closed first"
        );
        self.log("connections", &why);
    }

    pub(super) fn log_sessions(&self, max: usize) {
        let why = format!(
            "{max} are open, or half as many of one client (http.max_sessions); those that were \
             not used after `initialize` are ended first"
        );
        self.log("sessions", &why);
    }

    pub(super) fn log_accept(&self, error: &io::Error) {
        self.log("accept", &error.to_string());
    }

    fn log(&self, about: &'static str, why: &str) -> bool {
        let unlogged = self.count(about);
        if let Some(unlogged) = unlogged {
            tracing::warn!(
                about,
                why,
                unlogged,
                "refused over HTTP; further refusals of this kind are only counted for 10 minutes"
            );
        }
        unlogged.is_some()
    }

    /// Counts a refusal. Returns the number of unlogged ones before it, if it is to be logged.
    fn count(&self, about: &'static str) -> Option<u64> {
        let mut complaints = self.0.lock();
        let now = Instant::now();
        let Some(known) = complaints.iter_mut().find(|it| it.about == about) else {
            complaints.push(Complaint {
                about,
                logged_at: now,
                unlogged: 0,
            });
            return Some(0);
        };
        if now.duration_since(known.logged_at) < QUIET {
            known.unlogged += 1;
            return None;
        }
        known.logged_at = now;
        Some(std::mem::take(&mut known.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_said_once_then_counted() {
        let complaints = Complaints::default();
        assert_eq!(complaints.count("host"), Some(0));
        assert_eq!(complaints.count("origin"), Some(0));
        for _ in 0..1_000 {
            assert_eq!(complaints.count("host"), None);
        }
        tokio::time::advance(QUIET).await;
        assert_eq!(complaints.count("host"), Some(1_000));
        assert_eq!(complaints.count("host"), None);
    }
}
