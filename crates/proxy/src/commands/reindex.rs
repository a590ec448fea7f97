//! `proxy reindex`: asks servers for their tools and stores the answers.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use clap::Args;
use clap_complete::ArgValueCompleter;
use futures::StreamExt as _;
use gateway::{Gateway, survey};
use tool::ServerName;

use super::with_gateway;
use crate::{
    cli::{complete::complete_servers, global::Global},
    exit::Exit,
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
}

impl ReindexArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        with_gateway(global, async |gateway| {
            reindex(gateway, global, &self.servers).await
        })
    }
}

async fn reindex(
    gateway: &Arc<Gateway>,
    global: &Global,
    servers: &[String],
) -> anyhow::Result<Exit> {
    let chosen = match survey::choose(&gateway.catalog, servers) {
        Ok(chosen) => chosen,
        Err(missing) => {
            let settings = gateway.settings();
            let known: Vec<String> = settings
                .enabled()
                .map(|server| server.spec.name.to_string())
                .collect();
            let missing = missing.join(", ");
            report::say(&format!(
                "error: no server `{missing}`\nhint: the servers are {}",
                known.join(", ")
            ));
            return Ok(Exit::Usage);
        }
    };
    if chosen.is_empty() {
        report::say("no servers to ask; to add one: proxy add NAME");
    }
    let began = Instant::now();
    let lines = survey(gateway, chosen, global, !servers.is_empty()).await?;
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
    let mut news = Vec::new();
    let mut asked = BTreeMap::new();
    let mut answers = std::pin::pin!(survey::survey(
        &gateway.catalog,
        chosen,
        gateway::count_definition
    ));
    while let Some(answer) = answers.next().await {
        bar.inc(1);
        bar.set_message(answer.news.server.to_string());
        news.push(answer.news.clone());
        asked.insert(answer.news.server.clone(), answer);
    }
    bar.finish_and_clear();
    let planned = survey::commit(&gateway.catalog, news, keep_others).await?;
    embed_tools(gateway, is_quiet).await?;
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
    let making = tokio::task::spawn_blocking(move || {
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
