//! Nodes that share their servers over real NATS servers.

mod calls;
mod failures;
mod joined;
mod links;
mod logs;
mod lost_records;
mod sessions;
mod shared_pins;

use std::{path::Path, time::Duration};

use journeys::{
    client::{Client, DEADLINE},
    house::{House, Server},
    nats::{Nats, NatsProgram},
};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use crate::house_with_daemon;

/// The time after which another node has taken over, with room for a busy machine.
const TAKE_OVER: Duration = Duration::from_mins(1);

fn nats_program() -> NatsProgram {
    NatsProgram::ready(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
}

fn nats(count: usize) -> Nats {
    nats_program().start(count)
}

/// Creates a node with these servers, whose daemon is not started yet.
fn node<S: Into<Server>>(nats: &Nats, name: &str, servers: impl IntoIterator<Item = S>) -> House {
    let house = house_with_daemon(servers);
    nats.add_node(&house, name);
    house
}

/// Starts the daemon of each node, and waits until all know each other.
async fn connected(nodes: &[&House]) {
    for node in nodes {
        node.cli(["daemon", "start"]).await.ended(0);
    }
    for node in nodes {
        until_state(node, "all nodes are connected", |state| {
            let known = state["nodes"].as_array().unwrap();
            let connected = known.iter().filter(|it| it["is_connected"] == true);
            state["trouble"].is_null() && connected.count() == nodes.len()
        })
        .await;
    }
}

async fn state_of(node: &House) -> Value {
    let told = node.cli(["cluster", "status", "--json"]).await;
    serde_json::from_str(&told.stdout).unwrap_or_default()
}

/// Waits until the state of the cluster, as a node sees it, satisfies a condition.
async fn until_state(node: &House, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut ticks = interval(Duration::from_millis(100));
    let mut last = Value::Null;
    let waiting = async {
        loop {
            ticks.tick().await;
            last = state_of(node).await;
            if last.is_object() && is_so(&last) {
                return;
            }
        }
    };
    let waited = timeout(TAKE_OVER, waiting).await;
    assert!(waited.is_ok(), "{what}: {last:#}");
    last
}

/// Waits until a node owns a server, and returns its name.
async fn until_owned(node: &House, server: &str) -> String {
    let state = until_state(node, "the server has an owner", |state| {
        owner(state, server).is_some()
    })
    .await;
    owner(&state, server).unwrap()
}

fn owner(state: &Value, server: &str) -> Option<String> {
    let owners = state["owners"].as_array()?;
    let owned = owners.iter().find(|it| it["server"] == server)?;
    owned["node"].as_str().map(str::to_owned)
}

/// Waits until a client finds a tool.
async fn until_found(client: &Client, tool: &str) {
    let mut ticks = interval(Duration::from_millis(100));
    let finding = async {
        loop {
            ticks.tick().await;
            let query = json!({"name": "describe_tool", "arguments": {"tool_name": tool}});
            let told = client.request("tools/call", query).await;
            if !told.is_error() {
                return;
            }
        }
    };
    let found = timeout(DEADLINE, finding).await;
    assert!(found.is_ok(), "{tool} is found");
}
