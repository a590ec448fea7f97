//! `proxy reindex`: asks servers for their tools and stores the answers; or writes them as files, and reads
//! these back.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Instant};

use clap::Args;
use clap_complete::ArgValueCompleter;
use futures::StreamExt as _;
use gateway::{
    Gateway, Settings, exported,
    survey::{self, SurveyOutcome},
};
use serde_json::json;
use tokio::task::spawn_blocking;
use tool::ServerName;

use super::with_gateway;
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::{Exit, refuse},
    report::{self, Reindexed},
};

/// Ask servers for their tools, and update the index
///
/// A server that fails keeps its last snapshot, marked stale.
///
/// Exit codes: 0 every server answered, 3 some did, 1 none did.
#[derive(Debug, Args)]
pub(crate) struct ReindexArgs {
    /// Ask only these servers [default: all]
    #[arg(value_name = "SERVER", add = ArgValueCompleter::new(complete_servers))]
    servers: Vec<String>,
    /// Ask no server; write the known tools into this folder, a file for each
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["servers", "import"])]
    export: Option<PathBuf>,
    /// Ask no server; read the tools that --export wrote into this folder
    #[arg(long, value_name = "FOLDER")]
    import: Option<PathBuf>,
}

impl ReindexArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        with_gateway(global, async |gateway| match self.export {
            Some(folder) => export(gateway, global, folder).await,
            None => reindex(gateway, global, &self.servers, self.import).await,
        })
    }
}

async fn export(gateway: &Arc<Gateway>, global: &Global, folder: PathBuf) -> anyhow::Result<Exit> {
    let (catalog, shown) = (Arc::clone(&gateway.catalog), folder.display().to_string());
    let generation = catalog.generation().await?;
    let writing = spawn_blocking(move || exported::write(&catalog, &generation, &folder));
    let counts = writing.await??;
    let [tools, blocked] = [counts.tools, counts.blocked].map(|it| printable::count_of(it, "tool"));
    if global.json {
        report::print_json(&json!({"folder": shown, "exported": counts}));
    } else {
        let servers = printable::count_of(counts.servers, "server");
        report::print_data(&format!("{shown}: {tools} of {servers}"));
    }
    if counts.blocked > 0 {
        report::say(&format!("not written: {blocked} that rules or pins block"));
    }
    if counts.unknown.is_empty() {
        return Ok(Exit::Success);
    }
    let unknown = counts.unknown.join(", ");
    report::say(&format!(
        "not written: {unknown}, never asked\nhint: proxy reindex"
    ));
    Ok(Exit::Partial)
}

async fn reindex(
    gateway: &Arc<Gateway>,
    global: &Global,
    servers: &[String],
    import: Option<PathBuf>,
) -> anyhow::Result<Exit> {
    let chosen = survey::choose(&gateway.catalog, servers).map_err(|missing| {
        let settings = gateway.settings();
        let known = settings.enabled().map(|it| it.spec.name.as_str());
        refuse(format!(
            "no server `{}`\nhint: the servers are {}",
            missing.join(", "),
            known.collect::<Vec<_>>().join(", ")
        ))
    })?;
    if chosen.is_empty() {
        report::say("no servers to ask; to add one: proxy add NAME");
    }
    let began = Instant::now();
    let lines = match import {
        None => survey(gateway, chosen, global, !servers.is_empty()).await?,
        Some(folder) => import_files(gateway, chosen, folder, global).await?,
    };
    let seconds = began.elapsed().as_secs_f64();
    Ok(report::print_reindex(&lines, seconds, global.json))
}

/// Asks these servers and stores the answers; those of other servers are kept if `keep_others` is true.
/// Prints one line per server, by name.
pub(super) async fn survey(
    gateway: &Arc<Gateway>,
    chosen: Vec<ServerName>,
    global: &Global,
    keep_others: bool,
) -> anyhow::Result<Vec<Reindexed>> {
    let is_quiet = global.quiet || global.json;
    let bar = report::make_bar(chosen.len(), "servers", is_quiet);
    let mut asked = Vec::new();
    let mut answers = std::pin::pin!(survey::survey(
        &gateway.catalog,
        chosen,
        gateway::count_definition
    ));
    while let Some(answer) = answers.next().await {
        bar.inc(1);
        bar.set_message(answer.news.server.to_string());
        asked.push(answer);
    }
    bar.finish_and_clear();
    store(gateway, asked, keep_others, is_quiet).await
}

/// Asks these servers on a gateway of its own, and stores the answers.
pub(super) async fn survey_alone(
    settings: Settings,
    chosen: Vec<ServerName>,
    global: &Global,
) -> anyhow::Result<Vec<Reindexed>> {
    let gateway = Gateway::new(settings)?;
    let asked = survey(&gateway, chosen, global, true).await;
    gateway.stop().await;
    asked
}

/// Stores the lists that an export has of these servers. Servers without usable lists are unchanged.
async fn import_files(
    gateway: &Arc<Gateway>,
    mut chosen: Vec<ServerName>,
    folder: PathBuf,
    global: &Global,
) -> anyhow::Result<Vec<Reindexed>> {
    chosen.retain(|server| !server.is_scripts());
    let read = spawn_blocking(move || exported::read(&folder, chosen)).await??;
    let (mut taken, mut failed) = (Vec::new(), Vec::new());
    for (server, lists) in read {
        match lists {
            Ok(lists) => {
                let (catalog, count) = (&gateway.catalog, gateway::count_definition);
                taken.push(survey::take_kept(catalog, server, lists, count).await);
            }
            Err(why) => failed.push(Reindexed {
                server: server.to_string(),
                failure: Some(why),
                ..Reindexed::default()
            }),
        }
    }
    let mut lines = store(gateway, taken, true, global.quiet || global.json).await?;
    lines.append(&mut failed);
    Ok(lines)
}

/// Stores these answers. Returns one line per server, by name.
async fn store(
    gateway: &Arc<Gateway>,
    asked: Vec<SurveyOutcome>,
    keep_others: bool,
    is_quiet: bool,
) -> anyhow::Result<Vec<Reindexed>> {
    let news = asked.iter().map(|it| it.news.clone()).collect();
    let planned = survey::commit(&gateway.catalog, news, keep_others).await?;
    embed_tools(gateway, is_quiet).await?;
    let asked = asked.into_iter().map(|it| (it.news.server.clone(), it));
    let asked: BTreeMap<ServerName, SurveyOutcome> = asked.collect();
    let mut lines: Vec<Reindexed> = planned
        .iter()
        .map(|planned| Reindexed::new(planned, asked.get(&planned.server)))
        .collect();
    lines.sort_by(|a, b| a.server.cmp(&b.server));
    Ok(lines)
}

/// Computes the embedding of every tool that has none yet.
pub(super) async fn embed_tools(gateway: &Arc<Gateway>, is_quiet: bool) -> anyhow::Result<()> {
    let registry = gateway.catalog.registry.clone();
    let making = spawn_blocking(move || {
        let bar = report::make_bar(0, "tools embedded", is_quiet);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let made = registry.embed_tools(threads, &|done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
            true
        });
        bar.finish_and_clear();
        made
    });
    making.await??;
    Ok(())
}
