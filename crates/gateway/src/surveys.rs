//! The servers that are being asked for their tools right now, and waiting for them.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::timeout};
use tool::ServerName;
use tracing::warn;

/// The time that a search or a name that is not known waits for servers that are being asked
/// (interface, section 4).
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// Surveys that were begun, or wait for their turn, and were not taken in yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surveys(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    under_way: Mutex<BTreeMap<ServerName, UnderWay>>,
    /// What the last survey of a server left out.
    left_out: Mutex<BTreeMap<ServerName, LeftOut>>,
    ended: Notify,
}

/// Elements of a server's lists that are not known, since they are malformed or over a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// How many reasons there are.
    pub count: usize,
    /// One of them.
    pub why: String,
}

#[derive(Debug)]
struct UnderWay {
    count: usize,
    /// Its tools are known from before: whoever searches waits for the news only at first.
    is_known: bool,
    since: Instant,
}

/// A survey under way, until this is dropped: after what it brought was taken in.
#[derive(Debug)]
pub struct SurveyNote {
    server: ServerName,
    shared: Arc<Shared>,
}

impl Surveys {
    pub(crate) fn begin(&self, server: &ServerName, is_known: bool) -> SurveyNote {
        let mut under_way = self.0.under_way.lock();
        let entry = under_way.entry(server.clone());
        let entry = entry.or_insert_with(|| UnderWay {
            count: 0,
            is_known,
            since: Instant::now(),
        });
        entry.count += 1;
        entry.is_known &= is_known;
        SurveyNote {
            server: server.clone(),
            shared: Arc::clone(&self.0),
        }
    }

    /// Takes note of why something of a server's lists was left out, and logs it.
    pub(crate) fn note_left_out(&self, server: &ServerName, dropped: &[String]) {
        for why in dropped {
            warn!(%server, why, "left out of its lists");
        }
        let mut all = self.0.left_out.lock();
        // The last one says why a list was read no further.
        match dropped.last() {
            Some(why) => {
                let (count, why) = (dropped.len(), why.clone());
                all.insert(server.clone(), LeftOut { count, why });
            }
            None => drop(all.remove(server)),
        }
    }

    pub(crate) fn left_out(&self, server: &ServerName) -> Option<LeftOut> {
        self.0.left_out.lock().get(server).cloned()
    }

    /// Servers whose tools an answer now may lack, of those that `concerns` says yes to.
    pub(crate) fn missing(&self, concerns: impl Fn(&ServerName) -> bool) -> Vec<ServerName> {
        let under_way = self.0.under_way.lock();
        let missing = under_way.iter().filter(|(name, it)| {
            let is_news = !it.is_known || it.since.elapsed() < ANSWER_WAIT;
            is_news && concerns(name)
        });
        missing.map(|(name, _)| name.clone()).collect()
    }

    /// Waits until none is missing, [`ANSWER_WAIT`] at most. Answers those that still are.
    pub(crate) async fn settle(&self, concerns: impl Fn(&ServerName) -> bool) -> Vec<ServerName> {
        let settling = async {
            loop {
                let ended = self.0.ended.notified();
                if self.missing(&concerns).is_empty() {
                    break;
                }
                ended.await;
            }
        };
        let _ = timeout(ANSWER_WAIT, settling).await;
        self.missing(concerns)
    }
}

impl Drop for SurveyNote {
    fn drop(&mut self) {
        let mut under_way = self.shared.under_way.lock();
        if let Some(entry) = under_way.get_mut(&self.server) {
            entry.count -= 1;
            if entry.count == 0 {
                under_way.remove(&self.server);
            }
        }
        drop(under_way);
        self.shared.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_waits_for_those_that_concern_him_and_not_for_ever() {
        let surveys = Surveys::default();
        let (slow, other) = ("slow".parse().unwrap(), "other".parse().unwrap());
        let note = surveys.begin(&slow, false);
        let twice = surveys.begin(&slow, false);
        let _others = surveys.begin(&other, true);
        let began = tokio::time::Instant::now();
        let concerns = |name: &ServerName| *name == slow;
        assert_eq!(surveys.settle(concerns).await, std::slice::from_ref(&slow));
        assert_eq!(began.elapsed(), ANSWER_WAIT);
        let ending = async {
            drop(note);
            tokio::time::sleep(Duration::from_millis(10)).await;
            drop(twice);
        };
        let (left, ()) = tokio::join!(surveys.settle(concerns), ending);
        assert_eq!(left, []);
        assert_eq!(began.elapsed(), ANSWER_WAIT + Duration::from_millis(10));
    }
}
