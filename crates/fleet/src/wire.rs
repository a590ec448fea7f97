//! The protocol engine (rmcp) on a server's side: handshake, pings, whatever the server asks of
//! us. This file and those below it are the only ones that name its message types.

// Roots are deprecated in the newest revision, and asked for by servers of all others.
#![expect(deprecated)]

mod http;
mod listen;
mod remote;
mod sse;
mod streamable;

use std::{fmt, future::ready, path::Path, sync::Arc};

use bytes::Bytes;
use jsonrpc::{Closed, Message, Outbox, frame};
use printable::one_line_of;
use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ClientJsonRpcMessage, ErrorCode, Implementation,
        ListRootsRequestMethod, ListRootsResult, ProtocolVersion, Root, ServerJsonRpcMessage,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext,
        RequestContext, RunningService, RxJsonRpcMessage,
    },
    transport::Transport,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use crate::{
    lane::Engine,
    limits::{ABOUT_CHARS_MAX, ENGINE_MESSAGES_MAX, INSTRUCTIONS_CHARS_MAX},
};

pub(crate) use remote::{Remote, denial};

/// The ways to open a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, over HTTP+SSE: the only way of some remote servers of 2024-11-05.
    Older,
    /// `initialize`: revisions up to 2025-11-25.
    Legacy,
    /// `server/discover`: 2026-07-28 and later.
    Modern,
}

/// Stands behind the revision of a server that speaks HTTP+SSE only, so that whoever keeps the
/// revision knows how to open the connection next time.
const OLDER_SUFFIX: &str = "+sse";

impl Era {
    /// The era of a protocol revision such as `2025-11-25`.
    pub fn of(revision: &str) -> Self {
        if revision.ends_with(OLDER_SUFFIX) {
            Self::Older
        } else if revision >= ProtocolVersion::V_2026_07_28.as_str() {
            Self::Modern
        } else {
            Self::Legacy
        }
    }
}

/// What a server told of itself in the handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    pub name: Option<String>,
    pub version: Option<String>,
    pub instructions: Option<String>,
    /// The protocol revision both agreed on; with `+sse` behind it where they speak HTTP+SSE.
    pub protocol: String,
    pub offers_tools: bool,
}

impl About {
    pub fn era(&self) -> Era {
        Era::of(&self.protocol)
    }
}

/// Why the handshake failed.
#[derive(Debug)]
pub(crate) enum ShakeError {
    /// The server answered that it does not speak this era; the other one may do.
    WrongEra(String),
    /// The stream ended.
    Closed,
    /// The server wants to know who asks, or does not want to serve us.
    Denied(String),
    Other(String),
}

/// Called when a server says that its list of tools is another now.
pub(crate) type OnListChanged = Arc<dyn Fn() + Send + Sync>;

/// An open connection's engine. Dropping it ends the engine's tasks.
#[derive(Debug)]
pub(crate) struct Service {
    running: RunningService<RoleClient, Ourselves>,
    /// Waits for changes of the list where they have to be asked for.
    listener: Option<AbortOnDropHandle<()>>,
}

/// Opens a connection in the given era.
pub(crate) async fn shake<T>(
    transport: T,
    era: Era,
    on_list_changed: OnListChanged,
) -> Result<(Service, About), ShakeError>
where
    T: Transport<RoleClient> + 'static,
{
    shake_in(transport, era, on_list_changed, None).await
}

/// The same for a server that works for one client in this folder.
pub(crate) async fn shake_in<T>(
    transport: T,
    era: Era,
    on_list_changed: OnListChanged,
    folder: Option<&Path>,
) -> Result<(Service, About), ShakeError>
where
    T: Transport<RoleClient> + 'static,
{
    let mode = match era {
        Era::Older | Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let ourselves = Ourselves {
        on_list_changed: OnListChanged::clone(&on_list_changed),
        root: folder.and_then(root_of),
    };
    let serving = ourselves.serve_with_lifecycle(transport, mode);
    let running = serving.await.map_err(classify)?;
    let about = about(running.peer());
    let listener = listen::start(running.peer(), &about, on_list_changed);
    Ok((Service { running, listener }, about))
}

fn classify(error: ClientInitializeError) -> ShakeError {
    match error {
        ClientInitializeError::JsonRpcError(error) if rejects_era(error.code) => {
            ShakeError::WrongEra(error.message.into_owned())
        }
        ClientInitializeError::JsonRpcError(error) => {
            ShakeError::Other(format!("it refused the handshake: {}", error.message))
        }
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => ShakeError::WrongEra(format!("it speaks {server_supported:?}")),
        ClientInitializeError::ConnectionClosed(_) => ShakeError::Closed,
        // A child that was gone before we could speak: its end tells why.
        ClientInitializeError::TransportError { error, .. } if error.error.is::<Closed>() => {
            ShakeError::Closed
        }
        ClientInitializeError::TransportError { error, .. } => {
            ShakeError::Other(causes(error.error.as_ref()))
        }
        other => ShakeError::Other(other.to_string()),
    }
}

/// Servers of one era refuse the other one's opening with any of these.
fn rejects_era(code: ErrorCode) -> bool {
    [
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
    ]
    .contains(&code)
}

/// An error with everything below it: the outermost one often says only "error sending request".
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

fn about(peer: &Peer<RoleClient>) -> About {
    let Some(info) = peer.peer_info() else {
        return About::default();
    };
    let implementation = info.server_info.as_ref();
    About {
        name: implementation.map(|it| one_line_of(&it.name, ABOUT_CHARS_MAX)),
        version: implementation.map(|it| one_line_of(&it.version, ABOUT_CHARS_MAX)),
        instructions: info.instructions.as_deref().map(|text| {
            let first: String = text.chars().take(INSTRUCTIONS_CHARS_MAX).collect();
            printable::prose(&first).into_owned()
        }),
        protocol: info.protocol_version.to_string(),
        offers_tools: info.capabilities.tools.is_some(),
    }
}

/// We, as a server sees us.
#[derive(Clone)]
pub(crate) struct Ourselves {
    on_list_changed: OnListChanged,
    /// The folder of the one client that the server works for.
    root: Option<Root>,
}

fn root_of(folder: &Path) -> Option<Root> {
    let url = reqwest::Url::from_directory_path(folder).ok()?;
    Some(Root::new(url.as_str().trim_end_matches('/')))
}

impl fmt::Debug for Ourselves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ourselves")
    }
}

