//! The lock file of a team: what `proxy review --lock` writes, and what `proxy review --verify` says about servers that
//! changed since.

use std::{fs, path::PathBuf};

use journeys::{
    fake::{FakeItem, Step},
    house::{Fake, House, fake},
};
use serde_json::{Value, json};

use crate::house;

fn notes(tools: &[Value]) -> Fake {
    let all = tools.iter().cloned();
    all.fold(fake("notes"), |fake, tool| fake.tool_as(tool, Step::Echo))
}

fn add(properties: &Value, required: &Value) -> Value {
    json!({"name": "add", "description": "Adds.", "inputSchema":
        {"type": "object", "properties": properties, "required": required}})
}

async fn verify(house: &House, words: &[&str], code: i32) -> String {
    let all = [&["review", "--verify"][..], words].concat();
    house.cli(all).await.ended(code).to_owned()
}

#[tokio::test]
async fn a_change_is_sorted_and_the_exit_code_says_what_to_do() {
    let text = json!({"text": {"type": "string"}});
    let house = house([notes(&[add(&text, &json!(["text"]))])]);
    let none = house.cli(["review", "--verify"]).await;
    none.ended(12);
    assert!(
        none.stderr.contains("hint: proxy review --lock"),
        "{none:?}"
    );
    let locked = house.cli(["review", "--lock"]).await;
    assert!(
        locked.ended(0).contains("config.lock: 1 server"),
        "{locked:?}"
    );
    let lock = fs::read_to_string(house.path("config.lock")).unwrap();
    verify(&house, &[], 0).await;

    let more = json!({"text": {"type": "string"}, "tag": {"type": "string"}});
    let other = json!({"name": "list", "inputSchema": {"type": "object"}});
    house.rewrite(notes(&[add(&more, &json!(["text"])), other]));
    let said = verify(&house, &[], 10).await;
    assert_eq!(
        said,
        "additive  notes/add  inputSchema.tag: added\nadditive  notes/list  added\n"
    );
    // Nothing was stored: the last survey is the one before.
    house.cli(["review", "--lock"]).await.ended(0);
    assert_eq!(fs::read_to_string(house.path("config.lock")).unwrap(), lock);

    house.rewrite(notes(&[add(&more, &json!(["text", "tag"]))]));
    let said = verify(&house, &["--lines"], 11).await;
    assert!(
        said.starts_with("breaking  notes/add  inputSchema.tag: added and required\n"),
        "{said}"
    );
    assert!(said.contains("+      \"tag\": {"), "{said}");
    let told = house.cli(["review", "--verify", "--json"]).await;
    told.ended(11);
    assert_eq!(told.json()["differences"][0]["kind"], "breaking");

    house.rewrite(fake("notes").before([Step::Exit(1)]));
    let said = verify(&house, &[], 12).await;
    assert!(said.starts_with("unknown   notes  "), "{said}");

    let conflict = lock.replace("Adds.", "<<<<<<< HEAD\nAdds.");
    fs::write(house.path("config.lock"), conflict).unwrap();
    let edited = house.cli(["review", "--verify"]).await;
    edited.ended(12);
    assert!(edited.stderr.contains("it is no lock file"), "{edited:?}");
    let refused = house.cli(["review", "--lock"]).await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    house.stops_clean().await;
}

