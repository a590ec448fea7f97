//! Calls improve later searches; the stored data can be inspected and deleted.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use journeys::{
    fake::Step,
    house::{House, fake},
};
use serde_json::{Value, json};

use crate::house;

fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } }
    })
}

async fn two_ways_to_send() -> House {
    let pigeon = tool("send_note", "Send a note by carrier pigeon.");
    let bottle = tool("throw_note", "Send a note in a bottle to somebody.");
    let house = house([
        fake("pigeons").tool_as(pigeon, Step::Echo),
        fake("bottles").tool_as(bottle, Step::Echo),
    ]);
    house.indexed().await;
    house
}

/// Returns what past calls add to a tool's score.
async fn learned(house: &House, tool: &str) -> Option<f64> {
    let found = house
        .cli(["search", "--why", "send a note", "--json"])
        .await
        .json();
    let tools = found["tools"].as_array().unwrap();
    let hit = tools.iter().find(|hit| hit["name"] == tool).unwrap();
    let evidence = hit["evidence"].as_array().unwrap();
    let mut labels = evidence.iter();
    let lesson = labels.find(|it| it["label"].as_str().unwrap().contains("calls after"))?;
    lesson["amount"].as_f64()
}

async fn lessons(house: &House) -> PathBuf {
    let checked = house.cli(["config", "check", "--json"]).await.json();
    Path::new(checked["state_dir"].as_str().unwrap()).join("learned.json")
}

async fn search_and_call(house: &House) {
    let client = house.client().await;
    client.search("send a note with s3cr3t-w0rd").await.good();
    let input = json!({ "text": "s3cr3t-w0rd" });
    client.execute("bottles/throw_note", input).await.good();
    client.close().await;
}

#[journey(alone = "lessons are written at exit, and a daemon does not exit")]
async fn a_call_after_a_search_is_a_lesson_that_can_be_seen_and_forgotten() {
    let house = two_ways_to_send().await;
    assert_eq!(learned(&house, "bottles/throw_note").await, None);
    search_and_call(&house).await;
    let gain = learned(&house, "bottles/throw_note").await;
    assert!(gain.is_some_and(|it| it > 0.0), "{gain:?}");
    assert_eq!(learned(&house, "pigeons/send_note").await, None);

    let usage = house.cli(["stats", "--learned", "--json"]).await.json();
    assert_eq!(usage["tools"][0]["tool"], "bottles/throw_note");
    assert_eq!(usage["learned"], 1);
    let why = house.cli(["search", "--why", "send a note"]).await;
    assert!(why.ended(0).contains("\"note\""), "{why:?}");

    house.cli(["stats", "--learned", "--reset"]).await.ended(0);
    assert_eq!(learned(&house, "bottles/throw_note").await, None);
    let usage = house.cli(["stats", "--learned", "--json"]).await.json();
    assert_eq!(usage, json!({ "tools": [], "learned": 0 }));
    house.stops_clean().await;
}

#[journey(alone = "lessons are written at exit, and a daemon does not exit")]
async fn lessons_are_private_and_hold_words_of_tools_only() {
    let house = two_ways_to_send().await;
    search_and_call(&house).await;
    let file = lessons(&house).await;
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("note") && !text.contains("s3cr3t"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0);
    house.stops_clean().await;
}

#[journey(alone = "lessons are written at exit, and a daemon does not exit")]
async fn one_setting_turns_learning_off() {
    let house = two_ways_to_send().await;
    house.configure_more("[search]\nlearn = false\n");
    search_and_call(&house).await;
    assert!(!lessons(&house).await.exists());
    house.stops_clean().await;
}

#[journey(alone = "figures are written at exit, and a daemon does not exit")]
async fn one_setting_turns_every_figure_off() {
    let house = two_ways_to_send().await;
    search_and_call(&house).await;
    let state = lessons(&house).await;
    let state = state.parent().unwrap();
    let files = ["stats", "usage.json", "learned.json"].map(|name| state.join(name));
    assert!(files.iter().all(|file| file.exists()), "{files:?}");
    let told = house.cli(["stats", "--json"]).await.json();
    let (_, uses) = told["first_uses"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(
        uses,
        &json!({
            "search_tools": { "sessions": 1, "first": 1, "turns": 1 },
            "execute_dynamic_tool": { "sessions": 1, "first": 0, "turns": 2 },
        })
    );

    fs::remove_dir_all(&files[0]).unwrap();
    fs::remove_file(&files[1]).unwrap();
    fs::remove_file(&files[2]).unwrap();
    house.configure_more("[stats]\nenabled = false\n");
    search_and_call(&house).await;
    house.cli(["call", "bottles/throw_note"]).await.ended(0);
    house
        .cli(["call", "bottles/throw_note", r#"{"text": []}"#])
        .await
        .ended(1);
    let told = house.cli(["stats"]).await;
    assert!(told.stderr.contains("`stats.enabled = false`"), "{told:?}");
    assert_eq!(house.cli(["audit"]).await.ended(0).lines().count(), 5);
    // A daemon writes its counts when it stops.
    house.cli(["daemon", "stop"]).await;
    assert!(files.iter().all(|file| !file.exists()), "{files:?}");
    house.stops_clean().await;
}

#[journey]
async fn categories_and_tags_are_counted() {
    let house = house([
        fake("github").tool_as(tool("create_issue", "Create an issue."), Step::Echo),
        fake("slack").tool_as(tool("post_message", "Post a message."), Step::Echo),
    ]);
    house.indexed().await;
    let counted = house.cli(["search", "--categories", "--json"]).await.json();
    let categories = counted["categories"].as_array().unwrap();
    let of = |name: &str| categories.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(of("communication")["tools"], 1);
    assert_eq!(of("integration")["within"]["source-control"], 1);
    assert_eq!(counted["tags"]["issues"], 1);
    let printed = house.cli(["search", "--categories"]).await;
    assert!(
        printed
            .ended(0)
            .contains("integration 1\n  source-control 1\n"),
        "{printed:?}"
    );
    let within = house
        .cli(["search", "--category", "integration", "create"])
        .await;
    assert!(
        within.ended(0).contains("github/create_issue"),
        "{within:?}"
    );
    house.stops_clean().await;
}
