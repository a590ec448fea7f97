//! `proxy serve --http`: any number of clients over HTTP, until a signal, served by the daemon or by
//! this process alone.

use config::Config;
use daemon::{hold::hold_http, reach::NoDaemon};
use fleet::Variables;
use http_server::{Endpoint, Listen};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::global::Global, commands::route::find_route, event_loop::run_async, exit::Exit, live,
    report, signals::watch_signals,
};

/// A runtime with one thread: it only passes lines.
pub(super) fn small_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

pub(super) fn report_no_daemon(why: &anyhow::Error) -> Option<Exit> {
    report::say(&format!("serving without the daemon: {why:#}"));
    None
}

/// Makes the daemon serve HTTP. `None`: no daemon is possible here, and this process has to serve
/// alone.
pub(super) fn serve_through_daemon(
    global: &Global,
    listen: Option<Listen>,
) -> anyhow::Result<Option<Exit>> {
    let route = match find_route(global) {
        Ok(Ok(route)) => route,
        Ok(Err(error)) => return Ok(report_no_daemon(&error.into())),
        // Reported by the code that reads the configuration next.
        Err(_) => return Ok(None),
    };
    let held = small_runtime()?.block_on(async {
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        hold_http(route, listen, report::say, stop).await
    });
    match held {
        Ok(()) => Ok(Some(Exit::Success)),
        Err(NoDaemon::Reported(why)) => {
            report::say(&why.text);
            let exit = if why.is_usage {
                Exit::Usage
            } else {
                Exit::Nothing
            };
            Ok(Some(exit))
        }
        Err(NoDaemon::Failed(error)) => Ok(report_no_daemon(&error)),
    }
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
        let settings = match settings {
            Ok(settings) => settings,
            Err(why) => {
                report::say(&format!("error: {why}"));
                return Ok(Exit::Usage);
            }
        };
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
