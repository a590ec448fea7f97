//! rmcp as a server: the handshake of both eras, discovery, the list of our tools, pings and protocol
//! errors. This is the only file of the crate that names rmcp's message types; tool calls do not pass
//! through it (`docs/decisions/0002`).

// Logging is deprecated in the newest revision, but clients of all others request it.
#![expect(deprecated)]

use std::{future::ready, sync::LazyLock};

use bytes::Bytes;
use jsonrpc::Closed;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CacheScope, ClientJsonRpcMessage, Implementation, JsonObject, ListToolsResult,
        PaginatedRequestParams, PromptsCapability, ResourcesCapability, ServerCapabilities,
        ServerConfig, ServerJsonRpcMessage, SetLevelRequestParams, Tool,
    },
    service::{RequestContext, RxJsonRpcMessage, serve_directly},
    transport::Transport,
};
use tokio::sync::mpsc;

use crate::{definitions::TOOLS, forward::Announced, log_level::LogLevel, out::Out};

/// The time for which a modern client may cache our list, in milliseconds: a day, since it never changes.
const LIST_TTL_MS: u64 = 24 * 60 * 60 * 1_000;

/// The messages before a client's first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// `initialize`, or metadata of the modern kind in each request.
    Handshake,
    /// Nothing: the session is a single request over HTTP, or a resumed one.
    None,
}

/// The server that a client sees.
#[derive(Debug, Clone)]
pub(super) struct Face {
    instructions: String,
    announced: Announced,
    level: LogLevel,
}

/// The list of tools, which is the same for every session.
static TOOL_LIST: LazyLock<Vec<Tool>> =
    LazyLock::new(|| serde_json::from_str(TOOLS).expect("the three definitions are tools"));

impl Face {
    pub(super) fn new(instructions: String, announced: Announced, level: LogLevel) -> Self {
        Self {
            instructions,
            announced,
            level,
        }
    }
}

impl ServerHandler for Face {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_logging()
            .build();
        let Announced {
            prompts,
            resources,
            subscribe,
            completions,
            skills,
        } = self.announced;
        capabilities.prompts = prompts.then(|| {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            prompts
        });
        capabilities.resources = resources.then(|| {
            let mut resources = ResourcesCapability::default();
            resources.list_changed = Some(true);
            resources.subscribe = subscribe.then_some(true);
            resources
        });
        let skills = skills.then_some(jsonrpc::mcp::SKILLS_EXTENSION);
        let extensions = skills.into_iter().chain([jsonrpc::mcp::TASKS_EXTENSION]);
        let extensions = extensions.map(|it| (it.to_owned(), JsonObject::default()));
        capabilities.extensions = Some(extensions.collect());
        capabilities.completions = completions.then(Default::default);
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("proxy", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions.clone())
    }

    fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send + '_ {
        if let Ok(serde_json::Value::String(level)) = serde_json::to_value(request.level) {
            self.level.set(&level);
        }
        ready(Ok(()))
    }

    fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        let mut list = ListToolsResult::with_all_items(TOOL_LIST.clone()).with_ttl_ms(LIST_TTL_MS);
        list.cache_scope = Some(CacheScope::Public);
        ready(Ok(list))
    }
}

/// rmcp's end of a session: it receives the messages that the session passes on, and sends to the
/// session's outbox.
pub(super) struct EngineTransport {
    out: Out,
    inbox: mpsc::Receiver<BoxedMessage>,
}

/// The session's end.
#[derive(Debug, Clone)]
pub(super) struct Engine(mpsc::Sender<BoxedMessage>);

/// Boxed, because the queue of every session allocates room for 32 messages.
type BoxedMessage = Box<RxJsonRpcMessage<RoleServer>>;

/// The most messages of one client that wait for rmcp. A client that sends more waits, and delays only
/// itself.
const ENGINE_MESSAGES_MAX: usize = 64;

/// The reason why a line was not accepted.
pub(super) enum LineError {
    /// The line is not a message of the protocol; the reason.
    Malformed(String),
    Ended,
}

impl Engine {
    /// Starts rmcp for one session; it ends when the session drops its end.
    pub(super) fn start(
        face: Face,
        out: Out,
        opening: Opening,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, inbox) = mpsc::channel(ENGINE_MESSAGES_MAX);
        let transport = EngineTransport { out, inbox };
        let task = tokio::spawn(async move {
            let begun = match opening {
                Opening::Handshake => face.serve(transport).await,
                Opening::None => Ok(serve_directly(face, transport, None)),
            };
            match begun {
                Ok(service) => {
                    let _ = service.waiting().await;
                }
                Err(error) => tracing::debug!(%error, "the session ended before its handshake"),
            }
        });
        (Self(sender), task)
    }

    pub(super) async fn take(&self, line: &Bytes) -> Result<(), LineError> {
        let message = serde_json::from_slice(line);
        let message = message.map_err(|error| LineError::Malformed(error.to_string()))?;
        let sent = self.0.send(Box::new(message)).await;
        sent.map_err(|_| LineError::Ended)
    }
}

impl Transport<RoleServer> for EngineTransport {
    type Error = Closed;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let out = self.out.clone();
        async move {
            let mut line = serde_json::to_vec(&message).map_err(|_| Closed)?;
            line.push(b'\n');
            let line = vec![Bytes::from(line)];
            match message {
                ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => {
                    out.answer(line).await
                }
                _ => out.tell(line).await,
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.inbox.recv().await.map(|message| *message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Closed>> + Send {
        ready(Ok(()))
    }
}
