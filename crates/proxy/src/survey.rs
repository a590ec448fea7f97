//! Asks servers for their tools and takes the answers into the registry: what `reindex` does for
//! many servers, and `serve` in the background for those it knows nothing of.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use fleet::{Era, ServerSpec, Survey};
use futures::{Stream, StreamExt as _, stream};
use registry::{Catalog, News, Planned, Snapshot};
use tokio::{sync::Mutex, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tool::ServerName;
use tracing::{info, warn};

use crate::{
    front::{Front, now},
    tokens,
};

/// What came of asking one server.
#[derive(Debug)]
pub(crate) struct Asked {
    pub news: News,
    /// Why each tool that was left out was left out.
    pub dropped: Vec<String>,
    pub seconds: f64,
}

/// How tokens of a definition are counted.
pub(crate) type Count = fn(&str) -> usize;

/// Surveys the named servers, as many at one time as configured, in the order in which they
/// answer.
pub(crate) fn survey(
    front: &Arc<Front>,
    servers: Vec<ServerName>,
    count: Count,
) -> impl Stream<Item = Asked> + use<> {
    let parallel = front.config().reindex.parallel.max(1);
    let front = Arc::clone(front);
    let ask = move |server| ask(Arc::clone(&front), server, count);
    stream::iter(servers).map(ask).buffer_unordered(parallel)
}

async fn ask(front: Arc<Front>, server: ServerName, count: Count) -> Asked {
    let _note = front.note_survey(&server);
    let began = Instant::now();
    let (outcome, dropped) = match front.fleet.survey(&server).await {
        Ok(mut survey) => {
            let dropped = std::mem::take(&mut survey.dropped);
            (Ok(snapshot(&server, survey, count).await), dropped)
        }
        Err(error) => (Err(error.to_string()), Vec::new()),
    };
    let news = News { server, outcome };
    Asked {
        news,
        dropped,
        seconds: began.elapsed().as_secs_f64(),
    }
}

/// Counting tokens may load the tokenizer and take a while: it is done on a thread of its own.
async fn snapshot(server: &ServerName, survey: Survey, count: Count) -> Snapshot {
    let tools = survey.tools;
    let counting = tokio::task::spawn_blocking(move || {
        let tokens = tools.iter().map(|tool| count(tool.json())).sum::<usize>();
        (tools, u64::try_from(tokens).unwrap_or(u64::MAX))
    });
    let (tools, tokens) = counting.await.expect("counting tokens does not panic");
    Snapshot {
        server: server.clone(),
        tools,
        server_name: survey.about.name.unwrap_or_default(),
        server_version: survey.about.version.unwrap_or_default(),
        instructions: survey.about.instructions,
        protocol: survey.about.protocol,
        tokens,
        surveyed_at: now(),
    }
}

/// Takes news in. `keep_others` keeps servers that are not in the news.
pub(crate) async fn commit(
    front: &Arc<Front>,
    news: Vec<News>,
    keep_others: bool,
) -> anyhow::Result<Vec<Planned>> {
    let registry = front.registry.clone();
    let committing = tokio::task::spawn_blocking(move || registry.commit(news, keep_others, now()));
    let planned = committing.await??;
    front.to_understand.notify_one();
    Ok(planned)
}

/// Gives tools a meaning as they come, beside everything else and at the pace of one core. Runs
/// until it is dropped; the tool under way is finished then.
pub(crate) async fn keep_meaning(front: Arc<Front>) {
    let dropped = CancellationToken::new();
    let _on_drop = dropped.clone().drop_guard();
    loop {
        front.to_understand.notified().await;
        let (registry, dropped) = (front.registry.clone(), dropped.clone());
        let making = tokio::task::spawn_blocking(move || {
            registry.give_meaning(1, &|_, _| !dropped.is_cancelled())
        });
        match making.await {
            Ok(Ok(0)) => {}
            Ok(Ok(tools)) => info!(tools, "understood"),
            Ok(Err(error)) => warn!(%error, "new tools are found by their words only"),
            Err(error) => warn!(%error, "new tools are found by their words only"),
        }
    }
}

/// Servers that were never surveyed with success.
pub(crate) fn unknown(catalog: &Catalog) -> Vec<ServerName> {
    let unknown = catalog.servers.iter();
    let unknown = unknown.filter(|server| server.surveyed_at.is_none());
    unknown.map(|server| server.name.clone()).collect()
}

/// Surveys servers and commits each as it answers: the next search finds its tools.
pub(crate) async fn get_to_know(front: Arc<Front>, servers: Vec<ServerName>) {
    // `serve` lives long: the tokenizer's tables would stay in its memory for ever.
    let mut answers = std::pin::pin!(survey(&front, servers, tokens::estimate_of_definition));
    while let Some(asked) = answers.next().await {
        let server = asked.news.server.clone();
        match &asked.news.outcome {
            Ok(snapshot) => info!(%server, tools = snapshot.tools.len(), "surveyed"),
            Err(why) => info!(%server, why, "not surveyed"),
        }
        if let Err(error) = commit(&front, vec![asked.news], true).await {
            warn!(%server, %error, "its tools were not taken in");
        }
    }
}

/// Keeps the registry up with servers that change while they run: each that says so, was started
/// anew, or whose list is past its time is asked again, and what is new is taken in. Runs until
/// it is dropped.
///
/// Each server is looked at in a task of its own, one look at a time: a slow one delays no other,
/// and no older list is taken in after a newer one.
pub(crate) async fn keep_fresh(front: Arc<Front>) {
    let mut looks = JoinSet::new();
    let mut turns: BTreeMap<ServerName, Arc<Mutex<()>>> = BTreeMap::new();
    loop {
        let server = front.fleet.changed().await;
        let turn = Arc::clone(turns.entry(server.clone()).or_default());
        let front = Arc::clone(&front);
        looks.spawn(async move {
            let _turn = turn.lock().await;
            // What follows at once is looked at once.
            tokio::time::sleep(GATHER).await;
            if let Err(error) = refresh(&front, &server).await {
                warn!(%server, %error, "its changed tools were not taken in");
            }
        });
        while looks.try_join_next().is_some() {}
    }
}

/// Servers were seen to tell of every single tool they add.
const GATHER: Duration = Duration::from_millis(100);

async fn refresh(front: &Arc<Front>, server: &ServerName) -> anyhow::Result<()> {
    let Some(surveyed) = front.fleet.survey_running(server).await else {
        return Ok(());
    };
    let survey = surveyed?;
    if let Some(after) = survey.time_to_live {
        front.fleet.look_again(server, after);
    }
    for why in &survey.dropped {
        warn!(%server, why, "a tool was left out");
    }
    let snapshot = snapshot(server, survey, tokens::estimate_of_definition).await;
    if front.registry.holds(&snapshot) {
        return Ok(());
    }
    let news = News {
        server: server.clone(),
        outcome: Ok(snapshot),
    };
    for planned in commit(front, vec![news], true).await? {
        let plan = planned.plan;
        let (added, changed, removed) = (plan.added.len(), plan.changed.len(), plan.removed.len());
        info!(%server, added, changed, removed, "its tools changed");
    }
    // The next search finds it loaded.
    let registry = front.registry.clone();
    tokio::task::spawn_blocking(move || registry.generation()).await??;
    Ok(())
}

/// The specifications with the protocol era that each server spoke last time, so that no start
/// pays for a wrong guess twice.
pub(crate) fn with_known_eras(mut specs: Vec<ServerSpec>, catalog: &Catalog) -> Vec<ServerSpec> {
    for spec in &mut specs {
        let known = catalog
            .servers
            .iter()
            .find(|server| server.name == spec.name);
        let protocol = known
            .map(|server| server.protocol.as_str())
            .filter(|it| !it.is_empty());
        spec.era = protocol.map(Era::of);
    }
    specs
}

/// The names to survey: all enabled servers, or the asked ones. The error is every name that is
/// no server.
pub(crate) fn choose(front: &Front, asked: &[String]) -> Result<Vec<ServerName>, Vec<String>> {
    let config = front.config();
    let known: Vec<ServerName> = config.enabled().map(|it| it.spec.name.clone()).collect();
    if asked.is_empty() {
        return Ok(known);
    }
    let asked: BTreeSet<&str> = asked.iter().map(String::as_str).collect();
    let missing = asked
        .iter()
        .filter(|name| !known.iter().any(|it| it.as_str() == **name));
    let missing: Vec<String> = missing.map(ToString::to_string).collect();
    if missing.is_empty() {
        Ok(known
            .into_iter()
            .filter(|name| asked.contains(name.as_str()))
            .collect())
    } else {
        Err(missing)
    }
}
