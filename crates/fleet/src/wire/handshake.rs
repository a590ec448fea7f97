//! The handshake, `server/discover` in its place, and the responses to requests of the server.

use std::{
    collections::BTreeSet,
    future::ready,
    sync::{Arc, atomic::Ordering},
};

use jsonrpc::SendError;
use jsonrpc::mcp::{
    APP_TYPE, APPS_EXTENSION, HEADER_MISMATCH, Revision, TASKS_EXTENSION, Transport, meta,
};
use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode,
        Implementation, ProtocolVersion, ServerCapabilities,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext,
        RequestContext, RunningService,
    },
    transport::Transport as RmcpTransport,
};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use tool::Capability;

use super::{listen, pipes::PipeTransport};
use crate::{
    ServerInfo, Spoken,
    asking::Asking,
    error::{Denied, describe},
    obstacle::Obstacle,
    request::{Origin, OwnMember, Request},
    roots::Roots,
};

/// Why the handshake failed.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The server does not speak this revision; it may speak an older or newer one.
    WrongRevision(String),
    /// The stream ended.
    Closed,
    /// The server denied access.
    Denied(Denied),
    /// The server was not reached, for a known reason.
    Unreached {
        why: String,
        obstacle: Obstacle,
    },
    Other(String),
}

impl HandshakeError {
    pub(super) fn unreached(why: String, obstacle: Option<Obstacle>) -> Self {
        match obstacle {
            Some(obstacle) => Self::Unreached { why, obstacle },
            None => Self::Other(why),
        }
    }
}

/// An open connection's rmcp service. Dropping it ends its tasks.
pub(crate) struct Service {
    pub(super) running: RunningService<RoleClient, Ourselves>,
    /// Listens to changes of lists, if the server sends them on request only.
    pub(super) listener: Option<AbortOnDropHandle<()>>,
}

impl Service {
    /// Notifies the server that its roots may have changed.
    pub(crate) async fn tell_roots_changed(&self) {
        // A server that has ended needs no roots.
        let _ = self.running.peer().notify_roots_list_changed().await;
    }
}

/// Opens a session. The announced capabilities are all that can be passed on to a client; roots only if
/// there are some (`docs/decisions/0020`).
pub(crate) async fn open_session<T>(
    transport: T,
    guess: &Spoken,
    asking: &Arc<Asking>,
) -> Result<(Service, ServerInfo), HandshakeError>
where
    T: RmcpTransport<RoleClient> + 'static,
{
    let has_handshake = !guess.revision.is_stateless();
    let mode = if has_handshake {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        }
    };
    let opened = open_with(transport, mode, guess, asking, || has_handshake).await;
    opened.map_err(classify)
}

/// Opens a session with a child of unknown revision: first in the newest one, and with a handshake if it
/// refuses that, or does not respond within 10 s. Returns `None` if it responds in the newest revision after
/// that: it takes long to start, and may not take a handshake on this connection.
pub(crate) async fn probe_session(
    transport: PipeTransport,
    asking: &Arc<Asking>,
) -> Result<Option<(Service, ServerInfo)>, HandshakeError> {
    let had_handshake = Arc::clone(&transport.had_handshake);
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let had_handshake = || had_handshake.load(Ordering::Relaxed);
    let opened = open_with(transport, mode, &Spoken::default(), asking, had_handshake).await;
    match opened {
        // The response to `initialize` was expected next.
        Err(ClientInitializeError::ConflictInitResponseId(..)) => Ok(None),
        opened => opened.map(Some).map_err(classify),
    }
}

async fn open_with<T>(
    transport: T,
    mode: ClientLifecycleMode,
    guess: &Spoken,
    asking: &Arc<Asking>,
    had_handshake: impl FnOnce() -> bool,
) -> Result<(Service, ServerInfo), ClientInitializeError>
where
    T: RmcpTransport<RoleClient> + 'static,
{
    let ourselves = Ourselves {
        asking: Arc::clone(asking),
        capabilities: typed_capabilities(&asking.roots),
        requested: requested_version(&guess.revision),
    };
    let serving = ourselves.serve_with_lifecycle(transport, mode);
    let running = serving.await?;
    let mut about = read_about(running.peer(), guess.transport);
    let listener = listen::start(running.peer(), &about, asking);
    // Some servers repeat the revision of the client in a handshake, and would not respond without one.
    if had_handshake() && about.spoken.revision.is_stateless() {
        about.spoken.revision = Revision::LAST_WITH_HANDSHAKE;
    }
    Ok((Service { running, listener }, about))
}

/// Returns the revision that `initialize` requests.
fn requested_version(guess: &Revision) -> ProtocolVersion {
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let found = known.find(|it| it.as_str() == guess.as_str() && it.has_initialize());
    found.map_or(ProtocolVersion::LATEST_WITH_INITIALIZE, Clone::clone)
}

