//! How long a call is waited for, and what progress adds to that.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::{Request, ServerSpec};

/// The limits of waiting for a call.
pub(crate) struct Patience {
    began: Instant,
    limit: Duration,
    /// The hard limit, where progress extends the other.
    limit_max: Option<Duration>,
    heard: Arc<Mutex<Instant>>,
}

impl Patience {
    pub(crate) fn new(spec: &ServerSpec, request: &Request) -> Self {
        let began = Instant::now();
        Self {
            began,
            limit: request.limit.unwrap_or(spec.call_timeout),
            limit_max: spec.call_timeout_max.filter(|_| !request.limit_is_final),
            heard: Arc::new(Mutex::new(began)),
        }
    }

    /// The request, its progress heard by us too where that counts.
    pub(crate) fn watch(&self, request: &Request) -> Request {
        let mut request = request.clone();
        if self.limit_max.is_some() {
            let heard = Arc::clone(&self.heard);
            let client = request.progress.take();
            request.progress = Some(Arc::new(move |params| {
                *heard.lock() = Instant::now();
                if let Some(client) = &client {
                    client(params);
                }
            }));
        }
        request
    }

    /// Returns the limit that was reached.
    pub(crate) async fn wait_for_end(&self) -> Duration {
        loop {
            let quiet_until = *self.heard.lock() + self.limit;
            let longest = self.limit_max.unwrap_or(self.limit).max(self.limit);
            let last = self.began + longest;
            let until = quiet_until.min(last);
            if until <= Instant::now() {
                return until.saturating_duration_since(self.began);
            }
            sleep_until(until).await;
        }
    }
}
