//! Accepts connections, and serves each from its first byte to its end.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::select_all;
use http_body::{Body, Frame, SizeHint};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, join, split},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    half_close::HalfClosing,
    places::{Entered, HeldPlace, HolderState, PlaceOwner, Places, Serving},
    stall::Stalling,
};

/// The pause after a failure to accept, such as too many open files.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// The most that a connection may buffer while it writes a response, in addition to the response itself.
const WRITE_BYTES: usize = 64 * 1024;

/// The limits of the connections of one server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConnectionLimits {
    /// The most open connections; of those of other machines, one address gets half.
    pub connections_max: usize,
    /// The largest head of a request, in bytes.
    pub head_bytes_max: usize,
    /// The time for the handshake of TLS, and for the head of a request.
    pub receive_timeout: Duration,
    /// The time after which a client that does not read its response is disconnected.
    pub stall_timeout: Duration,
    /// The time that a response may take after its client has closed its sending side. A disconnected
    /// client looks the same until data is written to it: its request is cancelled after this time.
    pub half_closed_timeout: Duration,
    /// The time that open connections have to end when the server does.
    pub end_timeout: Duration,
}

/// The addresses of a request's connection.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Ours, at which it came in.
    pub local: SocketAddr,
    /// The client's.
    pub from: IpAddr,
}

/// A problem with a connection before its first request.
#[derive(Debug)]
pub enum Problem {
    /// No connection could be accepted.
    Accept(io::Error),
    /// Every place was occupied. The connection was refused, or another one was closed for it.
    Full,
}

/// Answers the requests of one server.
pub trait Handler: Send + Sync + 'static {
    /// The body of its responses.
    type Body: Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static;

    /// Answers a request. `serving` is told if the request was admitted: a connection without an admitted
    /// request is the first to close when another one needs its place.
    fn answer(
        &self,
        request: Request<Incoming>,
        arrival: Arrival,
        serving: &mut Serving,
    ) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Logs a problem.
    fn log(&self, problem: &Problem) {
        tracing::debug!(?problem, "a connection was not served");
    }
}

/// Serves the connections of one handler.
pub struct Server<H> {
    handler: Arc<H>,
    limits: ConnectionLimits,
    tls: Option<TlsAcceptor>,
    places: Arc<Places>,
    connections: TaskTracker,
}

impl<H> std::fmt::Debug for Server<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl<H: Handler> Server<H> {
    /// Makes a server. With `tls`, it speaks TLS alone.
    pub fn new(handler: Arc<H>, limits: ConnectionLimits, tls: Option<TlsAcceptor>) -> Arc<Self> {
        Arc::new(Self {
            handler,
            tls,
            places: Places::new(limits.connections_max),
            connections: TaskTracker::new(),
            limits,
        })
    }

    /// Accepts connections until `stop`, which ends the open ones too.
    pub async fn accept(self: &Arc<Self>, sockets: &[TcpListener], stop: &CancellationToken) {
        let accepting = async {
            loop {
                let each = sockets.iter().map(|socket| Box::pin(socket.accept()));
                let (accepted, ..) = select_all(each).await;
                match accepted {
                    Ok((stream, peer)) => self.begin(stream, peer.ip(), stop),
                    Err(error) => {
                        self.handler.log(&Problem::Accept(error));
                        sleep(ACCEPT_REST).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(accepting).await;
    }

    /// Waits until the connections have ended, after `stop` of [`Server::accept`].
    pub async fn end(&self) {
        self.connections.close();
        let ending = timeout(self.limits.end_timeout, self.connections.wait());
        if ending.await.is_err() {
            tracing::debug!("some connections did not end in time");
        }
    }

    fn begin(self: &Arc<Self>, stream: TcpStream, from: IpAddr, stop: &CancellationToken) {
        let entered = self.places.enter(PlaceOwner::at(from), HolderState::New);
        if !matches!(entered, Ok(Entered { evicted: None, .. })) {
            self.handler.log(&Problem::Full);
        }
        let Ok(Entered { place, .. }) = entered else {
            return;
        };
        let (server, stop, place) = (Arc::clone(self), stop.clone(), Arc::new(place));
        self.connections.spawn(async move {
            let serving = server.serve_connection(stream, from, &place, stop);
            place.unless_needed(serving).await;
        });
    }

    async fn serve_connection(
        &self,
        stream: TcpStream,
        from: IpAddr,
        place: &Arc<HeldPlace>,
        stop: CancellationToken,
    ) {
        let Ok(local) = stream.local_addr() else {
            return;
        };
        let arrival = Arrival { local, from };
        let _ = stream.set_nodelay(true);
        let stream = Stalling::new(stream, self.limits.stall_timeout);
        let Some(tls) = &self.tls else {
            return self.serve_requests(stream, arrival, place, stop).await;
        };
        let greeting = timeout(self.limits.receive_timeout, tls.accept(stream));
        match stop.run_until_cancelled(greeting).await {
            Some(Ok(Ok(stream))) => self.serve_requests(stream, arrival, place, stop).await,
            Some(Ok(Err(error))) => {
                tracing::debug!(%error, "the TLS handshake with a client failed");
            }
            Some(Err(_)) | None => {}
        }
    }

    async fn serve_requests(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        arrival: Arrival,
        place: &Arc<HeldPlace>,
        stop: CancellationToken,
    ) {
        let limits = &self.limits;
        let (input, output) = split(stream);
        let input = HalfClosing::new(input, Arc::clone(place), limits.half_closed_timeout);
        let answer = service_fn(move |request: Request<Incoming>| {
            let handler = Arc::clone(&self.handler);
            // The connection counts as served from here on: its input may end at any moment.
            let mut serving = Serving::of(place);
            async move {
                let response = handler.answer(request, arrival, &mut serving).await;
                Ok::<_, Infallible>(response.map(|body| ServedBody {
                    body,
                    _serving: serving,
                }))
            }
        });
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(limits.receive_timeout)
            .max_header_size(limits.head_bytes_max)
            .max_buf_size(limits.head_bytes_max.max(WRITE_BYTES));
        let stream = TokioIo::new(join(input, output));
        let mut connection = pin!(protocol.serve_connection(stream, answer));
        let ended = match stop.run_until_cancelled(connection.as_mut()).await {
            Some(ended) => Ok(ended),
            None => {
                connection.as_mut().graceful_shutdown();
                timeout(limits.end_timeout, connection).await
            }
        };
        if let Ok(Err(error)) = ended {
            tracing::debug!(%error, "a connection ended with an error");
        }
    }
}

/// A body whose connection counts as served until it is sent.
#[derive(Debug)]
pub struct ServedBody<B> {
    body: B,
    _serving: Serving,
}

impl<B: Body + Unpin> Body for ServedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
