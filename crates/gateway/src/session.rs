//! One client's connection.
//!
//! Calls of our tools are taken off the line here and answered in bytes, each in a task of its
//! own; everything else is the protocol engine's.

mod meta;

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use dashmap::DashMap;
use fleet::{LogSink, ProgressSink};
use jsonrpc::{Fields, Json, Line, LineReader, Message, Outbox, Sink, frame, text_of};
use meta::Meta;
use parking_lot::Mutex;
use results::Caller;
use serde_json::{Value, value::RawValue};
use tokio::{io::AsyncRead, sync::Semaphore, task::JoinHandle, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::debug;

use super::{
    CallContext, Gateway, Habits, Reply, clients,
    definitions::instructions,
    log_level::LogLevel,
    out::Out,
    wire::{Engine, Face, Refused, is_served_modern},
};
use crate::policy::Client;

/// Calls of one client under way at one time; a further one is refused.
const CALLS_MAX: usize = 1_024;

/// Of those, how many are made at one time; the others wait. So many answers at most wait in
/// memory for a client that does not read, beside what its outbox holds.
const CALLS_AT_ONCE: usize = 128;

/// After the client's end of input, calls under way may still answer for this long.
const GRACE_AFTER_EOF: Duration = Duration::from_millis(800);

/// After that, what was answered may take this long to be read.
const DRAIN_WAIT: Duration = Duration::from_millis(300);

/// Where a client sits.
#[derive(Debug, Clone, Default)]
pub struct Seat {
    /// The folder it works in, where we know.
    pub cwd: Option<PathBuf>,
    /// The process that we talk to: the client's relay.
    pub pid: Option<u32>,
    /// `stdio` or `http`, for people.
    pub transport: &'static str,
    /// The name of the token that let it in, over HTTP: clients of different tokens share nothing.
    pub token: Option<Arc<str>>,
    /// It asks once and is gone: nobody hears of it, and it has no servers of its own.
    pub passes_by: bool,
}

/// Serves one client until it closes its end, or until `stop`.
pub async fn serve(
    gateway: Arc<Gateway>,
    seat: Seat,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: Sink,
    stop: CancellationToken,
) {
    let outbox = Outbox::new(output);
    let session = Session::new(
        gateway,
        seat,
        Out::Line(Arc::clone(&outbox)),
        Opening::Handshake,
    );
    let reading = session.read(LineReader::new(input));
    let ended_itself = stop.run_until_cancelled(reading).await.is_some();
    session.end(ended_itself).await;
    drop(session);
    let _ = timeout(DRAIN_WAIT, outbox.drained()).await;
    outbox.give_up();
}

/// What comes before a client's first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// `initialize`, or metadata of the modern kind in each request.
    Handshake,
    /// Nothing: the session is one request over HTTP.
    None,
}

/// What one client has of us: calls under way, a log level, an engine of its own.
pub struct Session {
    /// Who it is, for whoever asks who is served.
    who: Arc<clients::Client>,
    gateway: Arc<Gateway>,
    /// For what belongs to no request.
    out: Out,
    opening: Opening,
    /// What holds for the client, from the moment that it says its name.
    client: OnceLock<Arc<Client>>,
    /// Of a legacy session; a modern request says its own.
    level: LogLevel,
    habits: Arc<Habits>,
    calls: TaskTracker,
    /// One permit a call that is made, not merely taken off the line.
    turns: Semaphore,
    /// Calls under way by the text of their request id.
    running: DashMap<String, CancellationToken>,
    /// An `initialize` was seen: from here on calls need no metadata of their own.
    is_open: AtomicBool,
    gone: CancellationToken,
    /// Started by the first message that is for it.
    engine: Mutex<Option<Running>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("who", &self.who)
            .finish_non_exhaustive()
    }
}

struct Running {
    engine: Engine,
    task: JoinHandle<()>,
}

/// The session takes no more messages.
#[derive(Debug)]
pub struct Ended;

/// A call of one of our tools, as it came.
struct ToolCall {
    id: Json,
    name: String,
    arguments: Option<Box<RawValue>>,
    meta: Meta,
    is_modern: bool,
}

