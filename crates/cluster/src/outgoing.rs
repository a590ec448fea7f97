//! Requests to other nodes: their frames, in order and without a gap, and the sinks of a call.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::Message;
use bytes::Bytes;
use dashmap::DashMap;
use fleet::{
    Asks, CallError, ClientAnswer, ClockStop, Failure, QuestionKind, Ran, Request, ServerQuestion,
};
use futures::StreamExt as _;
use jsonrpc::{Json, one_line};
use serde_json::value::RawValue;
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use crate::{
    bus::{Bus, BusError, ParcelError},
    frames::{Frame, FrameKind, Instance, NodeRequest, Op, UpFrame, UpKind, unavailable},
    nodes::{Nodes, Target},
};

/// A node that works on a request says so every second; one that does not for this time is gone.
const SILENCE: Duration = Duration::from_millis(2_600);

/// The time for which frames that have come are passed on after that.
const BUSY_WAIT: Duration = Duration::from_millis(300);

/// The other node reads a request over this size, in bytes, before it says anything, and may take this long.
const LARGE_BYTES: usize = 256 * 1_024;
const LARGE_WAIT: Duration = Duration::from_secs(10);

/// The frames of one request that wait for its task. Further ones are lost, and end it.
const FRAMES_MAX: usize = 1_024;

/// The requests that wait for frames, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    waiting: DashMap<u64, mpsc::Sender<Message>>,
    next: AtomicU64,
}

/// The reason why a request has no result.
#[derive(Debug)]
pub(crate) enum RemoteError {
    /// The other node did nothing; it may be asked again.
    NotRun(String),
    /// The request may have run.
    Lost(String),
    /// The outcome of a call.
    Call(CallError),
}

/// A request under way. Dropping it cancels it at the other node.
pub(crate) struct Exchange {
    bus: Arc<Bus>,
    all: Arc<Outgoing>,
    target: Target,
    /// The server of the request; a request without one is about the node.
    server: ServerName,
    number: u64,
    frames: mpsc::Receiver<Message>,
    nth: u32,
    heard: Instant,
    has_ended: bool,
    /// The bodies of its frames are JSON. Only a kept result is a file, whose bytes stay as they are.
    has_json: bool,
}

impl Outgoing {
    /// Passes frames to their requests. Runs until it is dropped.
    pub(crate) async fn receive(&self, bus: &Bus) -> Result<(), BusError> {
        let mut frames = bus.listen(&format!("in.{}.*", bus.boot())).await?;
        while let Some(frame) = frames.next().await {
            let number = frame.subject.rsplit('.').next();
            let number = number.and_then(|it| it.parse::<u64>().ok());
            if let Some(waiting) = number.and_then(|number| self.waiting.get(&number)) {
                // A frame that finds no room is missed by its number.
                let _ = waiting.try_send(frame);
            }
        }
        Ok(())
    }

    /// Sends a request.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        bus: &Arc<Bus>,
        target: &Target,
        instance: Option<Instance>,
        op: Op,
    ) -> Result<Exchange, RemoteError> {
        // The connection would keep the request, and send it later.
        if !bus.is_connected() {
            return Err(RemoteError::NotRun(
                "the connection to NATS is lost".to_owned(),
            ));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, frames) = mpsc::channel(FRAMES_MAX);
        self.waiting.insert(number, sender);
        let mut exchange = Exchange {
            bus: Arc::clone(bus),
            all: Arc::clone(self),
            target: target.clone(),
            server: instance
                .as_ref()
                .map_or_else(ServerName::built_in, |it| it.server.clone()),
            number,
            frames,
            nth: 0,
            heard: Instant::now(),
            has_ended: false,
            has_json: !matches!(op, Op::Result(_)),
        };
        let request = NodeRequest {
            number,
            clock_ms: target.clock_ms,
            instance,
            op,
        };
        let is_large = matches!(&request.op, Op::Call(call) if call.len() > LARGE_BYTES);
        let subject = format!("to.{}.{}", target.node, target.boot);
        let reply = format!("in.{}.{number}", bus.boot());
        if let Err(error) = bus.send(&subject, Some(&reply), &request, b"").await {
            exchange.has_ended = true;
            return Err(RemoteError::NotRun(error.0));
        }
        exchange.heard = Instant::now();
        if is_large {
            exchange.heard += LARGE_WAIT;
        }
        Ok(exchange)
    }
}

