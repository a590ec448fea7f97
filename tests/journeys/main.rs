//! Journeys through the whole house, one file each.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod broken_servers;
mod command_line;
mod config_mistakes;
mod declared;
mod demo;
mod eras;
mod fake_catalog;
mod fake_eras;
mod fake_steps;
mod house_itself;
mod odd_tools;
mod real_servers;
mod real_servers_alone;
mod reindex;
mod results;
mod three_tools;

use std::path::Path;

use journeys::{
    client::Client,
    fake::Script,
    house::{House, Programs, Server},
    real::RealServers,
};
use tokio::process::Command;

/// The programs Cargo built for this test.
fn programs() -> Programs {
    Programs {
        proxy: env!("CARGO_BIN_EXE_proxy-under-test").into(),
        fake_server: env!("CARGO_BIN_EXE_fake-server").into(),
    }
}

/// A house with these servers.
fn house<S: Into<Server>>(servers: impl IntoIterator<Item = S>) -> House {
    House::new(&programs(), servers)
}

/// A fake server with nothing before it.
fn alone(script: &Script) -> Client {
    let mut command = Command::new(programs().fake_server);
    command
        .arg("--script")
        .arg(serde_json::to_string(script).unwrap());
    Client::start(command)
}

fn real_servers() -> Option<RealServers> {
    RealServers::ready(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
}