impl ClientHandler for Ourselves {
    fn get_info(&self) -> ClientConfig {
        let capabilities = if self.root.is_some() {
            ClientCapabilities::builder().enable_roots().build()
        } else {
            ClientCapabilities::default()
        };
        ClientConfig::new(capabilities, implementation())
    }

    fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ListRootsResult, ErrorData>> + Send + '_ {
        ready(match &self.root {
            Some(root) => Ok(ListRootsResult::new(vec![root.clone()])),
            None => Err(ErrorData::method_not_found::<ListRootsRequestMethod>()),
        })
    }

    fn on_tool_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        (self.on_list_changed)();
        ready(())
    }
}

fn implementation() -> Implementation {
    Implementation::new("proxy", env!("CARGO_PKG_VERSION"))
}

/// The members that every request of the modern era carries in its `_meta`.
pub(crate) fn modern_meta(protocol: &str) -> Vec<(String, String)> {
    let own = json!({"name": "proxy", "version": env!("CARGO_PKG_VERSION")});
    vec![
        (
            "io.modelcontextprotocol/protocolVersion".to_owned(),
            json!(protocol).to_string(),
        ),
        (
            "io.modelcontextprotocol/clientInfo".to_owned(),
            own.to_string(),
        ),
        (
            "io.modelcontextprotocol/clientCapabilities".to_owned(),
            "{}".to_owned(),
        ),
    ]
}

/// The engine's end of a child's pipes: it writes to the same outbox as the lane, and reads what
/// the lane leaves.
pub(crate) struct EngineTransport {
    outbox: Arc<Outbox>,
    inbox: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
}

impl EngineTransport {
    /// The transport, and what feeds it.
    pub(crate) fn new(outbox: Arc<Outbox>, on_list_changed: OnListChanged) -> (Self, Feed) {
        let (sender, inbox) = mpsc::channel(ENGINE_MESSAGES_MAX);
        let feed = Feed {
            outbox: Arc::clone(&outbox),
            on_list_changed,
            sender,
        };
        (Self { outbox, inbox }, feed)
    }
}

impl Transport<RoleClient> for EngineTransport {
    type Error = Closed;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let outbox = Arc::clone(&self.outbox);
        async move {
            let mut line = serde_json::to_vec(&message).map_err(|_| Closed)?;
            line.push(b'\n');
            outbox.send(&[Bytes::from(line)]).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.inbox.recv().await
    }

    /// The pipes belong to the keeper, which closes them when it stops the child.
    fn close(&mut self) -> impl Future<Output = Result<(), Closed>> + Send {
        ready(Ok(()))
    }
}

/// Gives the engine what the lane leaves. Never waits: past [`ENGINE_MESSAGES_MAX`] a
/// notification is dropped and a request is refused.
pub(crate) struct Feed {
    outbox: Arc<Outbox>,
    on_list_changed: OnListChanged,
    sender: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
}

impl Engine for Feed {
    fn take(&mut self, line: &Bytes, message: &Message<'_>) {
        let taken = match serde_json::from_slice::<ServerJsonRpcMessage>(line) {
            Ok(typed) => self.sender.try_send(typed).is_ok(),
            Err(error) => {
                debug!(%error, "the server wrote a message we cannot read");
                false
            }
        };
        // Under a flood the engine hears nothing of a change; we must.
        if !taken && message.method.as_deref() == Some("notifications/tools/list_changed") {
            (self.on_list_changed)();
        }
        if !taken && let (Some(id), Some(_)) = (message.id, &message.method) {
            let refusal = frame::error(id.get(), frame::METHOD_NOT_FOUND, "not supported");
            self.outbox.offer(&[refusal]);
        }
    }
}
