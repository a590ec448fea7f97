//! The daemon itself: one [`Gateway`] for every client that connects, until it is idle for long.

use std::{
    collections::VecDeque,
    fs, io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use files::clock::to_s;
use fleet::Variables;
use futures::FutureExt as _;
use gateway::{
    Connection, Gateway,
    api::{ApiError, ApiRequest, handle_for_command},
    survey,
    upkeep::Upkeep,
};
use jsonrpc::Sink;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::{
    sync::watch,
    time::{interval, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, info, warn};

use super::{
    DaemonSettings, api,
    hello::{
        CLIENT_VARIABLE, DaemonReply, Hello, HttpRequest, Narrowing, Purpose, receive_line,
        send_line,
    },
    identity::Build,
    launch::Report,
    listeners::{Listeners, ReadSettings},
    owner::{Claim, FolderClaim, OwnerDaemon},
    page::{PageDaemon, ServePage, Settle},
    socket::{
        BoundSocket, HeldStream, Listener, SocketFile, Stream, accept, hold, is_ours, listen, lock,
        split,
    },
    status::{DaemonStatus, read_status},
};

/// The interval at which a daemon checks that it can still be reached: its folder may have been
/// cleaned up. Until then no command reaches it, and a new client starts another one.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The time that sessions have to send their last messages before they end.
const SESSIONS_END_WAIT: Duration = Duration::from_secs(1);

/// The wait for the lock of the socket. After it, a daemon that ends does not remove its socket.
const LEAVE_WAIT: Duration = Duration::from_millis(500);

/// The answer to a client that opens a session again that a person ended.
const ENDED: &str =
    "a person ended this session on the web page; restart the MCP server in the client";

/// The most ended sessions that are remembered: a number of a process may be used again later.
const ENDED_MAX: usize = 64;

/// The longest wait of a command or of the page for a change of the configuration to take effect.
const SETTLE_WAIT: Duration = Duration::from_secs(5);

/// The delay after a failed `accept` (too many open files).
const ACCEPT_REST: Duration = Duration::from_millis(100);

struct Daemon {
    gateway: Arc<Gateway>,
    config: PathBuf,
    settings: watch::Receiver<DaemonSettings>,
    build: Build,
    since: SystemTime,
    socket: SocketFile,
    /// The state folder, for as long as the daemon accepts clients.
    folder: FolderClaim,
    http: Listeners,
    page: Arc<dyn ServePage>,
    settle: Settle,
    /// The number of open sessions.
    sessions: watch::Sender<usize>,
    /// Cancelled when the daemon accepts no new clients; it ends when the last client disconnects.
    leaving: CancellationToken,
    stop: CancellationToken,
    /// Connections of the clients that wait for the daemon to end.
    waiting: Mutex<Vec<Stream>>,
    /// The processes of clients whose sessions a person ended, the last of them: they get no other.
    ended: Mutex<VecDeque<u32>>,
}

/// The opened configuration that a daemon serves.
pub struct DaemonParts {
    /// The gateway that all sessions share.
    pub gateway: Arc<Gateway>,
    /// The background work besides the sessions.
    pub upkeep: Upkeep,
    /// The configuration file, for messages to people.
    pub config: PathBuf,
    /// The current settings: they follow the file.
    pub settings: watch::Receiver<DaemonSettings>,
    /// The settings at the start: changes take effect at the next start.
    pub http: http_server::HttpSettings,
    /// Reads the settings whenever a `serve --http` asks.
    pub read_http: ReadSettings,
    /// Serves the web page.
    pub page: Arc<dyn ServePage>,
    /// Waits until the configuration file as it is now is in effect.
    pub settle: Settle,
}

impl std::fmt::Debug for DaemonParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DaemonParts")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl DaemonParts {
    /// Serves an opened configuration until stopped, replaced, or idle for long. All servers have ended then.
    /// `note_ready` is called when clients can connect. Returns the connections of clients that wait for our
    /// process to exit.
    pub async fn serve(
        self,
        socket: BoundSocket,
        folder: FolderClaim,
        stop: CancellationToken,
        note_ready: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Vec<HeldStream>> {
        let listener = listen(socket.listener)?;
        // `proxy review --pending` and the page reach a daemon.
        self.gateway.clients.questions.set_reachable();
        let daemon = Arc::new(Daemon {
            http: Listeners::new(
                Arc::clone(&self.gateway),
                self.http,
                self.read_http,
                stop.child_token(),
            ),
            gateway: self.gateway,
            page: self.page,
            settle: Arc::new(move || {
                let settled = timeout(SETTLE_WAIT, (self.settle)());
                settled.map(Result::unwrap_or_default).boxed()
            }),
            config: self.config,
            settings: self.settings,
            build: Build::ours(),
            since: SystemTime::now(),
            socket: socket.file,
            folder,
            sessions: watch::Sender::new(0),
            leaving: CancellationToken::new(),
            stop,
            waiting: Mutex::default(),
            ended: Mutex::default(),
        });
        note_ready()?;
        let (socket, version) = (daemon.socket.path.display(), &daemon.build.version);
        info!(%socket, version, "the daemon serves");
        let tasks = TaskTracker::new();
        if daemon.http.is_configured() {
            let daemon = Arc::clone(&daemon);
            tasks.spawn(async move { daemon.http.serve_configured().await });
        }
        let resumed = Arc::clone(&daemon);
        tasks.spawn(async move { resumed.page.resume(resumed.page_daemon()).await });
        daemon.accept(listener, &tasks).await;
        daemon.stop.cancel();
        tasks.close();
        let _ = timeout(SESSIONS_END_WAIT, tasks.wait()).await;
        self.upkeep.end().await;
        info!("the daemon ends");
        Ok(daemon.take_waiting())
    }
}

impl Daemon {
    async fn accept(self: &Arc<Self>, mut listener: Listener, tasks: &TaskTracker) {
        let mut checks = interval(LOOK_EVERY);
        // Kept across iterations: a new future would restart the wait.
        let mut idle = std::pin::pin!(self.wait_until_idle());
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = self.leaving.cancelled() => break,
                () = &mut idle => {
                    info!("no client for the linger time");
                    break;
                }
                _ = checks.tick() => {
                    if let Some(again) = self.check_socket() {
                        listener = again;
                    }
                    self.claim_folder();
                }
                accepted = accept(&listener) => match accepted {
                    Ok(stream) => {
                        let daemon = Arc::clone(self);
                        tasks.spawn(async move { Box::pin(daemon.receive(stream)).await });
                    }
                    Err(error) => {
                        warn!(%error, "a client could not connect");
                        sleep(ACCEPT_REST).await;
                    }
                }
            }
        }
        self.remove_socket().await;
        // Clients that wait in the socket look for another daemon. No more come after them.
        while let Some(Ok(_)) = accept(&listener).now_or_never() {}
        drop(listener);
        // The daemon that replaces us needs the addresses.
        self.http.stop.cancel();
        let mut sessions = self.sessions.subscribe();
        tokio::select! {
            () = self.stop.cancelled() => {}
            _ = sessions.wait_for(|count| *count == 0) => {}
        }
    }

    /// Returns when no client was served for the configured time; never while clients may connect over
    /// HTTP at an address of the configuration, because they could not start us again.
    async fn wait_until_idle(&self) {
        if self.http.is_configured() {
            return std::future::pending().await;
        }
        let mut sessions = self.sessions.subscribe();
        loop {
            let _ = sessions.wait_for(|count| *count == 0).await;
            let Some(linger) = self.settings.borrow().linger else {
                return std::future::pending().await;
            };
            tokio::select! {
                () = sleep(linger) => return,
                _ = sessions.changed() => {}
            }
        }
    }

    /// Binds the socket again if it was removed. If another daemon has the path, or it cannot be bound,
    /// the daemon ends with its last client.
    fn check_socket(&self) -> Option<Listener> {
        if self.socket.is_unchanged() {
            return None;
        }
        let socket = self.socket.path.display();
        let again = self.socket.bind_again();
        let again = again.and_then(|it| it.map(listen).transpose());
        match again {
            Ok(Some(listener)) => {
                warn!(%socket, "the socket was removed and is bound again");
                return Some(listener);
            }
            // A process that starts or removes a daemon holds the lock; the next look comes soon.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return None,
            Ok(None) => warn!(%socket, "another daemon has taken over the socket"),
            Err(error) => warn!(%socket, %error, "the socket is gone"),
        }
        self.leaving.cancel();
        None
    }

    /// Claims the state folder again if another daemon had it at the last attempt. If it belongs to a daemon of
    /// our build by now, or to another configuration, the daemon ends with its last client.
    fn claim_folder(self: &Arc<Self>) {
        if !self.folder.is_waiting() {
            return;
        }
        let daemon = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            match daemon.folder.claim(Duration::ZERO) {
                Ok(Claim::Owned) => return info!("the state folder is ours now"),
                Ok(Claim::Shared) => return,
                Ok(Claim::Taken(OwnerDaemon { pid, .. })) => {
                    warn!(pid, "another daemon owns the state folder");
                }
                Err(error) => warn!(%error, "the state folder is not ours"),
            }
            daemon.leaving.cancel();
        });
    }

    /// Removes our socket for another daemon. Takes the lock, so that no socket but ours is removed; if
    /// the lock cannot be taken the socket stays, and the next daemon replaces it.
    async fn remove_socket(self: &Arc<Self>) {
        let daemon = Arc::clone(self);
        let leaving = tokio::task::spawn_blocking(move || {
            // The next daemon continues with the counts of quotas.
            daemon.gateway.flush_records();
            daemon.folder.release();
            let Ok(_lock) = lock(&daemon.socket.path, LEAVE_WAIT) else {
                return;
            };
            if daemon.socket.is_there() {
                let _ = fs::remove_file(&daemon.socket.path);
            }
        });
        let _ = leaving.await;
    }

    async fn receive(self: Arc<Self>, mut stream: Stream) {
        if !is_ours(&stream) {
            warn!("a connection from another user was refused");
            return;
        }
        let hello: Hello<Box<RawValue>> = match receive_line(&mut stream).await {
            Ok(Some(hello)) => hello,
            Ok(None) => return,
            Err(error) => {
                debug!(%error, "a connection sent no valid hello");
                return;
            }
        };
        let is_ours = hello.build == self.build;
        let purpose = serde_json::from_str(hello.purpose.get());
        let purpose = match purpose {
            Ok(Purpose::Session { .. } | Purpose::Api { .. } | Purpose::Page) | Err(_)
                if !is_ours =>
            {
                let stays = matches!(
                    purpose,
                    Ok(Purpose::Api {
                        replaces: false,
                        ..
                    })
                );
                let answer = self.answer_other_build(&hello.build, stays).await;
                let _ = send_line(&mut stream, &answer).await;
                return;
            }
            Ok(purpose) => purpose,
            Err(error) => {
                debug!(%error, "a connection sent no valid hello");
                return;
            }
        };
        let answered = match purpose {
            Purpose::Session {
                cwd,
                variables,
                narrowing,
            } => {
                let connection = connection_of(cwd, variables, hello.pid, "stdio");
                return self.serve(stream, connection, narrowing).await;
            }
            Purpose::Api {
                cwd,
                variables,
                request,
                replaces: _,
            } => {
                let connection = connection_of(cwd, variables, hello.pid, "shell");
                Box::pin(self.answer_api(stream, connection, request)).await
            }
            Purpose::Status => {
                send_line(&mut stream, &DaemonReply::Status(self.status().await)).await
            }
            Purpose::Page => send_line(&mut stream, &self.open_page().await).await,
            Purpose::Settle => {
                let problem = self.settle().await;
                send_line(&mut stream, &DaemonReply::Settled { problem }).await
            }
            Purpose::LookAgain => self.look_again(stream).await,
            Purpose::Http(request) => {
                let (build, pid) = (&hello.build, hello.pid);
                self.hold_http(stream, build, request, pid).await
            }
            Purpose::Stop => {
                self.http.is_stopped.cancel();
                self.stop_for(stream).await
            }
            Purpose::Restart => self.stop_for(stream).await,
        };
        if let Err(error) = answered {
            debug!(%error, "a response could not be sent");
        }
    }

    /// Serves HTTP for a process, even of an older build: this part of the protocol changes little.
    async fn hold_http(
        self: &Arc<Self>,
        mut stream: Stream,
        build: &Build,
        request: HttpRequest,
        pid: u32,
    ) -> io::Result<()> {
        if build.is_newer_than(&self.build) {
            return send_line(&mut stream, &self.answer_other_build(build, false).await).await;
        }
        let _present = self.count_session();
        self.http.hold(stream, request, pid).await
    }

    /// Converts the connections of waiting clients for use after the event loop, which ends before our
    /// process does.
    fn take_waiting(&self) -> Vec<HeldStream> {
        let mut waiting = self.waiting.lock();
        let streams = waiting.drain(..).map(hold);
        streams.filter_map(Result::ok).collect()
    }

    /// Answers a client of another build. If it is newer, this daemon makes room for another, unless it `stays`.
    async fn answer_other_build(self: &Arc<Self>, other: &Build, stays: bool) -> DaemonReply {
        let leaves = !stays && other.is_newer_than(&self.build);
        if leaves {
            let version = &other.version;
            info!(version, "a newer version replaces this daemon");
            self.remove_socket().await;
            self.leaving.cancel();
        }
        let version = self.build.version.clone();
        DaemonReply::OtherBuild { leaves, version }
    }

    /// Serves a session, unless it names a profile that is not configured, or a person has ended it.
    async fn serve(&self, mut stream: Stream, connection: Connection, narrowing: Narrowing) {
        let pid = connection.pid.unwrap_or(0);
        let was_ended = self.ended.lock().contains(&pid);
        let refused = match narrowing.check(&self.gateway.settings().clients) {
            Err(why) => Some(Report::failure(why)),
            Ok(()) => was_ended.then(|| Report::failure(ENDED)),
        };
        if let Some(report) = refused {
            let _ = send_line(&mut stream, &DaemonReply::Refused(report)).await;
            return;
        }
        let _session = self.count_session();
        let connection = Connection {
            profile: narrowing.profile.map(Arc::from),
            project: narrowing.project.map(Arc::new),
            ..connection
        };
        let welcome = DaemonReply::Welcome {
            serves_http: self.http.is_configured(),
        };
        if send_line(&mut stream, &welcome).await.is_err() {
            return;
        }
        let Ok((input, output, _)) = split(stream) else {
            warn!("a session failed: out of open files");
            return;
        };
        let (gateway, stop) = (Arc::clone(&self.gateway), self.stop.child_token());
        let is_ended = gateway::serve(gateway, connection, input, Sink::Pipe(output), stop).await;
        if is_ended {
            let mut ended = self.ended.lock();
            ended.push_back(pid);
            if ended.len() > ENDED_MAX {
                ended.pop_front();
            }
        }
    }

    /// Answers a request of a command. The configuration is in effect as it is in the file.
    async fn answer_api(
        &self,
        stream: Stream,
        connection: Connection,
        request: ApiRequest,
    ) -> io::Result<()> {
        let _present = self.count_session();
        (self.settle)().await;
        let run = async |gone: CancellationToken| {
            let handling = handle_for_command(&self.gateway, connection, request, gone);
            let handled = self.stop.run_until_cancelled(handling).await;
            handled.unwrap_or_else(|| {
                let why = "the daemon is stopping; the command may have been executed";
                Err(ApiError::new("stopping", why))
            })
        };
        Box::pin(api::answer(stream, run)).await
    }

    /// Stops this process for a command, which waits until the connection closes.
    async fn stop_for(self: &Arc<Self>, mut stream: Stream) -> io::Result<()> {
        self.remove_socket().await;
        let told = send_line(&mut stream, &DaemonReply::Stopping).await;
        self.stop.cancel();
        // Held open until our process has exited, with all servers.
        self.waiting.lock().push(stream);
        told
    }

    /// Waits until the configuration file is in effect. Returns why it is not.
    async fn settle(&self) -> Option<String> {
        if (self.settle)().await {
            return self.gateway.config_mistakes();
        }
        let seconds = SETTLE_WAIT.as_secs();
        Some(format!("it was not read within {seconds} s"))
    }

    /// Surveys the servers that have got what they waited for.
    async fn look_again(&self, mut stream: Stream) -> io::Result<()> {
        let mended = self.gateway.servers.list_mended();
        let told = send_line(&mut stream, &DaemonReply::Noted).await;
        survey::get_to_know(Arc::clone(&self.gateway.catalog), mended).await;
        told
    }

    /// One more session, until the guard is dropped.
    fn count_session(&self) -> SessionGuard {
        self.sessions.send_modify(|count| *count += 1);
        SessionGuard(self.sessions.clone())
    }

    async fn status(self: &Arc<Self>) -> Box<DaemonStatus> {
        let daemon = Arc::clone(self);
        let looking = tokio::task::spawn_blocking(move || {
            daemon.gateway.recorder.settle();
            daemon.read_status()
        });
        Box::new(looking.await.unwrap_or_default())
    }

    fn read_status(&self) -> DaemonStatus {
        let (http, http_held) = self.http.describe();
        DaemonStatus {
            version: self.build.version.clone(),
            build: Some(self.build.clone()),
            started_at: to_s(self.since),
            uptime_s: self.since.elapsed().unwrap_or_default().as_secs(),
            is_leaving: self.leaving.is_cancelled(),
            config: self.config.clone(),
            socket: self.socket.path.clone(),
            http,
            http_held,
            ..read_status(&self.gateway)
        }
    }

    fn page_daemon(self: &Arc<Self>) -> PageDaemon {
        let (looking, attended) = (Arc::clone(self), Arc::clone(self));
        PageDaemon {
            gateway: Arc::clone(&self.gateway),
            status: Arc::new(move || looking.read_status()),
            attend: Arc::new(move || Box::new(attended.count_session())),
            stop: self.http.stop.clone(),
            settle: Arc::clone(&self.settle),
        }
    }

    async fn open_page(self: &Arc<Self>) -> DaemonReply {
        match self.page.open(self.page_daemon()).await {
            Ok(url) => DaemonReply::Page { url },
            Err(text) => DaemonReply::Refused(Report::failure(text)),
        }
    }
}

struct SessionGuard(watch::Sender<usize>);

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Returns the connection info of the client that sent the hello.
fn connection_of(
    cwd: Option<PathBuf>,
    variables: Variables,
    pid: u32,
    transport: &'static str,
) -> Connection {
    let name = variables.get(CLIENT_VARIABLE);
    Connection {
        cwd: cwd.map(Into::into),
        name: name.filter(|it| !it.trim().is_empty()).map(str::to_owned),
        variables: Some(Arc::new(variables)),
        pid: Some(pid),
        transport,
        is_here: transport == "stdio",
        ..Connection::default()
    }
}
