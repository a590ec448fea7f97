//! MCP over streamable HTTP: many clients, both protocol eras, with sessions and without.
//!
//! `/mcp` is for clients, `/healthz` and `/readyz` for whoever watches over us. A request passes
//! the gate (`Host`, `Origin`, token), then `mcp.rs` makes of it a message for a
//! [`Session`](gateway::Session), which answers in bytes as it does on stdio.

mod body;
mod complaints;
mod connection;
mod endpoint;
mod gate;
mod half_close;
mod headers;
mod mcp;
mod places;
mod refusal;
mod reply;
mod sessions;
mod settings;
mod stall;
mod tokens;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use body::Body;
use complaints::Complaints;
use gate::Gate;
use gateway::Gateway;
use hyper::{Method, Request, Response, StatusCode, body::Incoming, http::request::Parts};
use places::{Entered, Place, Places, Serving, State, Who};
use refusal::Refusal;
use sessions::Sessions;
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use endpoint::Endpoint;
pub use settings::{Limits, Listen, NoAddress, Settings, TOKEN_HINT, Tls};

/// After a failure to accept, such as too many open files, so long is waited.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Requests in flight may take this long to end when we stop.
const STOP_WAIT: Duration = Duration::from_millis(800);

/// A socket that is bound: clients may connect, and wait until [`Bound::serve`].
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    settings: Endpoint,
}

/// Takes the address, or says why it cannot be had.
pub async fn bind(settings: &Endpoint) -> anyhow::Result<Bound> {
    let listen = settings.listen;
    let listener = TcpListener::bind((listen.ip, listen.port)).await;
    let listener = listener.with_context(|| format!("cannot listen on {listen}"))?;
    Ok(Bound {
        address: listener.local_addr()?,
        listener,
        settings: settings.clone(),
    })
}

impl Bound {
    /// What a client's configuration would name.
    pub fn url(&self) -> String {
        let scheme = if self.settings.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}/mcp", self.address)
    }

    /// Answers until `stop`, then ends every session; servers are the caller's to end.
    pub async fn serve(self, gateway: Arc<Gateway>, stop: CancellationToken) {
        let service = Arc::new(Service::new(gateway, self.settings, stop.clone()));
        let watching = tokio::spawn(sessions::expire(Arc::clone(&service.sessions)));
        let accepting = service.accept(&self.listener, &stop);
        stop.run_until_cancelled(accepting).await;
        watching.abort();
        drop(self.listener);
        service.sessions.end_all().await;
        service.connections.close();
        if timeout(STOP_WAIT, service.connections.wait())
            .await
            .is_err()
        {
            tracing::debug!("some connections did not end in time");
        }
    }
}

/// Everything that requests share.
struct Service {
    gateway: Arc<Gateway>,
    gate: Gate,
    limits: Limits,
    gives_sessions: bool,
    tls: Option<tokio_rustls::TlsAcceptor>,
    sessions: Arc<Sessions>,
    complaints: Complaints,
    connections: TaskTracker,
    /// Cancelled when we stop.
    stopping: CancellationToken,
    connection_places: Arc<Places>,
    /// Bodies that arrive.
    reading_places: Arc<Places>,
    /// Requests that are being answered.
    request_places: Arc<Places>,
}

/// Who asks, as far as the gate can tell.
#[derive(Debug, Clone)]
struct Caller {
    /// The name of the token that let it in; none where no token is asked for.
    token: Option<Arc<str>>,
    address: IpAddr,
}

impl Caller {
    fn who(&self) -> Who {
        let token = self.token.clone().map(Who::Token);
        token.unwrap_or_else(|| Who::at(self.address))
    }
}

/// Where a request came in, and the place of its connection.
#[derive(Debug, Clone)]
struct Came {
    local: SocketAddr,
    from: IpAddr,
    place: Arc<Place>,
}

impl Service {
    fn new(gateway: Arc<Gateway>, settings: Endpoint, stopping: CancellationToken) -> Self {
        let limits = settings.limits;
        Self {
            sessions: Arc::new(Sessions::new(&limits)),
            gate: Gate::new(&settings),
            gives_sessions: settings.sessions,
            tls: settings.tls,
            complaints: Complaints::default(),
            connections: TaskTracker::new(),
            stopping,
            connection_places: Places::new(limits.connections_max),
            reading_places: Places::new(limits.requests_max),
            request_places: Places::new(limits.requests_max),
            limits,
            gateway,
        }
    }

    async fn accept(self: &Arc<Self>, listener: &TcpListener, stop: &CancellationToken) {
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.complaints.of_accept(&error);
                    sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            let Some(place) = self.connection_place(peer.ip()) else {
                continue;
            };
            let (service, stop) = (Arc::clone(self), stop.clone());
            self.connections.spawn(async move {
                let serving = service.connection(stream, peer.ip(), &place, stop);
                place.unless_needed(serving).await;
            });
        }
    }

    fn connection_place(&self, from: IpAddr) -> Option<Arc<Place>> {
        let entered = self.connection_places.enter(Who::at(from), State::New);
        if !matches!(entered, Ok(Entered { gone: None, .. })) {
            self.complaints.of_connections(self.limits.connections_max);
        }
        entered.ok().map(|entered| Arc::new(entered.place))
    }

    async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        came: Came,
        mut serving: Serving,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        let mut response = match self.route(&head, body, &came).await {
            Ok(response) => {
                serving.let_in();
                response
            }
            Err(refusal) => {
                self.complaints.of(&refusal);
                refusal.into_response()
            }
        };
        response.body_mut().keep(serving);
        self.gate.open_to_page(&head, response.headers_mut());
        response
    }

    async fn route(
        self: &Arc<Self>,
        head: &Parts,
        body: Incoming,
        came: &Came,
    ) -> Result<Response<Body>, Refusal> {
        self.gate.check_names(head, came.local)?;
        match (head.uri.path(), &head.method) {
            ("/healthz", &Method::GET | &Method::HEAD) => Ok(text(StatusCode::OK, "ok\n")),
            ("/readyz", &Method::GET | &Method::HEAD) => Ok(self.ready().await),
            ("/healthz" | "/readyz", _) => Err(Refusal::method("GET, HEAD")),
            ("/mcp" | "/mcp/", &Method::OPTIONS) => Ok(gate::preflight()),
            ("/mcp" | "/mcp/", method) => {
                let token = self.gate.check_token(head)?;
                let address = came.from;
                let caller = Caller { token, address };
                match *method {
                    Method::POST => self.post(head, body, caller).await,
                    Method::GET => self.get(head, &caller),
                    Method::DELETE => self.delete(head, &caller),
                    _ => Err(Refusal::method("POST, GET, DELETE")),
                }
            }
            _ => Err(Refusal::nowhere()),
        }
    }

    /// Whether calls can be answered: the registry can be read, and a session would be given.
    async fn ready(&self) -> Response<Body> {
        if let Err(error) = self.gateway.generation().await {
            return text(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n"));
        }
        if self.gives_sessions && self.sessions.is_full() {
            return text(StatusCode::SERVICE_UNAVAILABLE, "no room for a session\n");
        }
        text(StatusCode::OK, "ready\n")
    }
}

fn text(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::whole(text.to_owned().into()));
    *response.status_mut() = status;
    let plain = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, plain);
    response
}
