//! The validated configuration.

use std::{path::PathBuf, time::SystemTime};

/// The validated settings of every crate. Paths are absolute.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file it was read from.
    pub file: PathBuf,
    /// A time before the file was read.
    pub read_at: SystemTime,
    /// A note for each former key that is set, with its place and its replacement.
    pub removed_keys: Vec<String>,
    /// Directives of a tracing filter.
    pub log: String,
    /// Settings of the gateway: servers, clients, results, search.
    pub gateway: gateway::Settings,
    /// Settings of serving over HTTP.
    pub http: http_server::HttpSettings,
    /// The cluster that this node belongs to.
    pub cluster: Option<cluster::ClusterSettings>,
    /// The revision of the shared configuration of the cluster in it; 0: none.
    pub shared_revision: u64,
    /// Settings of the daemon.
    pub daemon: daemon::DaemonSettings,
}

impl Config {
    /// Returns remarks on valid settings that may be unintended.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.gateway.servers.is_empty() {
            notes.push("no servers: add a `[servers.NAME]` table".to_owned());
        } else if self.gateway.enabled().next().is_none() {
            notes.push("every server has `enabled = false`".to_owned());
        }
        let servers = self.gateway.servers.iter();
        notes.extend(servers.flat_map(|server| bare_variables(&server.spec)));
        notes.extend(self.removed_keys.iter().cloned());
        notes
    }
}

/// Finds `$NAME` in the syntax of a shell: it is not replaced here, which is seldom intended. Only
/// texts that consist of it are reported, since a password may begin with a dollar.
fn bare_variables(spec: &fleet::ServerSpec) -> Vec<String> {
    let letter = |c: char| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit();
    let is_bare = |text: &str| {
        let name = text.strip_prefix('$').unwrap_or_default();
        !name.is_empty() && name.chars().all(letter)
    };
    let texts = spec.launch.texts().into_iter();
    let plain = texts.filter_map(|(key, text)| Some((key, text.plain()?)));
    let bare = plain.filter(|(_, text)| is_bare(text.strip_prefix("Bearer ").unwrap_or(text)));
    let place = match spec.launch {
        fleet::Launch::Commands(_) => String::new(),
        _ => format!("servers.{}.", spec.name),
    };
    bare.map(|(key, _)| {
        format!("{place}{key}: `$NAME` is not a variable reference; write `${{NAME}}`")
    })
    .collect()
}
