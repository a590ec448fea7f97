//! One connection, from its first byte to its end.

use std::{convert::Infallible, net::IpAddr, pin::pin, sync::Arc};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, join, split},
    net::{TcpListener, TcpStream},
    time::{Duration, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    half_close::HalfClosing,
    peer::Arrival,
    places::{Entered, HeldPlace, HolderState, PlaceOwner, Serving},
    service::Service,
    sessions::STOP_WAIT,
    stall::Stalling,
};

/// The pause after a failure to accept, such as too many open files.
const ACCEPT_REST: Duration = Duration::from_millis(100);

impl Service {
    /// Accepts connections in an endless loop.
    pub(super) async fn accept(self: &Arc<Self>, listener: &TcpListener, stop: &CancellationToken) {
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.complaints.log("accept", &error.to_string());
                    sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            let Some(place) = self.connection_place(peer.ip()) else {
                continue;
            };
            let (service, stop) = (Arc::clone(self), stop.clone());
            self.connections.spawn(async move {
                let serving = service.serve_connection(stream, peer.ip(), &place, stop);
                place.unless_needed(serving).await;
            });
        }
    }

    fn connection_place(&self, from: IpAddr) -> Option<Arc<HeldPlace>> {
        let entered = self
            .connection_places
            .enter(PlaceOwner::at(from), HolderState::New);
        if !matches!(entered, Ok(Entered { evicted: None, .. })) {
            let max = self.endpoint.limits.connections_max;
            let why = format!(
                "{max} are open, or half as many from one address (http.max_connections); idle ones \
                 are closed first"
            );
            self.complaints.log("connections", &why);
        }
        entered.ok().map(|entered| Arc::new(entered.place))
    }

    /// Serves one connection to its end.
    pub(super) async fn serve_connection(
        self: &Arc<Self>,
        stream: TcpStream,
        from: IpAddr,
        place: &Arc<HeldPlace>,
        stop: CancellationToken,
    ) {
        let Ok(local) = stream.local_addr() else {
            return;
        };
        let arrival = Arrival {
            local,
            from,
            place: Arc::clone(place),
        };
        let _ = stream.set_nodelay(true);
        let limits = &self.endpoint.limits;
        let stream = Stalling::new(stream, limits.stall_timeout);
        let Some(tls) = &self.endpoint.tls else {
            return self.serve_requests(stream, arrival, stop).await;
        };
        let greeting = timeout(limits.receive_timeout, tls.accept(stream));
        match stop.run_until_cancelled(greeting).await {
            Some(Ok(Ok(stream))) => self.serve_requests(stream, arrival, stop).await,
            Some(Ok(Err(error))) => {
                tracing::debug!(%error, "the TLS handshake with a client failed");
            }
            Some(Err(_)) | None => {}
        }
    }

    async fn serve_requests(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        arrival: Arrival,
        stop: CancellationToken,
    ) {
        let (input, output) = split(stream);
        let stream = join(HalfClosing::new(input, Arc::clone(&arrival.place)), output);
        let answer = service_fn(move |request: Request<Incoming>| {
            let (service, arrival) = (Arc::clone(self), arrival.clone());
            // The connection counts as served from here on: its input may end at any moment.
            let serving = Serving::of(&arrival.place);
            async move { Ok::<_, Infallible>(service.answer(request, arrival, serving).await) }
        });
        let limits = &self.endpoint.limits;
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(limits.receive_timeout)
            .max_header_size(limits.header_bytes_max)
            .max_buf_size(limits.header_bytes_max.max(WRITE_BYTES));
        let mut connection = pin!(protocol.serve_connection(TokioIo::new(stream), answer));
        let ended = stop.run_until_cancelled(connection.as_mut()).await;
        let ended = match ended {
            Some(ended) => Ok(ended),
            None => {
                connection.as_mut().graceful_shutdown();
                timeout(STOP_WAIT, connection).await
            }
        };
        if let Ok(Err(error)) = ended {
            tracing::debug!(%error, "a connection ended with an error");
        }
    }
}

/// The most that a connection may buffer while it writes a response, in addition to the response itself.
const WRITE_BYTES: usize = 64 * 1024;
