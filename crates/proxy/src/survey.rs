//! Asks servers for their tools and takes the answers into the registry: what `reindex` does for
//! many servers, and `serve` in the background for those it knows nothing of.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use fleet::{Era, ServerSpec, Survey};
use futures::{Stream, StreamExt as _, stream};
use registry::{Catalog, News, Planned, Snapshot};
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
    let parallel = front.config.reindex.parallel.max(1);
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
    Ok(committing.await??)
}

/// Surveys every server that was never surveyed, and commits each as it answers: the next search
/// finds its tools.
pub(crate) async fn survey_unknown(front: Arc<Front>) {
    let catalog = front.registry.catalog();
    let unknown = catalog
        .servers
        .iter()
        .filter(|server| server.surveyed_at.is_none());
    let unknown: Vec<ServerName> = unknown.map(|server| server.name.clone()).collect();
    if unknown.is_empty() {
        return;
    }
    // `serve` lives long: the tokenizer's tables would stay in its memory for ever.
    let mut answers = std::pin::pin!(survey(&front, unknown, tokens::estimate_of_definition));
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
    let known: Vec<ServerName> = front
        .config
        .enabled()
        .map(|it| it.spec.name.clone())
        .collect();
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
