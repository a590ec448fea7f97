//! `proxy daemon`: starts and stops the process that all clients share.

use std::{fmt, fs, io, path::PathBuf, sync::Arc};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use config::Config;
use daemon::{
    hello::{DaemonReply, Purpose},
    host::DaemonParts,
    launch::{self, Report},
    log::{self, LogWriter},
    owner::{CLAIM_WAIT, Claim, FolderClaim, OwnerDaemon},
    reach::{Reached, Route, reach},
    running::{RunningDaemon, connect_to_all},
    socket::{self, BoundSocket, bind, connect},
};
use files::open_to_append;
use futures::{FutureExt as _, future::join_all};
use gateway::state_dir;
use processes::SystemRequest;
use serde_json::json;
use tokio::{
    io::AsyncReadExt as _,
    sync::{Notify, mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use super::{
    load_config,
    route::{explain, find_route, need_route},
};
use crate::{
    cli::global::Global,
    event_loop::{run_async, runtime},
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

/// Start, stop and run the shared daemon
#[derive(Debug, Subcommand)]
pub(crate) enum DaemonAction {
    /// Start the daemon, unless it is running; `proxy serve` starts it too
    Start,
    /// Stop the daemon and its servers; a client's message starts another
    Stop,
    /// Stop the daemon and start another
    Restart,
    /// Run the daemon in the foreground (systemd: `config/systemd/`)
    Run {
        /// Print the path of the socket, for a systemd unit, and run nothing
        #[arg(long)]
        print_socket: bool,
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
            // The work of the process between a client's relay and the daemon.
            Self::Launch { socket } => {
                let wanted = need_route(global)?.identity.wanted;
                launch::launch(&wanted, socket.as_deref()).map(|()| Exit::Success)
            }
            Self::Run {
                print_socket: true, ..
            } => {
                let socket = need_route(global)?.place.socket(None);
                report::print_data(&socket.display().to_string());
                Ok(Exit::Success)
            }
            Self::Run {
                launched, socket, ..
            } => run(global, launched, socket),
            Self::Start => start(&need_route(global)?, false),
            Self::Stop => stop(&need_route(global)?),
            Self::Restart => {
                let route = need_route(global)?;
                // A `serve --http` may start the next daemon before we do.
                let is_restart = end_daemons(&route, &Purpose::Restart)? > 0;
                start(&route, is_restart)
            }
        }
    }
}

/// Starts the daemon, unless another process has, and prints which it is.
fn start(route: &Route, is_restart: bool) -> anyhow::Result<Exit> {
    let reached = runtime()?.block_on(reach(route, &Purpose::Status));
    let Reached { answer, is_new, .. } = reached.map_err(explain)?;
    let DaemonReply::Status(status) = answer else {
        bail!("the daemon answered with {answer:?}");
    };
    let state = match (is_restart, is_new) {
        (true, _) => "restarted",
        (false, true) => "started",
        (false, false) => "runs already",
    };
    report::print_data(&format!("{state}: pid {}", status.pid));
    Ok(Exit::Success)
}

fn stop(route: &Route) -> anyhow::Result<Exit> {
    if end_daemons(route, &Purpose::Stop)? == 0 {
        return Err(Exit::Nothing.with("no daemon runs"));
    }
    report::print_data("stopped");
    Ok(Exit::Success)
}

/// Stops every daemon of this configuration, including those of other builds and secrets. Returns their
/// number.
///
/// # Errors
///
/// Some did not answer; the others have ended.
fn end_daemons(route: &Route, purpose: &Purpose) -> anyhow::Result<usize> {
    let daemons = connect_to_all(&route.place).map(|daemon| end_daemon(daemon, purpose.clone()));
    let ended = runtime()?.block_on(join_all(daemons));
    let failed = ended.iter().filter_map(|it| it.as_ref().err());
    let failed: Vec<_> = failed.map(ToString::to_string).collect();
    if !failed.is_empty() {
        bail!(failed.join("\n"));
    }
    Ok(ended.iter().filter(|it| matches!(it, Ok(true))).count())
}

/// Stops a daemon. Returns false if it ended before it was asked to.
async fn end_daemon(daemon: io::Result<RunningDaemon>, purpose: Purpose) -> io::Result<bool> {
    let Some((mut stream, DaemonReply::Stopping)) = daemon?.greet(purpose).await? else {
        return Ok(false);
    };
    // The daemon keeps its end open until it and its servers have ended.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await?;
    Ok(true)
}

fn run(global: &Global, is_launched: bool, path: Option<PathBuf>) -> anyhow::Result<Exit> {
    if is_launched {
        // The daemon leaves the client's terminal: its signals do not reach the daemon, and closing it
        // does not end the daemon.
        processes::leave_terminal();
    }
    processes::set_process_name(NAME);
    let served = serve(global, is_launched, path);
    if let Err(error) = &served
        && is_launched
    {
        let (exit, text) = report::explain(error);
        let report = Report {
            is_usage: exit == Exit::Usage,
            is_owned: error.is::<OwnedByOther>(),
            text,
        };
        report::print_data(&json!(report).to_string());
        return Ok(exit);
    }
    served.map(|()| Exit::Success)
}

fn serve(global: &Global, is_launched: bool, path: Option<PathBuf>) -> anyhow::Result<()> {
    let config = load_config(global)?;
    let socket = open_socket(global, path)?;
    // A caller that waits for the daemon to detach must not wait for a copy of the socket.
    processes::close_stdin()?;
    let log = log::path(&config.gateway.state_dir);
    state_dir::make(&config.gateway.state_dir)?;
    let folder = claim_state(global, &config, &socket)?;
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
        let note_ready = || {
            if is_launched {
                // A panic is logged, if there can be a log.
                processes::close_output(open_to_append(&log).ok())?;
            }
            Ok(())
        };
        anyhow::Ok(opened.serve(socket, folder, stop, note_ready).await?)
    })??;
    // Processes that asked the daemon to stop are notified when these connections close at its exit,
    // and not before.
    std::mem::forget(waiting);
    Ok(())
}

