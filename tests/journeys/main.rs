//! Journeys through the whole program, one per file, in folders by topic.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

/// Makes `#[journey]` available in every file.
#[macro_use]
extern crate journey;

mod calls;
mod cli;
mod cluster;
mod daemon;
mod harness;
mod http;
mod life;
mod real;
mod results;
mod search;

use std::{path::Path, time::Duration};

use journeys::{
    client::{Client, DEADLINE},
    fake::Script,
    guarded::RealAuth,
    house::{House, Programs, Server},
    real::RealServers,
    real_clients::{ClaudeCode, RealClients},
    real_page::RealPage,
};
use serde_json::{Value, json};
use tokio::{
    process::Command,
    time::{interval, timeout},
};

/// Returns the programs that Cargo built for this test.
fn programs() -> Programs {
    Programs {
        proxy: env!("CARGO_BIN_EXE_proxy-under-test").into(),
        fake_server: env!("CARGO_BIN_EXE_fake-server").into(),
    }
}

/// Creates a house with these servers.
fn house<S: Into<Server>>(servers: impl IntoIterator<Item = S>) -> House {
    House::new(&programs(), servers)
}

/// Creates a house whose sessions share a daemon.
fn house_with_daemon<S: Into<Server>>(servers: impl IntoIterator<Item = S>) -> House {
    house(servers).with_daemon()
}

/// Creates a house with these servers, indexes their tools, and opens a session.
async fn opened<S: Into<Server>>(servers: impl IntoIterator<Item = S>) -> (House, Client) {
    let house = house(servers);
    house.indexed().await;
    let client = house.client().await;
    (house, client)
}

/// Starts a fake server without a proxy.
fn alone(script: &Script) -> Client {
    let mut command = Command::new(programs().fake_server);
    command
        .arg("--script")
        .arg(serde_json::to_string(script).unwrap());
    Client::start(command)
}

/// Waits for all these futures concurrently.
async fn futures_of(futures: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut all: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

/// Starts the daemon of a house, also if the one that was killed has not ended yet.
async fn until_started(house: &House) {
    let mut looks = interval(Duration::from_millis(100));
    let starting = async {
        while house.cli(["daemon", "start"]).await.code != Some(0) {
            looks.tick().await;
        }
    };
    let started = timeout(DEADLINE, starting).await;
    assert!(started.is_ok(), "a daemon starts");
}

/// Waits until the condition is true; a timeout fails the test and names the condition.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut looks = interval(Duration::from_millis(10));
    let waited = timeout(DEADLINE, async {
        while !is_so() {
            looks.tick().await;
        }
    });
    assert!(waited.await.is_ok(), "timed out waiting for {what}");
}

/// Calls until the call succeeds, or fails.
async fn until_executed(client: &Client, tool: &str, is_good: bool) {
    let mut looks = interval(Duration::from_millis(10));
    let waited = timeout(DEADLINE, async {
        while client.execute(tool, json!({})).await.is_error() == is_good {
            looks.tick().await;
        }
    });
    waited.await.expect("the change is applied");
}

/// Calls until the call succeeds. A call may still be sent to a server that was just killed; each
/// such call must fail with `server_unavailable`.
async fn answered_in_the_end(client: &Client, tool: &str, input: &Value) -> String {
    let mut looks = interval(Duration::from_millis(10));
    let answered = async {
        loop {
            looks.tick().await;
            let reply = client.execute(tool, input.clone()).await;
            if !reply.is_error() {
                return reply.text();
            }
            let why = reply.bad();
            assert!(why.starts_with("error server_unavailable: "), "{why}");
        }
    };
    client.within("good answer", answered).await
}

/// Returns the parameters of a call through `execute_dynamic_tool`, to send it and wait later.
fn calling(tool: &str, input: &Value) -> Value {
    json!({
        "name": "execute_dynamic_tool",
        "arguments": { "tool_name": tool, "tool_input": input }
    })
}

/// Returns the handle of a cut result from its footer.
#[track_caller]
fn handle(answer: &str) -> &str {
    let (_, rest) = answer.split_once(r#"{"handle":""#).unwrap();
    rest.split_once('"').unwrap().0
}

/// Counts the tokens of a text in the encoding of the published figures.
fn tokens(text: &str) -> usize {
    let encoding = tiktoken_rs::o200k_base_singleton();
    encoding.encode_ordinary(text).len()
}

/// Counts the tokens of the parts of a tool that a model sees: annotations and `_meta` are for the
/// client.
fn definition_tokens(tool: &Value) -> usize {
    let seen = ["name", "description", "inputSchema"];
    let seen = seen.map(|key| (key.to_owned(), tool[key].clone()));
    tokens(&Value::Object(seen.into_iter().collect()).to_string())
}

fn real_auth() -> RealAuth {
    RealAuth::ready(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
}

fn claude_code() -> ClaudeCode {
    ClaudeCode::ready(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
}

fn real_clients() -> RealClients {
    RealClients::ready(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
}

fn real_page() -> RealPage {
    RealPage::ready(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
}

fn real_servers() -> RealServers {
    RealServers::ready(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
}
