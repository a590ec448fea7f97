//! Requests of other nodes for servers of this one.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use async_nats::Message;
use bytes::Bytes;
use dashmap::{DashMap, DashSet};
use fleet::{
    Asks, CallError, CallServers, ClientAnswer, Failure, Fleet, Lifecycle, ListServers, LogSink,
    Ran, Refusal, StartCheck, Subscriber,
};
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;
use tool::{ClientId, ServerName};
use tracing::debug;

use crate::{
    bus::{Bus, BusError, Parcel, ParcelError},
    core::Core,
    frames::{
        CallOp, FrameKind, Instance, NodeRequest, Op, UpFrame, UpKind, WireError, millis,
        unavailable,
    },
    lists,
    remote_client::{Answers, Frames, RemoteClient, session_at},
    seal::Boot,
};

/// The age after which a request is refused. Its sender has given up long before.
const AGE_MAX: Duration = Duration::from_secs(10);

/// The time for which the ids of requests are remembered: a copy that comes later is too old.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);

/// The time for which the check that the sender made before it sent a call is enough: a call that waits no
/// longer costs no further message.
const CHECK_VALID_FOR: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// Those under way, by their sender and number.
    running: DashMap<(Boot, u64), RunningRequest>,
    seen: DashSet<(Boot, u64)>,
    seen_at: Mutex<VecDeque<(Instant, (Boot, u64))>>,
}

#[derive(Debug, Clone)]
struct RunningRequest {
    cancel: CancellationToken,
    answers: Answers,
    may_start: Arc<Notify>,
}

impl Incoming {
    /// Serves requests. Runs until it is dropped.
    pub(crate) async fn serve(
        self: &Arc<Self>,
        core: &Arc<Core>,
        bus: &Arc<Bus>,
    ) -> Result<(), BusError> {
        let place = format!("{}.{}", core.settings.node, bus.boot());
        let mut requests = bus.listen(&format!("to.{place}")).await?;
        let mut ups = bus.listen(&format!("up.{place}")).await?;
        loop {
            tokio::select! {
                Some(message) = requests.next() => {
                    let (all, core, bus) = (Arc::clone(self), Arc::clone(core), Arc::clone(bus));
                    tokio::spawn(async move { all.take(&core, &bus, message).await });
                }
                Some(message) = ups.next() => self.take_up(bus, message).await,
                else => return Ok(()),
            }
        }
    }

    async fn take(&self, core: &Arc<Core>, bus: &Arc<Bus>, message: Message) {
        let request = match bus.open::<NodeRequest>(message).await {
            Ok(request) => request,
            Err(error) => return debug!(%error, "a request of another node"),
        };
        let (from, number) = (request.from, request.head.number);
        let (frames, sending) = Frames::begin(Arc::clone(bus), format!("in.{from}.{number}"));
        if !self.is_new(core, &request) {
            return sending.send_all(std::future::ready(not_here(core))).await;
        }
        let running = RunningRequest {
            cancel: CancellationToken::new(),
            answers: Answers::default(),
            may_start: Arc::default(),
        };
        let id = (from, number);
        self.running.insert(id, running.clone());
        let answering = answer(core, request, &frames, &running);
        let answering = answering.inspect(|_| drop(self.running.remove(&id)));
        sending.send_all(answering).await;
    }

    /// Returns false for a request that is too old, or that came before.
    fn is_new(&self, core: &Core, request: &Parcel<NodeRequest>) -> bool {
        let age = core.clock_ms().abs_diff(request.head.clock_ms);
        if Duration::from_millis(age) > AGE_MAX {
            return false;
        }
        let id = (request.from, request.number);
        let now = Instant::now();
        let mut seen_at = self.seen_at.lock();
        while let Some((at, old)) = seen_at.front().copied()
            && now - at > REMEMBERED_FOR
        {
            seen_at.pop_front();
            self.seen.remove(&old);
        }
        seen_at.push_back((now, id));
        self.seen.insert(id)
    }

    async fn take_up(&self, bus: &Bus, message: Message) {
        let up: Parcel<UpFrame> = match bus.open(message).await {
            Ok(up) => up,
            Err(ParcelError::NoResponders) => return,
            Err(error) => return debug!(%error, "a message of another node"),
        };
        let Some(running) = self.running.get(&(up.from, up.head.request)) else {
            return;
        };
        match up.head.kind {
            UpKind::Cancel => running.cancel.cancel(),
            UpKind::Start => running.may_start.notify_one(),
            UpKind::Answer { question, is_error } => {
                let Some((_, waiting)) = running.answers.remove(&question) else {
                    return;
                };
                let text = String::from_utf8(up.body.into()).ok();
                let answer = match text.and_then(|text| jsonrpc::json(text).ok()) {
                    Some(json) if is_error => ClientAnswer::Error(json),
                    Some(json) => ClientAnswer::Result(json),
                    None => ClientAnswer::refuse("the answer was not JSON"),
                };
                let _ = waiting.send(answer);
            }
        }
    }
}

