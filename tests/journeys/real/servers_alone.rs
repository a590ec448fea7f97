//! Real servers behave as the other tests assume, without the proxy.

use journeys::{
    client::Client,
    fake::LEGACY_VERSION,
    house::{House, Program},
};
use serde_json::json;

use crate::{programs, real_servers};

async fn started(program: &Program) -> Client {
    let client = Client::start(program.to_command());
    client.initialize(LEGACY_VERSION).await;
    client
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn each_server_answers_a_call() {
    let real = real_servers();
    let house = House::without_config(&programs());
    house.write("hello.txt", "Hello.");
    let folder = house.path("");

    let everything = started(&real.everything()).await;
    let sum = everything.call("get-sum", json!({ "a": 2, "b": 40 })).await;
    assert_eq!(sum.good(), "The sum of 2 and 40 is 42.");

    let filesystem = started(&real.filesystem(&folder)).await;
    let hello = json!({ "path": folder.join("hello.txt") });
    assert_eq!(
        filesystem.call("read_text_file", hello).await.good(),
        "Hello."
    );

    let memory = started(&real.memory(&house.path("memory.jsonl"))).await;
    let ada =
        json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": [] }] });
    memory.call("create_entities", ada).await.good();
    let found = memory.call("search_nodes", json!({ "query": "Ada" })).await;
    assert_eq!(
        found.result()["structuredContent"]["entities"][0]["name"],
        "Ada"
    );

    let thinking = started(&real.sequential_thinking()).await;
    let thought = json!({ "thought": "hm", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": true });
    assert!(
        thinking
            .call("sequentialthinking", thought)
            .await
            .good()
            .contains("\"thoughtHistoryLength\": 1")
    );

    let time = started(&real.time()).await;
    let noon =
        json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    assert!(
        time.call("convert_time", noon)
            .await
            .good()
            .contains("T21:00:00+09:00")
    );
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn git_answers_a_call_about_a_repository() {
    let real = real_servers();
    let house = House::without_config(&programs());
    let repository = house.repository();
    let git = started(&real.git(&repository)).await;
    let status = git
        .call("git_status", json!({ "repo_path": repository }))
        .await;
    assert!(
        status.good().contains("working tree clean"),
        "{}",
        status.text()
    );
}
