//! `proxy cluster`: nodes that share their servers.

use std::io::{self, IsTerminal as _, Read as _};

use anyhow::{Context as _, bail};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use clap::Subcommand;
use config::edit::Document;
use files::write_whole;
use fleet::{Availability, ClusterState, NodeState};
use gateway::api::{ApiReply, ApiRequest, ClusterReply, ClusterRequest};
use secrets::{Secret, SecretName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    api::{Daemon, explain_reply, with_api},
    edit, load_config,
    secret::keep_with,
    with_config,
};
use crate::{
    cli::global::Global,
    event_loop::run_async,
    exit::{Exit, refuse},
    node::read_cluster_access,
    report,
    table::render_table,
};

/// Begins a token.
const TOKEN: &str = "px1.";

/// The file beside the configuration with the certificates of a token.
const CA_FILE: &str = "nats-ca.pem";

/// The longest token that is read, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;

/// Share servers with other machines over NATS
///
/// `docs/cluster.md` describes nodes, placement, and what happens when one of them fails.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterAction {
    /// Show the nodes, and who runs which server
    Status,
    /// Share the servers, rules and clients of this file with all nodes
    ///
    /// Sends the tables `servers`, `commands`, `clients` and `profiles` and the keys `rules`, `quotas`,
    /// `policy`, `pin` and `redaction` of the file. A node that has a server of the same name in its own file
    /// keeps its own.
    Push,
    /// Hand the servers with one owner to other nodes, before this ends
    Drain,
    /// Print a token with which another machine joins; it is a secret
    JoinToken,
    /// Join a cluster: reads a token from a terminal or from stdin
    Join {
        /// Name of this node; by default that of the host
        #[arg(long, value_name = "NAME")]
        node: Option<String>,
    },
}

impl ClusterAction {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        match self {
            Self::Status => ask(global, ClusterRequest::Status),
            Self::Push => push(global),
            Self::Drain => ask(global, ClusterRequest::Drain),
            Self::JoinToken => print_token(global),
            Self::Join { node } => join(global, node.as_deref()),
        }
    }
}

fn ask(global: &Global, request: ClusterRequest) -> anyhow::Result<Exit> {
    with_api(global, Daemon::Started, async |api| {
        let request = ApiRequest::Cluster(request);
        match api.ask(request, Exit::Nothing).await? {
            ApiReply::Cluster(ClusterReply::Status(state)) => {
                if global.json {
                    report::print_json(&json!(state));
                } else {
                    report::print_data(&render(&state));
                }
                let is_whole = state.link == "connected" && state.trouble.is_none();
                return Ok(Exit::of_hit(is_whole));
            }
            ApiReply::Cluster(ClusterReply::Shared(revision)) => {
                report::say(&format!("shared as revision {revision}"));
            }
            ApiReply::Cluster(ClusterReply::HandedOver(servers)) => {
                let servers = if servers.is_empty() {
                    "no server with one owner ran here".to_owned()
                } else {
                    format!("handed over: {}", servers.join(", "))
                };
                report::say(&format!(
                    "{servers}\nthis node takes no server until its daemon is restarted"
                ));
            }
            reply => return Err(explain_reply(&reply)),
        }
        Ok(Exit::Success)
    })
}

fn render(state: &ClusterState) -> String {
    let version = state.nats_version.as_deref();
    let version = version.map_or(String::new(), |it| format!(", NATS {it}"));
    let mut text = format!("cluster {}: {}{version}", state.cluster, state.link);
    if let Some(trouble) = &state.trouble {
        text.push_str(&format!("\ntrouble: {trouble}"));
    }
    if state.is_draining {
        text.push_str("\nthis node is drained: it takes no server until its daemon is restarted");
    }
    if state.shared_revision > 0 {
        let by = state.shared_by.as_deref().unwrap_or_default();
        text.push_str(&format!(
            "\nshared configuration: revision {}, by {by}",
            state.shared_revision
        ));
    }
    let row = |node: &NodeState| {
        let here = if node.is_here { " (here)" } else { "" };
        let running = node.running.iter().map(|it| match it.state {
            Availability::Ready => it.server.clone(),
            state => format!("{} ({})", it.server, state.label()),
        });
        let seen = match node.is_connected {
            true => "connected".to_owned(),
            false if node.is_here => "not connected".to_owned(),
            false => format!("silent for {} s", node.silent_s),
        };
        [
            format!("{}{here}", node.node),
            seen,
            node.version.clone(),
            node.shared_revision.to_string(),
            running.collect::<Vec<_>>().join(", "),
        ]
    };
    let head = ["node", "state", "version", "shared", "running"];
    let nodes = render_table(head, state.nodes.iter().map(row).collect());
    text.push_str(&format!("\n\n{nodes}"));
    if !state.owners.is_empty() {
        let owner = |it: &fleet::OwnerState| {
            let next = it.takeover_s.map(|left| format!("taken over in {left} s"));
            let node = it.node.as_deref().unwrap_or("none").to_owned();
            let epoch = it.epoch.to_string();
            [it.server.clone(), node, epoch, next.unwrap_or_default()]
        };
        let head = ["server", "owner", "epoch", ""];
        let owners = render_table(head, state.owners.iter().map(owner).collect());
        text.push_str(&format!("\n\n{owners}"));
    }
    for node in &state.strangers {
        text.push_str(&format!(
            "\n\nnode {node} has another key and is ignored: give it the key of this cluster (`proxy cluster \
             join-token`)"
        ));
    }
    text
}

