//! No process is left, however a session ends.

use std::{fs::File, os::unix::fs::OpenOptionsExt as _};

use journeys::{
    client::{DEADLINE, ENDS_WITHIN},
    fake::Step,
    house::fake,
    processes,
};
use rustix::fs::{Mode, OFlags, fcntl_setfl, mkfifoat};
use serde_json::json;
use tokio::time::timeout;

use crate::{house, until};

#[tokio::test]
async fn a_polite_kill_ends_the_session_and_its_servers() {
    let polite = fake("polite")
        .tool("echo", Step::Echo)
        .tool("stuck", Step::UntilCancelled);
    let deaf = fake("deaf")
        .tool("echo", Step::Echo)
        .before(Step::Spawn)
        .script(|it| (it.ignores_stdin_end, it.ignores_sigterm) = (true, true));
    let house = house([polite, deaf]);
    house.indexed().await;
    let client = house.client().await;
    for tool in ["polite/echo", "deaf/echo"] {
        client.execute(tool, json!({})).await.good();
    }
    let stuck = json!({ "tool_name": "polite/stuck", "tool_input": {} });
    let params = json!({ "name": "execute_dynamic_tool", "arguments": stuck });
    let (_, _never) = client.begin("tools/call", params).await;
    house.until_calls("polite", 2).await;

    processes::terminate(client.pid());
    let status = timeout(ENDS_WITHIN, client.ended()).await;
    assert_eq!(status.expect("the proxy exits in time").code(), Some(0));
    assert_eq!(house.all_gone().await, Ok(()));
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_session() {
    let house = house([fake("polite").tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.client().await;
    client.execute("polite/echo", json!({})).await.good();
    assert_eq!(client.close().await.code(), Some(0));
    assert_eq!(house.all_gone().await, Ok(()));
}

#[tokio::test]
async fn a_named_pipe_that_nobody_writes_to_any_more_ends_the_session() {
    let house = house([fake("polite").tool("echo", Step::Echo)]);
    let path = house.path("input");
    mkfifoat(rustix::fs::CWD, &path, Mode::from(0o600)).unwrap();
    // The writer leaves before the proxy starts.
    let mut reader = File::options();
    let reader = reader
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let reader = reader.open(&path).unwrap();
    drop(File::options().write(true).open(&path).unwrap());
    fcntl_setfl(&reader, OFlags::empty()).unwrap();
    for arguments in [&["serve", "--standalone"][..], &["serve"]] {
        let mut command = house.command(arguments);
        let mut serving = command
            .kill_on_drop(true)
            .stdin(reader.try_clone().unwrap())
            .spawn()
            .unwrap();
        let status = timeout(DEADLINE, serving.wait()).await;
        let status = status.expect("the proxy exits").unwrap();
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
}

#[tokio::test]
async fn what_was_asked_before_the_input_ended_is_answered() {
    let house = house([fake("polite").tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.client().await;
    client.execute("polite/echo", json!({})).await.good();
    let arguments = json!({ "tool_name": "polite/echo", "tool_input": { "last": true } });
    let params = json!({ "name": "execute_dynamic_tool", "arguments": arguments });
    let (_, last) = client.begin("tools/call", params).await;
    client.close_input().await;
    assert_eq!(last.await.good(), r#"{"last":true}"#);
    house.stops_clean().await;
}

/// The server has a child in a process group of its own, which no signal to the server's group
/// reaches.
#[tokio::test]
async fn a_server_that_ends_alone_leaves_nobody_either() {
    let idle = fake("idle").tool("echo", Step::Echo).with_job();
    let removed = fake("removed").tool("echo", Step::Echo).with_job();
    let house = house([removed]);
    house.add(idle.setting("idle_timeout_s = 1"));
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    for tool in ["idle/echo", "removed/echo"] {
        client.execute(tool, json!({})).await.good();
    }
    // The other server, its job and the proxy remain.
    until("the stop of an idle server and its job", || {
        house.processes().len() == 3
    })
    .await;
    house.configure("");
    until("the end of a removed server and its job", || {
        house.processes().len() == 1
    })
    .await;
    house.stops_clean().await;
}
