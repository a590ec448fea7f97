//! Refusals are logged once and then counted, so that no client can fill the log with them.

use std::{io, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::refusal::{Refusal, Why};

/// After a line about one kind of refusal, the next of the kind are only counted for so long.
const QUIET: Duration = Duration::from_mins(10);

#[derive(Debug, Default)]
pub(super) struct Complaints(Mutex<Vec<Complaint>>);

#[derive(Debug)]
struct Complaint {
    about: &'static str,
    said_at: Instant,
    /// Refused since then.
    unsaid: u64,
}

impl Complaints {
    pub(super) fn of(&self, refusal: &Refusal) {
        match refusal.why {
            Why::Abuse(about) => self.say(about, &refusal.message),
            Why::Mistake => tracing::debug!(why = refusal.message, "refused a request"),
        }
    }

    pub(super) fn of_connections(&self, max: usize) {
        let why = format!(
            "{max} are open, or half as many of one address (http.max_connections); those that \
             wait for a request are closed first"
        );
        self.say("connections", &why);
    }

    pub(super) fn of_sessions(&self, max: usize) {
        let why = format!(
            "{max} are open, or half as many of one client (http.max_sessions); those that were \
             not used after `initialize` are ended first"
        );
        self.say("sessions", &why);
    }

    pub(super) fn of_accept(&self, error: &io::Error) {
        self.say("accept", &error.to_string());
    }

    fn say(&self, about: &'static str, why: &str) {
        if let Some(unsaid) = self.count(about) {
            tracing::warn!(
                about,
                why,
                unsaid,
                "refused over HTTP; more of the kind in the next 10 minutes are only counted"
            );
        }
    }

    /// Counts a refusal. Returns the number of unlogged ones before it, if it is to be logged.
    fn count(&self, about: &'static str) -> Option<u64> {
        let mut complaints = self.0.lock();
        let now = Instant::now();
        let Some(known) = complaints.iter_mut().find(|it| it.about == about) else {
            complaints.push(Complaint {
                about,
                said_at: now,
                unsaid: 0,
            });
            return Some(0);
        };
        if now.duration_since(known.said_at) < QUIET {
            known.unsaid += 1;
            return None;
        }
        known.said_at = now;
        Some(std::mem::take(&mut known.unsaid))
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
