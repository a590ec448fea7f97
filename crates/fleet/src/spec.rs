//! Specifications of servers, which have all inputs of a start. A [`ServerSpec`] is always checked.

use std::{num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

use jsonrpc::mcp::{Revision, Transport};
use serde::Deserialize;
use tool::ServerName;

use printable::{Pattern, Redaction};

use crate::{CommandSet, LoginSpec, Template};

/// A server we can start or connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// Its key in the configuration.
    pub name: ServerName,
    /// The way to reach it.
    pub launch: Launch,
    /// The time at which it is started.
    pub start: Start,
    /// The scope in which clients share it.
    pub scope: ServerScope,
    /// True if it may run in further processes, for calls that would wait for those of other clients.
    pub has_spares: bool,
    /// The folder of the one client that it is started for; used as its root if the client reports none.
    pub client_folder: Option<PathBuf>,
    /// The roots that are reported to it; `None`: those of the one client that it is started for, if any.
    pub roots: Option<Vec<Template>>,
    /// The timeout from spawn or connect to the end of the handshake.
    pub start_timeout: Duration,
    /// The timeout of one call, unless the call or its tool sets another.
    pub timeout: Duration,
    /// The hard limit of a call that reports progress: each report restarts `timeout`, up to this
    /// limit. `None`: progress extends nothing.
    pub timeout_max: Option<Duration>,
    /// The time without a call after which a server is stopped. `None`: never.
    pub idle_timeout: Option<Duration>,
    /// The most concurrent calls; further ones wait within their own limit. `None`: no limit.
    pub calls_max: Option<NonZeroUsize>,
    /// The most callers over HTTP that have a process or connection of their own at one time. `None`:
    /// the default of its launch.
    pub callers_max: Option<NonZeroUsize>,
    /// True if a call of a tool annotated read-only or idempotent is repeated once when the server ends
    /// during the call.
    pub retries_safe_calls: bool,
    /// The permissions of its process, if they are restricted.
    pub sandbox: Option<Sandbox>,
    /// The image of the container that its process runs in, if it does.
    pub image: Option<Template>,
    /// The patterns that are replaced in everything it sends, if it is redacted.
    pub redaction: Option<Arc<Redaction>>,
    /// The configuration of the login, for a remote server that asks for one.
    pub login: LoginSpec,
    /// The variables that the child inherits besides the usual few: names, where a `*` at the end matches
    /// any suffix.
    pub inherit_env: Vec<String>,
    /// The revision and transport of the last connection, if known: the first guess.
    pub spoken: Option<Spoken>,
    /// The calls during which the server asked questions that name no call, such as `tools/call NAME`:
    /// they run one after another if their sessions differ.
    pub asking_calls: Vec<String>,
    /// The nodes of a cluster that run it. Without a cluster it runs here.
    pub placement: Placement,
}

/// The nodes of a cluster that run a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The node that a client is connected to.
    #[default]
    Everywhere,
    /// One node at a time, chosen by the cluster.
    One,
    /// The node of the client; it may differ between clients, so it is never called from another node.
    Client,
    /// The nodes whose names match this pattern.
    #[serde(skip)]
    On(Pattern),
}

/// The protocol that is spoken with a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spoken {
    /// The revision of the protocol.
    pub revision: Revision,
    /// The transport; a guess of it counts for remote servers only.
    pub transport: Transport,
}

impl Spoken {
    /// The same revision over another transport.
    pub(crate) fn over(&self, transport: Transport) -> Self {
        Self {
            revision: self.revision.clone(),
            transport,
        }
    }

    /// Returns true if a connection to the server may send arguments as headers (`x-mcp-header`). Only those
    /// from 2026-07-28 on do, but connections of both eras share the list of tools.
    pub(crate) fn may_send_header_arguments(&self) -> bool {
        self.transport == Transport::StreamableHttp
    }

    /// Returns the protocols in which a connection is tried, in this order; `None` asks the server for its
    /// revision. Each revision is tried once: some servers refuse one that they do not know, instead of
    /// naming one that they do. A server that spoke an older one is offered the last with a handshake
    /// first, since it may speak that by now.
    pub(crate) fn attempts(guess: Option<&Self>) -> Vec<Option<Self>> {
        let known = guess.map(|guess| &guess.revision);
        let is_stateless = known.is_some_and(Revision::is_stateless);
        let likeliest = [
            (!is_stateless).then_some(Revision::LAST_WITH_HANDSHAKE),
            known.filter(|revision| revision.is_known()).cloned(),
        ];
        let mut revisions = Vec::new();
        for revision in likeliest
            .into_iter()
            .flatten()
            .chain(Revision::KNOWN.into_iter().rev())
        {
            // Without a guess, the server was asked for the revision without a handshake.
            let is_tried = guess.is_none() && revision.is_stateless();
            if !is_tried && !revisions.contains(&revision) {
                revisions.push(revision);
            }
        }
        let transport = guess.map_or(Transport::StreamableHttp, |guess| guess.transport);
        let named = revisions.into_iter().map(|revision| {
            Some(Self {
                revision,
                transport,
            })
        });
        let asked = guess.is_none().then_some(None);
        asked.into_iter().chain(named).collect()
    }
}

