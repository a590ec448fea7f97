//! The addresses at which a daemon serves HTTP: that of the configuration, and those of each
//! `serve --http`, for as long as that one lives.

use std::{fmt::Display, io, net::TcpListener, sync::Arc, time::Duration};

use fleet::Variables;
use gateway::Gateway;
use http_server::{Bound, Endpoint, HttpSettings, Listen};
use parking_lot::Mutex;
use secrets::Resolver;
use tokio::{
    io::AsyncReadExt as _,
    sync::watch,
    time::{interval, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    hello::{DaemonReply, HttpRequest, send_line},
    launch::Report,
    socket::{Stream, receive_listener},
    status::{HeldAddress, HttpStatus},
};

/// The interval at which a starting daemon tries to bind the address of `[http]`, and the number of tries
/// before it reports a failure: the previous daemon may hold it for some milliseconds longer.
const TRY_EVERY: Duration = Duration::from_millis(50);
const TRIES: usize = 10;

/// The interval of the tries after that: the address may become free.
const TRY_LATER_EVERY: Duration = Duration::from_secs(1);

/// Reads `[http]` of the configuration as it is now. The error is for people.
pub(crate) type ReadSettings = Arc<dyn Fn() -> Result<HttpSettings, String> + Send + Sync>;

/// Everything that is served over HTTP.
pub(crate) struct Listeners {
    gateway: Arc<Gateway>,
    /// The settings at the start of the daemon.
    configured: HttpSettings,
    read: ReadSettings,
    /// The URL at which the configured address is served, or the error; none until that is known.
    outcome: watch::Sender<Option<HttpStatus>>,
    held: Mutex<Vec<Arc<ServedAddress>>>,
    /// Cancelled when a person stops the daemon: holders of an address are notified, and request no other.
    pub(crate) is_stopped: CancellationToken,
    /// Ends every listener, and the sessions there.
    pub(crate) stop: CancellationToken,
}

/// An address that is served for a `serve --http`.
#[derive(Debug)]
struct ServedAddress {
    listen: Listen,
    url: String,
    pid: u32,
}

impl Listeners {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        configured: HttpSettings,
        read: ReadSettings,
        stop: CancellationToken,
    ) -> Self {
        Self {
            gateway,
            configured,
            read,
            outcome: watch::Sender::new(None),
            held: Mutex::default(),
            is_stopped: CancellationToken::new(),
            stop,
        }
    }

    /// Returns true if clients may connect to an address of the configuration.
    pub(crate) fn is_configured(&self) -> bool {
        self.configured.listen.is_some()
    }

    /// Returns the state of the configured address, and of the others.
    pub(crate) fn describe(&self) -> (Option<HttpStatus>, Vec<HeldAddress>) {
        let held = self.held.lock();
        let held = held.iter().map(|it| HeldAddress {
            url: it.url.clone(),
            pid: it.pid,
        });
        (self.outcome.borrow().clone(), held.collect())
    }

    /// Serves `[http]` until the daemon ends. If another process has the address, waits until it is free.
    pub(crate) async fn serve_configured(&self) {
        let binding = self.stop.run_until_cancelled(self.bind_configured());
        match binding.await {
            None => {}
            Some(Ok(bound)) => {
                let url = bound.url();
                info!(url, "serving HTTP");
                self.outcome.send_replace(Some(HttpStatus::Url(url)));
                let gateway = Arc::clone(&self.gateway);
                bound.serve(gateway, self.stop.clone()).await;
            }
            Some(Err(error)) => self.report_failure(&error),
        }
    }

    fn report_failure(&self, error: &anyhow::Error) {
        let error = format!("{error:#}");
        warn!(error, "HTTP is not served");
        self.outcome.send_replace(Some(HttpStatus::Error(error)));
    }

    fn resolver(&self) -> Arc<Resolver> {
        gateway::resolver(&self.gateway.settings().private_files())
    }

    async fn bind_configured(&self) -> anyhow::Result<Bound> {
        let (variables, secrets) = (Variables::of_process(), self.resolver());
        let endpoint = Endpoint::new(&self.configured, None, &variables, &secrets).await;
        let endpoint = endpoint.map_err(anyhow::Error::msg)?;
        let mut tries = interval(TRY_EVERY);
        for _ in 1..TRIES {
            tries.tick().await;
            if let Ok(bound) = http_server::try_bind(&endpoint).await {
                return Ok(bound);
            }
        }
        match http_server::bind(&endpoint).await {
            Ok(bound) => return Ok(bound),
            Err(error) => self.report_failure(&error),
        }
        loop {
            sleep(TRY_LATER_EVERY).await;
            if let Ok(bound) = http_server::try_bind(&endpoint).await {
                return Ok(bound);
            }
        }
    }

    /// Serves an address until its holder is gone, and reports the outcome to the holder.
    pub(crate) async fn hold(
        &self,
        mut stream: Stream,
        request: HttpRequest,
        pid: u32,
    ) -> io::Result<()> {
        let socket = if request.has_socket {
            send_line(&mut stream, &DaemonReply::SendSocket).await?;
            Some(receive_listener(&stream).await?)
        } else {
            None
        };
        let (url, bound) = match self.open(&request, socket).await {
            Ok(opened) => opened,
            Err(report) => return send_line(&mut stream, &DaemonReply::Refused(report)).await,
        };
        let answer = DaemonReply::Listening {
            url: url.clone(),
            address: bound.as_ref().map(|it| it.listen().to_string()),
        };
        send_line(&mut stream, &answer).await?;
        if let Some(bound) = bound {
            let listen = bound.listen();
            let held = Arc::new(ServedAddress { listen, url, pid });
            info!(url = held.url, pid, "HTTP is served for a client");
            self.held.lock().push(Arc::clone(&held));
            let gone = self.stop.child_token();
            let serving = bound.serve(Arc::clone(&self.gateway), gone.clone());
            let waiting = async {
                self.wait_for_end(&mut stream).await;
                gone.cancel();
            };
            tokio::join!(serving, waiting);
            self.held.lock().retain(|it| !Arc::ptr_eq(it, &held));
            info!(url = held.url, "HTTP is no longer served for a client");
        } else {
            self.wait_for_end(&mut stream).await;
        }
        if self.is_stopped.is_cancelled() {
            send_line(&mut stream, &DaemonReply::Stopping).await?;
        }
        Ok(())
    }

    /// Returns when the holder is gone, or every listener is to end.
    async fn wait_for_end(&self, stream: &mut Stream) {
        // The process sends nothing: the next event is the end of its stream.
        let closed = stream.read_u8();
        let _ = self.stop.run_until_cancelled(closed).await;
    }

    /// Returns the URL of an address, and what is bound to it unless it is served anyway.
    async fn open(
        &self,
        request: &HttpRequest,
        socket: Option<TcpListener>,
    ) -> Result<(String, Option<Bound>), Report> {
        let asked = request.listen.as_deref().map(str::parse::<Listen>);
        let asked = asked.transpose().map_err(|error| refuse(true, error))?;
        let read = Arc::clone(&self.read);
        let settings = tokio::task::spawn_blocking(move || read());
        let settings = settings.await.map_err(|error| refuse(false, error))?;
        let settings = settings.map_err(Report::usage)?;
        let secrets = self.resolver();
        let endpoint = Endpoint::new(&settings, asked, &request.variables, &secrets).await;
        let endpoint = endpoint.map_err(|why| refuse(true, why))?;
        let wanted = asked.or(settings.listen);
        if self.is_configured() && wanted == self.configured.listen {
            let mut outcome = self.outcome.subscribe();
            let known = outcome.wait_for(Option::is_some).await;
            // If it failed, binding again returns the error to this caller.
            if let Some(HttpStatus::Url(url)) = known.ok().and_then(|it| it.clone()) {
                return Ok((url, None));
            }
        }
        let bound = match socket {
            Some(socket) => http_server::bind_inherited(socket, &endpoint),
            None => http_server::bind(&endpoint).await,
        };
        let bound = bound.map_err(|error| {
            let held = self.held.lock();
            let other = held.iter().find(|it| Some(it.listen) == wanted);
            let why = match other.map(|it| &**it) {
                Some(ServedAddress { url, pid, .. }) => {
                    format!("{url} is already served, for the `proxy serve --http` with pid {pid}")
                }
                None => format!("{error:#}"),
            };
            refuse(false, why)
        })?;
        Ok((bound.url(), Some(bound)))
    }
}

fn refuse(is_usage: bool, why: impl Display) -> Report {
    Report {
        is_usage,
        ..Report::failure(format!("error: {why}"))
    }
}
