//! `proxy daemon`: starts, stops and shows the process that all clients share.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use config::{Config, ConfigError, Environment};
use daemon::{
    hello::{DaemonReply, Purpose, greet},
    host::{DaemonParts, Host},
    launch::{self, Report},
    log::{self, LogWriter},
    place,
    reach::{NoDaemon, Reached, Route, reach},
    socket::{BoundSocket, bind, connect},
};
use files::open_to_append;
use futures::FutureExt as _;
use gateway::state_dir;
use processes::SystemRequest;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    log::read_last_lines,
    route::{find_route, read_status},
    status::print_status,
};
use crate::{
    cli::global::Global,
    event_loop::run_async,
    exit::Exit,
    live,
    logging::{LOG_DEFAULT, filter_ours, start_log_to},
    page_editor::PageEditor,
    report,
    signals::watch,
};

/// The commands that wait at one time for a change of the configuration; more wait for their turn.
const LOOKS_MAX: usize = 16;

/// As `ps` and `top` show it.
const NAME: &str = "proxy-daemon";

/// Start, stop and inspect the shared daemon
#[derive(Debug, Subcommand)]
pub(crate) enum DaemonAction {
    /// Start the daemon, unless it is running; `proxy serve` starts it too
    Start,
    /// Stop the daemon and its servers; the next message of a client starts another
    Stop,
    /// Stop the daemon and start another
    Restart,
    /// Show the daemon, its clients and its servers, like `proxy status`
    Status,
    /// Print the daemon's log, oldest line first
    Logs {
        /// Print only the last lines
        #[arg(long, short = 'n', value_name = "COUNT")]
        lines: Option<usize>,
    },
    /// Print the path of the socket, for a systemd unit
    Socket,
    /// Run the daemon in the foreground, or under systemd (`config/systemd/`)
    Run {
        /// Started by `launch`, which reads a report on stdout
        #[arg(long, hide = true)]
        launched: bool,
        /// Bind the socket at this path; `launch` holds its lock
        #[arg(long, hide = true, value_name = "PATH")]
        socket: Option<PathBuf>,
    },
    /// Start `run` with our stdin, which is its socket, and exit
    #[command(hide = true)]
    Launch {
        /// Passed to `run`
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
    },
}

impl DaemonAction {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        match self {
            Self::Launch { socket } => launch(global, socket.as_deref()),
            Self::Run { launched, socket } => Ok(run(global, launched, socket)),
            Self::Start => act_on_route(global, |route| start(route, false)),
            Self::Stop => act_on_route(global, stop),
            Self::Restart => act_on_route(global, |route| {
                // A `serve --http` may start the next daemon before we do.
                let is_restart = end_daemons(route, &Purpose::Restart)? > 0;
                start(route, is_restart)
            }),
            Self::Status => print_status(global, None),
            Self::Logs { lines } => Ok(print_logs(global, lines)),
            Self::Socket => act_on_route(global, |route| {
                report::print_data(&route.place.socket(None).display().to_string());
                Ok(Exit::Success)
            }),
        }
    }
}

/// Does the work of the process between a client's relay and the daemon.
fn launch(global: &Global, socket: Option<&Path>) -> anyhow::Result<Exit> {
    match find_route(global) {
        Ok(route) => {
            let identity = route.context("no place for the daemon's socket")?.identity;
            launch::launch(&identity.wanted, socket).map(|()| Exit::Success)
        }
        Err(error) => Ok(refuse_config(&error)),
    }
}

fn act_on_route(
    global: &Global,
    act: impl FnOnce(&Route) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    match find_route(global) {
        Ok(route) => act(&route.context("no place for the daemon's socket")?),
        Err(error) => Ok(refuse_config(&error)),
    }
}

fn refuse_config(error: &ConfigError) -> Exit {
    report::say(&error.to_string());
    Exit::Usage
}

