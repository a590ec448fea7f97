//! Surveys servers and imports their lists into the registry: `reindex` surveys many servers, and `serve`
//! surveys unknown ones in the background.

use files::clock::{now_ms, now_s, to_ms};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use fleet::Survey;
use futures::{Stream, StreamExt as _, stream};
use jsonrpc::mcp::Transport;
use registry::{News, Planned, RegistryError, Snapshot, SurveyFailure};
use tokio::{sync::Mutex, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tool::ServerName;
use tracing::{info, warn};

use crate::{
    catalog::{Catalog, begin_survey},
    definitions::estimate_definition,
    surveys::SurveyNote,
};

/// The outcome of the survey of one server.
#[derive(Debug)]
pub struct SurveyOutcome {
    /// The survey, or its failure, to import into the registry.
    pub news: News,
    /// The reason for each tool that was left out.
    pub dropped: Vec<String>,
    /// The duration of the survey.
    pub seconds: f64,
    /// Marks the survey as in progress for searches; to be dropped after the news was imported.
    pub note: SurveyNote,
}

/// A function that counts the tokens of a definition.
pub type Count = fn(&str) -> usize;

/// The number of servers that are started and asked at one time: each may be a `npx` or `uvx` that downloads.
const SERVERS_AT_ONCE: usize = 4;

/// Surveys the named servers, a few at one time, and yields the outcomes as they arrive.
/// From this call on all of them count as being surveyed, also those that wait.
pub fn survey(
    catalog: &Arc<Catalog>,
    servers: Vec<ServerName>,
    count: Count,
) -> impl Stream<Item = SurveyOutcome> + use<> {
    let notes = servers.into_iter();
    let notes = notes.map(|server| begin_survey(catalog, &server));
    let notes: Vec<SurveyNote> = notes.collect();
    let catalog = Arc::clone(catalog);
    let ask = move |note| ask(Arc::clone(&catalog), note, count);
    stream::iter(notes)
        .map(ask)
        .buffer_unordered(SERVERS_AT_ONCE)
}

async fn ask(catalog: Arc<Catalog>, note: SurveyNote, count: Count) -> SurveyOutcome {
    let (began, asked_ms) = (Instant::now(), now_ms());
    let server = &note.server;
    let surveyed = if server.is_scripts() {
        let read = read_scripts(&catalog).await;
        let read = read.map_err(|error| SurveyFailure::new(error.to_string()));
        read.and_then(|it| it.ok_or_else(|| SurveyFailure::new("its folder is gone")))
    } else {
        let surveyed = catalog.servers.survey(server).await;
        surveyed.map_err(|error| SurveyFailure {
            why: error.failure.to_string(),
            needs_login: error.failure.login().is_some(),
            hint: error.failure.hint,
        })
    };
    read_outcome(&catalog, note, (began, asked_ms), surveyed, count).await
}

/// Makes the outcome of lists that were read from elsewhere.
pub async fn take_kept(
    catalog: &Arc<Catalog>,
    server: ServerName,
    survey: Survey,
    count: Count,
) -> SurveyOutcome {
    let note = catalog.surveys.begin(&server, true);
    let began = (Instant::now(), now_ms());
    read_outcome(catalog, note, began, Ok(survey), count).await
}

async fn read_outcome(
    catalog: &Catalog,
    note: SurveyNote,
    (began, began_ms): (Instant, u64),
    surveyed: Result<Survey, SurveyFailure>,
    count: Count,
) -> SurveyOutcome {
    let server = note.server.clone();
    let (asked_ms, outcome, dropped) = match surveyed {
        Ok(mut survey) => {
            let (asked_ms, dropped) = (to_ms(survey.asked_at), std::mem::take(&mut survey.dropped));
            catalog.surveys.note_left_out(&server, &dropped);
            let snapshot = snapshot(&server, survey, count).await;
            (asked_ms, Ok(snapshot), dropped)
        }
        Err(error) => (began_ms, Err(error), Vec::new()),
    };
    SurveyOutcome {
        news: News {
            server,
            asked_ms,
            outcome,
        },
        dropped,
        seconds: began.elapsed().as_secs_f64(),
        note,
    }
}

/// Surveys one server, and imports its answer.
pub(crate) async fn survey_now(catalog: &Arc<Catalog>, server: &ServerName) {
    let note = catalog.surveys.begin(server, false);
    let outcome = ask(Arc::clone(catalog), note, estimate_definition).await;
    if let Err(error) = commit_when_free(catalog, outcome.news).await {
        warn!(%server, %error, "its tools were not imported");
    }
}

/// Makes the snapshot of a survey; tokens are counted on a blocking thread.
async fn snapshot(server: &ServerName, survey: Survey, count: Count) -> Snapshot {
    let tools = survey.tools;
    let counting = tokio::task::spawn_blocking(move || {
        let tokens = tools.iter().map(|tool| count(tool.json())).sum::<usize>();
        (tools, u64::try_from(tokens).unwrap_or(u64::MAX))
    });
    let (tools, tokens) = counting.await.expect("counting tokens does not panic");
    let spoken = survey.about.spoken;
    // The other transports follow from the configuration.
    let transport = Some(spoken.transport).filter(|it| *it == Transport::Sse);
    Snapshot {
        server: server.clone(),
        tools,
        offer: survey.offer,
        server_name: survey.about.name.unwrap_or_default(),
        server_version: survey.about.version.unwrap_or_default(),
        instructions: survey.about.instructions,
        protocol: spoken.revision.to_string(),
        transport: transport.map(|it| it.as_str().to_owned()),
        asking_calls: survey.asking_calls,
        tokens,
        surveyed_at: now_s(),
    }
}

/// Imports news. `keep_others` keeps servers that are not in the news.
pub async fn commit(
    catalog: &Catalog,
    news: Vec<News>,
    keep_others: bool,
) -> anyhow::Result<Vec<Planned>> {
    let registry = catalog.registry.clone();
    let committing =
        tokio::task::spawn_blocking(move || registry.commit(news, keep_others, now_s()));
    let planned = committing.await??;
    catalog.embeddings.added.notify_one();
    catalog.lists_changed.send_replace(());
    Ok(planned)
}

/// Imports news in the background, and waits without limit for a lock that another process holds.
async fn commit_when_free(catalog: &Catalog, news: News) -> anyhow::Result<Vec<Planned>> {
    loop {
        match commit(catalog, vec![news.clone()], true).await {
            Err(error) if error.downcast_ref().is_some_and(RegistryError::is_busy) => {
                warn!(server = %news.server, %error, "the commit is retried");
            }
            done => return done,
        }
    }
}

/// Embeds new tools in the background, on one core, until the future is dropped; the current tool is
/// finished then.
pub async fn keep_embedding(catalog: Arc<Catalog>) {
    let dropped = CancellationToken::new();
    let _on_drop = dropped.clone().drop_guard();
    loop {
        catalog.embeddings.added.notified().await;
        embed_tools(&catalog, &dropped).await;
    }
}

/// Embeds the tools without an embedding, after a run in progress, until `dropped` is cancelled. The run
/// continues if the future is dropped.
pub(crate) async fn embed_tools(catalog: &Catalog, dropped: &CancellationToken) {
    let turn = Arc::clone(&catalog.embeddings.running).lock_owned().await;
    let (registry, dropped) = (catalog.registry.clone(), dropped.clone());
    let making = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        registry.embed_tools(1, &|_, _| !dropped.is_cancelled())
    });
    match making.await {
        Ok(Ok(tools)) => {
            catalog.embeddings.is_late.store(false, Ordering::Relaxed);
            if tools > 0 {
                info!(tools, "embedded");
            }
        }
        Ok(Err(error)) => warn!(%error, "new tools are matched by words only"),
        Err(error) => warn!(%error, "new tools are matched by words only"),
    }
}

