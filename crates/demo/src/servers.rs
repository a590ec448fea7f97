//! Real MCP servers inside the program, for `proxy demo` and for journeys.
//!
//! A server is a list of tools: each has its definition, written as the JSON
//! a client sees, and a small function from arguments to an answer. What
//! they answer depends on their arguments alone (and, in `notes`, on what was
//! added before), except for the tool whose purpose is the time of day.

mod archive;
mod clock;
mod demo_server;
mod flaky;
mod notes;
mod text;

use anyhow::bail;
use demo_server::DemoServer;

/// The servers [`run`] knows.
pub const NAMES: &[&str] = &["archive", "clock", "flaky", "notes", "text"];

/// Serves one of [`NAMES`] over standard input and output until the client
/// closes its end.
pub async fn run(name: &str) -> anyhow::Result<()> {
    match server(name) {
        Some(server) => server.serve_stdio().await,
        None => bail!("no demo server `{name}`; there are {}", NAMES.join(", ")),
    }
}

fn server(name: &str) -> Option<DemoServer> {
    match name {
        "archive" => Some(archive::server()),
        "clock" => Some(clock::server()),
        "flaky" => Some(flaky::server()),
        "notes" => Some(notes::server()),
        "text" => Some(text::server()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
