//! The daemons of this configuration.

use std::{fmt::Display, io};

use anyhow::Context as _;
use config::{ConfigError, Environment};
use daemon::{
    hello::{DaemonReply, Narrowing, Purpose},
    identity::{Identity, LaunchOptions},
    launch::Report,
    place::DaemonFolder,
    reach::{NoDaemon, Route},
    running::connect_to_all,
    status::DaemonStatus,
};
use futures::future::join_all;

use crate::{cli::global::Global, exit::Exit, report};

/// Returns the route to the daemon of this configuration.
pub(super) fn find_route(global: &Global) -> Result<io::Result<Route>, ConfigError> {
    let env = Environment::of_process();
    let overrides = global.overrides();
    let state_dir = config::find_state_dir(&overrides, &env);
    let wanted = LaunchOptions {
        config: config::file_path(&overrides, &env)?,
        state_dir: config::named_state_dir(&overrides, &env),
        log: overrides.log,
    };
    let variables = env
        .all()
        .filter(|(name, _)| !config::is_of_another_program(name));
    let identity = Identity::of(wanted, variables);
    let runtime_dir = env.path("XDG_RUNTIME_DIR");
    Ok(
        DaemonFolder::of(&identity, runtime_dir, state_dir).map(|place| Route {
            identity,
            place,
            client: None,
            narrowing: Narrowing::default(),
        }),
    )
}

/// Returns the route for a command that is nothing without it.
pub(super) fn need_route(global: &Global) -> anyhow::Result<Route> {
    let route = find_route(global).map_err(|error| Exit::Usage.with(error.to_string()))?;
    route.context("no place for the daemon's socket")
}

/// Returns the error of a command that has no daemon.
pub(super) fn explain(why: NoDaemon) -> anyhow::Error {
    match why {
        NoDaemon::Reported(Report { is_usage, text, .. }) if is_usage => Exit::Usage.with(text),
        NoDaemon::Reported(Report { text, .. }) => Exit::Nothing.with(text),
        NoDaemon::Failed(error) => error,
    }
}

/// Returns the route to the daemon. `None`: this process has to serve alone.
pub(super) fn find_usable_route(global: &Global) -> Option<Route> {
    // A wrong configuration is reported by the code that reads it next.
    let route = find_route(global).ok()?;
    route.inspect_err(report_no_daemon).ok()
}

/// Returns the outcome of serving through a daemon. `None`: this process has to serve alone.
pub(super) fn conclude(served: Result<(), NoDaemon>) -> anyhow::Result<Option<Exit>> {
    match served {
        Ok(()) => Ok(Some(Exit::Success)),
        Err(NoDaemon::Failed(error)) => {
            report_no_daemon(&format!("{error:#}"));
            Ok(None)
        }
        Err(reported) => Err(explain(reported)),
    }
}

fn report_no_daemon(why: &impl Display) {
    report::say(&format!("serving without the daemon: {why}"));
}

/// Asks each daemon of the configuration for its status, the usual one first. The error of one that does not
/// answer is beside the others.
pub(super) async fn read_status(route: &Route) -> Vec<io::Result<DaemonStatus>> {
    let asked = connect_to_all(&route.place).map(async |daemon| {
        let answered = daemon?.greet(Purpose::Status).await?;
        Ok(match answered {
            Some((_, DaemonReply::Status(status))) => Some(*status),
            _ => None,
        })
    });
    let answers = join_all(asked).await.into_iter();
    answers.filter_map(Result::transpose).collect()
}

/// Notifies each daemon of the configuration that a login or a secret may have changed. A daemon that
/// cannot be notified finds out at the next call of the server.
pub(super) async fn notify_of_logins(global: &Global) {
    let Ok(Ok(route)) = find_route(global) else {
        return;
    };
    for daemon in connect_to_all(&route.place).flatten() {
        let _ = daemon.greet(Purpose::LookAgain).await;
    }
}

/// Waits until each daemon of the configuration has applied the file as it is now. Returns why others have
/// not. A daemon of an older build is not waited for: it applies the change within a second.
pub(super) async fn settle_daemons(global: &Global) -> Vec<String> {
    let Ok(Ok(route)) = find_route(global) else {
        return Vec::new();
    };
    let daemons = connect_to_all(&route.place).flatten();
    let replies = join_all(daemons.map(|it| it.greet(Purpose::Settle))).await;
    let problems = replies.into_iter().filter_map(|reply| match reply {
        Ok(Some((_, DaemonReply::Settled { problem }))) => problem,
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    });
    problems.collect()
}
