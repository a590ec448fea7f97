//! The report of a daemon on itself, its clients and its servers.

use files::clock::to_s;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use fleet::Availability;
use fleet::{ClusterState, RunState, ServerFacts, ServerState, Sharing};
use gateway::{
    Gateway, IdleRuleStatus, LoginStatus, Settings, clients::ConnectedClient, describe_login,
    list_idle_rules, policy::ClientPolicy,
};
use serde::{Deserialize, Serialize};
use tool::ServerName;

use super::{identity::Build, log};

/// The status of a daemon. A daemon of another build may omit fields.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DaemonStatus {
    /// The version of its program.
    pub version: String,
    /// The program file that it was started from; none if the daemon does not say it.
    pub build: Option<Build>,
    /// Its process id.
    pub pid: u32,
    /// The time at which it started, in seconds since 1970.
    pub started_at: u64,
    /// The time since then, in seconds.
    pub uptime_s: u64,
    /// The memory of the process.
    pub memory_bytes: Option<u64>,
    /// True if it accepts no new clients, and ends when the last one disconnects.
    pub is_leaving: bool,
    /// The configuration file.
    pub config: PathBuf,
    /// The mistakes of the file; the previous configuration is in effect.
    pub config_mistakes: Option<String>,
    /// The reason why nothing counts as accepted, if so.
    pub pins: Option<String>,
    /// Rules that restrict access and match nothing.
    pub idle_rules: Vec<IdleRuleStatus>,
    /// The state folder.
    pub state_dir: PathBuf,
    /// The socket at which it is reached.
    pub socket: PathBuf,
    /// The configured HTTP address; none if there is none.
    pub http: Option<HttpStatus>,
    /// The addresses served for `serve --http`.
    pub http_held: Vec<HeldAddress>,
    /// Its log.
    pub log: PathBuf,
    /// None before the first search, or if there are no embeddings.
    pub meaning: Option<EmbeddingStatus>,
    /// The delivery of spans; none if the configuration names no collector.
    pub traces: Option<TraceStatus>,
    /// The connected clients.
    pub clients: Vec<ClientStatus>,
    /// The cluster as this node sees it; none if the configuration has no `[cluster]`.
    pub cluster: Option<ClusterState>,
    /// The saved scripts; none if there is no such folder.
    pub scripts: Option<ScriptsStatus>,
    /// The calls since the daemon started, of all servers, of our own tools and of unknown names.
    pub calls: u64,
    /// The errors among them.
    pub errors: u64,
    /// One entry for each process or connection.
    pub servers: Vec<ServerStatus>,
    /// The servers that differ for a client, because its variables do.
    pub sharing: Vec<SharingStatus>,
}

/// The state of the configured HTTP address.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HttpStatus {
    /// Served at this URL.
    Url(String),
    /// Not served, for this reason.
    Error(String),
}

/// An address that is served for a `serve --http`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldAddress {
    /// The URL of the address.
    pub url: String,
    /// The process of the `serve --http`.
    pub pid: u32,
}

/// The number of tools that have an embedding.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmbeddingStatus {
    /// Tools with an embedding.
    pub understood: usize,
    /// Tools with example requests: sentences by which a search finds them.
    #[serde(default)]
    pub with_requests: usize,
    /// All tools.
    pub tools: usize,
}

/// The delivery of spans to a collector.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceStatus {
    /// The origin of the collector; none before the first span is sent.
    pub to: Option<String>,
    /// The number of spans that the collector accepted.
    pub sent: u64,
    /// The number of spans that were dropped.
    pub dropped: u64,
    /// The time of the last attempt, in seconds since 1970.
    pub last_at: Option<u64>,
    /// The error of that attempt.
    pub failure: Option<String>,
}

/// A connected client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ClientStatus {
    /// Its number, unique within the daemon.
    pub number: u64,
    /// The name that it announced.
    pub name: Option<String>,
    /// The version that it announced.
    pub version: Option<String>,
    /// Such as `stdio`.
    pub transport: String,
    /// The revision of the protocol that it speaks, if known.
    pub protocol: Option<String>,
    /// Its process id.
    pub pid: Option<u32>,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
    /// Its profiles, each with the reason: `work (serve --profile)`.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// The time at which it connected, in seconds since 1970.
    pub since: u64,
    /// The number of its calls since it connected.
    pub calls: u64,
    /// The credential that admitted it, over HTTP.
    pub caller: Option<String>,
    /// The table of the configuration that applies to it.
    pub rule: Option<String>,
}

/// The saved scripts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ScriptsStatus {
    /// Their folder.
    pub folder: Option<PathBuf>,
    /// The number of scripts that are tools.
    pub tools: usize,
    /// Files that are not tools.
    pub mistakes: Vec<ScriptMistake>,
}

/// A file of the scripts folder that is not a tool, or a folder of skills that is no skill.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScriptMistake {
    /// Its name, with that of its folder.
    pub file: String,
    /// The reason.
    pub why: String,
}

