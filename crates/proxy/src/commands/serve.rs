//! `proxy serve`: a client on stdin and stdout, served by the daemon or by this process alone.

use std::{io::IsTerminal as _, sync::Arc};

use clap::Args;
use config::{Config, ConfigError, Environment};
use daemon::{
    hello::{CLIENT_VARIABLE, Narrowing},
    reach::{NoDaemon, Route},
    relay::relay,
};
use gateway::{Connection, stdio};
use http_server::Listen;
use tokio_util::sync::CancellationToken;

use super::route::{conclude, find_usable_route};
use crate::{
    cli::global::Global,
    event_loop::{run_async, runtime},
    exit::{Exit, refuse},
    live,
    logging::start_log,
    report,
    signals::watch_signals,
};

mod http;

const EXAMPLES: &str = "\
Examples:
  proxy serve                        the command in a client's configuration
  proxy serve --client librechat     for a client that announces itself as `mcp`
  proxy serve --profile work         only what `[profiles.work]` admits
  proxy serve --http                 at `http.listen` of the configuration
  proxy serve --http 127.0.0.1:7331  at http://127.0.0.1:7331/mcp";

/// Serve a client over stdin and stdout, or many over HTTP
///
/// The command in a client's configuration. It answers from the last snapshots at once; a server
/// starts when one of its tools is first called, or with proxy if it is configured to. All clients
/// of one configuration share one daemon, which the first client starts, and one process per server.
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Run the servers in this process, without the daemon
    #[arg(long)]
    pub(crate) standalone: bool,
    /// Serve streamable HTTP at this address, path `/mcp` [default: `http.listen`]
    ///
    /// The daemon serves it beside its other clients until this command ends. A port alone means
    /// this machine. An address that other machines can reach needs a token in the configuration.
    #[arg(long, value_name = "ADDR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "an option with an optional value")]
    pub(crate) http: Option<Option<Listen>>,
    #[arg(
        help = "Name of the client, if the one that it announces says little [env: PROXY_CLIENT]"
    )]
    #[arg(
        long_help = "Name of the client, if the one that it announces says little [env: PROXY_CLIENT]\n\n\
                     It selects the client's `[clients.NAME]` table, and is in `proxy status` and the \
                     audit log"
    )]
    #[arg(long, value_name = "NAME", conflicts_with = "http")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) client: Option<String>,
    /// Serve only what this profile of the configuration admits
    ///
    /// `[profiles.NAME]` names servers, categories and limits. It adds to the profiles that the folder
    /// of the client and the file `.proxy.toml` of its project select.
    #[arg(long, value_name = "NAME", conflicts_with = "http")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) profile: Option<String>,
}

/// The client of a `serve` over stdin and stdout, as its command describes it.
struct OwnClient {
    name: Option<String>,
    narrowing: Narrowing,
}

impl ServeArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        let set = std::env::var(CLIENT_VARIABLE).ok();
        let name = self.client.or(set.filter(|name| !name.trim().is_empty()));
        let project = match std::env::current_dir() {
            Ok(folder) if self.http.is_none() => config::read_project(&folder),
            _ => Ok(None),
        };
        let narrowing = Narrowing {
            profile: self.profile,
            project: project.map_err(refuse)?,
        };
        let client = OwnClient { name, narrowing };
        if !self.standalone {
            let served = match self.http {
                None => serve_through_daemon(global, &client)?,
                Some(listen) => http::serve_through_daemon(global, listen)?,
            };
            if let Some(exit) = served {
                return Ok(exit);
            }
        }
        let config = match (global.load(), self.http) {
            (Ok(config), _) => config,
            (Err(error), None) => return serve_without_file(global, client, &error),
            (Err(error), Some(_)) => return Err(Exit::Usage.with(error.to_string())),
        };
        start_log(&config.log);
        let load = live::loader_of(global);
        match self.http {
            None => serve_alone(config, client, load, None),
            Some(listen) => http::serve_alone(config, listen, load),
        }
    }
}

/// Serves through the daemon. `None`: no daemon is possible here, and this process has to serve alone.
fn serve_through_daemon(global: &Global, client: &OwnClient) -> anyhow::Result<Option<Exit>> {
    let Some(route) = find_usable_route(global) else {
        return Ok(None);
    };
    let route = Route {
        client: client.name.clone(),
        narrowing: client.narrowing.clone(),
        ..route
    };
    say_to_terminal();
    let runtime = runtime()?;
    let relayed = runtime.block_on(async {
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        relay(route, report::say, stop).await
    });
    // A read of a terminal cannot be cancelled.
    runtime.shutdown_background();
    match relayed {
        // The same error is reported when this process reads the configuration.
        Err(NoDaemon::Reported(report)) if report.is_usage => Ok(None),
        relayed => conclude(relayed),
    }
}

/// Serves a client although the configuration cannot be used: without a server, a client shows its user
/// only "connection closed". The three tools report the error, and the file is reloaded when it is
/// fixed.
fn serve_without_file(
    global: &Global,
    client: OwnClient,
    error: &ConfigError,
) -> anyhow::Result<Exit> {
    let mistakes = error.to_string();
    let config = config::load_without_file(&global.overrides(), &Environment::of_process());
    let config = config.ok().filter(|_| !std::io::stdin().is_terminal());
    let Some(config) = config else {
        return Err(Exit::Usage.with(mistakes));
    };
    report::say(&mistakes);
    start_log(&config.log);
    let mistakes = Some(mistakes);
    serve_alone(config, client, live::loader_of(global), mistakes)
}

/// Serves one client in this process, with servers of its own. `mistakes` are those of the file, if it
/// could not be used.
fn serve_alone(
    config: Config,
    client: OwnClient,
    load: live::Load,
    mistakes: Option<String>,
) -> anyhow::Result<Exit> {
    run_async(async {
        let stop = CancellationToken::new();
        watch_signals(&stop)?;
        let (gateway, upkeep) = live::open_alone(config, load)?;
        gateway.note_config_mistakes(mistakes);
        if let Err(why) = client.narrowing.check(&gateway.settings().clients) {
            upkeep.stop().await;
            return Err(refuse(why));
        }
        say_to_terminal();
        let connection = Connection {
            cwd: std::env::current_dir().ok().map(Into::into),
            pid: None,
            name: client.name,
            profile: client.narrowing.profile.map(Arc::from),
            project: client.narrowing.project.map(Arc::new),
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

fn say_to_terminal() {
    if std::io::stdin().is_terminal() {
        report::say(
            "serving MCP on stdin and stdout, for a client that starts this command; Ctrl-C stops it",
        );
    }
}
