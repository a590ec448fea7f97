//! The connection to NATS: sealed messages of any size, and the buckets of the cluster.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{
    Client, ConnectOptions, Event, Message, StatusCode, Subject, Subscriber, connection,
    jetstream::{
        self,
        kv::{self, Store},
        object_store,
    },
};
use bytes::{BufMut as _, Bytes, BytesMut};
use parking_lot::Mutex as Lock;
use percent_encoding::percent_decode_str;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::{Mutex, watch},
    time::timeout,
};
use tracing::{debug, info, warn};
use url::Url;

pub(crate) use crate::{
    bus_error::{BusError, NATS_TIMEOUT},
    objects::Objects,
};
use crate::{
    objects::Bucket,
    seal::{Boot, NotOurs, Seal},
    settings::{ClusterAccess, ClusterSettings, KEY_CHARS_MIN},
};

/// The oldest NATS server that is used. Older ones lose streams.
const NATS_VERSION_MIN: (i64, i64, i64) = (2, 10, 23);

/// The time between attempts to connect, and its growth per attempt.
const RECONNECT_WAIT: Duration = Duration::from_millis(20);
const RECONNECT_WAIT_MAX: Duration = Duration::from_secs(2);

/// Messages that wait for their task, per subscription.
const SUBSCRIPTION_MESSAGES_MAX: usize = 65_536;

/// The room that a message needs besides its text.
const OVERHEAD_BYTES: usize = 1_024;

/// The time for which a large message that was not read is kept.
const PARCEL_LIFE: Duration = Duration::from_mins(10);

/// The room of each bucket, in bytes: NATS reserves it, so that a full one stops nothing else.
const BOOK_BYTES_MAX: i64 = 32 << 20;
const PARCELS_BYTES_MAX: i64 = 256 << 20;
const LISTS_BYTES_MAX: i64 = 128 << 20;
const RESULTS_BYTES_MAX: i64 = 512 << 20;

/// The first byte of a message whose sealed text follows, and of one that names an object with it.
const INLINE: u8 = 0;
const IN_OBJECT: u8 = 1;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum LinkState {
    #[default]
    Connecting,
    Connected,
    Lost,
    /// It is not used: the reason.
    Refused(String),
}

pub(crate) struct Bus {
    pub(crate) seal: Seal,
    client: Client,
    jetstream: jetstream::Context,
    name: String,
    /// Counts connections.
    connections: watch::Receiver<u64>,
    /// The number of the connection whose server is known not to be too old.
    accepted: AtomicU64,
    /// The reason why the last attempt to connect failed.
    failure: Arc<Lock<Option<String>>>,
    buckets: Mutex<Buckets>,
    /// The time for which kept results are shared.
    result_life: Duration,
}

/// The buckets that were found or made.
#[derive(Default)]
struct Buckets {
    book: Option<Store>,
    objects: HashMap<Objects, Bucket>,
}

/// One message: its head, which is JSON, and bytes that belong to it.
#[derive(Debug)]
pub(crate) struct Parcel<T> {
    pub(crate) from: Boot,
    /// Its number among the texts of that process.
    pub(crate) number: u64,
    pub(crate) head: T,
    pub(crate) body: Bytes,
}

/// A message that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParcelError {
    /// The subject has no subscriber: nothing received the request.
    #[error("no process receives it")]
    NoResponders,
    #[error(transparent)]
    NotOurs(#[from] NotOurs),
    #[error("{0}")]
    Lost(String),
}

impl Bus {
    /// Begins to connect, and goes on for ever. Fails for settings that cannot be used.
    pub(crate) async fn connect(
        settings: &ClusterSettings,
        access: &ClusterAccess,
    ) -> Result<Arc<Self>, BusError> {
        if access.key.chars().count() < KEY_CHARS_MIN {
            let what = format!("`cluster.key` has fewer than {KEY_CHARS_MIN} characters");
            return Err(BusError(what));
        }
        let seal = Seal::new(&settings.name, &access.key);
        let (counter, connections) = watch::channel(0);
        let failure: Arc<Lock<Option<String>>> = Arc::default();
        let options = options(settings, access, counter, Arc::clone(&failure))?;
        let addresses: Vec<&str> = access.nats.iter().map(String::as_str).collect();
        let client = options.connect(addresses).await.map_err(BusError::of)?;
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(NATS_TIMEOUT);
        Ok(Arc::new(Self {
            seal,
            client,
            jetstream,
            name: settings.name.clone(),
            connections,
            accepted: AtomicU64::new(0),
            failure,
            buckets: Mutex::default(),
            result_life: settings.result_life,
        }))
    }

