//! `proxy serve --http`: any number of clients over HTTP, until a signal says so.

use std::sync::Arc;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::serve::{STOP_WAIT, flush, sweep, watch_signals};
use crate::{
    cli::{Exit, HttpAt},
    config::Config,
    front::Front,
    http::{self, HttpSettings},
    report, survey,
};

pub(super) async fn serve(config: Config, at: HttpAt) -> anyhow::Result<Exit> {
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
    let stop = CancellationToken::new();
    watch_signals(&stop)?;
    let bound = http::bind(&settings).await?;
    sweep(&config);
    let front = Front::new(config)?;
    report::say(&format!("serving MCP at {}", bound.url()));
    front.fleet.start_eager();
    let unknown = survey::unknown(&front.registry.catalog());
    let tasks = [
        tokio::spawn(survey::get_to_know(Arc::clone(&front), unknown)),
        tokio::spawn(survey::keep_fresh(Arc::clone(&front))),
        tokio::spawn(survey::keep_meaning(Arc::clone(&front))),
        tokio::spawn(flush(Arc::clone(&front))),
    ];
    bound.serve(Arc::clone(&front), stop).await;
    for task in tasks {
        task.abort();
    }
    if timeout(STOP_WAIT, front.stop()).await.is_err() {
        tracing::warn!("some servers did not end in time and were killed");
    }
    Ok(Exit::Success)
}