/// Starts the daemon, unless another process has, and prints which it is.
fn start(route: &Route, is_restart: bool) -> anyhow::Result<Exit> {
    let reached = block_on(async { Ok(reach(route, &Purpose::Status).await) })?;
    match reached {
        Ok(Reached {
            answer: DaemonReply::Status(status),
            is_new,
            ..
        }) => {
            let state = match (is_restart, is_new) {
                (true, _) => "restarted",
                (false, true) => "started",
                (false, false) => "runs already",
            };
            report::print_data(&format!("{state}: pid {}", status.pid));
            Ok(Exit::Success)
        }
        Ok(reached) => bail!("the daemon answered with {:?}", reached.answer),
        Err(NoDaemon::Reported(report)) => {
            report::say(&report.text);
            Ok(if report.is_usage {
                Exit::Usage
            } else {
                Exit::Nothing
            })
        }
        Err(NoDaemon::Failed(error)) => Err(error),
    }
}

fn stop(route: &Route) -> anyhow::Result<Exit> {
    if end_daemons(route, &Purpose::Stop)? == 0 {
        report::say("no daemon runs");
        return Ok(Exit::Nothing);
    }
    report::print_data("stopped");
    Ok(Exit::Success)
}

/// Stops every daemon of this configuration, including those of other builds and secrets. Returns their
/// number.
fn end_daemons(route: &Route, purpose: &Purpose) -> anyhow::Result<usize> {
    let mut stopped = 0;
    for socket in route.place.sockets() {
        let Some(stream) = connect(&socket)? else {
            continue;
        };
        let ended = block_on(async {
            let Some((mut stream, DaemonReply::Stopping)) = greet(stream, purpose.clone()).await?
            else {
                return Ok(false);
            };
            // The daemon keeps its end open until it and its servers have ended.
            let mut rest = Vec::new();
            tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await?;
            Ok::<_, io::Error>(true)
        });
        stopped += usize::from(ended?);
    }
    Ok(stopped)
}

fn block_on<T>(future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(future)
}

fn print_logs(global: &Global, lines: Option<usize>) -> Exit {
    let newest = match find_log(global) {
        Ok(file) => file,
        Err(error) => return refuse_config(&error),
    };
    let shown = read_last_lines(&newest, lines);
    if global.json {
        report::print_json(&json!({"file": newest, "lines": shown}));
    } else if !shown.is_empty() {
        report::print_data(&shown.join("\n"));
    }
    if shown.is_empty() {
        report::say("the daemon has written no log");
        return Exit::Nothing;
    }
    Exit::Success
}

/// Finds the log of a running daemon even if the configuration is broken by now.
fn find_log(global: &Global) -> Result<PathBuf, ConfigError> {
    let told = find_route(global)?.ok().and_then(|route| {
        let daemons = block_on(read_status(&route)).ok()?;
        Some(daemons.into_iter().next()?.log)
    });
    told.map_or_else(
        || {
            let config = config::load(&global.overrides(), &Environment::of_process())?;
            Ok(log::path(&config.gateway.state_dir))
        },
        Ok,
    )
}

/// Runs the daemon until it ends.
fn run(global: &Global, is_launched: bool, path: Option<PathBuf>) -> Exit {
    if is_launched {
        // The daemon leaves the client's terminal: its signals do not reach the daemon, and closing it
        // does not end the daemon.
        processes::leave_terminal();
    }
    processes::set_process_name(NAME);
    let failed = match serve(global, is_launched, path) {
        Ok(()) => return Exit::Success,
        Err(failed) => failed,
    };
    let exit = if failed.is_usage {
        Exit::Usage
    } else {
        Exit::Nothing
    };
    if is_launched {
        report::print_data(&json!(failed).to_string());
    } else {
        report::say(&failed.text);
    }
    exit
}

fn serve(global: &Global, is_launched: bool, path: Option<PathBuf>) -> Result<(), Report> {
    let config = config::load(&global.overrides(), &Environment::of_process());
    let config = config.map_err(|error| Report {
        is_usage: true,
        text: error.to_string(),
    })?;
    serve_config(global, config, is_launched, path).map_err(|error| Report {
        is_usage: false,
        text: format!("error: {}", report::describe(&error)),
    })
}