impl Exchange {
    /// Returns the next frame.
    pub(crate) async fn next(&mut self, nodes: &Nodes) -> Result<(FrameKind, Bytes), RemoteError> {
        let node = &self.target.node;
        let mut received = timeout_at(self.heard + SILENCE, self.frames.recv()).await;
        if received.is_err() {
            // The frame may have come while this process was busy.
            received = timeout(BUSY_WAIT, self.frames.recv()).await;
        }
        let Ok(Some(message)) = received else {
            let what = format!("node `{node}` does not answer");
            return Err(RemoteError::Lost(what));
        };
        self.heard = Instant::now();
        let frame = match self.bus.open::<Frame>(message).await {
            Ok(parcel) if parcel.from == self.target.boot => parcel,
            // Another process cannot answer; the right one may still.
            Ok(_) | Err(ParcelError::NotOurs(_)) => return Ok((FrameKind::Alive, Bytes::new())),
            Err(ParcelError::NoResponders) => {
                self.has_ended = true;
                let what = format!("node `{node}` is not connected to the cluster");
                return Err(RemoteError::NotRun(what));
            }
            Err(ParcelError::Lost(why)) => {
                return Err(RemoteError::Lost(format!(
                    "the answer of node `{node}` was lost: {why}"
                )));
            }
        };
        if matches!(frame.head.kind, FrameKind::Alive) {
            return Ok((FrameKind::Alive, Bytes::new()));
        }
        if frame.head.nth != self.nth {
            if frame.head.nth < self.nth {
                return Ok((FrameKind::Alive, Bytes::new()));
            }
            let what = format!("a part of the answer of node `{node}` was lost");
            return Err(RemoteError::Lost(what));
        }
        self.nth += 1;
        match frame.head.kind {
            FrameKind::NotHere { clock_ms } => {
                self.has_ended = true;
                nodes.note_clock(self.target.boot, clock_ms);
                Err(RemoteError::NotRun(format!(
                    "node `{node}` does not run it now"
                )))
            }
            FrameKind::Failed(error) => {
                self.has_ended = true;
                let error = error.into_error(&self.server, node);
                Err(RemoteError::Call(error))
            }
            kind => {
                self.has_ended = matches!(kind, FrameKind::End);
                // A node of another version may not have put it on one line.
                let body = if self.has_json {
                    one_line(frame.body)
                } else {
                    frame.body
                };
                Ok((kind, body))
            }
        }
    }

    /// Waits for the end of a request without sinks.
    pub(crate) async fn finish(mut self, nodes: &Nodes) -> Result<Bytes, RemoteError> {
        loop {
            if let (FrameKind::End, body) = self.next(nodes).await? {
                return Ok(body);
            }
        }
    }

    /// Waits for the result of a call, and passes its frames to the sinks of the request.
    pub(crate) async fn finish_call(
        mut self,
        nodes: &Nodes,
        request: &Request,
        cancel: &CancellationToken,
    ) -> Result<Json, RemoteError> {
        let mut client = Client::new(request);
        loop {
            let frame = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(RemoteError::Call(CallError::Cancelled)),
                frame = self.next(nodes) => frame,
                (question, answer) = client.answered() => {
                    let is_error = matches!(answer, ClientAnswer::Error(_));
                    let (ClientAnswer::Result(json) | ClientAnswer::Error(json)) = answer;
                    self.up(UpKind::Answer { question, is_error }, &json.bytes()).await;
                    continue;
                }
            };
            match frame? {
                (FrameKind::CheckStart, _) => {
                    let allowed = request.check_start().await;
                    allowed.map_err(|refusal| RemoteError::Call(CallError::Refused(refusal)))?;
                    self.up(UpKind::Start, b"").await;
                }
                (FrameKind::End, body) => {
                    let text = String::from_utf8(body.into());
                    let lost = |_| RemoteError::Lost("the answer is not text".to_owned());
                    let json = jsonrpc::json(text.map_err(lost)?);
                    return json.map_err(|error| RemoteError::Lost(error.to_string()));
                }
                (kind, body) => client.take(request, kind, &body),
            }
        }
    }

    async fn up(&self, kind: UpKind, body: &[u8]) {
        up(&self.bus, &self.target, self.number, kind, body).await;
    }
}