async fn answer(
    core: &Arc<Core>,
    request: Parcel<NodeRequest>,
    frames: &Frames,
    running: &RunningRequest,
) -> (FrameKind, Bytes) {
    let (from, head) = (request.from, request.head);
    match &head.op {
        Op::Ping => return (FrameKind::End, Bytes::new()),
        Op::Result(handle) => {
            return match core.own_data.read_kept(handle.clone()).await {
                Some(content) => (FrameKind::End, content),
                None => not_here(core),
            };
        }
        Op::Head(node) => {
            let head = core.own_data.find_head(node.clone()).await;
            let head = serde_json::to_vec(&head).unwrap_or_default();
            return (FrameKind::End, head.into());
        }
        Op::Call(_) | Op::Watch(_) | Op::Survey | Op::Restart | Op::RestartWaiting => {}
    }
    let Some(Instance { server, epoch }) = head.instance else {
        return not_here(core);
    };
    let Some((fleet, hold)) = core.serves(&server, epoch) else {
        return not_here(core);
    };
    let working = async {
        match head.op {
            Op::Call(op) => call(&fleet, &server, &op, from, frames, running).await,
            Op::Watch(uri) => watch(&fleet, &server, &uri, frames, running).await,
            Op::Survey => Box::pin(survey(core, &fleet, &server)).await,
            op @ (Op::Restart | Op::RestartWaiting) => {
                let waits = matches!(op, Op::RestartWaiting);
                let took = fleet.restart(&server, waits).await?;
                Ok(millis(took).to_string().into())
            }
            Op::Ping | Op::Result(_) | Op::Head(_) => Ok(Bytes::new()),
        }
    };
    let lost = hold.as_ref().map(|it| it.lost.clone()).unwrap_or_default();
    let answered = tokio::select! {
        answered = working => answered,
        () = lost.cancelled() => {
            let why = format!("node `{}` gave it up during the call", core.settings.node);
            Err(unavailable(&server, Failure::new(why), Ran::Maybe))
        }
    };
    match answered {
        Ok(body) => (FrameKind::End, body),
        Err(error) => (FrameKind::Failed(WireError::from(&error)), Bytes::new()),
    }
}

fn not_here(core: &Core) -> (FrameKind, Bytes) {
    let clock_ms = core.clock_ms();
    (FrameKind::NotHere { clock_ms }, Bytes::new())
}

async fn call(
    fleet: &Fleet,
    server: &ServerName,
    op: &CallOp,
    from: Boot,
    frames: &Frames,
    running: &RunningRequest,
) -> Result<Bytes, CallError> {
    let Some(mut request) = op.to_request() else {
        let method = printable::one_line_of(&op.method, 60);
        let why = format!("this node does not know the method `{method}`: its program is older");
        return Err(unavailable(server, Failure::new(why), Ran::No));
    };
    if op.wants_progress {
        let frames = frames.clone();
        request.progress = Some(Arc::new(move |params: &RawValue| {
            frames.offer(FrameKind::Progress, copy(params));
        }));
    }
    if let (Some((session, _)), Some(level)) = (&op.log, op.log_level()) {
        let frames = frames.clone();
        request.log = Some(LogSink {
            session: session_at(from, *session),
            level,
            send: Arc::new(move |params: &RawValue| {
                frames.offer(FrameKind::Log, copy(params));
            }),
        });
    }
    if let Some(asker) = &op.asker {
        let answers = Arc::clone(&running.answers);
        let client = RemoteClient::new(from, asker.clone(), frames.clone(), answers);
        request.asks = Some(Arc::new(client));
    }
    if op.checks_start {
        request.start_check = Some(Arc::new(RemoteStartCheck {
            received_at: Instant::now(),
            frames: frames.clone(),
            may_start: Arc::clone(&running.may_start),
        }));
    }
    let answer = fleet.call(server, &request, &running.cancel).await;
    answer.map(|json| json.bytes())
}

/// Asks the node of the client whether its rules still allow a call that waited. A node whose rules refuse
/// it cancels the call.
struct RemoteStartCheck {
    received_at: Instant,
    frames: Frames,
    may_start: Arc<Notify>,
}

impl StartCheck for RemoteStartCheck {
    fn check(&self) -> BoxFuture<'_, Result<(), Refusal>> {
        async {
            if self.received_at.elapsed() < CHECK_VALID_FOR {
                return Ok(());
            }
            self.frames.send(FrameKind::CheckStart, Bytes::new()).await;
            self.may_start.notified().await;
            Ok(())
        }
        .boxed()
    }
}

fn copy(params: &RawValue) -> Bytes {
    Bytes::copy_from_slice(params.get().as_bytes())
}

async fn watch(
    fleet: &Fleet,
    server: &ServerName,
    uri: &str,
    frames: &Frames,
    running: &RunningRequest,
) -> Result<Bytes, CallError> {
    let changes = frames.clone();
    let subscriber = Subscriber {
        client: None::<ClientId>,
        asks: None::<Arc<dyn Asks>>,
        // The node of the client checks its rules when it hears that the watch began.
        start_check: None,
        sink: Arc::new(move |_: &str| changes.offer(FrameKind::Changed, Bytes::new())),
    };
    let _watching = fleet.watch(server, uri, subscriber).await?;
    frames.send(FrameKind::Watching, Bytes::new()).await;
    running.cancel.cancelled().await;
    Ok(Bytes::new())
}

async fn survey(core: &Arc<Core>, fleet: &Fleet, server: &ServerName) -> Result<Bytes, CallError> {
    match fleet.survey(server).await {
        Ok(survey) => {
            lists::publish(core, server, &survey).await;
            // The survey was not this node's own: its registry learns of it as well.
            let _ = core.changed.try_send(server.clone());
            Ok(Bytes::new())
        }
        Err(error) => Err(unavailable(server, error.failure, Ran::No)),
    }
}
