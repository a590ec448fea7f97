//! The older transport, HTTP+SSE of revision 2024-11-05: one event stream has all messages of the
//! server, and each message to the server is a `POST`.
//!
//! It is adapted to lines like a child's pipes, so that the call channel serves it in the same way.

mod post;

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{
    Stream, StreamExt as _,
    stream::{BoxStream, unfold},
};
use http::{Method, header};
use jsonrpc::mcp::Transport;
use jsonrpc::{
    LineReader, Outbox, Sink,
    events::{Event, EventReader},
};
use reqwest::{Response, Url};
use tokio::{io::duplex, sync::mpsc, time::timeout};
use tokio_util::{
    io::StreamReader,
    sync::{CancellationToken, DropGuard},
};

use self::post::{POSTS_MAX, Post, post_lines};
use super::{
    handshake::{HandshakeError, open_session},
    http::{HttpRefusal, Site, is_event_stream},
    line_connection::{HttpSide, LineConnection},
    pipes::PipeTransport,
};
use crate::{
    ServerInfo, Spoken,
    asking::Asking,
    channel::{self, CallChannel},
    limits::LIST_BYTES_MAX,
    obstacle::Obstacle,
};

/// The timeout of the event with the URL for posts. A stream without it is something else.
const ENDPOINT_WAIT: Duration = Duration::from_secs(5);

/// The buffer of messages that wait to be posted, in bytes.
const WAITING_BYTES: usize = 64 * 1024;

/// Connects over HTTP+SSE. Returns `None` if the server does not speak it.
pub(super) async fn open_sse(
    site: &Site,
    guess: &Spoken,
    asking: &Arc<Asking>,
) -> Result<Option<(LineConnection, ServerInfo)>, HandshakeError> {
    let Some((mut events, endpoint)) = subscribe(site).await? else {
        return Ok(None);
    };
    let pending = Arc::default();
    events.reader = events.reader.capped(LIST_BYTES_MAX, channel::cap(&pending));
    let open = CancellationToken::new();
    let http = HttpSide {
        denied: Arc::default(),
        _open: open.clone().drop_guard(),
    };
    let (failed, failures) = mpsc::channel(POSTS_MAX);
    let inbound = Inbound {
        events,
        failures,
        open: open.clone(),
        _ends: open.clone().drop_guard(),
    };
    let (ours, theirs) = duplex(WAITING_BYTES);
    let outbox = Outbox::new(Sink::stream(theirs));
    let post = Post {
        site: site.clone(),
        endpoint,
        denied: Arc::clone(&http.denied),
        open,
    };
    tokio::spawn(post_lines(LineReader::new(ours), post, failed));
    let (transport, feed) = PipeTransport::new(Arc::clone(&outbox), asking);
    let lines = LineReader::new(StreamReader::new(Box::pin(inbound.lines())));
    let mask = Arc::clone(&site.mask);
    let channel = CallChannel::start(pending, lines, outbox, feed, mask, asking);
    let spoken = if guess.revision.is_stateless() {
        Spoken::default().over(Transport::Sse)
    } else {
        guess.over(Transport::Sse)
    };
    let opened = open_session(transport, &spoken, asking).await;
    let (service, about) = opened.map_err(|error| {
        let denied = http.denied.lock().clone();
        denied.map_or(error, HandshakeError::Denied)
    })?;
    let connection = LineConnection::new(channel, service, &about, Some(http));
    Ok(Some((connection, about)))
}

/// Opens the event stream, and reads the URL for posts from it. Returns `None` for anything else.
async fn subscribe(site: &Site) -> Result<Option<(Events, Url)>, HandshakeError> {
    let get = site.request(Method::GET, site.url());
    let asked = site.send(get.header(header::ACCEPT, "text/event-stream"));
    let response = asked.await.map_err(|error| {
        let obstacle = error.obstacle();
        let why = site.mask.apply(&error.explain());
        HandshakeError::unreached(why, obstacle)
    })?;
    if !response.status().is_success() {
        return explain_refusal(site, &HttpRefusal::read(response).await).map_or(Ok(None), Err);
    }
    if !is_event_stream(&response) {
        return Ok(None);
    }
    let base = response.url().clone();
    let mut events = Events::of(response);
    let Ok(Some(endpoint)) = timeout(ENDPOINT_WAIT, events.next_endpoint()).await else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&endpoint);
    let failed = |why: String| HandshakeError::Other(site.mask.apply(&why));
    let endpoint = base
        .join(text.trim())
        .map_err(|error| failed(format!("its `endpoint` is not a valid URL: {error}")))?;
    if endpoint.origin() != base.origin() {
        let other = endpoint.origin().ascii_serialization();
        // The headers must not reach another server.
        return Err(failed(format!(
            "its `endpoint` is at another origin, {other}"
        )));
    }
    Ok(Some((events, endpoint)))
}

/// Returns `None` for a refusal of the transport itself.
fn explain_refusal(site: &Site, refusal: &HttpRefusal) -> Option<HandshakeError> {
    let why = site.mask.apply(&refusal.to_string());
    if let Some(denied) = refusal.denied(&why) {
        return Some(HandshakeError::Denied(denied));
    }
    if refusal.status.is_client_error() && refusal.status.as_u16() != 429 {
        return None;
    }
    let obstacle = Obstacle::of_status(refusal.status);
    Some(HandshakeError::unreached(why, obstacle))
}

/// The lines that the call channel reads.
struct Inbound {
    events: Events,
    /// Error responses to requests that could not be posted.
    failures: mpsc::Receiver<Bytes>,
    open: CancellationToken,
    /// Ends the posts when the server ends the stream.
    _ends: DropGuard,
}

impl Inbound {
    fn lines(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        unfold(self, |mut inbound| async {
            let line = inbound.next().await?;
            Some((Ok(line), inbound))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let event = tokio::select! {
                biased;
                () = self.open.cancelled() => return None,
                Some(failure) = self.failures.recv() => return Some(failure),
                event = self.events.next() => event?,
            };
            let is_message = event.is_message();
            if let Some(data) = event.data.filter(|data| is_message && !data.is_empty()) {
                return Some([&data[..], b"\n"].concat().into());
            }
        }
    }
}

/// The events of a response. A dropped [`Events::next`] loses nothing.
struct Events {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    reader: EventReader,
}

impl Events {
    fn of(response: Response) -> Self {
        Self {
            chunks: response.bytes_stream().boxed(),
            reader: EventReader::new(LIST_BYTES_MAX, Arc::new(|_| LIST_BYTES_MAX)),
        }
    }

    /// Returns the data of the event that names the URL for posts. Skips events of other types, such as pings;
    /// a message before it is none of this transport.
    async fn next_endpoint(&mut self) -> Option<Bytes> {
        loop {
            let event = self.next().await?;
            if event.name.as_deref() == Some("endpoint") {
                return event.data;
            }
            if event.is_message() && event.data.is_some() {
                return None;
            }
        }
    }

    /// Returns `None` at the end of the stream, and when an event exceeds its limit.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.reader.next_event() {
                return Some(event);
            }
            let chunk = self.chunks.next().await?.ok()?;
            self.reader.take(&chunk).ok()?;
        }
    }
}
