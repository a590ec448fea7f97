//! A client of another node, which can be asked during its call; and the frames to that node.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use dashmap::DashMap;
use fleet::{Asks, ClientAnswer, ClockStop, ServerQuestion};
use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::Json;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Interval, interval},
};

use crate::{
    bus::Bus,
    frames::{Asker, Frame, FrameKind},
    seal::Boot,
};

/// The time between signs of life of a request.
const ALIVE_EVERY: Duration = Duration::from_millis(800);

/// The frames of one request that wait to be sent. Progress and log messages beyond it are dropped.
const FRAMES_MAX: usize = 256;

/// Queues the frames of one request.
#[derive(Debug, Clone)]
pub(crate) struct Frames(mpsc::Sender<(FrameKind, Bytes)>);

impl Frames {
    /// Makes a queue, and the other end that sends what is in it to this subject.
    pub(crate) fn begin(bus: Arc<Bus>, reply: String) -> (Self, FrameSender) {
        let (sender, queue) = mpsc::channel(FRAMES_MAX);
        let sending = FrameSender {
            bus,
            reply,
            queue,
            nth: 0,
        };
        (Self(sender), sending)
    }

    /// Queues a frame that must arrive.
    pub(crate) async fn send(&self, kind: FrameKind, body: Bytes) {
        let _ = self.0.send((kind, body)).await;
    }

    /// Queues a frame if there is room.
    pub(crate) fn offer(&self, kind: FrameKind, body: Bytes) {
        let _ = self.0.try_send((kind, body));
    }
}

/// Sends the frames of one request, in order. It runs in the task of the request: a task of its own would cost
/// each call two more switches.
pub(crate) struct FrameSender {
    bus: Arc<Bus>,
    reply: String,
    queue: mpsc::Receiver<(FrameKind, Bytes)>,
    nth: u32,
}

impl FrameSender {
    /// Sends the frames that a request queues while it is worked on, signs of life between them, and its last
    /// frame.
    pub(crate) async fn send_all(mut self, working: impl Future<Output = (FrameKind, Bytes)>) {
        let mut working = pin!(working);
        let mut alive = interval(ALIVE_EVERY);
        alive.reset();
        let (kind, body) = loop {
            tokio::select! {
                biased;
                Some((kind, body)) = self.queue.recv() => self.send(&mut alive, kind, &body).await,
                last = &mut working => break last,
                _ = alive.tick() => self.say_alive().await,
            }
        };
        while let Ok((kind, body)) = self.queue.try_recv() {
            self.send(&mut alive, kind, &body).await;
        }
        self.send(&mut alive, kind, &body).await;
    }

    async fn send(&mut self, alive: &mut Interval, kind: FrameKind, body: &[u8]) {
        let frame = Frame {
            nth: self.nth,
            kind,
        };
        self.nth += 1;
        let mut sending = pin!(self.bus.send(&self.reply, None, &frame, body));
        loop {
            tokio::select! {
                biased;
                // A frame that cannot be sent is missed by its number.
                _ = &mut sending => return,
                // A long one passes through the object store.
                _ = alive.tick() => self.say_alive().await,
            }
        }
    }

    async fn say_alive(&self) {
        let frame = Frame {
            nth: 0,
            kind: FrameKind::Alive,
        };
        let _ = self.bus.send(&self.reply, None, &frame, b"").await;
    }
}

/// The questions of one request that wait for their answers.
pub(crate) type Answers = Arc<DashMap<u64, oneshot::Sender<ClientAnswer>>>;

/// The client of a request of another node.
#[derive(Debug, Clone)]
pub(crate) struct RemoteClient {
    session: u64,
    asker: Arc<Asker>,
    /// `None` outside of a call: the other node is not asked then.
    call: Option<Arc<RemoteCall>>,
}

#[derive(Debug)]
struct RemoteCall {
    frames: Frames,
    answers: Answers,
    next: AtomicU64,
}

impl RemoteClient {
    pub(crate) fn new(from: Boot, asker: Asker, frames: Frames, answers: Answers) -> Self {
        Self {
            session: session_at(from, asker.session),
            asker: Arc::new(asker),
            call: Some(Arc::new(RemoteCall {
                frames,
                answers,
                next: AtomicU64::new(0),
            })),
        }
    }
}

/// The number of another node's session here. Numbers of our own sessions are small.
pub(crate) fn session_at(from: Boot, session: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (from, session).hash(&mut hasher);
    hasher.finish() | (1 << 63)
}

/// Tells the other node that a question is not needed any more, unless it was answered.
struct OpenQuestion<'a> {
    call: &'a RemoteCall,
    question: u64,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.call.answers.remove(&self.question).is_some() {
            let question = self.question;
            self.call
                .frames
                .offer(FrameKind::Unask { question }, Bytes::new());
        }
    }
}

/// Stops the clock of the call at the other node until it is dropped.
struct RemoteClock(Frames);

impl Drop for RemoteClock {
    fn drop(&mut self) {
        self.0
            .offer(FrameKind::Clock { stands: false }, Bytes::new());
    }
}

impl Asks for RemoteClient {
    fn session(&self) -> u64 {
        self.session
    }

    fn client(&self) -> String {
        self.asker.client.clone()
    }

    fn capabilities(&self) -> Json {
        Json::from(self.asker.capabilities.clone())
    }

    fn takes_rounds(&self) -> bool {
        self.asker.takes_rounds
    }

    fn ask(&self, question: ServerQuestion) -> BoxFuture<'_, ClientAnswer> {
        async move {
            let Some(call) = &self.call else {
                return ClientAnswer::refuse(
                    "the client is at another node, and makes no call now",
                );
            };
            let number = call.next.fetch_add(1, Ordering::Relaxed);
            let (sender, answer) = oneshot::channel();
            call.answers.insert(number, sender);
            let _open = OpenQuestion {
                call,
                question: number,
            };
            let method = question.kind.method().to_owned();
            let kind = FrameKind::Ask {
                question: number,
                method,
            };
            call.frames.send(kind, question.params.bytes()).await;
            let answer = answer.await;
            answer.unwrap_or_else(|_| ClientAnswer::refuse("the client has disconnected"))
        }
        .boxed()
    }

    fn stop_clock(&self) -> ClockStop {
        let Some(call) = &self.call else {
            return ClockStop::default();
        };
        call.frames
            .offer(FrameKind::Clock { stands: true }, Bytes::new());
        ClockStop::default().and(RemoteClock(call.frames.clone()))
    }

    fn tell(&self, method: &str, params: &str) {
        if let Some(call) = &self.call {
            let method = method.to_owned();
            let params = Bytes::copy_from_slice(params.as_bytes());
            call.frames.offer(FrameKind::Tell { method }, params);
        }
    }

    fn without_call(&self) -> Arc<dyn Asks> {
        Arc::new(Self {
            call: None,
            ..self.clone()
        })
    }
}