/// Servers without a successful survey, or surveyed by an earlier version that only listed tools.
pub fn unknown(catalog: &registry::ServerCatalog) -> Vec<ServerName> {
    let unknown = catalog.servers.iter();
    let unknown = unknown.filter(|server| server.surveyed_at.is_none() || server.offer.is_none());
    unknown.map(|server| server.name.clone()).collect()
}

/// Surveys servers and commits the tools of each as it answers, so that the next search finds them. They
/// count as being surveyed from this call on, before the future is polled.
pub fn get_to_know(
    catalog: Arc<Catalog>,
    servers: Vec<ServerName>,
) -> impl Future<Output = ()> + Send {
    // The tokenizer's tables would stay in the memory of `serve`.
    let answers = survey(&catalog, servers, estimate_definition);
    async move {
        let mut answers = std::pin::pin!(answers);
        while let Some(SurveyOutcome { news, note, .. }) = answers.next().await {
            let server = news.server.clone();
            match &news.outcome {
                Ok(snapshot) => info!(%server, tools = snapshot.tools.len(), "surveyed"),
                Err(why) => info!(%server, %why, "not surveyed"),
            }
            if let Err(error) = commit_when_free(&catalog, news).await {
                warn!(%server, %error, "its tools were not imported");
            }
            drop(note);
        }
    }
}