/// Waits until the configuration file as it is now was read. Returns false if it is not followed any more.
async fn settle(look: mpsc::Sender<live::Look>) -> bool {
    let (done, is_done) = oneshot::channel();
    let is_asked = look.send(done).await.is_ok();
    if is_asked {
        // It is dropped, not sent.
        let _ = is_done.await;
    }
    is_asked
}

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
    let _lock = socket::lock(&socket, socket::START_WAIT)?;
    if connect(&socket)?.is_some() {
        bail!("a daemon runs already; `proxy daemon stop` ends it");
    }
    BoundSocket::new(bind(&socket)?).context("cannot listen")
}

/// The error of a daemon whose state folder another daemon of this configuration owns.
#[derive(Debug)]
struct OwnedByOther(OwnerDaemon);

impl fmt::Display for OwnedByOther {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OwnerDaemon { pid, socket, .. } = &self.0;
        let socket = socket.display();
        write!(
            f,
            "a daemon runs already, pid {pid}, at {socket}; `proxy daemon stop` ends it"
        )
    }
}

impl std::error::Error for OwnedByOther {}

/// Claims the state folder for this daemon. A daemon of another build may serve its last clients there.
fn claim_state(
    global: &Global,
    config: &Config,
    socket: &BoundSocket,
) -> anyhow::Result<FolderClaim> {
    let identity = need_route(global)?.identity;
    let folder = FolderClaim::new(&config.gateway.state_dir, &identity, socket.path());
    match folder.claim(CLAIM_WAIT) {
        Ok(Claim::Owned | Claim::Shared) => Ok(folder),
        Ok(Claim::Taken(owner)) => {
            // No process binds it again before this one ends.
            let _ = fs::remove_file(socket.path());
            Err(OwnedByOther(owner).into())
        }
        Err(other) => Err(Exit::Usage.with(other.to_string())),
    }
}

/// Returns the filter of the log. By default it includes our own `info`: the log is the only record
/// that a person can read afterwards.
fn choose_filter(config: &Config) -> String {
    match config.log.as_str() {
        LOG_DEFAULT => filter_ours("info"),
        configured => configured.to_owned(),
    }
}
