//! One daemon for all sessions: start, sharing, loss and end.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use journeys::{
    client::Client,
    fake::{LEGACY_VERSION, Step},
    house::{Fake, fake},
    processes,
};
use serde_json::{Value, json};

use super::{called, echoing};
use crate::{answered_in_the_end, calling, futures_of, house_with_daemon, until};

#[tokio::test]
async fn racing_sessions_share_one_daemon_and_one_child() {
    let house = echoing().await;
    let starting: Vec<Client> = (0..10).map(|_| house.serve()).collect();
    let racing = starting
        .iter()
        .enumerate()
        .map(|(number, client)| async move {
            client.initialize(LEGACY_VERSION).await;
            let input = json!({ "number": number });
            let answer = client.execute("any/echo", input.clone()).await.good();
            assert_eq!(answer, input.to_string());
        });
    futures_of(racing).await;
    let status = house.status().await;
    assert_eq!(status["clients"].as_array().unwrap().len(), 10);
    assert_eq!(house.starts("any"), 1);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_session_goes_on_when_its_daemon_is_killed() {
    let (house, client, _) = called().await;
    for _ in 0..3 {
        let daemon = house.daemon().await;
        let calls = house.received_method("any", "tools/call").len();
        let (_, lost) = client
            .begin("tools/call", calling("any/stuck", &json!({})))
            .await;
        house.until_calls("any", calls + 1).await;
        processes::kill(daemon);
        let told = lost.await.bad();
        assert!(told.starts_with("error server_unavailable: "), "{told}");
        assert!(told.contains("may have run"), "{told}");
        until("the end of its child", || {
            house.pids("any").iter().all(|pid| !processes::lives(*pid))
        })
        .await;
        let answer = client.execute("any/echo", json!({ "on": true })).await;
        assert_eq!(answer.good(), r#"{"on":true}"#);
        assert_ne!(house.daemon().await, daemon);
    }
    let stuck = house.received_method("any", "tools/call");
    let stuck = stuck
        .iter()
        .filter(|call| call["params"]["name"] == "stuck");
    assert_eq!(stuck.count(), 3, "no call is repeated");
    house.stops_clean().await;
}

#[tokio::test]
async fn a_modern_session_goes_on_too() {
    let house = echoing().await;
    let client = house.modern_client().await;
    client.execute("any/echo", json!({})).await.good();
    processes::kill(house.daemon().await);
    assert_eq!(client.tools_list().await.len(), 3);
    answered_in_the_end(&client, "any/echo", &json!({})).await;
    house.stops_clean().await;
}

/// The log level belongs to the session, and applies with the next daemon too.
#[tokio::test]
async fn what_a_client_had_set_holds_with_the_next_daemon() {
    let speaks = [
        Step::log("info", "loud"),
        Step::log("error", "worse"),
        Step::Echo,
    ];
    let house = house_with_daemon([fake("any").tool("speak", speaks)]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    let level = json!({ "level": "error" });
    client
        .request("logging/setLevel", level)
        .await
        .into_result();
    processes::kill(house.daemon().await);
    answered_in_the_end(&client, "any/speak", &json!({})).await;
    let heard = client.next("notifications/message").await;
    assert_eq!(heard["params"]["data"], "worse");
    house.stops_clean().await;
}

/// An MCP log message does not name its call: with calls of two sessions in progress it cannot be
/// assigned to a session.
#[tokio::test]
async fn a_log_message_reaches_no_session_but_the_one_whose_call_it_can_only_be_of() {
    let house = house_with_daemon::<Fake>([]);
    let gate = house.path("gate");
    let server = fake("any")
        .tool("wait", [Step::UntilExists(gate), Step::Echo])
        .tool("whisper", [Step::log("error", "private"), Step::Echo])
        .tool("speak", [Step::log("error", "mine"), Step::Echo]);
    house.add(server);
    house.indexed().await;
    let (waits, whispers) = (house.client().await, house.client().await);
    let waiting = waits.execute("any/wait", json!({}));
    let whispering = async {
        house
            .until_received("any", |line| line.contains("\"wait\""))
            .await;
        whispers.execute("any/whisper", json!({})).await.good();
        house.write("gate", "");
    };
    let (waited, ()) = tokio::join!(waiting, whispering);
    waited.good();
    for client in [&waits, &whispers] {
        client.execute("any/speak", json!({})).await.good();
        let heard = client.next("notifications/message").await;
        assert_eq!(heard["params"]["data"], "mine");
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_stopped_daemon_comes_back_with_the_next_message() {
    let (house, client, first) = called().await;
    house.cli(["daemon", "stop"]).await.ended(0);
    assert_eq!(house.status().await, Value::Null);
    assert!(!processes::lives(first));
    until("only the session", || house.processes().len() == 1).await;
    client.execute("any/echo", json!({})).await.good();
    assert_ne!(house.daemon().await, first);

    house.cli(["daemon", "restart"]).await.ended(0);
    client.execute("any/echo", json!({})).await.good();
    house.cli(["daemon", "start"]).await.ended(0);
    house.stops_clean().await;
}

#[tokio::test]
async fn it_goes_some_time_after_its_last_client() {
    let house = echoing().await;
    house.configure_more("[daemon]\nlinger_s = 1\n");
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    let began = Instant::now();
    client.close().await;
    assert_eq!(house.all_gone().await, Ok(()));
    let stayed = began.elapsed();
    assert!(stayed >= Duration::from_secs(1), "it stayed {stayed:?}");
    // A later client gets a new daemon.
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    house.stops_clean().await;
}

#[tokio::test]
async fn its_socket_is_ours_alone_and_it_holds_nothing_of_its_clients() {
    let house = echoing().await;
    let client = house.client().await;
    let status = house.status().await;
    let socket = std::path::Path::new(status["socket"].as_str().unwrap());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    let daemon = house.daemon().await;
    let pipe = |pid: u32, number: u32| fs::read_link(format!("/proc/{pid}/fd/{number}")).unwrap();
    let ours: Vec<_> = (0..3).map(|number| pipe(client.pid(), number)).collect();
    for entry in fs::read_dir(format!("/proc/{daemon}/fd")).unwrap() {
        if let Ok(held) = fs::read_link(entry.unwrap().path()) {
            assert!(!ours.contains(&held), "{}", held.display());
        }
    }
    let parents: Vec<u32> = processes::children(client.pid())
        .iter()
        .map(|it| it.0)
        .collect();
    assert!(parents.is_empty(), "the daemon has a parent: {parents:?}");
    house.stops_clean().await;
}

#[tokio::test]
async fn another_state_folder_is_another_daemon() {
    let house = echoing().await;
    let one = house.client().await;
    let mut command = house.command(["--state-dir", "elsewhere", "serve"]);
    command.env("XDG_RUNTIME_DIR", house.path("run"));
    let other = house.keep(Client::start(command));
    other.initialize(LEGACY_VERSION).await;
    other.until_search_finds("echo", "any/echo").await;
    one.execute("any/echo", json!({})).await.good();
    other.execute("any/echo", json!({})).await.good();
    let there = house
        .cli(["--state-dir", "elsewhere", "status", "--json"])
        .await
        .json();
    assert_ne!(there["daemons"][0]["pid"], house.status().await["pid"]);
    house
        .cli(["--state-dir", "elsewhere", "daemon", "stop"])
        .await
        .ended(0);
    house.stops_clean().await;
}

/// Another build of the same program: a copy with a different modification time.
#[tokio::test]
async fn a_newer_build_takes_the_place_of_an_older_daemon() {
    let house = echoing().await;
    let old = house.client().await;
    let (_, answer) = old
        .begin("tools/call", calling("any/stuck", &json!({})))
        .await;
    house.until_calls("any", 1).await;
    let first = house.daemon().await;

    let new = house.keep(Client::start(house.newer_command(["serve"])));
    new.initialize(LEGACY_VERSION).await;
    new.execute("any/echo", json!({})).await.good();
    // The older daemon serves its client, and exits with it.
    assert!(processes::lives(first));
    assert_ne!(house.daemon().await, first);
    drop(answer);
    old.close().await;
    until("the end of the older daemon", || !processes::lives(first)).await;

    // An older client is also served, by a daemon of its own build.
    let older = house.client().await;
    older.execute("any/echo", json!({})).await.good();
    house.stops_clean().await;
}

#[tokio::test]
async fn a_wrong_configuration_is_told_by_the_session_that_starts_the_daemon() {
    let house = echoing().await;
    house.configure("[servers.any]\ncomand = \"x\"\n");
    let client = house.serve();
    client.initialize("2025-11-25").await;
    let found = client.search("echo").await.good();
    assert!(found.contains("did you mean"), "{found}");
    assert_eq!(client.close().await.code(), Some(0));
    assert!(
        client.stderr().contains("did you mean"),
        "{}",
        client.stderr()
    );
    assert_eq!(house.all_gone().await, Ok(()));
}