/// The time at which a server is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// With the first call.
    #[default]
    OnCall,
    /// With the program, if it serves a client.
    Eager,
}

/// The clients that share a server's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerScope {
    /// All clients.
    #[default]
    Shared,
    /// One client: each has its own process, in its own folder.
    Client,
}

/// The permissions of a confined process besides reading files and its pipes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// True if it may open sockets.
    pub network: bool,
    /// The folders that it may write to.
    pub write: Vec<Template>,
}

/// The default of `start_timeout`: a first `npx` on a slow network takes longer than half a minute,
/// and clients wait a minute for a call.
pub const START_TIMEOUT_DEFAULT: Duration = Duration::from_secs(50);
/// The default of `callers_max` for a child: a hundred Node processes take some 5 GB.
pub const CALLERS_MAX_DEFAULT: NonZeroUsize = NonZeroUsize::new(100).expect("it is not 0");
/// The default of `callers_max` for a remote server, whose connections take some 100 KB.
pub const REMOTE_CALLERS_MAX_DEFAULT: NonZeroUsize = NonZeroUsize::new(1_000).expect("it is not 0");
/// The default of `timeout`.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_mins(1);
/// The default of `idle_timeout`.
pub const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_mins(5);

impl ServerSpec {
    /// Creates a server with every default.
    pub fn new(name: ServerName, launch: Launch) -> Self {
        Self {
            name,
            launch,
            start: Start::default(),
            scope: ServerScope::default(),
            has_spares: true,
            client_folder: None,
            roots: None,
            start_timeout: START_TIMEOUT_DEFAULT,
            timeout: TIMEOUT_DEFAULT,
            timeout_max: None,
            idle_timeout: Some(IDLE_TIMEOUT_DEFAULT),
            callers_max: None,
            calls_max: None,
            retries_safe_calls: false,
            sandbox: None,
            image: None,
            redaction: None,
            login: LoginSpec::default(),
            inherit_env: Vec::new(),
            spoken: None,
            asking_calls: Vec::new(),
            placement: Placement::default(),
        }
    }

    /// Returns the most callers over HTTP with an instance of their own.
    pub(crate) fn callers_max(&self) -> NonZeroUsize {
        self.callers_max.unwrap_or(match self.launch {
            Launch::Remote { .. } => REMOTE_CALLERS_MAX_DEFAULT,
            Launch::Child { .. } | Launch::Commands(_) => CALLERS_MAX_DEFAULT,
        })
    }
}

/// The ways to reach a server. The texts are templates, expanded at each start of the server, so a
/// variable may be set or changed while the program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// A child process that communicates over its stdin and stdout.
    Child {
        /// A program by its path, or by its name in the child's `PATH`.
        command: Template,
        /// Its arguments, without a shell.
        args: Vec<Template>,
        /// Variables in addition to the inherited ones.
        env: Vec<(String, Template)>,
        /// Its working folder; `None`: that of its client or of this process.
        cwd: Option<Template>,
    },
    /// A server over streamable HTTP, or over HTTP+SSE if it speaks only that.
    Remote {
        /// The URL to which messages are posted.
        url: Template,
        /// The headers of every request. They are secrets.
        headers: Vec<(String, Template)>,
    },
    /// Command-line programs, each of which is a tool. Every call is a process.
    Commands(CommandSet),
}

impl Launch {
    /// Lists the templates, each with its configuration key.
    pub fn texts(&self) -> Vec<(String, &Template)> {
        match self {
            Self::Child {
                command,
                args,
                env,
                cwd,
            } => {
                let mut texts = vec![("command".to_owned(), command)];
                texts.extend(args.iter().map(|text| ("args".to_owned(), text)));
                texts.extend(env.iter().map(|(name, text)| (format!("env.{name}"), text)));
                texts.extend(cwd.iter().map(|text| ("cwd".to_owned(), text)));
                texts
            }
            Self::Remote { url, headers } => {
                let url = [("url".to_owned(), url)];
                let headers = headers.iter();
                let headers = headers.map(|(name, text)| (format!("headers.{name}"), text));
                url.into_iter().chain(headers).collect()
            }
            Self::Commands(set) => set.texts(),
        }
    }
}
