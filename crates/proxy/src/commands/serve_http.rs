//! `proxy serve --http`: any number of clients over HTTP, until a signal says so.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{runtime, signals::watch_signals};
use crate::{
    cli::{Exit, HttpAt},
    config::Config,
    front::Front,
    http::{self, HttpSettings},
    live, report,
    upkeep::{self, Upkeep},
};

pub(super) fn serve(config: Config, at: HttpAt, load: live::Load) -> anyhow::Result<Exit> {
    let listen = match at {
        HttpAt::Configured => None,
        HttpAt::Flag(listen) => Some(listen),
    };
    let settings = match HttpSettings::new(&config, listen) {
        Ok(settings) => settings,
        Err(why) => {
            report::say(&format!("error: {why}"));
            return Ok(Exit::Usage);
        }
    };
    runtime()?.block_on(async {
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        let bound = http::bind(&settings).await?;
        upkeep::sweep(&config);
        let front = Front::new(config)?;
        report::say(&format!("serving MCP at {}", bound.url()));
        let upkeep = Upkeep::begin(&front, load, Arc::default());
        bound.serve(front, stop).await;
        upkeep.end().await;
        Ok(Exit::Success)
    })
}
