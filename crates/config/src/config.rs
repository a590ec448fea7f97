//! The configuration as meant.

use std::path::PathBuf;

/// The settings of every room, as the person meant them. Paths are absolute.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file it was read from.
    pub file: PathBuf,
    /// Directives of a tracing filter.
    pub log: String,
    /// Settings of the gateway: servers, clients, results, search.
    pub gateway: gateway::Settings,
    /// Settings of serving over HTTP.
    pub http: http_server::Settings,
    /// Settings of the daemon.
    pub daemon: daemon::Settings,
}

impl Config {
    /// Notes on what is no mistake, but may not be what the person wanted.
    pub fn notes(&self) -> Vec<String> {
        if self.gateway.servers.is_empty() {
            return vec!["no servers: add a `[servers.NAME]` table".to_owned()];
        }
        if self.gateway.enabled().next().is_none() {
            return vec!["every server has `enabled = false`".to_owned()];
        }
        Vec::new()
    }
}
