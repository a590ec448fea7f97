//! Specifications of servers: all that it takes to start one. Holding a [`ServerSpec`] means that
//! it was checked.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use jsonrpc::mcp::{Revision, Transport};
use serde::Deserialize;
use tool::ServerName;

use crate::{LoginSpec, Template};

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
    pub scope: Scope,
    /// The folder of the one client that it is started for; used as its root if the client reports none.
    pub client_folder: Option<PathBuf>,
    /// The roots that are reported to it; none: those of the one client that it is started for, if any.
    pub roots: Option<Vec<Template>>,
    /// The timeout from spawn or connect to the end of the handshake.
    pub start_timeout: Duration,
    /// The timeout of one call, unless the call or its tool sets another.
    pub call_timeout: Duration,
    /// The hard limit of a call that reports progress: each report restarts `call_timeout`, up to this
    /// limit. `None`: progress extends nothing.
    pub call_timeout_max: Option<Duration>,
    /// The time without a call after which a server is stopped. `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Calls under way at one time; further ones wait within their own limit. `None`: no limit.
    pub calls_max: Option<NonZeroUsize>,
    /// A call of a tool annotated read-only or idempotent is made once more when the server dies
    /// under it.
    pub retries_safe_calls: bool,
    /// The permissions of its process, if they are restricted.
    pub sandbox: Option<Sandbox>,
    /// The image of the container that its process runs in, if it does.
    pub image: Option<Template>,
    /// The configuration of the login, for a remote server that asks for one.
    pub login: LoginSpec,
    /// Variables of our own environment that the child gets besides the usual few: names, where a `*` at
    /// the end matches any suffix.
    pub inherit_env: Vec<String>,
    /// The revision and transport of the last connection, if known: the first guess.
    pub spoken: Option<Spoken>,
    /// The server was seen to send its clients requests that name no call: calls of different sessions
    /// run one after another from the first one on.
    pub asks_clients: bool,
}

/// The protocol that is spoken with a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spoken {
    /// The revision of the protocol.
    pub revision: Revision,
    /// The way of messages; of a guess it counts for remote servers only.
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

    /// The next guess where this one is refused: with a handshake if it had none, else without.
    pub(crate) fn alternative(&self) -> Self {
        let revision = if self.revision.is_stateless() {
            Revision::LAST_WITH_HANDSHAKE
        } else {
            Revision::FIRST_STATELESS
        };
        Self {
            revision,
            transport: Transport::StreamableHttp,
        }
    }
}

/// The time at which a server is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// By the first call that wants it.
    #[default]
    OnCall,
    /// With the program, where that serves a client.
    Eager,
}

/// The clients that share a server's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All clients.
    #[default]
    Shared,
    /// No others: each client has its own, in its own folder.
    Client,
}

/// The permissions of a confined process besides reading files and talking to us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// It may open sockets; otherwise none of any kind.
    pub network: bool,
    /// The folders that it may write to.
    pub write: Vec<Template>,
}

/// The default of `start_timeout`: a first `npx` on a slow network takes longer than half a minute,
/// and clients wait a minute for a call.
pub const START_TIMEOUT_DEFAULT: Duration = Duration::from_secs(50);
/// The default of `call_timeout`.
pub const CALL_TIMEOUT_DEFAULT: Duration = Duration::from_mins(1);
/// The default of `idle_timeout`.
pub const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_mins(5);

impl ServerSpec {
    /// A server with every default.
    pub fn new(name: ServerName, launch: Launch) -> Self {
        Self {
            name,
            launch,
            start: Start::default(),
            scope: Scope::default(),
            client_folder: None,
            roots: None,
            start_timeout: START_TIMEOUT_DEFAULT,
            call_timeout: CALL_TIMEOUT_DEFAULT,
            call_timeout_max: None,
            idle_timeout: Some(IDLE_TIMEOUT_DEFAULT),
            calls_max: None,
            retries_safe_calls: false,
            sandbox: None,
            image: None,
            login: LoginSpec::default(),
            inherit_env: Vec::new(),
            spoken: None,
            asks_clients: false,
        }
    }
}

/// The two ways to reach a server. The texts are templates: they are expanded each time the
/// server starts, so a variable may be set or changed while we run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// A child process that speaks over its stdin and stdout.
    Child {
        /// A program by its path, or by its name in the child's `PATH`.
        command: Template,
        /// Its arguments; no shell reads them.
        args: Vec<Template>,
        /// Variables on top of the inherited ones.
        env: Vec<(String, Template)>,
        /// The folder it works in; without one, ours or its client's.
        cwd: Option<Template>,
    },
    /// A server over streamable HTTP, or over HTTP+SSE where it speaks only that.
    Remote {
        /// The address to which messages are posted.
        url: Template,
        /// Headers of every request; they are secrets.
        headers: Vec<(String, Template)>,
    },
}

impl Launch {
    /// The texts that a start is made of, each under the key of the configuration that holds it.
    pub fn texts(&self) -> Vec<(String, &Template)> {
        match self {
            Self::Child {
                command,
                args,
                env,
                cwd,
            } => {
                let command = [("command".to_owned(), command)];
                let args = args.iter().map(|text| ("args".to_owned(), text));
                let env = env.iter().map(|(name, text)| (format!("env.{name}"), text));
                let cwd = cwd.iter().map(|text| ("cwd".to_owned(), text));
                command
                    .into_iter()
                    .chain(args)
                    .chain(env)
                    .chain(cwd)
                    .collect()
            }
            Self::Remote { url, headers } => {
                let url = [("url".to_owned(), url)];
                let headers = headers.iter();
                let headers = headers.map(|(name, text)| (format!("headers.{name}"), text));
                url.into_iter().chain(headers).collect()
            }
        }
    }
}