    /// The reason why the last attempt to connect failed, or the last error of the server.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    pub(crate) fn boot(&self) -> Boot {
        self.seal.boot()
    }

    /// Returns the state of the connection, with the version of the server looked at.
    pub(crate) fn state(&self) -> LinkState {
        let number = *self.connections.borrow();
        if number == 0 {
            return LinkState::Connecting;
        }
        if self.client.connection_state() != connection::State::Connected {
            return LinkState::Lost;
        }
        if self.accepted.load(Ordering::Relaxed) == number {
            return LinkState::Connected;
        }
        let (major, minor, patch) = NATS_VERSION_MIN;
        if self.client.is_server_compatible(major, minor, patch) {
            self.accepted.store(number, Ordering::Relaxed);
            return LinkState::Connected;
        }
        let version = self.server_version();
        LinkState::Refused(format!(
            "the NATS server has version {version}, and older than {major}.{minor}.{patch} loses data"
        ))
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.state() == LinkState::Connected
    }

    /// Waits until the connection was opened another time.
    pub(crate) async fn reconnected(&self, last: &mut u64) {
        let mut connections = self.connections.clone();
        let seen = *last;
        if let Ok(number) = connections.wait_for(|number| *number > seen).await {
            *last = *number;
        }
    }

    pub(crate) fn server_version(&self) -> String {
        printable::one_line_of(&self.client.server_info().version, 40)
    }

    pub(crate) fn subject(&self, rest: &str) -> String {
        format!("px.{}.{rest}", self.name)
    }

    /// Subscribes to a subject of the cluster.
    pub(crate) async fn listen(&self, rest: &str) -> Result<Subscriber, BusError> {
        let subject = self.subject(rest);
        self.client.subscribe(subject).await.map_err(BusError::of)
    }

    /// Sends a message to a subject of the cluster. Returns when it is in the buffer of the connection.
    pub(crate) async fn send(
        &self,
        rest: &str,
        reply: Option<&str>,
        head: &impl Serialize,
        body: &[u8],
    ) -> Result<(), BusError> {
        let subject = self.subject(rest);
        let (number, sealed) = self.seal.seal(&subject, &pack(head, body)?);
        let mut payload = BytesMut::with_capacity(1 + sealed.len());
        if sealed.len() + OVERHEAD_BYTES > self.payload_max() {
            let name = format!("{}-{number}", self.boot());
            // Its future is large, and most messages do not need it.
            Box::pin(self.put_object(Objects::Parcels, &name, &sealed)).await?;
            payload.put_u8(IN_OBJECT);
            payload.put_slice(name.as_bytes());
        } else {
            payload.put_u8(INLINE);
            payload.put_slice(&sealed);
        }
        let (subject, payload) = (Subject::from(subject), payload.freeze());
        let sent = match reply {
            Some(reply) => {
                let reply = Subject::from(self.subject(reply));
                self.client
                    .publish_with_reply(subject, reply, payload)
                    .await
            }
            None => self.client.publish(subject, payload).await,
        };
        sent.map_err(BusError::of)
    }

    /// Waits until everything that was sent is written to the connection.
    pub(crate) async fn flush(&self) {
        let _ = timeout(NATS_TIMEOUT, self.client.flush()).await;
    }

    fn payload_max(&self) -> usize {
        match self.client.max_payload() {
            0 => 1_024 * 1_024,
            max => max,
        }
    }

    /// Opens a message; reads its object if it has one, and removes it.
    pub(crate) async fn open<T: DeserializeOwned>(
        &self,
        message: Message,
    ) -> Result<Parcel<T>, ParcelError> {
        if message.status == Some(StatusCode::NO_RESPONDERS) {
            return Err(ParcelError::NoResponders);
        }
        let sealed = match message.payload.first() {
            Some(&INLINE) => message.payload.slice(1..),
            Some(&IN_OBJECT) => {
                let name = String::from_utf8_lossy(&message.payload[1..]).into_owned();
                Box::pin(self.take_parcel(&name))
                    .await
                    .map_err(|error| ParcelError::Lost(error.0))?
            }
            _ => return Err(NotOurs.into()),
        };
        let opened = self.seal.open(&message.subject, &sealed)?;
        let (head, body) = unpack(&opened.text).ok_or(NotOurs)?;
        Ok(Parcel {
            from: opened.from,
            number: opened.number,
            head,
            body,
        })
    }

    /// The bucket of leases, owners, lists and the shared configuration.
    pub(crate) async fn book(&self) -> Result<Store, BusError> {
        let mut known = self.buckets.lock().await;
        if let Some(book) = &known.book {
            return Ok(book.clone());
        }
        let bucket = format!("px-{}", self.name);
        let settings = |num_replicas| kv::Config {
            bucket: bucket.clone(),
            history: 1,
            max_bytes: BOOK_BYTES_MAX,
            num_replicas,
            ..kv::Config::default()
        };
        let book = match self.jetstream.get_key_value(&bucket).await {
            Ok(there) => there,
            Err(_) => match self.jetstream.create_key_value(settings(3)).await {
                Err(error) if is_alone(&error) => {
                    let made = self.jetstream.create_key_value(settings(1)).await;
                    made.map_err(BusError::of)?
                }
                made => made.map_err(BusError::of)?,
            },
        };
        known.book = Some(book.clone());
        Ok(book)
    }

    /// Looks for the buckets again, and makes those that are gone.
    pub(crate) async fn forget_buckets(&self) {
        *self.buckets.lock().await = Buckets::default();
    }

    async fn objects(&self, kind: Objects) -> Result<Bucket, BusError> {
        let mut known = self.buckets.lock().await;
        if let Some(bucket) = known.objects.get(&kind) {
            return Ok(bucket.clone());
        }
        let (name, bytes_max, life) = match kind {
            Objects::Parcels => ("parcels", PARCELS_BYTES_MAX, PARCEL_LIFE),
            Objects::Lists => ("lists", LISTS_BYTES_MAX, Duration::ZERO),
            Objects::Results => ("results", RESULTS_BYTES_MAX, self.result_life),
        };
        let bucket = format!("px-{}-{name}", self.name);
        let settings = |num_replicas| object_store::Config {
            bucket: bucket.clone(),
            max_age: life,
            max_bytes: bytes_max,
            num_replicas,
            ..object_store::Config::default()
        };
        let store = match self.jetstream.get_object_store(&bucket).await {
            Ok(there) => there,
            Err(_) => match self.jetstream.create_object_store(settings(3)).await {
                Err(error) if is_alone(&error) => {
                    let made = self.jetstream.create_object_store(settings(1)).await;
                    made.map_err(BusError::of)?
                }
                made => made.map_err(BusError::of)?,
            },
        };
        let stream = self.jetstream.get_stream(format!("OBJ_{bucket}")).await;
        let stream = stream.map_err(BusError::of)?;
        let bucket = Bucket { store, stream };
        known.objects.insert(kind, bucket.clone());
        Ok(bucket)
    }

    /// Looks for a store of objects again after its use has failed: NATS may have lost it. It is made if it is
    /// gone.
    async fn objects_again(&self, kind: Objects, failed: BusError) -> Result<Bucket, BusError> {
        if !self.is_connected() {
            return Err(failed);
        }
        debug!(error = %failed, "a store of objects is looked for again");
        self.buckets.lock().await.objects.remove(&kind);
        self.objects(kind).await
    }

    async fn put_object(&self, kind: Objects, name: &str, sealed: &[u8]) -> Result<(), BusError> {
        match self.objects(kind).await?.put(name, sealed).await {
            Err(failed) => {
                let bucket = self.objects_again(kind, failed).await?;
                bucket.put(name, sealed).await
            }
            done => done,
        }
    }

    async fn read_object(&self, kind: Objects, name: &str) -> Result<Option<Bytes>, BusError> {
        match self.objects(kind).await?.read(name).await {
            Err(failed) => self.objects_again(kind, failed).await?.read(name).await,
            done => done,
        }
    }

    async fn take_parcel(&self, name: &str) -> Result<Bytes, BusError> {
        let sealed = self.read_object(Objects::Parcels, name).await?;
        let sealed = sealed.ok_or_else(|| BusError(format!("no object {name}")))?;
        // The answer does not wait for it; NATS removes what stays after a while.
        let bucket = self.objects(Objects::Parcels).await?;
        let name = name.to_owned();
        tokio::spawn(async move { bucket.store.delete(name).await });
        Ok(sealed)
    }

    /// Stores a text under a name that says its content.
    pub(crate) async fn put_text(
        &self,
        kind: Objects,
        name: &str,
        text: &[u8],
    ) -> Result<(), BusError> {
        let (_, sealed) = self.seal.seal(name, text);
        self.put_object(kind, name, &sealed).await
    }

    /// Reads such a text. `None`: there is none.
    pub(crate) async fn read_text(
        &self,
        kind: Objects,
        name: &str,
    ) -> Result<Option<Bytes>, BusError> {
        let Some(sealed) = self.read_object(kind, name).await? else {
            return Ok(None);
        };
        let opened = self.seal.open(name, &sealed).map_err(BusError::of)?;
        Ok(Some(opened.text))
    }

    /// Returns true if there is such a text.
    pub(crate) async fn has_text(&self, kind: Objects, name: &str) -> bool {
        match self.objects(kind).await {
            Ok(bucket) => {
                let info = bucket.store.info(name).await;
                info.is_ok_and(|info| !info.deleted)
            }
            Err(_) => false,
        }
    }

    pub(crate) async fn remove_text(&self, kind: Objects, name: &str) {
        if let Ok(bucket) = self.objects(kind).await {
            let _ = bucket.store.delete(name).await;
        }
    }
}