#[tokio::test]
async fn a_lock_has_what_a_person_accepted() {
    let house = house([
        notes(&[add(&json!({}), &json!([]))]),
        fake("mail").tool("send", Step::Echo),
    ]);
    let file = || fs::read_to_string(house.path("config.lock")).unwrap();
    house.cli(["review", "--lock"]).await.ended(0);
    let before = file();
    house.rewrite(notes(&[add(&json!({"x": {}}), &json!([]))]));
    house.cli(["reindex"]).await.ended(0);
    let waiting = house.cli(["review", "--lock"]).await;
    waiting.ended(0);
    assert!(
        waiting
            .stderr
            .contains("notes tool add\nhint: proxy review"),
        "{waiting:?}"
    );
    assert_eq!(file(), before);
    let list = house.cli(["review", "notes", "--json"]).await.json();
    let digest = list[0]["digest"].as_str().unwrap().to_owned();
    house
        .cli(["review", "notes", "--accept", &digest])
        .await
        .ended(0);
    let locked = house.cli(["review", "--lock", "--json"]).await.json();
    assert_eq!(locked["servers"], 2);
    assert_ne!(file(), before);
    verify(&house, &[], 0).await;
    // A server that left the configuration is missed until the file is written again.
    house.configure("");
    house.add(fake("mail").tool("send", Step::Echo));
    let said = verify(&house, &[], 11).await;
    assert_eq!(said, "breaking  notes  no longer configured, or disabled\n");
    house.cli(["review", "--lock"]).await.ended(0);
    verify(&house, &[], 0).await;
    house.stops_clean().await;
}

/// The versions of a published server, each with the tools, prompts and instructions that it listed:
/// each is compared with the lock of the one before. Returns the exit codes by version.
async fn verify_history(name: &str) -> Vec<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("catalogues/history");
    let text = fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let versions: Vec<Value> = serde_json::from_str(&text).unwrap();
    let of = |version: &Value| {
        let items = |key: &str| -> Vec<FakeItem> {
            let all = version[key].as_array().unwrap().iter();
            all.map(|it| FakeItem::defined(it.clone(), [Step::Echo]))
                .collect()
        };
        let (tools, prompts) = (items("tools"), items("prompts"));
        let instructions = version["instructions"].as_str().map(str::to_owned);
        fake("it").script(|it| {
            it.tools = tools;
            it.prompts = prompts;
            it.instructions = instructions;
            it.capabilities = Some(json!({"tools": {}, "prompts": {}}));
        })
    };
    let house = house([of(&versions[0])]);
    house.cli(["review", "--lock"]).await.ended(0);
    let mut codes = Vec::new();
    for version in &versions[1..] {
        house.rewrite(of(version));
        let code = house.cli(["review", "--verify"]).await.code.unwrap();
        codes.push(format!("{} {code}", version["version"].as_str().unwrap()));
        // A colleague's machine, on which the new version is accepted.
        fs::remove_dir_all(house.path("xdg-state")).unwrap();
        house.cli(["review", "--lock"]).await.ended(0);
        verify(&house, &[], 0).await;
    }
    house.stops_clean().await;
    codes
}

#[tokio::test]
async fn the_versions_of_real_servers_are_told_apart() {
    let all = [
        verify_history("everything").await,
        verify_history("context7").await,
    ];
    assert_eq!(
        all[0],
        [
            "2025.1.14 10",
            "2025.3.19 10",
            "2025.4.8 10",
            "2025.4.28 0",
            "2025.5.12 0",
            "2025.7.1 11",
            "2025.7.29 11",
            "2025.8.4 0",
            "2025.8.18 0",
            "2025.9.12 11",
            "2025.9.25 0",
            "2025.11.25 10",
            "2025.12.18 0",
            "2026.1.14 11",
            "2026.1.26 10",
            "2026.7.4 11",
            "2026.8.18 0",
            "2026.8.31 0",
        ]
    );
    // It rewrites its descriptions with many releases; from 2.3.0 to 3.2.0 nothing changed for a model.
    let unchanged = [
        "1.0.20 0", "1.0.33 0", "2.1.4 0", "2.3.0 0", "3.0.0 0", "3.1.0 0", "3.2.0 0", "4.0.7 0",
        "4.1.1 0",
    ];
    let (same, others): (Vec<&str>, Vec<&str>) = all[1]
        .iter()
        .map(String::as_str)
        .partition(|it| it.ends_with(" 0"));
    assert_eq!(same, unchanged);
    assert!(
        others.len() == 14 && others.iter().all(|it| it.ends_with(" 11")),
        "{others:?}"
    );
}
