//! One client's connection.
//!
//! Calls of our tools are taken off the line here and answered in bytes, each in a task of its
//! own; everything else is the protocol engine's.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use dashmap::DashMap;
use fleet::{
    Caller, Json, LogSink, Message, ProgressSink,
    line::{Line, LineReader, Outbox, Sink},
};
use serde_json::{Value, value::RawValue};
use tokio::{io::AsyncRead, sync::Semaphore, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::debug;

use super::{
    CallContext, Front, Reply,
    clients::Client,
    definitions::instructions,
    fields::{Fields, text_of},
    log_level::LogLevel,
    wire::{Engine, Face, Refused, is_served_modern},
};

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
#[derive(Debug, Clone)]
pub struct Seat {
    /// The folder it works in, where we know.
    pub cwd: Option<PathBuf>,
    /// The process that we talk to: the client's relay.
    pub pid: Option<u32>,
    /// `stdio` or `http`, for people.
    pub transport: &'static str,
}

/// Serves one client until it closes its end, or until `stop`.
pub async fn serve(
    front: Arc<Front>,
    seat: Seat,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: Sink,
    stop: CancellationToken,
) {
    let outbox = Outbox::new(output);
    let level = LogLevel::unsaid();
    let face = Face::new(instructions(&front.registry.catalog()), level.clone());
    let (engine, engine_task) = Engine::start(face, Arc::clone(&outbox));
    let client = front.clients.enter(seat);
    let session = Arc::new(Session {
        client,
        front,
        outbox,
        level,
        calls: TaskTracker::new(),
        turns: Semaphore::new(CALLS_AT_ONCE),
        running: DashMap::new(),
        is_open: AtomicBool::new(false),
        gone: CancellationToken::new(),
    });
    let reading = session.read(LineReader::new(input), engine);
    let ended_itself = stop.run_until_cancelled(reading).await.is_some();
    session.end(ended_itself).await;
    session.front.clients.leave(&session.client);
    session.front.fleet.forget_client(session.client.number);
    let _ = timeout(DRAIN_WAIT, engine_task).await;
    let _ = timeout(DRAIN_WAIT, session.outbox.drained()).await;
    session.outbox.give_up();
}

struct Session {
    client: Arc<Client>,
    front: Arc<Front>,
    outbox: Arc<Outbox>,
    /// Of a legacy session; a modern request says its own.
    level: LogLevel,
    calls: TaskTracker,
    /// One permit a call that is made, not merely taken off the line.
    turns: Semaphore,
    /// Calls under way by the text of their request id.
    running: DashMap<String, CancellationToken>,
    /// An `initialize` was seen: from here on calls need no metadata of their own.
    is_open: AtomicBool,
    gone: CancellationToken,
}

/// Which members a request's `_meta` has, by whose business they are.
#[derive(Default)]
struct Meta {
    /// The revision that a modern request names.
    revision: Option<String>,
    has_capabilities: bool,
    log_level: Option<LogLevel>,
    progress_token: Option<Json>,
    /// What travels on to the server.
    passed: Vec<(String, Json)>,
}

/// Keys of the protocol itself, which belong to one hop.
const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol/";

/// Where a modern client says its name, in every request.
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// A call of one of our tools, as it came.
struct ToolCall {
    id: Json,
    name: String,
    arguments: Option<Box<RawValue>>,
    meta: Meta,
    is_modern: bool,
}

impl Session {
    /// Reads until the client closes its end. The engine ends with it.
    async fn read(self: &Arc<Self>, mut lines: LineReader, engine: Engine) {
        loop {
            match lines.next().await {
                Ok(Some(Line::Whole(line))) => {
                    if self.take(&line, &engine).await.is_err() {
                        return;
                    }
                }
                Ok(Some(Line::TooLong { bytes, .. })) => {
                    let why = format!("Parse error: a line of {bytes} bytes is too long");
                    self.refuse("null", -32_700, &why).await;
                }
                Ok(None) => return,
                Err(error) => {
                    debug!(%error, "reading from the client failed");
                    return;
                }
            }
        }
    }

    async fn take(self: &Arc<Self>, line: &Bytes, engine: &Engine) -> Result<(), ()> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let Some(message) = Message::parse(line) else {
            self.refuse_unreadable(line).await;
            return Ok(());
        };
        match (message.method.as_deref(), message.id) {
            (Some("tools/call"), Some(_)) => {
                if let Some(call) = self.read_call(line, &message) {
                    self.start(call).await;
                    return Ok(());
                }
            }
            (Some("notifications/cancelled"), None) if self.cancel(&message) => return Ok(()),
            (Some("initialize"), Some(_)) => {
                if let Some(params) = message.params {
                    self.client.hear_name("clientInfo", params);
                }
                self.is_open.store(true, Ordering::Release);
            }
            // Before a session is open the engine takes a notification for a breach.
            (Some(_), None) if !self.is_open.load(Ordering::Acquire) => return Ok(()),
            // We ask the client for nothing, so an answer answers nothing.
            (None, _) => return Ok(()),
            _ => {}
        }
        match engine.take(line).await {
            Ok(()) => Ok(()),
            Err(Refused::Ended) => Err(()),
            Err(Refused::Malformed) => {
                if let Some(id) = message.id {
                    self.refuse(id.get(), -32_602, "Invalid params").await;
                }
                Ok(())
            }
        }
    }

    /// A call that is the lane's: of an open legacy session, or of a modern client that says all
    /// that a request must say. Any other is left to the engine, which knows how to refuse it.
    fn read_call(&self, line: &Bytes, message: &Message<'_>) -> Option<ToolCall> {
        let params = Fields::of(message.params?.get())?;
        let name = text_of(params.get("name")?)?.into_owned();
        if let Some(meta) = params.get("_meta") {
            self.client.hear_name(CLIENT_INFO, meta);
        }
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

    async fn start(self: &Arc<Self>, call: ToolCall) {
        if self.calls.len() >= CALLS_MAX {
            let why = format!("more than {CALLS_MAX} calls under way");
            self.refuse(call.id.as_str(), -32_603, &why).await;
            return;
        }
        let cancel = self.gone.child_token();
        self.running
            .insert(call.id.as_str().to_owned(), cancel.clone());
        let session = Arc::clone(self);
        self.calls
            .spawn(async move { session.answer(call, cancel).await });
    }

    async fn answer(&self, call: ToolCall, cancel: CancellationToken) {
        let context = CallContext {
            meta: call.meta.passed,
            progress: call
                .meta
                .progress_token
                .map(|token| self.progress(token, cancel.clone())),
            log: self.log(call.meta.log_level, call.is_modern, cancel.clone()),
            cancel: cancel.clone(),
            caller: Some(self.caller()),
        };
        self.client.count_call();
        // Held until the answer is on its way.
        let _turn = cancel.run_until_cancelled(self.turns.acquire()).await;
        let answering = async {
            // Whoever does not read gets no further answers to keep for him.
            self.outbox.room().await;
            let arguments = call.arguments.as_deref();
            self.front.call_tool(&call.name, arguments, context).await
        };
        let reply = cancel.run_until_cancelled(answering).await;
        self.running.remove(call.id.as_str());
        // Nothing is said to a client that took its call back.
        if cancel.is_cancelled() {
            return;
        }
        match reply {
            Some(Some(reply)) => self.send(&call.id, &reply, call.is_modern).await,
            Some(None) => {
                let why = format!("Unknown tool: {}", call.name);
                self.refuse(call.id.as_str(), -32_602, &why).await;
            }
            None => {}
        }
    }

    fn caller(&self) -> Caller {
        Caller {
            client: self.client.number,
            cwd: self.client.seat.cwd.clone(),
        }
    }

    async fn send(&self, id: &Json, reply: &Reply, is_modern: bool) {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, id.as_str());
        let mut parts = vec![Bytes::from(head)];
        parts.extend(reply.parts(is_modern));
        parts.push(Bytes::from_static(b"}\n"));
        let _ = self.outbox.send(&parts).await;
    }

    /// Forwards progress under the client's own token; none after a cancellation. What the
    /// client does not read in time is dropped.
    fn progress(&self, token: Json, cancel: CancellationToken) -> ProgressSink {
        let outbox = Arc::clone(&self.outbox);
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
            let line = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{{}}}}}\n",
                members.join(",")
            );
            outbox.offer(&[Bytes::from(line)]);
        })
    }

    /// Forwards log messages of the server that is called. A modern client hears them only where
    /// its request says from which level on.
    fn log(
        &self,
        asked: Option<LogLevel>,
        is_modern: bool,
        cancel: CancellationToken,
    ) -> Option<LogSink> {
        let level = asked.or_else(|| (!is_modern).then(|| self.level.clone()))?;
        let outbox = Arc::clone(&self.outbox);
        let send = move |params: &RawValue| {
            if !cancel.is_cancelled() && level.wants(params) {
                let line = format!(
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{params}}}\n"
                );
                outbox.offer(&[Bytes::from(line)]);
            }
        };
        let session = self.client.number;
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
        let running = id.and_then(|id| self.running.get(id.get()));
        match running {
            Some(call) => {
                call.cancel();
                true
            }
            None => false,
        }
    }

    async fn refuse_unreadable(&self, line: &Bytes) {
        match serde_json::from_slice::<Value>(line) {
            Ok(_) => {
                self.refuse("null", -32_600, "Invalid Request: expected one object")
                    .await;
            }
            Err(error) => {
                self.refuse("null", -32_700, &format!("Parse error: {error}"))
                    .await;
            }
        }
    }

    async fn refuse(&self, id: &str, code: i32, why: &str) {
        let why = Value::from(why);
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{why}}}}}\n"
        );
        let _ = self.outbox.send(&[Bytes::from(line)]).await;
    }

    /// Lets calls under way answer when the client merely has no more to say, then ends them.
    async fn end(&self, may_answer: bool) {
        self.calls.close();
        if may_answer {
            let _ = timeout(GRACE_AFTER_EOF, self.calls.wait()).await;
        }
        self.gone.cancel();
        self.calls.wait().await;
    }
}

impl Meta {
    fn read(line: &Bytes, raw: &RawValue) -> Self {
        let mut meta = Self::default();
        let Some(fields) = Fields::of(raw.get()) else {
            return meta;
        };
        for (key, value) in fields.0 {
            match key.strip_prefix(PROTOCOL_PREFIX) {
                Some("protocolVersion") => meta.revision = text_of(value).map(Into::into),
                Some("clientCapabilities") => meta.has_capabilities = value.get().starts_with('{'),
                Some("logLevel") => {
                    meta.log_level = text_of(value).and_then(|level| LogLevel::named(&level));
                }
                Some(_) => {}
                None if key == "progressToken" => {
                    meta.progress_token = Some(Json::part_of(line, value));
                }
                None => meta
                    .passed
                    .push((key.into_owned(), Json::part_of(line, value))),
            }
        }
        meta
    }
}