impl Session {
    /// `out` is for what belongs to no request; over HTTP each request brings a way of its own.
    pub fn new(gateway: Arc<Gateway>, seat: Seat, out: Out, opening: Opening) -> Arc<Self> {
        Self::until(CancellationToken::new(), gateway, seat, out, opening)
    }

    /// A session whose calls end with `gone` at the latest.
    pub fn until(
        gone: CancellationToken,
        gateway: Arc<Gateway>,
        seat: Seat,
        out: Out,
        opening: Opening,
    ) -> Arc<Self> {
        let folder = seat.cwd.clone();
        Arc::new(Self {
            who: gateway.clients.enter(seat),
            gateway,
            out,
            opening,
            client: OnceLock::new(),
            habits: Arc::new(Habits::in_folder(folder.as_deref())),
            level: LogLevel::unsaid(),
            calls: TaskTracker::new(),
            turns: Semaphore::new(CALLS_AT_ONCE),
            running: DashMap::new(),
            is_open: AtomicBool::new(opening == Opening::None),
            gone,
            engine: Mutex::default(),
        })
    }

    /// Reads until the client closes its end.
    async fn read(self: &Arc<Self>, mut lines: LineReader) {
        loop {
            match lines.next().await {
                Ok(Some(Line::Whole(line))) => {
                    if self.take(&line, &self.out).await.is_err() {
                        return;
                    }
                }
                Ok(Some(Line::TooLong { bytes, .. })) => {
                    let why = format!("Parse error: a line of {bytes} bytes is too long");
                    refuse(&self.out, "null", frame::PARSE_ERROR, &why).await;
                }
                Ok(None) => return,
                Err(error) => {
                    debug!(%error, "reading from the client failed");
                    return;
                }
            }
        }
    }

