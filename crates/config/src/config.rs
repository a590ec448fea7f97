//! The configuration as meant.

use std::path::PathBuf;

/// What the person meant: the settings of every room. Paths are absolute.
#[derive(Debug, Clone)]
pub struct Config {
    pub file: PathBuf,
    /// Directives of a tracing filter.
    pub log: String,
    pub gateway: gateway::Settings,
    pub http: http_server::Settings,
    pub daemon: daemon::Settings,
}

impl Config {
    /// What is no mistake, but may not be what the person wanted.
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