/// A server's process or connection.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerStatus {
    /// Its name in the configuration.
    pub name: String,
    /// The client that it belongs to; none if all clients share it.
    pub client: Option<u64>,
    /// The names of the clients, or of the caller over HTTP, that it belongs to.
    pub client_name: Option<String>,
    /// The other node of the cluster that runs it; empty if no node does.
    pub node: Option<String>,
    /// The state of the server, as far as this process shows it.
    pub state: Availability,
    /// The revision of the protocol that it speaks, if known.
    pub protocol: Option<String>,
    /// Its process id; none for a remote server.
    pub pid: Option<u32>,
    /// The memory of the process and of all that it started.
    pub memory_bytes: Option<u64>,
    /// The number of its tools.
    pub tools: usize,
    /// The reason why its tools are from an earlier survey, if so.
    pub stale: Option<String>,
    /// Definitions that are not in its lists.
    pub left_out: Option<LeftOutStatus>,
    /// Its login.
    pub login: Option<LoginStatus>,
    /// True if it needs a login that it does not have.
    pub login_required: bool,
    /// The number of successful starts.
    pub starts: u32,
    /// The calls of the server since the daemon started. Processes of one server have the same number.
    pub calls: u64,
    /// The errors among them.
    pub errors: u64,
    /// The reason why the last request to this process without a result had none.
    pub last_failure: Option<String>,
    /// The time of that failure, in seconds since 1970.
    pub last_failure_at: Option<u64>,
    /// Questions that clients have not answered.
    pub questions: Vec<QuestionStatus>,
    /// Calls that wait for calls of other clients to end.
    #[serde(default)]
    pub waiting_calls: usize,
}

/// Definitions that are not in a server's lists.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOutStatus {
    /// The number of reasons.
    pub count: usize,
    /// One of them.
    pub why: String,
}

/// A question that a client has not answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuestionStatus {
    /// The name of the client.
    pub client: String,
    /// Such as `elicitation/create`.
    pub method: String,
    /// The time at which it was asked, in seconds since 1970.
    pub since: u64,
    /// True if calls of other clients wait for the answer.
    pub holds_up_others: bool,
}

/// A server that differs for a client. Names of variables, and no value.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharingStatus {
    /// The name of the server.
    pub server: String,
    /// The number of the client.
    pub client: u64,
    /// The name and process of the client; none if it left.
    pub client_name: Option<String>,
    /// Variables with other values than those of the other clients.
    pub differing: Vec<String>,
    /// Required variables that the client does not set.
    pub lacking: Vec<String>,
}

/// Returns the part of the status that the gateway knows. Reads `/proc`, and so blocks for a moment.
pub(crate) fn read_status(gateway: &Gateway) -> DaemonStatus {
    let settings = gateway.settings();
    let clients = gateway.clients.list();
    let names: Vec<(u64, String)> = clients.iter().map(|it| (it.number, name(it))).collect();
    let states = gateway.servers.states();
    let ready = states.iter().filter(|it| it.state == RunState::Ready);
    let ready: BTreeSet<ServerName> = ready.map(|it| it.name.clone()).collect();
    let sharing = gateway.servers.sharing().into_iter();
    let pins = gateway.catalog.registry.pin_trouble();
    let counts = gateway.recorder.count_by_server();
    let all = gateway.recorder.count_calls();
    DaemonStatus {
        pid: std::process::id(),
        memory_bytes: processes::own_memory(),
        config_mistakes: gateway.config_mistakes(),
        pins: pins.map(|it| it.to_string()),
        idle_rules: list_idle_rules(gateway),
        state_dir: settings.state_dir.clone(),
        log: log::path(&settings.state_dir),
        meaning: count_embedded(gateway),
        traces: describe_traces(gateway),
        clients: clients
            .iter()
            .map(|it| describe_client(&settings, it))
            .collect(),
        cluster: gateway.servers.cluster().map(|it| it.state()),
        scripts: describe_scripts(gateway),
        calls: all.calls,
        errors: all.errors,
        servers: states
            .into_iter()
            .map(|state| {
                let runs = ready.contains(&state.name);
                let count = counts.get(state.name.as_str()).copied().unwrap_or_default();
                ServerStatus {
                    calls: count.calls,
                    errors: count.errors,
                    ..describe_server(gateway, state, runs, &names)
                }
            })
            .collect(),
        sharing: sharing.map(|it| describe_sharing(it, &clients)).collect(),
        ..DaemonStatus::default()
    }
}

fn count_embedded(gateway: &Gateway) -> Option<EmbeddingStatus> {
    let generation = gateway.catalog.registry.loaded()?;
    let (understood, tools) = generation.embedded()?;
    Some(EmbeddingStatus {
        understood,
        with_requests: generation.with_requests(),
        tools,
    })
}