fn classify(error: ClientInitializeError) -> HandshakeError {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => classify(*fallback),
        ClientInitializeError::JsonRpcError(error) if rejects_revision(error.code) => {
            HandshakeError::WrongRevision(error.message.into_owned())
        }
        ClientInitializeError::JsonRpcError(error) => {
            HandshakeError::Other(format!("it refused the handshake: {}", error.message))
        }
        ClientInitializeError::NoCompatibleProtocolVersion {
            server_supported, ..
        } => HandshakeError::WrongRevision(format!("it speaks {server_supported:?}")),
        ClientInitializeError::ConnectionClosed(_) => HandshakeError::Closed,
        // The child ended before the first message: its exit has the reason.
        ClientInitializeError::TransportError { error, .. } if error.error.is::<SendError>() => {
            HandshakeError::Closed
        }
        ClientInitializeError::TransportError { error, .. } => {
            HandshakeError::Other(describe(error.error.as_ref()))
        }
        other => HandshakeError::Other(other.to_string()),
    }
}

/// Returns true if servers use this error to refuse the handshake of another revision.
fn rejects_revision(code: ErrorCode) -> bool {
    [
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        // For a server of the stateless revisions, `initialize` lacks headers.
        ErrorCode(HEADER_MISMATCH),
        // HTTP+SSE: a post was refused with HTTP 400.
        ErrorCode(400),
    ]
    .contains(&code)
}

fn read_about(peer: &Peer<RoleClient>, transport: Transport) -> ServerInfo {
    let Some(info) = peer.peer_info() else {
        return ServerInfo::default();
    };
    let implementation = info.server_info.as_ref();
    ServerInfo {
        name: implementation.map(|it| it.name.clone()),
        version: implementation.map(|it| it.version.clone()),
        instructions: info.instructions.clone(),
        spoken: Spoken {
            revision: Revision::named(info.protocol_version.as_str()),
            transport,
        },
        offers_tools: info.capabilities.tools.is_some(),
        capabilities: read_capabilities(&info.capabilities, info.protocol_version.as_str()),
    }
}

fn read_capabilities(said: &ServerCapabilities, revision: &str) -> BTreeSet<Capability> {
    let resources = said.resources.as_ref();
    let subscribes = resources.is_some_and(|it| it.subscribe == Some(true));
    // Newer revisions have no such capability: a stream names its URIs.
    let listens = resources.is_some() && Revision::named(revision).is_stateless();
    let extensions = said.extensions.as_ref();
    let has_skills = extensions.is_some_and(|it| it.contains_key(jsonrpc::mcp::SKILLS_EXTENSION));
    let all = [
        (said.prompts.is_some(), Capability::Prompts),
        (resources.is_some(), Capability::Resources),
        (subscribes || listens, Capability::Subscribe),
        (said.completions.is_some(), Capability::Completions),
        (has_skills, Capability::Skills),
    ];
    let said = all.into_iter().filter(|(is_said, _)| *is_said);
    said.map(|(_, capability)| capability).collect()
}

/// The client side of a session.
#[derive(Clone)]
pub(crate) struct Ourselves {
    asking: Arc<Asking>,
    capabilities: ClientCapabilities,
    /// The revision for `initialize`; the newest revision has no such request.
    requested: ProtocolVersion,
}

/// Returns all capabilities that can be passed on to a client.
fn capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}},
        "extensions": {TASKS_EXTENSION: {}, APPS_EXTENSION: {"mimeTypes": [APP_TYPE]}}})
}

fn typed_capabilities(roots: &Roots) -> ClientCapabilities {
    let mut capabilities = capabilities();
    if roots.are_announced() {
        capabilities["roots"] = json!({"listChanged": roots.can_change()});
    }
    serde_json::from_value(capabilities).expect("they are those of the protocol")
}

impl ClientHandler for Ourselves {
    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new("proxy", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(self.capabilities.clone(), ours)
            .with_protocol_version(self.requested.clone())
    }

    /// Refuses elicitation: questions do not reach rmcp, which would answer for the person.
    fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ElicitResult, ErrorData>> + Send + '_ {
        let why = "elicitation/create: it was not a message of its own".to_owned();
        ready(Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)))
    }

    fn on_tool_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.asking.note_changed_list();
        ready(())
    }

    fn on_prompt_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.asking.note_changed_list();
        ready(())
    }

    fn on_resource_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.asking.note_changed_list();
        ready(())
    }
}

/// The members that a revision requires in the `_meta` of each request; none with a handshake.
pub(crate) struct OwnMeta(Option<Revision>);

impl OwnMeta {
    pub(crate) fn of(revision: &Revision) -> Self {
        Self(revision.is_stateless().then(|| revision.clone()))
    }

    /// Returns the members for a request. A call has exactly the capabilities of its client, so that the
    /// server asks only questions that can be answered; a survey has those of all clients, so that no tool
    /// is hidden.
    pub(crate) fn members(&self, request: &Request, origin: Origin) -> Vec<OwnMember> {
        let Some(revision) = &self.0 else {
            return Vec::new();
        };
        let capabilities = match origin {
            Origin::Client => mirrored_capabilities(request),
            Origin::Proxy => capabilities().to_string(),
        };
        let own = json!({"name": "proxy", "version": env!("CARGO_PKG_VERSION")});
        let level = request.log.as_ref().map(|log| json!(log.level).to_string());
        let members = [
            (meta::PROTOCOL_VERSION, json!(revision.as_str()).to_string()),
            (meta::CLIENT_INFO, own.to_string()),
            (meta::CLIENT_CAPABILITIES, capabilities),
        ];
        let level = level.map(|level| (meta::LOG_LEVEL, level));
        members.into_iter().chain(level).collect()
    }
}

