//! Journeys through the whole house, one file each, in a folder for what they are about.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

/// `#[journey]`, in every file.
#[macro_use]
extern crate journey;

mod calls;
mod cli;
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
};
use serde_json::{Value, json};
use tokio::{
    process::Command,
    time::{interval, timeout},
};

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

/// A house whose sessions share a daemon.
fn house_with_daemon<S: Into<Server>>(servers: impl IntoIterator<Item = S>) -> House {
    house(servers).with_daemon()
}

/// A house with these servers, whose tools are known, and a session in it.
async fn opened<S: Into<Server>>(servers: impl IntoIterator<Item = S>) -> (House, Client) {
    let house = house(servers);
    house.indexed().await;
    let client = house.client().await;
    (house, client)
}

/// A fake server with nothing before it.
fn alone(script: &Script) -> Client {
    let mut command = Command::new(programs().fake_server);
    command
        .arg("--script")
        .arg(serde_json::to_string(script).unwrap());
    Client::start(command)
}

/// Waits for all of them at once.
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

/// Waits until it is so; a journey that waits in vain fails and says for what.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let mut looks = interval(Duration::from_millis(10));
    let waited = timeout(DEADLINE, async {
        while !is_so() {
            looks.tick().await;
        }
    });
    assert!(waited.await.is_ok(), "in vain: {what}");
}

/// Calls until it is answered well. A call may still be sent to a server that
/// was killed a moment ago, and is told so; each such answer must say it.
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

/// The parameters of a call through `execute_dynamic_tool`, to begin it and wait later.
fn calling(tool: &str, input: &Value) -> Value {
    json!({
        "name": "execute_dynamic_tool",
        "arguments": { "tool_name": tool, "tool_input": input }
    })
}

/// The handle under which a cut result is kept, as its footer names it.
#[track_caller]
fn handle(answer: &str) -> &str {
    let (_, rest) = answer.split_once(r#"{"handle":""#).unwrap();
    rest.split_once('"').unwrap().0
}

/// Tokens of a text in the encoding that the figures are about.
fn tokens(text: &str) -> usize {
    let encoding = tiktoken_rs::o200k_base_singleton();
    encoding.encode_ordinary(text).len()
}

/// Tokens of what a model sees of a tool: annotations and `_meta` are for the client.
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

fn real_servers() -> RealServers {
    RealServers::ready(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
}
