//! `proxy demo`: a session with a built-in server.

use anyhow::Context as _;
use config::{Environment, Overrides};
use gateway::Gateway;

use crate::{event_loop::run_async, exit::Exit, logging::start_log, report};

pub(crate) fn play() -> anyhow::Result<Exit> {
    start_log("error");
    run_async(play_session())?
}

pub(crate) fn serve() -> anyhow::Result<Exit> {
    run_async(demo::serve())??;
    Ok(Exit::Success)
}

/// Plays the demo; its configuration and state are in a folder that is deleted afterwards.
async fn play_session() -> anyhow::Result<Exit> {
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let file = folder.path().join("config.toml");
    std::fs::write(&file, demo::configuration()?)?;
    let overrides = Overrides {
        config: Some(file),
        state_dir: Some(folder.path().join("state")),
        log: None,
    };
    let env: Environment = std::iter::empty::<(String, String)>().collect();
    let gateway = Gateway::new(config::load(&overrides, &env)?.gateway)?;
    let played = demo::play(&gateway, report::print_data).await;
    gateway.stop().await;
    played.map(|()| Exit::Success)
}
