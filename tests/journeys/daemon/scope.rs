//! `scope = "client"`: each client has its own process of the server.

use std::fs;

use journeys::{fake::Step, house::fake, processes};
use serde_json::{Value, json};

use crate::{house_with_daemon, until};

#[tokio::test]
async fn each_client_has_its_own_process_in_its_own_folder() {
    let steps = |step| vec![step];
    let own = fake("own")
        .tool("folder", Step::Folder)
        .tool("roots", vec![Step::ask_roots(), Step::text("asked")])
        .setting("scope = \"client\"");
    let shared = fake("shared").tool("folder", steps(Step::Folder));
    let house = house_with_daemon([own, shared]);
    house.indexed().await;
    let folders = ["one", "two"].map(|name| house.path(name));
    for folder in &folders {
        fs::create_dir(folder).unwrap();
    }
    let clients = folders.clone().map(|folder| house.serve_from(&folder));
    for (client, folder) in clients.iter().zip(&folders) {
        client.initialize("2025-11-25").await;
        let folder = folder.display().to_string();
        for _ in 0..2 {
            let told = client.execute("own/folder", json!({})).await.good();
            assert_eq!(told, folder);
        }
        client.execute("own/roots", json!({})).await.good();
        let root = format!("file://{folder}");
        house
            .until_received("own", |line| line.contains(&root))
            .await;
        client.execute("shared/folder", json!({})).await.good();
    }
    // `reindex` has started each server once.
    assert_eq!((house.starts("own"), house.starts("shared")), (3, 2));
    let status = house.status().await;
    let owners = status["servers"].as_array().unwrap().iter();
    let owners = owners.filter(|it| it["name"] == "own" && it["client_name"] == "journeys");
    assert_eq!(owners.count(), 2);

    let pids = house.pids("own");
    let [_, first, second] = pids[..] else {
        panic!("{pids:?}");
    };
    clients[0].close().await;
    until("the end of its process", || !processes::lives(first)).await;
    assert!(processes::lives(second));
    clients[1].execute("own/folder", json!({})).await.good();
    house.stops_clean().await;
}

/// A client that floods its connection with calls, or never reads a response, delays only its own
/// calls.
#[tokio::test]
async fn a_client_that_floods_or_does_not_read_delays_nobody() {
    let server = fake("any")
        .tool("echo", Step::Echo)
        .tool("big", Step::TextOfBytes(1 << 18));
    let house = house_with_daemon([server]);
    house.indexed().await;
    let mut deaf = house.command(["serve"]);
    deaf.stdin(std::process::Stdio::piped());
    deaf.stdout(std::process::Stdio::piped());
    deaf.stderr(std::process::Stdio::null());
    let mut deaf = deaf.kill_on_drop(true).spawn().unwrap();
    let mut input = deaf.stdin.take().unwrap();
    let flood = async {
        use tokio::io::AsyncWriteExt as _;
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "deaf", "version": "1"}}});
        input
            .write_all(format!("{hello}\n").as_bytes())
            .await
            .unwrap();
        for id in 1.. {
            let params = json!({"name": "execute_dynamic_tool", "arguments":
                {"tool_name": "any/big", "tool_input": {}, "raw": true}});
            let call: Value =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            // This blocks when all buffers in between are full.
            if input
                .write_all(format!("{call}\n").as_bytes())
                .await
                .is_err()
            {
                break;
            }
        }
    };
    let quick = async {
        let client = house.client().await;
        for _ in 0..30 {
            client.execute("any/echo", json!({})).await.good();
        }
    };
    tokio::select! {
        () = quick => {}
        () = flood => panic!("the flood ended early"),
    }
    deaf.kill().await.unwrap();
    house.stops_clean().await;
}
