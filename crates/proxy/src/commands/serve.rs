//! `proxy serve`: a client on stdin and stdout, served by the daemon or by this process alone.

use std::{io::IsTerminal as _, sync::Arc};

use config::{Config, ConfigError, Environment};
use daemon::{
    identity::{Identity, Wanted},
    place::Place,
    reach::{NoDaemon, Route},
    relay::relay,
};
use gateway::{Connection, Gateway, stdio, upkeep::Upkeep};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{event_loop::run_async, logging::log, signals::watch_signals};
use crate::{cli::Global, exit::Exit, live, report};

/// Serves through the daemon. `None`: no daemon is possible here, and this process has to serve alone.
pub(super) fn serve_through_daemon(global: &Global) -> anyhow::Result<Option<Exit>> {
    let route = match find_route(global) {
        Ok(Ok(route)) => route,
        Ok(Err(error)) => return Ok(say_without_daemon(&error.into())),
        // Reported by the code that reads the configuration next.
        Err(_) => return Ok(None),
    };
    say_to_terminal();
    let runtime = small_runtime()?;
    let relayed = runtime.block_on(async {
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        relay(route, report::say, stop).await
    });
    // A read of a terminal cannot be cancelled.
    runtime.shutdown_background();
    match relayed {
        Ok(()) => Ok(Some(Exit::Success)),
        // The same error is reported when this process reads the configuration.
        Err(NoDaemon::Said(report)) if report.is_usage => Ok(None),
        Err(NoDaemon::Said(report)) => {
            report::say(&report.text);
            Ok(Some(Exit::Nothing))
        }
        Err(NoDaemon::Failed(error)) => Ok(say_without_daemon(&error)),
    }
}

/// A runtime with one thread: all it does is to pass lines.
pub(super) fn small_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

pub(super) fn say_without_daemon(why: &anyhow::Error) -> Option<Exit> {
    report::say(&format!("serving without the daemon: {why:#}"));
    None
}

/// The way to the daemon of this configuration.
pub(super) fn find_route(global: &Global) -> Result<std::io::Result<Route>, ConfigError> {
    let env = Environment::of_process();
    let overrides = global.overrides();
    let wanted = Wanted {
        config: config::file_path(&overrides, &env)?,
        state_dir: config::named_state_dir(&overrides, &env),
        log: overrides.log,
    };
    let variables = env
        .all()
        .filter(|(name, _)| !config::is_of_another_program(name));
    let identity = Identity::of(wanted, variables);
    let runtime_dir = env.path("XDG_RUNTIME_DIR");
    Ok(Place::of(&identity, runtime_dir).map(|place| Route { identity, place }))
}

/// Serves a client although the configuration cannot be used: without a server, a client shows its user
/// only "connection closed". The three tools report the error, and the file is reloaded when it is
/// fixed.
pub(super) fn serve_without_file(global: &Global, error: &ConfigError) -> anyhow::Result<Exit> {
    report::say(&error.to_string());
    if std::io::stdin().is_terminal() {
        return Ok(Exit::Usage);
    }
    let config = config::load_without_file(&global.overrides(), &Environment::of_process());
    let Ok(config) = config else {
        return Ok(Exit::Usage);
    };
    log(&config.log);
    serve_alone(config, live::loader_of(global), Some(error.to_string()))
}

/// Serves one client in this process, with servers of its own. `mistakes` are those of the file, if it
/// could not be used.
pub(super) fn serve_alone(
    config: Config,
    load: live::Load,
    mistakes: Option<String>,
) -> anyhow::Result<Exit> {
    run_async(async {
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        let (gateway, upkeep) = open(config, load)?;
        gateway.note_config_mistakes(mistakes);
        say_to_terminal();
        let connection = Connection {
            cwd: std::env::current_dir().ok(),
            pid: None,
            transport: "stdio",
            is_here: true,
            ..Connection::default()
        };
        let (input, output) = (stdio::input(), stdio::output());
        gateway::serve(Arc::clone(&gateway), connection, input, output, stop).await;
        upkeep.stop().await;
        Ok(Exit::Success)
    })?
}

/// Opens the gateway for serving without a daemon: no caller uses the linger time, and none requests a
/// reload.
pub(super) fn open(config: Config, load: live::Load) -> anyhow::Result<(Arc<Gateway>, Upkeep)> {
    let (daemon, _) = watch::channel(config.daemon);
    live::open(config, load, Arc::default(), daemon)
}

fn say_to_terminal() {
    if std::io::stdin().is_terminal() {
        report::say(
            "serving MCP on stdin and stdout: this is for a client to start; Ctrl-C ends it",
        );
    }
}
