//! The addresses at which a daemon serves HTTP: that of the configuration, and those of each
//! `serve --http`, for as long as that one lives.

use std::{fmt, io, net::TcpListener, sync::Arc, time::Duration};

use fleet::Variables;
use gateway::Gateway;
use http_server::{Bound, Endpoint, HttpSettings, Listen};
use parking_lot::Mutex;
use secrets::Resolver;
use tokio::{io::AsyncReadExt as _, sync::watch, time::interval};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    hello::{DaemonReply, send_line},
    launch::Report,
    socket::{Stream, receive_listener},
    status::{HeldAddress, HttpStatus},
};

/// The interval at which a starting daemon tries to bind the address of `[http]`, and the number of
/// tries: the previous daemon may still hold it. In total, less than the clients wait for an answer.
const TRY_EVERY: Duration = Duration::from_millis(250);
const TRIES: usize = 32;

/// Reads `[http]` of the configuration as it is now. The error is for people.
pub(crate) type ReadSettings = Arc<dyn Fn() -> Result<HttpSettings, String> + Send + Sync>;

/// Everything that is served over HTTP.
pub(crate) struct Listeners {
    gateway: Arc<Gateway>,
    /// The settings at the start of the daemon.
    configured: HttpSettings,
    read: ReadSettings,
    /// The URL at which the configured address is served, or the error; none until that is known.
    outcome: watch::Sender<Option<Result<String, String>>>,
    held: Mutex<Vec<Arc<ServedAddress>>>,
    /// Cancelled when a person stops the daemon: holders of an address are notified, and request no other.
    is_stopped: CancellationToken,
    /// Ends every listener.
    stop: CancellationToken,
}

/// An address that is served for a `serve --http`.
#[derive(Debug)]
struct ServedAddress {
    listen: Listen,
    url: String,
    pid: u32,
}

/// A `serve --http` that requests an address.
#[derive(Debug)]
pub(crate) struct Holder {
    /// None: the address of the configuration.
    pub(crate) listen: Option<String>,
    pub(crate) variables: Variables,
    pub(crate) has_socket: bool,
    pub(crate) pid: u32,
}

enum OpenedAddress {
    /// It is served anyway, at this address.
    Configured(String),
    New(Box<Bound>),
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
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

    /// From now on, holders of an address are notified that they lose it for good.
    pub(crate) fn note_stopped(&self) {
        self.is_stopped.cancel();
    }

    /// Returns what is cancelled when every listener ends.
    pub(crate) fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Ends every listener, and the sessions there.
    pub(crate) fn end(&self) {
        self.stop.cancel();
    }

    /// Returns the state of the configured address, and of the others.
    pub(crate) fn describe(&self) -> (Option<HttpStatus>, Vec<HeldAddress>) {
        let held = self.held.lock();
        let held = held
            .iter()
            .map(|it| HeldAddress {
                url: it.url.clone(),
                pid: it.pid,
            })
            .collect();
        let configured = self.outcome.borrow().clone();
        let configured = configured.map(|outcome| match outcome {
            Ok(url) => HttpStatus::Url(url),
            Err(why) => HttpStatus::Error(why),
        });
        (configured, held)
    }

    /// Serves `[http]` until the daemon ends.
    pub(crate) async fn serve_configured(&self) {
        match self.bind_configured().await {
            Ok(bound) => {
                let url = bound.url();
                info!(url, "serving HTTP");
                self.outcome.send_replace(Some(Ok(url)));
                bound
                    .serve(Arc::clone(&self.gateway), self.stop.clone())
                    .await;
            }
            Err(error) => {
                let error = format!("{error:#}");
                warn!(error, "HTTP is not served");
                self.outcome.send_replace(Some(Err(error)));
            }
        }
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
            if let Ok(bound) = http_server::bind(&endpoint).await {
                return Ok(bound);
            }
        }
        http_server::bind(&endpoint).await
    }

    /// Serves an address until its holder is gone, and reports the outcome to the holder.
    pub(crate) async fn hold(&self, mut stream: Stream, holder: Holder) -> io::Result<()> {
        let socket = if holder.has_socket {
            send_line(&mut stream, &DaemonReply::SendSocket).await?;
            Some(receive_listener(&stream).await?)
        } else {
            None
        };
        match self.open(&holder, socket).await {
            Err(report) => return send_line(&mut stream, &DaemonReply::Refused(report)).await,
            Ok(OpenedAddress::Configured(url)) => {
                let answer = DaemonReply::Listening { url, address: None };
                send_line(&mut stream, &answer).await?;
                self.wait_for_end(&mut stream).await;
            }
            Ok(OpenedAddress::New(bound)) => {
                let held = Arc::new(ServedAddress {
                    listen: bound.listen(),
                    url: bound.url(),
                    pid: holder.pid,
                });
                let answer = DaemonReply::Listening {
                    url: held.url.clone(),
                    address: Some(held.listen.to_string()),
                };
                send_line(&mut stream, &answer).await?;
                info!(
                    url = held.url,
                    pid = held.pid,
                    "HTTP is served for a client"
                );
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
            }
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

    async fn open(
        &self,
        holder: &Holder,
        socket: Option<TcpListener>,
    ) -> Result<OpenedAddress, Report> {
        let asked = holder.listen.as_deref().map(str::parse::<Listen>);
        let asked = asked.transpose().map_err(|error| refuse(true, error))?;
        let read = Arc::clone(&self.read);
        let settings = tokio::task::spawn_blocking(move || read());
        let settings = settings.await.map_err(|error| refuse(false, error))?;
        let settings = settings.map_err(|text| Report {
            is_usage: true,
            text,
        })?;
        let secrets = self.resolver();
        let endpoint = Endpoint::new(&settings, asked, &holder.variables, &secrets).await;
        let endpoint = endpoint.map_err(|why| refuse(true, why))?;
        let wanted = asked.or(settings.listen);
        if self.is_configured() && wanted == self.configured.listen {
            let mut outcome = self.outcome.subscribe();
            let known = outcome.wait_for(Option::is_some).await;
            // If it failed, binding again returns the error to this caller.
            if let Some(Ok(url)) = known.ok().and_then(|it| it.clone()) {
                return Ok(OpenedAddress::Configured(url));
            }
        }
        let bound = match socket {
            Some(socket) => http_server::bind_inherited(socket, &endpoint),
            None => http_server::bind(&endpoint).await,
        };
        bound
            .map(|it| OpenedAddress::New(Box::new(it)))
            .map_err(|error| {
                let held = self.held.lock();
                let other = held.iter().find(|it| Some(it.listen) == wanted);
                match other {
                    Some(other) => refuse(
                        false,
                        format!(
                            "{} is already served, for the `proxy serve --http` with pid {}",
                            other.url, other.pid
                        ),
                    ),
                    None => refuse(false, format!("{error:#}")),
                }
            })
    }
}

fn refuse(is_usage: bool, why: impl fmt::Display) -> Report {
    Report {
        is_usage,
        text: format!("error: {why}"),
    }
}