async fn up(bus: &Bus, target: &Target, request: u64, kind: UpKind, body: &[u8]) {
    let subject = format!("up.{}.{}", target.node, target.boot);
    // A lost message is a call that ends by its timeout.
    let _ = bus
        .send(&subject, None, &UpFrame { request, kind }, body)
        .await;
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.all.waiting.remove(&self.number);
        if self.has_ended {
            return;
        }
        // Without a runtime, the whole program is ending.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (bus, target, number) = (Arc::clone(&self.bus), self.target.clone(), self.number);
            runtime.spawn(async move { up(&bus, &target, number, UpKind::Cancel, b"").await });
        }
    }
}

/// Turns the loss of a request into the error of its call.
pub(crate) fn explain_loss(server: &ServerName, why: String, ran: Ran) -> CallError {
    unavailable(server, with_hint(why), ran)
}

pub(crate) fn with_hint(why: String) -> Failure {
    Failure {
        hint: Some("`proxy cluster status` shows the nodes".to_owned()),
        ..Failure::new(why)
    }
}

/// The client of a call that another node runs.
struct Client {
    asks: Option<Arc<dyn Asks>>,
    questions: HashMap<u64, AbortHandle>,
    answers: mpsc::Receiver<(u64, ClientAnswer)>,
    answer: mpsc::Sender<(u64, ClientAnswer)>,
    clock: Option<ClockStop>,
}

/// The questions of one call that wait for their answers.
const QUESTIONS_MAX: usize = 16;

impl Client {
    fn new(request: &Request) -> Self {
        let (answer, answers) = mpsc::channel(QUESTIONS_MAX);
        Self {
            asks: request.asks.clone(),
            questions: HashMap::new(),
            answers,
            answer,
            clock: None,
        }
    }

    async fn answered(&mut self) -> (u64, ClientAnswer) {
        match self.answers.recv().await {
            Some((question, answer)) => {
                self.questions.remove(&question);
                (question, answer)
            }
            // This value holds a sender.
            None => std::future::pending().await,
        }
    }

    fn take(&mut self, request: &Request, kind: FrameKind, body: &[u8]) {
        let raw = || serde_json::from_slice::<&RawValue>(body).ok();
        match kind {
            FrameKind::Progress => {
                if let (Some(sink), Some(params)) = (&request.progress, raw()) {
                    sink(params);
                }
            }
            FrameKind::Log => {
                if let (Some(log), Some(params)) = (&request.log, raw()) {
                    (log.send)(params);
                }
            }
            FrameKind::Ask { question, method } => self.ask(question, &method, raw()),
            FrameKind::Unask { question } => {
                if let Some(asking) = self.questions.remove(&question) {
                    asking.abort();
                }
            }
            FrameKind::Clock { stands } => {
                let asks = self.asks.as_ref().filter(|_| stands);
                self.clock = asks.map(|it| it.stop_clock());
            }
            FrameKind::Tell { method } => {
                if let (Some(asks), Ok(params)) = (&self.asks, std::str::from_utf8(body)) {
                    asks.tell(&method, params);
                }
            }
            FrameKind::Alive
            | FrameKind::CheckStart
            | FrameKind::Watching
            | FrameKind::Changed
            | FrameKind::End
            | FrameKind::Failed(_)
            | FrameKind::NotHere { .. } => {}
        }
    }

    fn ask(&mut self, question: u64, method: &str, params: Option<&RawValue>) {
        let refuse = |why| {
            let _ = self.answer.try_send((question, ClientAnswer::refuse(why)));
        };
        let (Some(asks), Some(kind)) = (&self.asks, QuestionKind::of(method)) else {
            return refuse("the client cannot be asked this");
        };
        let Some(params) = params.filter(|_| self.questions.len() < QUESTIONS_MAX) else {
            return refuse("too many questions are open");
        };
        let params = Json::from(params.to_owned());
        let (asks, answer) = (Arc::clone(asks), self.answer.clone());
        let asking = tokio::spawn(async move {
            let given = asks.ask(ServerQuestion { kind, params }).await;
            let _ = answer.send((question, given)).await;
        });
        self.questions.insert(question, asking.abort_handle());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.questions.values().for_each(AbortHandle::abort);
    }
}
