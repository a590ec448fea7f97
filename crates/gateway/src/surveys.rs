//! Tracks the surveys in progress, and waits for them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, futures::Notified},
    time::{Instant, timeout_at},
};
use tool::ServerName;
use tracing::warn;

/// The time that searches and unknown names wait for a survey, all of them together and once per
/// survey (interface, section 4): a server that hangs delays one response, and not every response
/// until its start times out.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// Surveys that have started, or wait for their turn, and were not imported yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surveys(Arc<SurveysState>);

#[derive(Debug, Default)]
struct SurveysState {
    under_way: Mutex<BTreeMap<ServerName, UnderWay>>,
    /// The elements that the last survey of a server left out.
    left_out: Mutex<BTreeMap<ServerName, LeftOut>>,
    ended: Notify,
}

/// Elements of a server's lists that were left out because they are malformed or over a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of reasons.
    pub count: usize,
    /// One of the reasons.
    pub why: String,
}

#[derive(Debug)]
struct UnderWay {
    count: usize,
    /// True if its tools are known already: only unknown names wait for the news.
    is_known: bool,
    since: Instant,
    /// The end of the wait that all callers share; none before the first caller waits.
    waited_until: Option<Instant>,
}

/// The surveys for which a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// The first lists of servers that were never surveyed.
    FirstTools,
    /// The same, and the changes of known servers.
    AnyTools,
}

/// A survey in progress, until this is dropped after its news was imported.
#[derive(Debug)]
pub struct SurveyNote {
    pub(crate) server: ServerName,
    shared: Arc<SurveysState>,
}

impl Surveys {
    pub(crate) fn begin(&self, server: &ServerName, is_known: bool) -> SurveyNote {
        let mut under_way = self.0.under_way.lock();
        let entry = under_way.entry(server.clone());
        let entry = entry.or_insert_with(|| UnderWay {
            count: 0,
            is_known,
            since: Instant::now(),
            waited_until: None,
        });
        entry.count += 1;
        entry.is_known &= is_known;
        SurveyNote {
            server: server.clone(),
            shared: Arc::clone(&self.0),
        }
    }

    /// Records and logs the reasons why elements of a server's lists were left out.
    pub(crate) fn note_left_out(&self, server: &ServerName, dropped: &[String]) {
        for why in dropped {
            warn!(%server, why, "left out of its lists");
        }
        let mut all = self.0.left_out.lock();
        // The last reason explains why the list was not read to its end.
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

    pub(crate) fn list_first(&self) -> Vec<ServerName> {
        let under_way = self.0.under_way.lock();
        let first = under_way.iter().filter(|(_, it)| !it.is_known);
        first.map(|(name, _)| name.clone()).collect()
    }

    /// Servers accepted by `concerns` whose tools an answer may lack now.
    pub(crate) fn missing(&self, concerns: impl Fn(&ServerName) -> bool) -> Vec<ServerName> {
        let under_way = self.0.under_way.lock();
        let missing = under_way.iter().filter(|(name, it)| {
            let is_news = !it.is_known || it.since.elapsed() < ANSWER_WAIT;
            is_news && concerns(name)
        });
        missing.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn next_end(&self) -> Notified<'_> {
        self.0.ended.notified()
    }

    /// Waits for this end of a survey, if a server that `concerns` accepts is being surveyed and its wait
    /// has time left. Returns true if the survey ended.
    pub(crate) async fn wait_for(
        &self,
        end: Notified<'_>,
        waits_for: WaitsFor,
        concerns: impl Fn(&ServerName) -> bool,
    ) -> bool {
        let Some(until) = self.find_end_of_wait(waits_for, concerns) else {
            return false;
        };
        timeout_at(until, end).await.is_ok()
    }

    /// The time until which the caller waits; begins the wait for servers without one.
    fn find_end_of_wait(
        &self,
        waits_for: WaitsFor,
        concerns: impl Fn(&ServerName) -> bool,
    ) -> Option<Instant> {
        let now = Instant::now();
        let mut under_way = self.0.under_way.lock();
        let awaited = under_way.iter_mut().filter(|(name, it)| {
            let is_awaited = !it.is_known || waits_for == WaitsFor::AnyTools;
            is_awaited && concerns(name)
        });
        let ends = awaited.map(|(_, it)| {
            let since = if it.is_known { it.since } else { now };
            *it.waited_until.get_or_insert(since + ANSWER_WAIT)
        });
        ends.filter(|until| *until > now).max()
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

    async fn waits(surveys: &Surveys, waits_for: WaitsFor, server: &ServerName) -> bool {
        let end = surveys.next_end();
        let concerns = |name: &ServerName| name == server;
        surveys.wait_for(end, waits_for, concerns).await
    }

    #[tokio::test(start_paused = true)]
    async fn all_callers_together_wait_once_for_a_server_that_hangs() {
        let surveys = Surveys::default();
        let (slow, other) = ("slow".parse().unwrap(), "other".parse().unwrap());
        let note = surveys.begin(&slow, false);
        let _others = surveys.begin(&other, false);
        let began = Instant::now();
        let late = async {
            tokio::time::sleep(ANSWER_WAIT / 2).await;
            waits(&surveys, WaitsFor::FirstTools, &slow).await
        };
        let first = waits(&surveys, WaitsFor::FirstTools, &slow);
        assert_eq!(tokio::join!(first, late), (false, false));
        assert_eq!(began.elapsed(), ANSWER_WAIT);
        for _ in 0..10 {
            assert!(!waits(&surveys, WaitsFor::AnyTools, &slow).await);
        }
        assert_eq!(began.elapsed(), ANSWER_WAIT);
        assert_eq!(
            surveys.missing(|it| *it == slow),
            std::slice::from_ref(&slow)
        );
        drop(note);
        // The next survey is waited for again, and its end ends the wait.
        let note = surveys.begin(&slow, false);
        let ending = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            drop(note);
        };
        let (came, ()) = tokio::join!(waits(&surveys, WaitsFor::FirstTools, &slow), ending);
        assert!(came);
        assert_eq!(began.elapsed(), ANSWER_WAIT + Duration::from_millis(10));
        assert!(!waits(&surveys, WaitsFor::FirstTools, &slow).await);
        assert_eq!(surveys.missing(|it| *it == slow), []);
    }

    #[tokio::test(start_paused = true)]
    async fn the_news_of_a_known_server_is_waited_for_by_names_and_not_by_searches() {
        let surveys = Surveys::default();
        let known = "known".parse().unwrap();
        let _note = surveys.begin(&known, true);
        let began = Instant::now();
        assert!(!waits(&surveys, WaitsFor::FirstTools, &known).await);
        assert_eq!(began.elapsed(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waits(&surveys, WaitsFor::AnyTools, &known).await);
        assert_eq!(began.elapsed(), ANSWER_WAIT);
    }
}
