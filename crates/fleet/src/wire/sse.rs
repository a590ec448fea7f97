//! The older transport, HTTP+SSE of revision 2024-11-05: one event stream brings all that the
//! server says, and each message of ours is a `POST` of its own.
//!
//! It is made to look like a child's pipes, one line a message, so that the call channel serves it
//! with the same laws.

mod post;

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{
    Stream, StreamExt as _,
    stream::{BoxStream, unfold},
};
use http::header;
use jsonrpc::mcp::{Revision, Transport};
use jsonrpc::{
    Json, LineReader, Outbox, Sink,
    events::{Event, EventReader},
};
use parking_lot::Mutex;
use reqwest::{Response, Url};
use tokio::{io::duplex, sync::mpsc, time::timeout};
use tokio_util::{
    io::StreamReader,
    sync::{CancellationToken, DropGuard},
};

use self::post::{POSTS_MAX, Post, post_lines};
use super::{
    handshake::{HandshakeError, Service, open_session},
    http::{Refusal, Site, is_event_stream},
    obstacle::Obstacle,
    pipes::PipeTransport,
};
use crate::{
    About, Request, Spoken,
    asking::Asking,
    changes::OnListChanged,
    channel::{self, CallChannel},
    error::{Denied, RequestError},
    limits::LIST_BYTES_MAX,
    params::{write_list, write_params},
    request::Listeners,
    updates::Updates,
};

/// The first event names where to post; a stream that keeps silent is of another kind.
const ENDPOINT_WAIT: Duration = Duration::from_secs(5);

/// Of messages that wait until they are posted.
const WAITING_BYTES: usize = 64 * 1024;

/// An open connection over the older transport.
#[derive(Debug)]
pub(crate) struct SseConnection {
    channel: CallChannel,
    denied: Arc<Mutex<Option<Denied>>>,
    service: Option<Service>,
    _open: DropGuard,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum SseError {
    /// The server does not speak this transport.
    NotSpoken,
    Failed(HandshakeError),
}

impl SseConnection {
    pub(super) async fn open(
        site: &Site,
        on_list_changed: OnListChanged,
        asking: &Arc<Asking>,
    ) -> Result<(Self, About), SseError> {
        let (mut events, endpoint) = subscribe(site).await?;
        let pending = Arc::default();
        events.reader = events.reader.capped(LIST_BYTES_MAX, channel::cap(&pending));
        let open = CancellationToken::new();
        let guard = open.clone().drop_guard();
        let denied = Arc::default();
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
            denied: Arc::clone(&denied),
            open,
        };
        tokio::spawn(post_lines(LineReader::new(ours), post, failed));
        let (transport, feed) =
            PipeTransport::new(Arc::clone(&outbox), Arc::clone(&on_list_changed));
        let lines = LineReader::new(StreamReader::new(Box::pin(inbound.lines())));
        let mask = Arc::clone(&site.mask);
        let mut connection = Self {
            channel: CallChannel::start_with(
                pending,
                lines,
                outbox,
                feed,
                mask,
                Arc::clone(asking),
            ),
            denied,
            service: None,
            _open: guard,
        };
        let spoken = Spoken {
            revision: Revision::LAST_WITH_HANDSHAKE,
            transport: Transport::Sse,
        };
        let opened = open_session(transport, &spoken, on_list_changed, &asking.roots).await;
        let (service, about) = opened.map_err(|error| {
            let denied = connection.denied().map(HandshakeError::Denied);
            SseError::Failed(denied.unwrap_or(error))
        })?;
        connection.service = Some(service);
        Ok((connection, about))
    }

    pub(super) async fn call(&self, request: &Request) -> Result<Json, RequestError> {
        let params = |id| write_params(request, &[], id);
        let listeners = Listeners::of(request);
        Ok(self
            .channel
            .request(request.method, params, listeners)
            .await?)
    }

    /// A request of our own, of which nobody else hears.
    pub(super) async fn ask(&self, request: &Request) -> Result<Json, RequestError> {
        let params = |id| write_params(request, &[], id);
        let listeners = Listeners::default();
        let asked = self.channel.request(request.method, params, listeners);
        Ok(asked.await?)
    }

    pub(super) fn updates(&self) -> &Updates {
        self.channel.updates()
    }

