//! A file with a `tools/list` result is served as by the original server.

use journeys::{client::Client, fake::LEGACY_VERSION, house::House};
use serde_json::json;
use tokio::process::Command;

use crate::programs;

#[tokio::test]
async fn a_catalogue_is_served_and_its_tools_echo() {
    let house = House::without_config(&programs());
    let tool = json!({
        "name": "find.things__now",
        "inputSchema": { "type": "object", "properties": { "z": {}, "a": {} }, "x-vendor": [1, 2.50] },
        "futureField": { "kept": true },
        "_meta": { "k": null },
    });
    let catalog = json!({
        "package": "something",
        "initialize": {
            "protocolVersion": "2024-11-05",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "things", "version": "3" },
            "instructions": "Find things.",
        },
        "tools": [tool],
    });
    let file = house.write("catalog.json", &catalog.to_string());

    let mut command = Command::new(programs().fake_server);
    command.arg("--catalog").arg(file);
    let client = Client::start(command);
    let greeting = client.initialize(LEGACY_VERSION).await;

    assert_eq!(greeting["serverInfo"]["name"], "things");
    assert_eq!(greeting["instructions"], "Find things.");
    let list = client.request("tools/list", json!({})).await;
    assert!(list.raw().contains(&tool.to_string()), "{}", list.raw());
    let reply = client.call("find.things__now", json!({ "z": 1 })).await;
    assert_eq!(reply.good(), r#"{"z":1}"#);
    assert_eq!(client.close().await.code(), Some(0));
}

#[tokio::test]
async fn a_missing_catalogue_is_named() {
    let mut command = Command::new(programs().fake_server);
    command.args(["--catalog", "no-such-file.json"]);
    let client = Client::start(command);
    assert_eq!(client.ended().await.code(), Some(2));
    assert!(
        client.stderr().contains("catalog no-such-file.json"),
        "{}",
        client.stderr()
    );
}
