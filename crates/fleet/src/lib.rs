//! The connections to servers: starting, supervision, surveys of their tools, calls and stopping.
//!
//! This crate handles processes, sockets and the protocol. It does not know about the index, the
//! three tools, the path of a configuration file, or a terminal.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod activity;
mod asked_login;
mod asking;
mod availability;
mod awaited;
mod caller_logins;
mod caller_servers;
mod calling;
mod changes;
mod channel;
mod child;
mod cluster_node;
mod command_runner;
mod commands;
mod connection;
mod environment;
mod eras;
mod error;
mod fleet;
mod instances;
mod keeper;
mod known_callers;
mod limits;
mod link;
mod log;
mod login;
mod login_spec;
mod obstacle;
mod patience;
mod pending;
mod proxies;
mod question;
mod redaction;
mod request;
mod roots;
mod roster;
mod secrets_named;
mod server;
mod server_info;
mod servers;
mod session_turns;
mod spec;
mod survey;
mod taken;
mod template;
mod unreadable;
mod updates;
mod variables;
mod vitals;
mod watch;
mod wire;

pub use availability::{Availability, ServerFacts};
pub use awaited::{Awaited, LoginNeeded};
pub use caller_logins::{CallerLogins, LoginArrival, OfferedLogin};
pub use child::{Surroundings, find_by_word, find_command};
pub use cluster_node::{
    ClusterNode, ClusterState, LogHead, LogWitness, NodeServer, NodeState, OwnerState,
};
pub use commands::{CommandDefinition, CommandSet, CommandTool};
pub use error::{CallError, Failure, HeldUp, Ran, SurveyError};
pub use fleet::Fleet;
pub use known_callers::KnownCallers;
pub use limits::LOGIN_OFFER_LIFE;
pub use log::log_path;
pub use login::LoginPlace;
pub use login_spec::{IdentityProviderSpec, LoginSpec};
pub use question::{Asks, ClientAnswer, ClockStop, QuestionKind, ServerQuestion};
pub use request::{LogSink, Params, ProgressSink, Refusal, Request, StartCheck};
pub use roots::list_client_roots;
pub use roster::Applied;
pub use secrets_named::with_secrets;
pub use server_info::ServerInfo;
pub use servers::{CallServers, CallerServices, Lifecycle, ListServers, Servers};
pub use spec::{
    CALLERS_MAX_DEFAULT, IDLE_TIMEOUT_DEFAULT, Launch, Placement, REMOTE_CALLERS_MAX_DEFAULT,
    START_TIMEOUT_DEFAULT, Sandbox, ServerScope, ServerSpec, Spoken, Start, TIMEOUT_DEFAULT,
};
pub use survey::{SNAPSHOT_BYTES_MAX, Survey};
pub use taken::Sharing;
pub use template::{Template, TemplateError, Unset};
pub use updates::UpdateSink;
pub use variables::Variables;
pub use vitals::{RunState, ServerState, WaitingQuestion};
pub use watch::{Subscriber, WatchGuard};