/// Surveys servers whose missing variable a client has provided, and servers with damaged snapshots. Runs
/// until it is dropped.
pub async fn know_completed(catalog: Arc<Catalog>) {
    loop {
        catalog.due.added.notified().await;
        let mut completed = std::mem::take(&mut *catalog.due.completed.lock());
        let unknown = unknown(&catalog.registry.catalog());
        completed.retain(|note| unknown.contains(&note.server));
        let damaged = std::mem::take(&mut catalog.due.damaged.lock().due);
        for SurveyNote { server, .. } in &damaged {
            warn!(%server, "its snapshot is damaged; it is surveyed again");
        }
        let servers = completed.iter().chain(&damaged);
        let servers = servers.map(|note| note.server.clone()).collect();
        let surveying = get_to_know(Arc::clone(&catalog), servers);
        drop(completed);
        surveying.await;
    }
}

/// Keeps the registry up to date with running servers: a server that announces a change, was restarted, or
/// whose list has expired is surveyed again, and its changes are imported. Runs until it is dropped.
///
/// Each server is refreshed in its own task, one refresh at a time: a slow server delays no other, and an
/// older list is never imported after a newer one. A notification that arrives before a due refresh has
/// begun causes no further refresh.
pub async fn keep_fresh(catalog: Arc<Catalog>) {
    let mut looks = JoinSet::new();
    let mut turns: BTreeMap<ServerName, Arc<RefreshState>> = BTreeMap::new();
    loop {
        let server = catalog.servers.changed().await;
        let turn = Arc::clone(turns.entry(server.clone()).or_default());
        if turn.is_due.swap(true, Ordering::AcqRel) {
            continue;
        }
        let catalog = Arc::clone(&catalog);
        let note = catalog.surveys.begin(&server, true);
        looks.spawn(async move {
            let _note = note;
            let mut pace = turn.pace.lock().await;
            // Changes in quick succession are surveyed once.
            tokio::time::sleep(pace.delay()).await;
            turn.is_due.store(false, Ordering::Release);
            let refreshed = refresh(&catalog, &server).await;
            pace.note_refresh(&refreshed);
            match refreshed {
                Ok(_) => turn.failures.store(0, Ordering::Release),
                Err(error) => {
                    warn!(%server, %error, "its changed tools were not imported");
                    let failures = turn.failures.fetch_add(1, Ordering::AcqRel);
                    catalog.servers.look_again(&server, choose_wait(failures));
                }
            }
        });
        while looks.try_join_next().is_some() {}
    }
}

#[derive(Default)]
struct RefreshState {
    /// Locked while a refresh runs.
    pace: Mutex<RefreshPace>,
    /// A refresh is due and has not begun.
    is_due: AtomicBool,
    /// The number of consecutive failed refreshes.
    failures: AtomicU32,
}

/// The delay of the refreshes of a server: it doubles with each list that brings nothing new or fails. Some servers
/// announce a change after each `tools/list`.
#[derive(Default)]
struct RefreshPace {
    /// Lists in a row without a change.
    unchanged: u32,
    listed_at: Option<tokio::time::Instant>,
}

impl RefreshPace {
    /// Returns the delay of a refresh that is due now.
    fn delay(&mut self) -> Duration {
        if self.listed_at.is_none_or(|at| at.elapsed() >= GATHER_MAX) {
            self.unchanged = 0;
        }
        let doubled = GATHER.saturating_mul(1 << self.unchanged.min(16));
        doubled.min(GATHER_MAX)
    }

    /// A failed list counts as one without a change: a server that announces a change after each
    /// `tools/list` and refuses each would otherwise be asked ten times a second. A server that does not run
    /// was not asked.
    fn note_refresh(&mut self, refreshed: &anyhow::Result<Refreshed>) {
        self.unchanged = match refreshed {
            Ok(Refreshed::Changed) => 0,
            Ok(Refreshed::Unchanged) | Err(_) => self.unchanged + 1,
            Ok(Refreshed::NotRunning) => return,
        };
        self.listed_at = Some(tokio::time::Instant::now());
    }
}

/// The delay that combines notifications: some servers send one for every tool that they add.
const GATHER: Duration = Duration::from_millis(100);

/// The delay after many lists without a change. A server that announced nothing for this time is surveyed
/// after the short delay again. It is below the shortest time to live of a list.
const GATHER_MAX: Duration = Duration::from_secs(30);

/// The delay before a server whose list could not be read is asked again; each further failure doubles it,
/// up to the maximum.
const ASK_AGAIN_MIN: Duration = Duration::from_secs(2);
const ASK_AGAIN_MAX: Duration = Duration::from_mins(5);

/// The minimum time to live of a list; shorter ones are refreshed no more often.
const TIME_TO_LIVE_MIN: Duration = Duration::from_mins(1);

fn choose_wait(failures: u32) -> Duration {
    let doubled = ASK_AGAIN_MIN.saturating_mul(1 << failures.min(16));
    doubled.min(ASK_AGAIN_MAX)
}