/// Returns the capabilities of the calling client as JSON text.
pub(super) fn mirrored_capabilities(request: &Request) -> String {
    let said = match (&request.asks, request.method) {
        (Some(asks), _) => asks.capabilities().as_str().to_owned(),
        // A survey asks for the tools that clients with apps get.
        (None, "tools/list" | "resources/read") => {
            json!({"extensions": {APPS_EXTENSION: {"mimeTypes": [APP_TYPE]}}}).to_string()
        }
        (None, _) => "{}".to_owned(),
    };
    let takes_tasks = request.method == "tools/call" || request.method.starts_with("tasks/");
    if !takes_tasks || said.contains(TASKS_EXTENSION) {
        return said;
    }
    // Tasks of a server are followed here, whatever its client knows.
    let mut all: Value = serde_json::from_str(&said).unwrap_or_default();
    all["extensions"][TASKS_EXTENSION] = json!({});
    all.to_string()
}

#[cfg(test)]
mod tests {
    use jsonrpc::{LineReader, Outbox, Sink};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split};

    use super::*;
    use crate::channel::CallChannel;

    /// Opens a connection to a server that responds to `initialize` alone, in the revision that `answer`
    /// returns for the requested one.
    async fn open(guess: Option<Spoken>, answer: fn(&Value) -> Value) -> ServerInfo {
        let opened = open_to(guess, |asked: &Value| {
            let result = json!({
                "protocolVersion": answer(&asked["params"]["protocolVersion"]),
                "capabilities": {},
                "serverInfo": {"name": "any", "version": "1"},
            });
            let said = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
            (asked["method"] == "initialize").then_some(said)
        });
        opened.await.expect("it responds in time")
    }

    /// Opens a connection to a server that sends what `respond` returns for each message.
    async fn open_to(
        guess: Option<Spoken>,
        mut respond: impl FnMut(&Value) -> Option<Value>,
    ) -> Option<ServerInfo> {
        let (ours, theirs) = duplex(64 * 1024);
        let (input, output) = split(ours);
        let outbox = Outbox::new(Sink::stream(output));
        let asking = Arc::default();
        let (transport, feed) = PipeTransport::new(Arc::clone(&outbox), &asking);
        let lines = LineReader::new(input);
        let (pending, mask) = (Arc::default(), Arc::default());
        let _channel = CallChannel::start(pending, lines, outbox, feed, mask, &asking);
        let (requests, mut answers) = split(theirs);
        let server = async move {
            let mut requests = BufReader::new(requests).lines();
            while let Ok(Some(line)) = requests.next_line().await {
                let asked: Value = serde_json::from_str(&line).unwrap();
                if let Some(said) = respond(&asked) {
                    let line = format!("{said}\n");
                    answers.write_all(line.as_bytes()).await.unwrap();
                }
            }
        };
        let opening = async {
            match guess {
                Some(guess) => open_session(transport, &guess, &asking).await.map(Some),
                None => probe_session(transport, &asking).await,
            }
        };
        tokio::select! {
            () = server => panic!("the server has no end"),
            opened = opening => opened.unwrap().map(|(_, about)| about),
        }
    }

    /// A server that starts for longer than the probe waits reads both requests, and responds to the first.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_responds_late_in_the_newest_revision_is_not_taken_for_an_older_one() {
        let mut probed = Value::Null;
        let opened = open_to(None, |asked| {
            if asked["method"] == "server/discover" {
                probed = asked["id"].clone();
            }
            let result = json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {},
                "serverInfo": {"name": "any", "version": "1"},
            });
            let late = json!({"jsonrpc": "2.0", "id": probed, "result": result});
            (asked["method"] == "initialize").then_some(late)
        });
        assert!(opened.await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_took_a_handshake_is_opened_so_again_whatever_it_calls_its_revision() {
        let echo = |told: &Value| told.clone();
        let newest = |_: &Value| json!("2026-07-28");
        for answer in [echo as fn(&Value) -> Value, newest] {
            for guess in [None, Some(Spoken::default())] {
                let about = open(guess, answer).await;
                assert_eq!(about.spoken.revision, Revision::LAST_WITH_HANDSHAKE);
            }
        }
        let older = open(None, |_| json!("2025-03-26")).await;
        assert_eq!(older.spoken.revision, Revision::UNNAMED);
    }

    #[test]
    fn rmcp_speaks_the_revisions_that_we_know() {
        let theirs = ProtocolVersion::KNOWN_VERSIONS.iter();
        assert!(
            theirs
                .map(ProtocolVersion::as_str)
                .eq(Revision::KNOWN.iter().map(Revision::as_str))
        );
    }
}