fn describe_scripts(gateway: &Gateway) -> Option<ScriptsStatus> {
    let saved = gateway.catalog.saved_scripts();
    let mistakes = saved.mistakes.iter().map(|it| ScriptMistake {
        file: it.file.clone(),
        why: it.why.clone(),
    });
    (saved.has_folder || !saved.mistakes.is_empty()).then(|| ScriptsStatus {
        folder: gateway.settings().scripts.clone(),
        tools: saved.count(),
        mistakes: mistakes.collect(),
    })
}

fn describe_traces(gateway: &Gateway) -> Option<TraceStatus> {
    let delivery = gateway.trace_delivery()?;
    Some(TraceStatus {
        to: delivery.to,
        sent: delivery.sent,
        dropped: delivery.dropped,
        last_at: delivery.last.map(to_s),
        failure: delivery.failure,
    })
}

fn name(client: &Arc<ConnectedClient>) -> String {
    let named = client.info().map(|info| info.name.to_string());
    named.unwrap_or_else(|| "unnamed".to_owned())
}

/// Returns the rules for a client in these settings.
pub fn policy_of(settings: &Settings, client: &ConnectedClient) -> ClientPolicy {
    let announced = client.info().map(|it| &*it.name);
    let connection = &client.connection;
    settings.clients.of_connection(connection, announced)
}

/// Describes a client, with the table of these settings that applies to it.
pub fn describe_client(settings: &Settings, client: &ConnectedClient) -> ClientStatus {
    let (info, connection) = (client.info(), &client.connection);
    let profiles = settings.clients.choose(connection).into_iter();
    ClientStatus {
        number: client.number,
        name: info.map(|info| info.name.to_string()),
        version: info.and_then(|info| info.version.clone()),
        transport: connection.transport.to_owned(),
        protocol: client.revision().map(|it| it.as_str().to_owned()),
        pid: connection.pid,
        cwd: connection.cwd.as_deref().map(Path::to_owned),
        profiles: profiles
            .map(|(name, why)| format!("{name} ({why})"))
            .collect(),
        since: to_s(client.since),
        calls: client.calls(),
        caller: connection.caller.as_ref().map(ToString::to_string),
        rule: policy_of(settings, client).table,
    }
}

fn describe_sharing(sharing: Sharing, clients: &[Arc<ConnectedClient>]) -> SharingStatus {
    let client = clients.iter().find(|it| it.number == sharing.client);
    SharingStatus {
        server: sharing.server.to_string(),
        client: sharing.client,
        client_name: client.map(|it| match it.connection.pid {
            Some(pid) => format!("{} (pid {pid})", name(it)),
            None => name(it),
        }),
        differing: sharing.differing,
        lacking: sharing.lacking,
    }
}

/// Describes a process. `runs`: a process of this server is ready.
fn describe_server(
    gateway: &Gateway,
    state: ServerState,
    runs: bool,
    clients: &[(u64, String)],
) -> ServerStatus {
    let catalog = gateway.catalog.registry.catalog();
    let known = catalog.servers.iter().find(|it| it.name == state.name);
    let survey_failure = known.and_then(|it| it.stale.as_ref());
    let own = clients
        .iter()
        .filter(|(number, _)| state.clients.contains(number));
    let own = own.map(|(_, name)| name.as_str());
    let own: Vec<&str> = own.chain(state.caller.as_deref()).collect();
    let settings = gateway.settings();
    let login = settings.server(&state.name);
    let left_out = gateway.catalog.left_out(&state.name);
    let is_stale = survey_failure.is_some();
    let facts = ServerFacts {
        // Its own state says so.
        is_down: false,
        // A process that does not run shows nothing of a list that another one has.
        is_stale: is_stale && (state.state == RunState::Ready || !runs),
        ..gateway.catalog.read_facts(&state.name, is_stale)
    };
    let questions = state.questions.into_iter().map(|it| QuestionStatus {
        client: it.client,
        method: it.method.to_owned(),
        since: to_s(it.since),
        holds_up_others: it.holds_up_others,
    });
    ServerStatus {
        name: state.name.to_string(),
        client: state.clients.first().copied(),
        client_name: (!own.is_empty()).then(|| own.join(", ")),
        node: state.node,
        state: Availability::choose(facts, [state.state]),
        protocol: state.revision.map(|it| it.as_str().to_owned()),
        pid: state.pid,
        memory_bytes: state.memory_bytes,
        tools: known.map_or(0, |it| it.tools),
        stale: survey_failure.map(ToString::to_string),
        left_out: left_out.map(|it| LeftOutStatus {
            count: it.count,
            why: it.why,
        }),
        login: login.and_then(|it| describe_login(it, &settings.private_files())),
        login_required: facts.needs_login,
        starts: state.starts,
        last_failure_at: state.last_failure.as_ref().map(|(at, _)| to_s(*at)),
        last_failure: state.last_failure.map(|(_, why)| why),
        questions: questions.collect(),
        waiting_calls: state.waiting_calls,
        ..ServerStatus::default()
    }
}