/// The outcome of a refresh that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refreshed {
    Changed,
    Unchanged,
    /// There is no list: the server does not run.
    NotRunning,
}

/// Surveys a running server. If it does not respond with a list, the known one is marked as stale.
async fn refresh(catalog: &Arc<Catalog>, server: &ServerName) -> anyhow::Result<Refreshed> {
    let asked_ms = now_ms();
    let Some(surveyed) = catalog.servers.survey_running(server).await else {
        return Ok(Refreshed::NotRunning);
    };
    let survey = match surveyed {
        Ok(survey) => survey,
        Err(error) => {
            let news = News {
                server: server.clone(),
                asked_ms,
                outcome: Err(SurveyFailure::new(error.to_string())),
            };
            commit_when_free(catalog, news).await?;
            return Err(error.into());
        }
    };
    if let Some(after) = survey.time_to_live {
        let after = after.max(TIME_TO_LIVE_MIN);
        catalog.servers.look_again(server, after);
    }
    catalog.surveys.note_left_out(server, &survey.dropped);
    take_in(catalog, server, survey).await
}

async fn read_scripts(catalog: &Arc<Catalog>) -> anyhow::Result<Option<Survey>> {
    let catalog = Arc::clone(catalog);
    tokio::task::spawn_blocking(move || catalog.survey_scripts()).await?
}

/// Imports the current folder of saved scripts.
pub async fn take_in_scripts(catalog: &Arc<Catalog>) {
    let server = ServerName::scripts();
    let taking = async {
        match read_scripts(catalog).await? {
            Some(survey) => take_in(catalog, &server, survey).await.map(drop),
            None => Ok(()),
        }
    };
    if let Err(error) = taking.await {
        warn!(%error, "saved scripts were not imported");
    }
}

/// Commits a list if it differs from the known one.
async fn take_in(
    catalog: &Arc<Catalog>,
    server: &ServerName,
    survey: Survey,
) -> anyhow::Result<Refreshed> {
    let asked_ms = to_ms(survey.asked_at);
    let snapshot = snapshot(server, survey, estimate_definition).await;
    if catalog.registry.holds(&snapshot) {
        return Ok(Refreshed::Unchanged);
    }
    let news = News {
        server: server.clone(),
        asked_ms,
        outcome: Ok(snapshot),
    };
    for planned in commit_when_free(catalog, news).await? {
        let plan = planned.plan;
        let (added, changed, removed) = (plan.added.len(), plan.changed.len(), plan.removed.len());
        info!(%server, added, changed, removed, "its tools changed");
    }
    // Loads the list for the next search.
    let registry = catalog.registry.clone();
    tokio::task::spawn_blocking(move || registry.generation()).await??;
    Ok(Refreshed::Changed)
}

/// Returns the names to survey: all enabled servers, or the requested ones. The error is every name
/// of no configured server.
pub fn choose(catalog: &Catalog, asked: &[String]) -> Result<Vec<ServerName>, Vec<String>> {
    let settings = catalog.settings();
    let mut known: Vec<ServerName> = settings.enabled().map(|it| it.spec.name.clone()).collect();
    known.extend(catalog.saved_scripts().has_folder.then(ServerName::scripts));
    if asked.is_empty() {
        return Ok(known);
    }
    let asked: BTreeSet<&str> = asked.iter().map(String::as_str).collect();
    let is_missing = |name: &&&str| !known.iter().any(|it| it.as_str() == **name);
    let missing = asked.iter().filter(is_missing);
    let missing: Vec<String> = missing.map(ToString::to_string).collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    known.retain(|name| asked.contains(name.as_str()));
    Ok(known)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lists_without_a_change_come_ever_later_until_one_has_a_change_or_it_was_quiet() {
        let mut pace = RefreshPace::default();
        let mut delays = Vec::new();
        for _ in 0..11 {
            delays.push(pace.delay());
            advance(pace.delay()).await;
            pace.note_refresh(&Ok(Refreshed::Unchanged));
        }
        let expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300];
        assert_eq!(delays, expected.map(|it| GATHER * it));
        pace.note_refresh(&Ok(Refreshed::Changed));
        assert_eq!(pace.delay(), GATHER);
        pace.note_refresh(&Ok(Refreshed::Unchanged));
        pace.note_refresh(&Ok(Refreshed::Unchanged));
        assert_eq!(pace.delay(), GATHER * 4);
        pace.note_refresh(&Ok(Refreshed::NotRunning));
        assert_eq!(pace.delay(), GATHER * 4);
        pace.note_refresh(&Err(anyhow::anyhow!("the list failed")));
        assert_eq!(pace.delay(), GATHER * 8);
        advance(GATHER_MAX).await;
        assert_eq!(pace.delay(), GATHER);
    }
}
