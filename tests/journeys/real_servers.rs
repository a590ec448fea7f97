//! The six real servers behind the three tools.

use journeys::{client::Client, house::House};
use serde_json::{Value, json};

use crate::{house, programs, real_servers};

/// All six in one house, indexed; none where they cannot be installed.
async fn house_of_six() -> Option<(House, Client)> {
    let real = real_servers()?;
    let house = house::<journeys::house::Fake>([]);
    std::fs::create_dir(house.path("open")).unwrap();
    house.write("open/hello.txt", "Hello.");
    let repository = house.repository();
    for server in [
        real.everything(),
        real.filesystem(&house.path("open")),
        real.memory(&house.path("memory.jsonl")),
        real.sequential_thinking(),
        real.time(),
        real.git(&repository),
    ] {
        house.add(server);
    }
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    Some((house, client))
}

#[tokio::test]
async fn all_six_are_found_and_called() {
    let Some((house, client)) = house_of_six().await else {
        return;
    };
    let folder = house.path("open");
    let repository = house.path("repository");
    let calls: [(&str, &str, Value, &str); 6] = [
        (
            "add two numbers",
            "everything/get-sum",
            json!({ "a": 2, "b": 40 }),
            "The sum of 2 and 40 is 42.",
        ),
        (
            "read a text file",
            "filesystem/read_text_file",
            json!({ "path": folder.join("hello.txt") }),
            "Hello.",
        ),
        (
            "create entities in the knowledge graph",
            "memory/create_entities",
            json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": [] }] }),
            "Ada",
        ),
        (
            "sequential thinking",
            "sequential-thinking/sequentialthinking",
            json!({ "thought": "hm", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": true }),
            "\"thoughtHistoryLength\": 1",
        ),
        (
            "convert time between time zones",
            "time/convert_time",
            json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
            "T21:00:00+09:00",
        ),
        (
            "git status of a repository",
            "git/git_status",
            json!({ "repo_path": repository }),
            "working tree clean",
        ),
    ];
    for (query, tool, input, expected) in calls {
        let found = client.search(query).await.good();
        assert!(found.contains(&format!("{tool}(")), "{query}:\n{found}");
        assert!(
            client.describe(tool).await.good().contains("\ninput {"),
            "{tool}"
        );
        let answer = client.execute(tool, input).await.good();
        assert!(answer.contains(expected), "{tool}: {answer}");
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_session_with_the_mistakes_models_make() {
    let Some((house, client)) = house_of_six().await else {
        return;
    };
    let wrong = client
        .execute("everything/get_summ", json!({ "a": 1, "b": 2 }))
        .await
        .bad();
    assert!(wrong.contains("everything/get-sum("), "{wrong}");
    let stringified =
        json!({ "tool_name": "everything/get-sum", "tool_input": "{\"a\":1,\"b\":2}" });
    let sum = client
        .call("execute_dynamic_tool", stringified)
        .await
        .good();
    assert_eq!(sum, "The sum of 1 and 2 is 3.");
    let missing = client
        .execute("everything/get-sum", json!({ "a": 1 }))
        .await
        .bad();
    assert!(missing.starts_with("error invalid_input: "), "{missing}");
    assert!(
        missing.contains("everything/get-sum(a: number, b: number)"),
        "{missing}"
    );
    let image = client.execute("everything/get-tiny-image", json!({})).await;
    assert!(image.content().iter().any(|block| block["type"] == "image"));
    let outside = house.write("outside.txt", "secret");
    let denied = client
        .execute("filesystem/read_text_file", json!({ "path": outside }))
        .await
        .bad();
    assert!(denied.contains("Access denied"), "{denied}");
    house.stops_clean().await;
}

#[tokio::test]
async fn nothing_is_left_though_real_servers_have_many_processes() {
    let Some((house, client)) = house_of_six().await else {
        return;
    };
    client
        .execute("everything/get-sum", json!({ "a": 1, "b": 2 }))
        .await
        .good();
    client.kill().await;
    assert_eq!(house.all_gone().await, Ok(()), "{:?}", programs());
}
