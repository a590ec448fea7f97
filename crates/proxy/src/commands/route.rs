//! The daemons of this configuration.

use std::io;

use config::{ConfigError, Environment};
use daemon::{
    hello::{DaemonReply, Narrowing, Purpose, greet},
    identity::{Identity, LaunchOptions},
    place::DaemonFolder,
    reach::Route,
    socket::connect,
    status::DaemonStatus,
};

use crate::cli::global::Global;

/// Returns the route to the daemon of this configuration.
pub(super) fn find_route(global: &Global) -> Result<io::Result<Route>, ConfigError> {
    let env = Environment::of_process();
    let overrides = global.overrides();
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
    Ok(DaemonFolder::of(&identity, runtime_dir).map(|place| Route {
        identity,
        place,
        client: None,
        narrowing: Narrowing::default(),
    }))
}

/// Asks each daemon of the configuration for its status, the usual one first.
pub(super) async fn read_status(route: &Route) -> io::Result<Vec<DaemonStatus>> {
    let mut daemons = Vec::new();
    for socket in route.place.sockets() {
        if let Some(stream) = connect(&socket)?
            && let Some((_, DaemonReply::Status(status))) = greet(stream, Purpose::Status).await?
        {
            daemons.push(*status);
        }
    }
    Ok(daemons)
}

/// Notifies each daemon of the configuration that a login or a secret may have changed. A daemon that
/// cannot be notified finds out at the next call of the server.
pub(super) async fn notify_of_logins(global: &Global) {
    let Ok(Ok(route)) = find_route(global) else {
        return;
    };
    for socket in route.place.sockets() {
        if let Ok(Some(stream)) = connect(&socket) {
            let _ = greet(stream, Purpose::LookAgain).await;
        }
    }
}