    /// Takes one message; what is said about it goes to `out`.
    pub async fn take(self: &Arc<Self>, line: &Bytes, out: &Out) -> Result<(), Ended> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let Some(message) = Message::parse(line) else {
            refuse_unreadable(out, line).await;
            return Ok(());
        };
        self.know_client(&message);
        match (message.method.as_deref(), message.id) {
            (Some("tools/call"), Some(_)) => {
                if let Some(call) = self.read_call(line, &message) {
                    self.start(call, out).await;
                    return Ok(());
                }
            }
            (Some("notifications/cancelled"), None) if self.cancel(&message) => return Ok(()),
            (Some("initialize"), Some(_)) => {
                self.is_open.store(true, Ordering::Release);
            }
            // Before a session is open the engine takes a notification for a breach.
            (Some(_), None) if !self.is_open.load(Ordering::Acquire) => return Ok(()),
            // We ask the client for nothing, so an answer answers nothing.
            (None, _) => return Ok(()),
            _ => {}
        }
        if let (Some(id), Out::Board(board), Out::Reply(mailbox)) = (message.id, &self.out, out) {
            board.expect(id.get(), mailbox);
        }
        match self.engine().take(line).await {
            Ok(()) => Ok(()),
            Err(Refused::Ended) => Err(Ended),
            Err(Refused::Malformed) => {
                if let Some(id) = message.id {
                    refuse(out, id.get(), -32_602, "Invalid params").await;
                }
                Ok(())
            }
        }
    }

    /// The first name that the client says of itself holds for the whole session.
    fn know_client(&self, message: &Message<'_>) {
        if self.client.get().is_some() {
            return;
        }
        let Some(params) = message.params.and_then(|params| Fields::of(params.get())) else {
            return;
        };
        let info = match message.method.as_deref() {
            Some("initialize") => params.get("clientInfo"),
            _ => params.get("_meta").and_then(meta::client_info),
        };
        if let Some(name) = info.and_then(|info| self.who.hear(info)) {
            self.habits.named(&name);
            let client = self.gateway.settings().clients.of(Some(&name));
            let _ = self.client.set(Arc::new(client));
        }
    }

    /// What holds for this client, whether it has said its name or not.
    fn client(&self) -> Arc<Client> {
        let nameless = || Arc::new(self.gateway.settings().clients.of(None));
        self.client.get().cloned().unwrap_or_else(nameless)
    }

    /// The engine begins with what it will say to this client as instructions, and keeps to it.
    fn engine(&self) -> Engine {
        let mut running = self.engine.lock();
        let running = running.get_or_insert_with(|| {
            let catalog = self.gateway.registry.catalog();
            let face = Face::new(instructions(&catalog, &self.client()), self.level.clone());
            let (engine, task) = Engine::start(face, self.out.clone(), self.opening);
            Running { engine, task }
        });
        running.engine.clone()
    }

    /// A call that is the lane's: of an open legacy session, or of a modern client that says all
    /// that a request must say. Any other is left to the engine, which knows how to refuse it.
    fn read_call(&self, line: &Bytes, message: &Message<'_>) -> Option<ToolCall> {
        let params = Fields::of(message.params?.get())?;
        let name = text_of(params.get("name")?)?.into_owned();
        let meta = params
            .get("_meta")
            .map(|raw| Meta::read(line, raw))
            .unwrap_or_default();
        let is_modern = match &meta.revision {
            Some(revision) if is_served_modern(revision) && meta.has_capabilities => true,
            None if self.is_open.load(Ordering::Acquire) => false,
            _ => return None,
        };
        Some(ToolCall {
            id: Json::part_of(line, message.id?),
            name,
            arguments: params.get("arguments").map(ToOwned::to_owned),
            meta,
            is_modern,
        })
    }

    async fn start(self: &Arc<Self>, call: ToolCall, out: &Out) {
        if self.calls.len() >= CALLS_MAX {
            let why = format!("more than {CALLS_MAX} calls under way");
            refuse(out, call.id.as_str(), -32_603, &why).await;
            return;
        }
        let cancel = self.gone.child_token();
        self.running
            .insert(call.id.as_str().to_owned(), cancel.clone());
        let (session, out) = (Arc::clone(self), out.clone());
        self.calls
            .spawn(async move { session.answer(call, &out, cancel).await });
    }

    async fn answer(&self, call: ToolCall, out: &Out, cancel: CancellationToken) {
        let context = CallContext {
            client: self.client(),
            caller: self.caller(),
            meta: call.meta.passed,
            progress: call
                .meta
                .progress_token
                .map(|token| progress(out.clone(), token, cancel.clone())),
            log: self.log(call.meta.log_level, call.is_modern, out, cancel.clone()),
            cancel: cancel.clone(),
            habits: Some(Arc::clone(&self.habits)),
            seat: self.seat(),
        };
        self.who.count_call();
        // Held until the answer is on its way.
        let _turn = cancel.run_until_cancelled(self.turns.acquire()).await;
        let answering = async {
            // Whoever does not read gets no further answers to keep for him.
            out.room().await;
            let arguments = call.arguments.as_deref();
            self.gateway.call_tool(&call.name, arguments, context).await
        };
        let reply = cancel.run_until_cancelled(answering).await;
        self.running.remove(call.id.as_str());
        // Nothing is said to a client that took its call back, or is gone. Over HTTP a call that
        // our own end cuts short is answered all the same: its client waits.
        if cancel.is_cancelled() {
            if self.gone.is_cancelled() {
                out.give_up();
            } else {
                out.withdraw();
            }
            return;
        }
        match reply {
            Some(Some(reply)) => send(out, &call.id, &reply, call.is_modern).await,
            Some(None) => {
                let why = format!("Unknown tool: {}", call.name);
                refuse(out, call.id.as_str(), -32_602, &why).await;
            }
            None => {}
        }
    }

    /// Whose results are kept: a name may be anybody's, a token is not.
    fn caller(&self) -> Caller {
        let name = self.who.named().map_or("", |it| it.name.as_str());
        Caller::Client(match &self.who.seat.token {
            Some(token) => format!("{token}\n{name}").into(),
            None => name.into(),
        })
    }

    /// A request over HTTP that stands alone has no servers of its own: they would live as long
    /// as it does.
    fn seat(&self) -> Option<fleet::Caller> {
        (!self.who.seat.passes_by).then(|| fleet::Caller {
            client: self.who.number,
            cwd: self.who.seat.cwd.clone(),
        })
    }

    /// Forwards log messages of the server that is called. A modern client hears them only where
    /// its request says from which level on.
    fn log(
        &self,
        asked: Option<LogLevel>,
        is_modern: bool,
        out: &Out,
        cancel: CancellationToken,
    ) -> Option<LogSink> {
        let level = asked.or_else(|| (!is_modern).then(|| self.level.clone()))?;
        let out = out.clone();
        let send = move |params: &RawValue| {
            if !cancel.is_cancelled() && level.wants(params) {
                out.offer(vec![frame::notification(
                    "notifications/message",
                    params.get(),
                )]);
            }
        };
        let session = self.who.number;
        Some(LogSink {
            session,
            send: Arc::new(send),
        })
    }

    /// Whether the cancelled request was one of the lane's.
    fn cancel(&self, message: &Message<'_>) -> bool {
        let id = message
            .params
            .and_then(|params| Fields::of(params.get())?.get("requestId"));
        let Some(id) = id else { return false };
        if let Some(call) = self.running.get(id.get()) {
            call.cancel();
            return true;
        }
        if let Out::Board(board) = &self.out {
            board.forget(id.get());
        }
        false
    }

    /// Lets calls under way answer when the client merely has no more to say, then ends them.
    pub async fn end(&self, may_answer: bool) {
        self.calls.close();
        if may_answer {
            let _ = timeout(GRACE_AFTER_EOF, self.calls.wait()).await;
        }
        self.gone.cancel();
        self.calls.wait().await;
        let running = {
            let mut running = self.engine.lock();
            running.take()
        };
        if let Some(Running { engine, task }) = running {
            drop(engine);
            let _ = timeout(DRAIN_WAIT, task).await;
        }
    }

    /// Ends what is under way at once, and waits for nothing.
    pub fn abandon(&self) {
        self.gone.cancel();
    }

    /// Whether a call is under way.
    pub fn is_busy(&self) -> bool {
        !self.calls.is_empty()
    }
}