/// Returns true for the error of a single NATS server that is asked for replicas. A cluster that has no leader
/// yet fails otherwise, and must not get a bucket on one server.
fn is_alone(error: &dyn std::error::Error) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("non-clustered") {
            return true;
        }
        cause = error.source();
    }
    false
}

fn options(
    settings: &ClusterSettings,
    access: &ClusterAccess,
    connections: watch::Sender<u64>,
    failure: Arc<Lock<Option<String>>>,
) -> Result<ConnectOptions, BusError> {
    let reason = Arc::clone(&failure);
    let mut options = ConnectOptions::new()
        .name(format!("proxy {}", settings.node))
        .retry_on_initial_connect()
        .max_reconnects(None)
        .connection_timeout(NATS_TIMEOUT)
        .ping_interval(Duration::from_secs(5))
        .subscription_capacity(SUBSCRIPTION_MESSAGES_MAX)
        .reconnect_delay_callback(|attempt| {
            let grown = RECONNECT_WAIT * u32::try_from(attempt.min(100)).unwrap_or(100);
            grown.min(RECONNECT_WAIT_MAX)
        })
        .reconnect_to_server_callback(move |servers, _| {
            // The events of failed attempts do not say why.
            if let Some(why) = servers.iter().find_map(|it| it.last_error.as_deref()) {
                note_failure(&reason, why);
            }
            std::future::ready(None)
        })
        .event_callback(move |event| {
            note(&connections, &failure, &event);
            std::future::ready(())
        });
    if let Some((user, password)) = find_user(&access.nats)? {
        options = options.user_and_password(user, password);
    }
    if let Some(credentials) = &access.credentials {
        // The end of a file is trimmed when it is read, and the parser wants whole lines.
        let lines = format!("{credentials}\n");
        options = options.credentials(&lines).map_err(|error| {
            BusError(format!(
                "`cluster.credentials` has no NATS credentials: {error}"
            ))
        })?;
    }
    if let Some(ca) = &access.tls_ca {
        options = options.add_root_certificates(ca.clone());
    }
    if let Some((certificate, key)) = &access.tls_identity {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

/// Returns the user and password of the first address that has them: the client reads them from nowhere else.
fn find_user(addresses: &[String]) -> Result<Option<(String, String)>, BusError> {
    for address in addresses {
        // The error would repeat the address, and so the password.
        let url = Url::parse(address);
        let url =
            url.map_err(|error| BusError(format!("an address in `cluster.nats`: {error}")))?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        if let (user, Some(password)) = (url.username(), url.password()) {
            return Ok(Some((decoded(user), decoded(password))));
        }
    }
    Ok(None)
}

fn note(connections: &watch::Sender<u64>, failure: &Lock<Option<String>>, event: &Event) {
    match event {
        Event::Connected => {
            info!("connected to NATS");
            failure.lock().take();
            connections.send_modify(|number| *number += 1);
        }
        Event::SlowConsumer(_) | Event::ServerError(_) => note_failure(failure, &event.to_string()),
        _ => debug!(%event, "NATS"),
    }
}

fn note_failure(failure: &Lock<Option<String>>, why: &str) {
    let why = printable::one_line_of(why, 200);
    let mut known = failure.lock();
    // Each attempt to connect fails alike.
    if known.as_ref() != Some(&why) {
        warn!(why, "NATS");
        *known = Some(why);
    }
}

fn pack(head: &impl Serialize, body: &[u8]) -> Result<Vec<u8>, BusError> {
    let head = serde_json::to_vec(head).map_err(BusError::of)?;
    let length = u32::try_from(head.len()).map_err(BusError::of)?;
    let mut text = Vec::with_capacity(4 + head.len() + body.len());
    text.put_u32(length);
    text.put_slice(&head);
    text.put_slice(body);
    Ok(text)
}

fn unpack<T: DeserializeOwned>(text: &Bytes) -> Option<(T, Bytes)> {
    let length = u32::from_be_bytes(text.get(..4)?.try_into().ok()?);
    let end = 4 + usize::try_from(length).ok()?;
    let head = serde_json::from_slice(text.get(4..end)?).ok()?;
    Some((head, text.slice(end..)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{pack, unpack};

    #[test]
    fn a_head_and_its_bytes_are_read_back_and_a_torn_text_is_refused() {
        let text: bytes::Bytes = pack(&json!({"a": 1}), b"\0body").unwrap().into();
        let (head, body) = unpack::<Value>(&text).unwrap();
        assert_eq!((head, &body[..]), (json!({"a": 1}), &b"\0body"[..]));
        for end in 0..11 {
            assert!(unpack::<Value>(&text.slice(..end)).is_none(), "{end}");
        }
    }
}
