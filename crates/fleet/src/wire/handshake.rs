//! The handshake, and what stands for it where there is none, and what we answer when a server asks
//! us.

// Roots are deprecated in the newest revision, and asked for by servers of all others.
#![expect(deprecated)]

use std::{fmt, future::ready, path::Path};

use jsonrpc::Closed;
use mcp::{HEADER_MISMATCH, Revision, Transport, meta};
use printable::one_line_of;
use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode,
        Implementation, ListRootsRequestMethod, ListRootsResult, ProtocolVersion, Root,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext,
        RequestContext, RunningService,
    },
    transport::Transport as RmcpTransport,
};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use super::listen;
use crate::{
    About, Spoken,
    changes::OnListChanged,
    error::describe,
    limits::{ABOUT_CHARS_MAX, INSTRUCTIONS_CHARS_MAX},
};

/// Why the handshake failed.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The server answered that it does not speak this revision; an older or newer one may do.
    WrongRevision(String),
    /// The stream ended.
    Closed,
    /// The server wants to know who asks, or does not want to serve us.
    Denied(String),
    Other(String),
}

/// An open connection's rmcp service. Dropping it ends its tasks.
#[derive(Debug)]
pub(crate) struct Service {
    pub(super) running: RunningService<RoleClient, Ourselves>,
    /// Waits for changes of the list where they have to be asked for.
    pub(super) listener: Option<AbortOnDropHandle<()>>,
}

/// Opens a session; `folder` is that of the one client that the server works for, if it does.
pub(crate) async fn open_session<T>(
    transport: T,
    guess: &Spoken,
    on_list_changed: OnListChanged,
    folder: Option<&Path>,
) -> Result<(Service, About), HandshakeError>
where
    T: RmcpTransport<RoleClient> + 'static,
{
    let mode = if guess.revision.is_stateless() {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        }
    } else {
        ClientLifecycleMode::Initialize
    };
    let ourselves = Ourselves {
        on_list_changed: OnListChanged::clone(&on_list_changed),
        root: folder.and_then(root_at),
    };
    let serving = ourselves.serve_with_lifecycle(transport, mode);
    let running = serving.await.map_err(classify)?;
    let about = read_about(running.peer(), guess.transport);
    let listener = listen::start(running.peer(), &about, on_list_changed);
    Ok((Service { running, listener }, about))
}

fn classify(error: ClientInitializeError) -> HandshakeError {
    match error {
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
        // A child that was gone before we could speak: its end tells why.
        ClientInitializeError::TransportError { error, .. } if error.error.is::<Closed>() => {
            HandshakeError::Closed
        }
        ClientInitializeError::TransportError { error, .. } => {
            HandshakeError::Other(describe(error.error.as_ref()))
        }
        other => HandshakeError::Other(other.to_string()),
    }
}

/// Tells whether an error is one with which servers refuse an opening of another revision's kind.
fn rejects_revision(code: ErrorCode) -> bool {
    [
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        // To a server of the stateless revisions `initialize` lacks headers.
        ErrorCode(HEADER_MISMATCH),
    ]
    .contains(&code)
}

fn read_about(peer: &Peer<RoleClient>, transport: Transport) -> About {
    let Some(info) = peer.peer_info() else {
        return About::default();
    };
    let implementation = info.server_info.as_ref();
    About {
        name: implementation.map(|it| one_line_of(&it.name, ABOUT_CHARS_MAX)),
        version: implementation.map(|it| one_line_of(&it.version, ABOUT_CHARS_MAX)),
        instructions: info.instructions.as_deref().map(|text| {
            let first = printable::first_chars(text, INSTRUCTIONS_CHARS_MAX);
            printable::prose(first).into_owned()
        }),
        spoken: Spoken {
            revision: Revision::named(info.protocol_version.as_str()),
            transport,
        },
        offers_tools: info.capabilities.tools.is_some(),
    }
}

/// Our side of a session, as a server sees it.
#[derive(Clone)]
pub(crate) struct Ourselves {
    on_list_changed: OnListChanged,
    /// The folder of the one client that the server works for.
    root: Option<Root>,
}

fn root_at(folder: &Path) -> Option<Root> {
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

    /// We announce no elicitation, and rmcp would answer for the person.
    fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ElicitResult, ErrorData>> + Send + '_ {
        let why = "elicitation/create: the client did not announce it".to_owned();
        ready(Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)))
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

/// The members that each request of a revision carries in its `_meta`; none where a handshake
/// has said it all.
pub(crate) fn own_meta(revision: &Revision) -> Vec<(String, String)> {
    if !revision.is_stateless() {
        return Vec::new();
    }
    let own = json!({"name": "proxy", "version": env!("CARGO_PKG_VERSION")});
    let members = [
        (meta::PROTOCOL_VERSION, json!(revision.as_str())),
        (meta::CLIENT_INFO, own),
        (meta::CLIENT_CAPABILITIES, json!({})),
    ];
    let members = members.into_iter();
    let members = members.map(|(key, value)| (key.to_owned(), value.to_string()));
    members.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
