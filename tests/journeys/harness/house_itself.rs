//! The house writes the configuration that the test describes.

use std::{collections::BTreeSet, fs};

use files::clock::now_ms;
use journeys::{
    fake::{Era, Script, Step},
    house::{Fake, House, Server, fake, program},
};

use serde_json::{Value, json};

use crate::{house, programs};

#[tokio::test]
async fn a_server_becomes_a_table_and_a_script() {
    let files = fake("files")
        .tool("read", Step::Echo)
        .setting("timeout_s = 1");
    let other = program("other", "some \"thing\"", ["--flag"]).env("KEY", "a b");
    let house = house([Server::from(files.clone()), other.into()]);

    let config = fs::read_to_string(house.config()).unwrap();
    let marker = house.path("");
    let marker = marker.display().to_string();
    let marker = marker.trim_end_matches('/');
    let fake_server = programs().fake_server;
    let expected = format!(
        r#"[servers."files"]
command = "{}"
args = ["--script-file", "{marker}/files.script.json"]
env = {{ "PROXY_TEST_HOUSE" = "{marker}" }}
timeout_s = 1

[servers."other"]
command = "some \"thing\""
args = ["--flag"]
env = {{ "KEY" = "a b", "PROXY_TEST_HOUSE" = "{marker}" }}
"#,
        fake_server.display()
    );
    assert_eq!(config, expected);

    let written = fs::read_to_string(house.path("files.script.json")).unwrap();
    let mut script: Script = serde_json::from_str(&written).unwrap();
    assert_eq!(script.record.take(), Some(house.path("files.received")));
    assert_eq!(script, files.into_script());
    house.stops_clean().await;
}

#[tokio::test]
async fn what_the_house_writes_is_what_reindex_writes() {
    let annotated = json!({
        "name": "zz_delete",
        "description": "Delete \u{e9}verything.\nFor ever.",
        "inputSchema": { "type": "object", "properties": { "b": {}, "a": { "type": "string" } } },
        "annotations": { "destructiveHint": true }
    });
    let servers = || {
        let both = fake("github").tool_as(annotated.clone(), Step::Echo);
        let both = both.tool("list_issues", Step::Echo);
        let legacy = fake("old").era(Era::Legacy).tool("same", Step::Echo);
        let paged = fake("paged")
            .tool("one", Step::Echo)
            .tool("two", Step::Echo);
        let paged = paged.hidden_tool("secret", Step::Echo);
        let paged = paged.script(|script| {
            script.page_size = Some(1);
            script.instructions = Some("Be brief.".to_owned());
        });
        [both, legacy, paged, fake("without")]
    };
    let written = house(servers());
    written.indexed().await;
    assert_eq!(written.starts("github"), 0, "no server was surveyed");
    let asked = house(servers());
    asked.cli(["reindex"]).await.ended(0);
    assert_eq!(asked.starts("github"), 1);
    assert_eq!(records(&written), records(&asked));
    assert_eq!(snapshots(&written), snapshots(&asked));
    for house in [written, asked] {
        house.stops_clean().await;
    }
}

/// Of two surveys of a server, the registry keeps the one that asked later, to the millisecond. The
/// house once wrote whole seconds, and lost to a `reindex` of the same second.
#[tokio::test]
async fn the_house_writes_the_first_state_with_its_time_and_reindex_each_later_one() {
    let house = house([fake("any").tool("before", Step::Echo)]);
    let began = now_ms();
    house.indexed().await;
    assert_eq!(house.starts("any"), 0, "no server was surveyed");
    let asked = &catalog(&house)["servers"]["any"]["asked_ms"];
    assert!((began..=now_ms()).contains(&asked.as_u64().unwrap()));
    house.rewrite(fake("any").tool("after", Step::Echo));
    house.indexed().await;
    assert_eq!(house.starts("any"), 1, "the server was surveyed");
    assert!(
        house
            .cli(["search", "*"])
            .await
            .ended(0)
            .starts_with("any/after")
    );
    house.stops_clean().await;
}

/// Returns the catalogue.
fn catalog(house: &House) -> Value {
    let text = fs::read_to_string(house.state().join("catalog.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Returns the catalogue without its times.
fn records(house: &House) -> Value {
    let mut records = catalog(house);
    for record in records["servers"].as_object_mut().unwrap().values_mut() {
        for time in ["surveyed_at", "asked_ms"] {
            record[time] = Value::Null;
        }
    }
    records
}

/// Returns the names of the snapshots, which are digests of their content.
fn snapshots(house: &House) -> BTreeSet<String> {
    let files = fs::read_dir(house.state().join("snapshots")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[tokio::test]
async fn a_house_with_tricks_is_asked_by_reindex() {
    let tricks: [fn(Fake) -> Fake; 4] = [
        |fake| fake.era(Era::Modern),
        |fake| fake.listed(json!("no tool")),
        |fake| fake.setting("cwd = \"/\""),
        |fake| fake.script(|script| script.on_list = Some(vec![Step::Proper])),
    ];
    for trick in tricks {
        let house = house([trick(fake("any").tool("echo", Step::Echo))]);
        house.indexed().await;
        assert_ne!(house.starts("any"), 0, "the server was surveyed");
        house.stops_clean().await;
    }
}