    pub(super) async fn list(
        &self,
        method: &'static str,
        cursor: Option<&str>,
    ) -> Result<Json, RequestError> {
        let params = |_| write_list(cursor, &[]);
        let listeners = Listeners::default();
        Ok(self.channel.request(method, params, listeners).await?)
    }

    pub(super) async fn tell_roots_changed(&self) {
        if let Some(service) = &self.service {
            service.tell_roots_changed().await;
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.channel.has_ended()
    }

    pub(super) async fn ended(&self) {
        self.channel.ended().await;
    }

    pub(super) fn denied(&self) -> Option<Denied> {
        self.denied.lock().clone()
    }

    /// Posts what is queued, then lets go of the stream.
    pub(super) fn close(&self) {
        self.channel.close();
    }
}

/// The outbox must not outlive a connection that nobody closed.
impl Drop for SseConnection {
    fn drop(&mut self) {
        self.channel.close();
    }
}

/// Opens the event stream, and reads from it where to post.
async fn subscribe(site: &Site) -> Result<(Events, Url), SseError> {
    let get = site.get(site.url.clone());
    let asked = site.send(get.header(header::ACCEPT, "text/event-stream"));
    let response = asked.await.map_err(|error| {
        let obstacle = error.obstacle();
        let why = site.mask.apply(&error.explain());
        SseError::Failed(HandshakeError::unreached(why, obstacle))
    })?;
    if !response.status().is_success() {
        return Err(explain_refusal(site, &Refusal::read(response).await));
    }
    if !is_event_stream(&response) {
        return Err(SseError::NotSpoken);
    }
    let base = response.url().clone();
    let mut events = Events::of(response);
    let first = timeout(ENDPOINT_WAIT, events.next()).await.ok().flatten();
    let endpoint = first.filter(|event| event.name.as_deref() == Some("endpoint"));
    let endpoint = endpoint.and_then(|event| event.data);
    let endpoint = endpoint.ok_or(SseError::NotSpoken)?;
    let text = String::from_utf8_lossy(&endpoint);
    let failed = |why: String| SseError::Failed(HandshakeError::Other(site.mask.apply(&why)));
    let endpoint = base
        .join(text.trim())
        .map_err(|error| failed(format!("its `endpoint` is no address: {error}")))?;
    if endpoint.origin() != base.origin() {
        let other = endpoint.origin().ascii_serialization();
        // Our headers are meant for the configured server alone.
        return Err(failed(format!(
            "its `endpoint` is at another server, {other}"
        )));
    }
    Ok((events, endpoint))
}

fn explain_refusal(site: &Site, refusal: &Refusal) -> SseError {
    let why = site.mask.apply(&refusal.to_string());
    if let Some(denied) = refusal.denied(&why) {
        return SseError::Failed(HandshakeError::Denied(denied));
    }
    if refusal.status.is_client_error() && refusal.status.as_u16() != 429 {
        return SseError::NotSpoken;
    }
    let obstacle = Obstacle::of_status(refusal.status);
    SseError::Failed(HandshakeError::unreached(why, obstacle))
}

/// The lines that the call channel reads.
struct Inbound {
    events: Events,
    /// Answers of our own to requests that could not be posted.
    failures: mpsc::Receiver<Bytes>,
    open: CancellationToken,
    /// When the server ends the stream, nothing is posted any more.
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
            let is_message = event
                .name
                .is_none_or(|name| name.is_empty() || name == "message");
            if let Some(data) = event.data.filter(|data| is_message && !data.is_empty()) {
                return Some(to_line(&data));
            }
        }
    }
}

/// One message as one line. A line end in JSON is white space between its parts.
fn to_line(data: &[u8]) -> Bytes {
    let mut line: Vec<u8> = data.to_vec();
    line.iter_mut()
        .filter(|byte| **byte == b'\n' || **byte == b'\r')
        .for_each(|byte| *byte = b' ');
    line.push(b'\n');
    line.into()
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

    /// `None` at the end of the stream, which is also where one event grows past its bound.
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

#[cfg(test)]
mod tests {
    use super::to_line;

    #[test]
    fn a_message_of_several_lines_is_made_one() {
        assert_eq!(to_line(b"{\"a\":\n1}"), "{\"a\": 1}\n");
    }
}