fn serve_config(
    global: &Global,
    config: Config,
    is_launched: bool,
    path: Option<PathBuf>,
) -> anyhow::Result<()> {
    let socket = open_socket(global, path)?;
    // A caller that waits for the daemon to detach must not wait for a copy of the socket.
    processes::close_stdin()?;
    let log = log::path(&config.gateway.state_dir);
    state_dir::make(&config.gateway.state_dir)?;
    start_log_to(
        &choose_filter(&config),
        LogWriter::new(&config.gateway.state_dir),
        !is_launched,
    );
    if let Some(home) = std::env::home_dir().filter(|home| home.is_dir()) {
        std::env::set_current_dir(home).context("cannot work in the home folder")?;
    }
    let waiting = run_async(async {
        let stop = CancellationToken::new();
        watch(SystemRequest::Terminate, &stop)?;
        watch(SystemRequest::Interrupt, &stop)?;
        let nudge = Arc::new(Notify::new());
        nudge_on_hangup(Arc::clone(&nudge))?;
        let (daemon, settings) = tokio::sync::watch::channel(config.daemon);
        let (file, http) = (config.file.clone(), config.http.clone());
        let load = live::loader_of(global);
        let (look, asked) = mpsc::channel::<live::Look>(LOOKS_MAX);
        let (gateway, upkeep) = live::open(config, Arc::clone(&load), nudge, asked, daemon, true)?;
        let read_http = move || load().map(|it| it.http).map_err(|error| error.to_string());
        let opened = DaemonParts {
            gateway,
            upkeep,
            config: file,
            settings,
            http,
            read_http: Arc::new(read_http),
            page: Arc::new(page::Page::new(Arc::new(PageEditor::new(global)))),
            settle: Arc::new(move || settle(look.clone()).boxed()),
        };
        let host = Host::new(opened, socket, stop)?;
        if is_launched {
            // A panic is logged, if there can be a log.
            processes::close_output(open_to_append(&log).ok())?;
        }
        anyhow::Ok(host.run().await)
    })??;
    // Processes that asked the daemon to stop are notified when these connections close at its exit,
    // and not before.
    std::mem::forget(waiting);
    Ok(())
}

/// Waits until the configuration file as it is now is in effect.
async fn settle(look: mpsc::Sender<live::Look>) {
    let (done, is_done) = oneshot::channel();
    if look.send(done).await.is_ok() {
        // It is dropped, not sent.
        let _ = is_done.await;
    }
}

/// Reloads the configuration on a hangup signal.
fn nudge_on_hangup(nudge: Arc<Notify>) -> io::Result<()> {
    let mut hangups = SystemRequest::HangUp.watch()?;
    tokio::spawn(async move {
        while hangups.next().await.is_some() {
            nudge.notify_one();
        }
    });
    Ok(())
}

/// The socket that we were given (by a client's front, or by systemd), or one that we bind.
fn open_socket(global: &Global, path: Option<PathBuf>) -> anyhow::Result<BoundSocket> {
    if let Some(socket) = BoundSocket::from_stdin() {
        return Ok(socket);
    }
    if let Some(path) = path {
        return BoundSocket::new(bind(&path)?).context("cannot listen");
    }
    let route = find_route(global)?.context("no place for the daemon's socket")?;
    let socket = route.place.socket(None);
    let _lock = place::lock(&socket, place::START_WAIT)?;
    if connect(&socket)?.is_some() {
        bail!("a daemon runs already; `proxy daemon stop` ends it");
    }
    BoundSocket::new(bind(&socket)?).context("cannot listen")
}

/// Returns the filter of the log. By default it includes our own `info`: the log is the only record
/// that a person can read afterwards.
fn choose_filter(config: &Config) -> String {
    if config.log == LOG_DEFAULT {
        filter_ours("info")
    } else {
        config.log.clone()
    }
}
