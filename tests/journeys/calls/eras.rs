//! Clients and servers of either era communicate through the proxy.

use journeys::{
    fake::{Era, LEGACY_VERSIONS, Step},
    house::{Fake, fake},
};
use serde_json::{Value, json};

use crate::{house, until};

#[journey]
async fn every_client_reaches_every_server() {
    let eras = [
        (Era::Legacy, "old"),
        (Era::Modern, "new"),
        (Era::Both, "any"),
    ];
    let mut servers: Vec<_> = eras
        .iter()
        .map(|(era, name)| fake(name).era(*era).tool("echo", Step::Echo))
        .collect();
    let refuses = fake("stubborn").era(Era::Legacy).tool("echo", Step::Echo);
    servers.push(refuses.script(|it| it.discover_refusal = Some(-32602)));
    let house = house(servers);
    house.indexed().await;

    let mut clients = vec![house.modern_client().await];
    for version in LEGACY_VERSIONS {
        let client = house.serve();
        assert_eq!(client.initialize(version).await["protocolVersion"], version);
        clients.push(client);
    }
    for client in clients {
        assert_eq!(client.tools_list().await.len(), 3);
        for server in ["old", "new", "any", "stubborn"] {
            let reply = client
                .execute(&format!("{server}/echo"), json!({ "a": 1 }))
                .await;
            assert_eq!(reply.good(), r#"{"a":1}"#, "{server}");
        }
    }
    house.stops_clean().await;
}

#[journey]
async fn a_modern_client_gets_what_its_era_promises() {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.serve();
    let found = client.discover().await;
    assert!(
        found["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&json!("2026-07-28"))
    );
    assert_eq!(found["resultType"], "complete");
    assert!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].is_string());
    let list = client.request("tools/list", json!({})).await;
    assert_eq!(list.result()["resultType"], "complete");
    assert!(list.result()["ttlMs"].is_u64() && list.result()["cacheScope"].is_string());
    let reply = client.execute("any/echo", json!({})).await;
    assert_eq!(reply.result()["resultType"], "complete");
    house.stops_clean().await;
}

#[journey]
async fn a_client_may_probe_the_modern_era_and_fall_back() {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.serve();
    let bare = client.request("server/discover", json!({})).await;
    assert_eq!(bare.error()["code"], -32602);
    client.initialize("2025-11-25").await;
    let reply = client.execute("any/echo", json!({})).await;
    assert!(reply.result().get("resultType").is_none());
    house.stops_clean().await;
}

#[journey]
async fn a_server_that_asks_for_roots_first_still_answers() {
    let asks = fake("curious").tool("echo", [Step::ask_roots(), Step::Echo]);
    let house = house([asks.script(|it| it.on_initialized = vec![Step::ask_roots()])]);
    house.indexed().await;
    let client = house.client().await;
    assert_eq!(
        client
            .execute("curious/echo", json!({ "a": 1 }))
            .await
            .good(),
        r#"{"a":1}"#
    );
    house.stops_clean().await;
}

/// The first start of a server may take longer than the 10 s for which the probe waits.
#[journey(alone = "it tests the connection to servers")]
async fn a_server_that_starts_slowly_is_spoken_to_in_the_newest_revision() {
    let house = house::<Fake>([]);
    let steps = vec![Step::UntilExists(house.path("started")), Step::Proper];
    let server = fake("slow").era(Era::Both).tool("echo", Step::Echo);
    house.add(server.script(|script| {
        script.on_discover = Some(steps);
        script.on_initialize = Some(Vec::new());
    }));
    let starting = async {
        let handshakes = || house.received_method("slow", "initialize").len();
        until("the handshake after the probe", || handshakes() > 0).await;
        house.write("started", "");
    };
    let (reindexed, ()) = tokio::join!(house.cli(["reindex"]), starting);
    reindexed.ended(0);
    assert_eq!(house.starts("slow"), 2);
    let text = std::fs::read_to_string(house.state().join("catalog.json")).unwrap();
    let catalog: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(catalog["servers"]["slow"]["protocol"], "2026-07-28");
    house.stops_clean().await;
}

#[journey(alone = "it tests the connection to servers")]
async fn a_server_of_which_nothing_is_known_is_asked_in_the_newest_revision_first() {
    let echoing = |name: &str, era| fake(name).era(era).tool("echo", Step::Echo);
    let rude = echoing("rude", Era::Both).script(|it| it.on_discover = Some(vec![Step::Exit(1)]));
    let house = house([
        echoing("both", Era::Both),
        echoing("old", Era::Legacy),
        rude,
    ]);
    house.cli(["reindex"]).await.ended(0);
    let opened = |server: &str, method: &str| house.received_method(server, method).len();
    assert_eq!(
        (
            opened("both", "server/discover"),
            opened("both", "initialize")
        ),
        (1, 0)
    );
    // The server refuses, and gets the next request on the same pipes.
    assert_eq!(
        (
            opened("old", "server/discover"),
            opened("old", "initialize")
        ),
        (1, 1)
    );
    assert_eq!(house.starts("old"), 1);
    // The server exits, as some do if the first message is not `initialize`.
    assert_eq!((house.starts("rude"), opened("rude", "initialize")), (2, 1));
    let client = house.client().await;
    for server in ["both", "old", "rude"] {
        client
            .execute(&format!("{server}/echo"), json!({}))
            .await
            .good();
    }
    assert_eq!(
        (opened("old", "server/discover"), house.starts("rude")),
        (1, 3)
    );
    house.stops_clean().await;
}

#[journey]
async fn a_server_without_sessions_is_told_the_log_level_with_each_call() {
    const LEVEL: &str = "io.modelcontextprotocol/logLevel";
    let house = house([fake("new").era(Era::Modern).tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.client().await;
    let params = json!({ "level": "debug" });
    client
        .request("logging/setLevel", params)
        .await
        .into_result();
    client.execute("new/echo", json!({})).await.good();
    let modern = house.modern_client().await;
    modern.execute("new/echo", json!({})).await.good();
    let calls = house.received_method("new", "tools/call");
    assert_eq!(calls[0]["params"]["_meta"][LEVEL], "debug");
    assert!(
        calls[1]["params"]["_meta"].get(LEVEL).is_none(),
        "the client asked for no log"
    );
    house.stops_clean().await;
}
