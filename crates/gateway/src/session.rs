//! One client's connection.
//!
//! Calls of our tools are parsed here and answered in bytes, each in a task of its own; rmcp handles
//! everything else.

mod calls;
mod changes;
mod memory;
mod meta;
mod methods;
mod refuse;
mod request;
mod request_tasks;
mod rounds;
mod subscriptions;
mod tool_list;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use calls::Calls;
use changes::Filter;
use jsonrpc::{Fields, Line, LineReader, Message, Outbox, Sink, frame};
use methods::Unserved;
use parking_lot::Mutex;
use refuse::refuse_unreadable;
use request::{ClientRequest, Wants};
use tokio::{io::AsyncRead, task::JoinHandle, time::timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tool_list::list_with_apps;
use tracing::debug;

use crate::{
    clients::{ClientInfo, Connection},
    forward::Announced,
    gateway::Gateway,
    instructions::instructions,
    out::Out,
    policy::ShownCatalog,
    wire::{Engine, Face, LineError, Opening},
};

pub use meta::Announcement;
pub use methods::{explain_not_served, is_gone_in_stateless};
pub use refuse::refuse;

/// The instructions of a session whose configuration cannot be used.
const BROKEN: &str = "Gateway to MCP servers, whose configuration cannot be used: search_tools says \
                      what is wrong with it and what a person can do.";

/// The error for a request whose id has a wrong type.
pub const INVALID_ID: &str = "Invalid Request: `id` must be a string or a number";

/// The time for calls in progress to be answered after the client's end of input.
const GRACE_AFTER_EOF: Duration = Duration::from_millis(800);

/// The time for the responses to be read after that.
const DRAIN_WAIT: Duration = Duration::from_millis(300);

/// Serves one client until it closes its input, or until `stop`. Returns true if a person ended the
/// session.
pub async fn serve(
    gateway: Arc<Gateway>,
    connection: Connection,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: Sink,
    stop: CancellationToken,
) -> bool {
    let outbox = Outbox::new(output);
    let session = Session::new(
        gateway,
        connection,
        Out::Line(Arc::clone(&outbox)),
        Opening::Handshake,
    );
    // A task of its own: else each message would have this one look for the other reasons to end.
    let reader = Arc::clone(&session);
    let reading = tokio::spawn(async move { reader.read(LineReader::new(input)).await });
    let mut reading = AbortOnDropHandle::new(reading);
    let by_person = session.calls.client.ended.clone();
    let ended_itself = tokio::select! {
        biased;
        () = stop.cancelled() => false,
        () = by_person.cancelled() => false,
        _ = &mut reading => true,
    };
    if !ended_itself {
        reading.abort();
        let _ = reading.await;
    }
    session.end(ended_itself).await;
    drop(session);
    let _ = timeout(DRAIN_WAIT, outbox.drained()).await;
    outbox.give_up();
    by_person.is_cancelled()
}

/// The session of one client: its calls in progress, and an rmcp instance of its own for everything
/// else.
pub struct Session {
    calls: Arc<Calls>,
    opening: Opening,
    /// An `initialize` was received: from here on calls need no metadata of their own.
    is_open: AtomicBool,
    /// The capabilities announced to the client besides tools; fixed for the lifetime of the
    /// session.
    announced: OnceLock<Announced>,
    telling: OnceLock<AbortOnDropHandle<()>>,
    /// Started by the first message for it.
    engine: Mutex<Option<Running>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("client", &self.calls.client)
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

impl Session {
    /// `out` is for messages that belong to no request; over HTTP each request has an output of its
    /// own.
    pub fn new(
        gateway: Arc<Gateway>,
        connection: Connection,
        out: Out,
        opening: Opening,
    ) -> Arc<Self> {
        Self::until(CancellationToken::new(), gateway, connection, out, opening)
    }

    /// A session whose calls are cancelled by `gone` at the latest.
    pub fn until(
        gone: CancellationToken,
        gateway: Arc<Gateway>,
        connection: Connection,
        out: Out,
        opening: Opening,
    ) -> Arc<Self> {
        let client = gateway.admit(connection);
        Arc::new(Self {
            calls: Arc::new(Calls::new(gateway, client, out, gone)),
            opening,
            is_open: AtomicBool::new(opening == Opening::None),
            announced: OnceLock::new(),
            telling: OnceLock::new(),
            engine: Mutex::default(),
        })
    }

    /// Restores the name and capabilities that the client had when the session began, for a session
    /// that is resumed.
    pub fn recall(&self, known: &Announcement) {
        self.calls.questions.recall(&known.capabilities);
        if let Some(name) = &known.name {
            self.calls.know(ClientInfo {
                name: name.as_str().into(),
                version: None,
            });
        }
    }

    /// Reads until the client closes its input.
    async fn read(self: &Arc<Self>, mut lines: LineReader) {
        loop {
            match lines.next().await {
                Ok(Some(Line::Whole(line))) => {
                    if self.take(&line, &self.calls.home).await.is_err() {
                        return;
                    }
                }
                Ok(Some(Line::TooLong { bytes, .. })) => {
                    let why = format!("Parse error: a line of {bytes} bytes is too long");
                    refuse(&self.calls.home, "null", frame::PARSE_ERROR, &why).await;
                }
                Ok(None) => return,
                Err(error) => {
                    debug!(%error, "reading from the client failed");
                    return;
                }
            }
        }
    }

    /// Handles one message; messages about it are sent to `out`.
    pub async fn take(self: &Arc<Self>, line: &Bytes, out: &Out) -> Result<(), Ended> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let Some(message) = Message::parse(line) else {
            refuse_unreadable(out, line).await;
            return Ok(());
        };
        if message.is_request_without_valid_id() {
            refuse(out, "null", frame::INVALID_REQUEST, INVALID_ID).await;
            return Ok(());
        }
        self.calls.know_client(&message);
        self.tell_changes();
        if let Some(unserved) = Unserved::of(&message, || self.announced()) {
            refuse(out, unserved.id, unserved.code, &unserved.why).await;
            return Ok(());
        }
        let is_open = self.is_open.load(Ordering::Acquire);
        match (message.method.as_deref(), message.id) {
            (Some("notifications/cancelled"), None) => {
                self.cancel(&message);
                return Ok(());
            }
            (Some("initialize"), Some(_)) => {
                self.is_open.store(true, Ordering::Release);
            }
            (Some("tools/list"), Some(_)) => {
                if let Some(list) = list_with_apps(&self.calls, line, &message, is_open).await {
                    let _ = out.answer(list).await;
                    return Ok(());
                }
            }
            (Some(_), Some(_)) => {
                if let Some(request) = ClientRequest::read(line, &message, is_open) {
                    self.start(request, out).await;
                    return Ok(());
                }
            }
            // Before a session is open rmcp treats a notification as a protocol error.
            (Some(_), None) if !is_open => return Ok(()),
            (Some("notifications/roots/list_changed"), None) => {
                let (servers, client) = (&self.calls.gateway.servers, &self.calls.client);
                servers.tell_roots_changed(client.number);
                self.calls.forget_roots();
                return Ok(());
            }
            (None, _) => {
                self.calls.questions.take_answer(line, &message);
                return Ok(());
            }
            (Some(_), None) => {}
        }
        if let (Some(id), Out::Router(router), Out::Reply(responses)) =
            (message.id, &self.calls.home, out)
        {
            router.expect(id.get(), responses);
        }
        match self.pass_to_engine(line, &message).await {
            Ok(()) => Ok(()),
            Err(LineError::Ended) => Err(Ended),
            Err(LineError::Malformed(why)) => {
                if let Some(id) = message.id {
                    let why = format!("Invalid params: {why}");
                    refuse(out, id.get(), frame::INVALID_PARAMS, &why).await;
                }
                Ok(())
            }
        }
    }

    async fn pass_to_engine(&self, line: &Bytes, message: &Message<'_>) -> Result<(), LineError> {
        loop {
            let engine = self.engine().await;
            match engine.take(line, message).await {
                Err(LineError::Ended) if engine.has_rested() => {}
                passed => return passed,
            }
        }
    }

    /// The rmcp instance of this session. It is started with the instructions for this client, which
    /// then stay the same as long as it runs.
    async fn engine(&self) -> Engine {
        let is_running = |it: &Running| !it.engine.has_rested();
        let is_running = self.engine.lock().as_ref().is_some_and(is_running);
        let names_tools = self.calls.policy().catalog >= ShownCatalog::Names;
        let tools = if names_tools && !is_running {
            self.calls.gateway.catalog.generation().await.ok()
        } else {
            None
        };
        let mut running = self.engine.lock();
        let rested = running.take_if(|it| it.engine.has_rested());
        let opening = match rested {
            Some(_) if self.is_open.load(Ordering::Acquire) => Opening::None,
            _ => self.opening,
        };
        let running = running.get_or_insert_with(|| {
            let gateway = &self.calls.gateway;
            let catalog = gateway.catalog.registry.catalog();
            let says = match gateway.config_mistakes() {
                Some(_) if catalog.tools() == 0 => BROKEN.to_owned(),
                _ => instructions(
                    &catalog,
                    &self.calls.policy(),
                    &self.calls.list_apart(),
                    &gateway.catalog.surveys.list_first(),
                    tools.as_deref(),
                ),
            };
            let face = Face {
                instructions: says,
                announced: self.announced(),
                level: self.calls.level.clone(),
            };
            let (engine, task) = Engine::start(face, self.calls.home.clone(), opening);
            Running { engine, task }
        });
        running.engine.clone()
    }

    async fn start(&self, request: ClientRequest, out: &Out) {
        if let Wants::Listen(filter) = &request.wants {
            let (announced, filter) = (self.announced(), filter.clone());
            let ClientRequest { id, meta, .. } = request;
            self.calls.listen(id, meta, &filter, announced, out).await;
        } else {
            self.calls.start(request, out).await;
        }
    }

    /// Starts notifications to the client about lists that change. A client whose requests stand
    /// alone subscribes to them itself.
    fn tell_changes(&self) {
        let is_open = self.is_open.load(Ordering::Acquire);
        if !is_open || self.calls.client.connection.is_stateless {
            return;
        }
        let filter = Filter::of(self.announced());
        if filter.is_empty() {
            return;
        }
        self.telling.get_or_init(|| {
            let calls = Arc::clone(&self.calls);
            let telling = async move {
                changes::tell(&calls.gateway, || calls.policy(), filter, "", &calls.home).await;
            };
            AbortOnDropHandle::new(tokio::spawn(telling))
        });
    }

    fn announced(&self) -> Announced {
        *self.announced.get_or_init(|| {
            let catalog = self.calls.gateway.catalog.registry.catalog();
            Announced::of(&catalog, &self.calls.policy())
        })
    }

    /// Cancels a request. rmcp gets no cancellation, because it answers its own requests at once.
    fn cancel(&self, message: &Message<'_>) {
        let params = message.params.and_then(|it| Fields::of(it.get()));
        let Some(id) = params.and_then(|it| it.get("requestId")) else {
            return;
        };
        let is_call = self.calls.tasks.cancel(id.get());
        if !is_call && let Out::Router(router) = &self.calls.home {
            router.forget(id.get());
        }
    }

    /// Lets calls in progress finish if the client merely closed its input, then ends them.
    pub async fn end(&self, may_answer: bool) {
        let grace = if may_answer {
            GRACE_AFTER_EOF
        } else {
            Duration::ZERO
        };
        self.calls.tasks.end_calls(grace).await;
        self.calls.subscriptions.end_all();
        self.calls.tasks.end_listeners(DRAIN_WAIT).await;
        let running = self.engine.lock().take();
        if let Some(Running { engine, task }) = running {
            drop(engine);
            let _ = timeout(DRAIN_WAIT, task).await;
        }
    }

    /// Ends all calls in progress at once, and waits for nothing.
    pub fn abandon(&self) {
        self.calls.tasks.gone.cancel();
    }

    /// Returns true if a person ended the session.
    pub fn is_ended(&self) -> bool {
        self.calls.client.ended.is_cancelled()
    }

    /// Returns true if a call is in progress.
    pub fn is_busy(&self) -> bool {
        self.calls.tasks.is_busy()
    }
}

/// Stops serving a client that is gone, and ends servers of its own.
impl Drop for Session {
    fn drop(&mut self) {
        let Calls {
            gateway, client, ..
        } = &*self.calls;
        if !client.connection.is_stateless {
            gateway.clients.remove(client);
            gateway.servers.forget_client(client.number);
        }
    }
}
