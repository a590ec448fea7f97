//! `proxy serve --http`: any number of clients over HTTP, until a signal says so.

use config::Config;
use http_server::Endpoint;
use tokio_util::sync::CancellationToken;

use super::{event_loop::run_async, serve::open, signals::watch_signals};
use crate::{cli::HttpAt, exit::Exit, live, report};

pub(super) fn serve(config: Config, at: HttpAt, load: live::Load) -> anyhow::Result<Exit> {
    let listen = match at {
        HttpAt::Configured => None,
        HttpAt::Flag(listen) => Some(listen),
    };
    let settings = match Endpoint::new(&config.http, listen) {
        Ok(settings) => settings,
        Err(why) => {
            report::say(&format!("error: {why}"));
            return Ok(Exit::Usage);
        }
    };
    run_async(async {
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        let bound = http_server::bind(&settings).await?;
        let (gateway, upkeep) = open(config, load)?;
        report::say(&format!("serving MCP at {}", bound.url()));
        bound.serve(gateway, stop).await;
        upkeep.end().await;
        Ok(Exit::Success)
    })?
}
