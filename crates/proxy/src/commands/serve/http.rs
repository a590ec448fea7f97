//! `proxy serve --http`: any number of clients over HTTP, until a signal, served by the daemon or by
//! this process alone.

use config::Config;
use daemon::hold::hold_http;
use fleet::Variables;
use http_server::{Endpoint, Listen};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::global::Global,
    commands::route::{conclude, find_usable_route},
    event_loop::{run_async, runtime},
    exit::{Exit, refuse},
    live, report,
    signals::watch_signals,
};

/// Makes the daemon serve HTTP. `None`: no daemon is possible here, and this process has to serve
/// alone.
pub(super) fn serve_through_daemon(
    global: &Global,
    listen: Option<Listen>,
) -> anyhow::Result<Option<Exit>> {
    let Some(route) = find_usable_route(global) else {
        return Ok(None);
    };
    let held = runtime()?.block_on(async {
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        hold_http(route, listen, report::say, stop).await
    });
    conclude(held)
}

/// Serves in this process, with servers of its own.
pub(super) fn serve_alone(
    config: Config,
    listen: Option<Listen>,
    load: live::Load,
) -> anyhow::Result<Exit> {
    run_async(async {
        let variables = Variables::of_process();
        let secrets = gateway::resolver(&config.gateway.private_files());
        let settings = Endpoint::new(&config.http, listen, &variables, &secrets).await;
        let settings = settings.map_err(refuse)?;
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        let bound = http_server::bind(&settings).await?;
        let (gateway, upkeep) = live::open_alone(config, load)?;
        report::say(&format!("serving MCP at {}", bound.url()));
        bound.serve(gateway, stop).await;
        upkeep.end().await;
        Ok(Exit::Success)
    })?
}
