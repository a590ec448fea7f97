//! Real MCP servers inside the program, for `proxy demo` and for journeys.
//!
//! A server is a list of tools: each has its definition, written as the JSON
//! a client sees, and a small function from arguments to an answer. An answer
//! depends on the arguments alone, and in `notes` on the notes that were added
//! before.

mod demo_server;
mod flaky;
mod notes;

use anyhow::bail;
use demo_server::DemoServer;

/// The servers [`run`] knows.
pub const NAMES: &[&str] = &["flaky", "notes"];

/// Serves one of [`NAMES`] over standard input and output until the client closes its end.
pub async fn run(name: &str) -> anyhow::Result<()> {
    match server(name) {
        Some(server) => server.serve_stdio().await,
        None => bail!("no demo server `{name}`; there are {}", NAMES.join(", ")),
    }
}

fn server(name: &str) -> Option<DemoServer> {
    match name {
        "flaky" => Some(flaky::server()),
        "notes" => Some(notes::server()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