fn push(global: &Global) -> anyhow::Result<Exit> {
    // A file with mistakes is not shared.
    load_config(global)?;
    let text = edit::read(global)?.shared_part();
    if text.trim().is_empty() {
        bail!("this file has no servers, rules and clients to share");
    }
    ask(global, ClusterRequest::Push(text))
}

/// The content of a token.
#[derive(Debug, Serialize, Deserialize)]
struct JoinToken {
    cluster: String,
    nats: Vec<String>,
    key: String,
    credentials: Option<String>,
    /// The text of `tls_ca`.
    tls_ca: Option<String>,
    /// The nodes share a configuration, with rules.
    #[serde(default)]
    has_shared: bool,
}

fn print_token(global: &Global) -> anyhow::Result<Exit> {
    with_config(global, |config| {
        let settings = config.cluster.clone().ok_or_else(|| {
            refuse("this configuration is not part of a cluster\nhint: add a `[cluster]` table")
        })?;
        let access = run_async(read_cluster_access(&config, &settings))?;
        let access = access.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        let token = JoinToken {
            cluster: settings.name.clone(),
            nats: access.nats,
            key: access.key,
            credentials: access.credentials,
            tls_ca: access.tls_ca.map(std::fs::read_to_string).transpose()?,
            has_shared: config.shared_revision > 0,
        };
        let token = serde_json::to_vec(&token)?;
        report::print_data(&format!("{TOKEN}{}", BASE64_URL_SAFE_NO_PAD.encode(token)));
        let also = if settings.tls_identity.is_some() {
            "; the other machine needs files for `tls_cert` and `tls_key` as well"
        } else {
            ""
        };
        report::say(&format!(
            "anybody with this token can call every server of the cluster; on the other machine: `proxy \
             cluster join`{also}"
        ));
        Ok(Exit::Success)
    })
}

fn join(global: &Global, node: Option<&str>) -> anyhow::Result<Exit> {
    let token = read_token().map_err(|error| {
        refuse(format!(
            "{error:#}\nhint: `proxy cluster join-token` on a node prints one"
        ))
    })?;
    let mut secrets: Vec<(SecretName, Secret)> = Vec::new();
    let mut keep = |name: String, text: String| -> anyhow::Result<Value> {
        let reference = format!("${{secret:{name}}}");
        secrets.push((name.parse()?, Secret::new(text)));
        Ok(Value::String(reference))
    };
    let mut nats = Vec::new();
    for (nth, address) in token.nats.into_iter().enumerate() {
        nats.push(if address.contains('@') {
            keep(format!("cluster-nats-{}", nth + 1), address)?
        } else {
            Value::String(printable::escape_template(&address))
        });
    }
    let key = keep("cluster-key".to_owned(), token.key)?;
    let credentials = token.credentials;
    let credentials = credentials.map(|it| keep("cluster-credentials".to_owned(), it));
    let ca = token.tls_ca;
    let table = json!({
        "name": token.cluster,
        "node": node,
        "nats": nats,
        "key": key,
        "credentials": credentials.transpose()?,
        "require_shared": token.has_shared.then_some(true),
        "tls_ca": ca.as_ref().map(|_| format!("./{CA_FILE}")),
    });
    let mut table: Map<String, Value> = serde_json::from_value(table)?;
    table.retain(|_, value| !value.is_null());
    let add = |document: &mut Document| document.add_cluster(&table);
    edit::change_with(global, add, |(), document, write| {
        if let Some(ca) = &ca {
            write_whole(&document.path().with_file_name(CA_FILE), ca.as_bytes())?;
        }
        keep_with(global, &secrets, write)
    })?;
    report::say(&format!(
        "joined the cluster `{}`\nthe daemon connects when it starts: `proxy daemon restart`, then `proxy \
         cluster status`",
        token.cluster
    ));
    Ok(Exit::Success)
}

fn read_token() -> anyhow::Result<JoinToken> {
    let text = if io::stdin().is_terminal() {
        report::ask_secret("Token: ")?
    } else {
        io::read_to_string(io::stdin().take(TOKEN_BYTES_MAX))?
    };
    let Some(token) = text.trim().strip_prefix(TOKEN) else {
        bail!("this is no token of a cluster: it begins with `{TOKEN}`");
    };
    let token = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
    let token = token.and_then(|token| serde_json::from_slice(&token).ok());
    token.context("the token is not whole: copy it again")
}