/// Whoever is gone is served no more, and servers of his own end.
impl Drop for Session {
    fn drop(&mut self) {
        if !self.who.seat.passes_by {
            self.gateway.clients.leave(&self.who);
            self.gateway.servers.forget_client(self.who.number);
        }
    }
}

async fn send(out: &Out, id: &Json, reply: &Reply, is_modern: bool) {
    let parts = frame::result(id.as_str(), reply.parts(is_modern));
    let _ = out.answer(parts).await;
}

/// Forwards progress under the client's own token; none after a cancellation. What the
/// client does not read in time is dropped.
fn progress(out: Out, token: Json, cancel: CancellationToken) -> ProgressSink {
    Arc::new(move |params: &RawValue| {
        let Some(fields) = Fields::of(params.get()).filter(|_| !cancel.is_cancelled()) else {
            return;
        };
        let members = fields.0.iter().map(|(key, value)| {
            let value = if key == "progressToken" {
                token.as_str()
            } else {
                value.get()
            };
            format!("{}:{value}", Value::from(key.as_ref()))
        });
        let members: Vec<String> = members.collect();
        let params = format!("{{{}}}", members.join(","));
        out.offer(vec![frame::notification("notifications/progress", &params)]);
    })
}

async fn refuse_unreadable(out: &Out, line: &Bytes) {
    match serde_json::from_slice::<Value>(line) {
        Ok(_) => {
            refuse(
                out,
                "null",
                frame::INVALID_REQUEST,
                "Invalid Request: expected one object",
            )
            .await;
        }
        Err(error) => {
            refuse(
                out,
                "null",
                frame::PARSE_ERROR,
                &format!("Parse error: {error}"),
            )
            .await;
        }
    }
}

pub async fn refuse(out: &Out, id: &str, code: i32, why: &str) {
    let _ = out.answer(vec![frame::error(id, code, why)]).await;
}
