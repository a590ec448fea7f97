//! Servers are added, switched, renamed and removed by command, while a client is connected.

use std::{fs::File, io::Write as _, time::Duration};

use journeys::{
    client::Client,
    fake::Step,
    house::{House, fake},
};
use serde_json::{Value, json};

use crate::{futures_of, house_with_daemon};

/// Returns the words after `add` that add the house's server `of` under another name.
fn words_to_add(house: &House, name: &str, of: &str) -> Vec<String> {
    let written = std::fs::read_to_string(house.config()).unwrap();
    let written: toml::Table = written.parse().unwrap();
    let server = &written["servers"][of];
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let mut words = vec!["add".to_owned(), name.to_owned()];
    for (name, value) in server["env"].as_table().unwrap() {
        words.extend(["--env".to_owned(), format!("{name}={}", text(value))]);
    }
    words.extend(["--".to_owned(), text(&server["command"])]);
    words.extend(server["args"].as_array().unwrap().iter().map(text));
    words
}

/// Secrets of a typed server are stored, the file has their names, and the server starts with them.
#[tokio::test]
async fn a_typed_secret_goes_into_the_store_and_not_into_the_file() {
    let house = house_with_daemon([fake("first").tool("echo", Step::Echo)]);
    let mut words = words_to_add(&house, "second", "first");
    let token = "ghp_0123456789abcdefghij";
    words.splice(2..2, ["--env".to_owned(), format!("API_TOKEN={token}")]);
    words.extend(["--api-key".to_owned(), "opensesame".to_owned()]);
    let added = house.cli(words).await;
    let told = "stored by `proxy secret`, not in the file: second.API_TOKEN, second.api-key";
    assert!(added.stderr.contains(told), "{added:?}");
    let config = std::fs::read_to_string(house.config()).unwrap();
    for secret in [token, "opensesame"] {
        assert!(!config.contains(secret), "{config}");
        let told = format!("{}{}", added.stdout, added.stderr);
        assert!(!told.contains(secret), "{told}");
    }
    let listed = house.cli(["secret", "list"]).await;
    assert_eq!(listed.ended(0), "second.API_TOKEN\nsecond.api-key\n");
    // An edit that is refused stores nothing.
    let again = [
        "add",
        "second",
        "--env",
        "OTHER_TOKEN=opensesame",
        "--",
        "x",
    ];
    house.cli(again).await.ended(2);
    let listed = house.cli(["secret", "list"]).await;
    assert_eq!(listed.ended(0), "second.API_TOKEN\nsecond.api-key\n");
    house.stops_clean().await;
}

async fn states(house: &House) -> Value {
    let listed = house.cli(["servers", "--json"]).await.json();
    let servers = listed["servers"].as_array().unwrap().iter();
    servers
        .map(|it| json!([it["name"], it["enabled"]]))
        .collect()
}

#[tokio::test]
async fn a_client_that_is_served_follows_what_is_added_switched_renamed_and_removed() {
    let house = house_with_daemon([fake("first").tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.client().await;
    let before = std::fs::read_to_string(house.config()).unwrap();

    let added = house.cli(words_to_add(&house, "second", "first")).await;
    assert!(added.ended(0).contains("\nsecond/echo"), "{}", added.stdout);
    client
        .until_search_finds("select:second/echo", "second/echo(")
        .await;
    client.execute("second/echo", json!({})).await.good();
    assert_eq!(
        states(&house).await,
        json!([["first", true], ["second", true]])
    );

    house.cli(["servers", "disable", "first"]).await.ended(0);
    client.until_search_finds("do echo", "second/echo(").await;
    assert_eq!(
        states(&house).await,
        json!([["first", false], ["second", true]])
    );
    house
        .cli(["servers", "rename", "second", "third"])
        .await
        .ended(0);
    client.until_search_finds("do echo", "third/echo(").await;
    house.cli(["remove", "third"]).await.ended(0);
    house.cli(["servers", "enable", "first"]).await.ended(0);
    client.until_search_finds("do echo", "first/echo(").await;
    let after = std::fs::read_to_string(house.config()).unwrap();
    assert_eq!(after.replace("enabled = true\n", ""), before);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_rule_follows_its_server_to_another_name_and_goes_with_it() {
    let house = house_with_daemon([fake("first").tool("echo", Step::Echo)]);
    house.configure_more("[[rules]]\ndecision = \"deny\"\ntool = \"first/ec*\"\n");
    house.indexed().await;
    let client = house.client().await;
    let refused = client.execute("first/echo", json!({})).await.bad();
    assert!(refused.contains("rule 1"), "{refused}");

    let renamed = house.cli(["servers", "rename", "first", "second"]).await;
    renamed.ended(0);
    let told = &renamed.stderr;
    assert!(told.contains("is now \"second/ec*\""), "{told}");
    client.until_search_finds("do echo", "second/echo(").await;
    let refused = client.execute("second/echo", json!({})).await.bad();
    assert!(refused.contains("rule 1"), "{refused}");

    let again = words_to_add(&house, "second", "second");
    house
        .cli(["remove", "second", "--keep-rules"])
        .await
        .ended(0);
    let added = house.cli(again.clone()).await;
    assert!(
        added
            .stderr
            .contains("rule 1: tool = \"second/ec*\" already names `second`"),
        "{}",
        added.stderr
    );
    let removed = house.cli(["remove", "second"]).await;
    removed.ended(0);
    let told = &removed.stderr;
    assert!(told.contains("removed `second` from rule 1"), "{told}");
    house.cli(again).await.ended(0);
    client.until_search_finds("do echo", "second/echo(").await;
    until_called(&client, "second/echo").await;
    house.stops_clean().await;
}

/// Calls the tool until the call is allowed: a changed file is read with a delay.
async fn until_called(client: &Client, tool: &str) {
    let called = async {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        while client.execute(tool, json!({})).await.is_error() {
            looks.tick().await;
        }
    };
    client.within("call that is allowed", called).await;
}

/// The number of saves of the editor. A command that meets a concurrent save changes nothing and is
/// retried.
const SAVES: usize = 200;

/// Acts as an editor that repeatedly writes the file in place.
async fn save_often(house: &House) {
    let mut saves = tokio::time::interval(Duration::from_millis(20));
    for _ in 0..SAVES {
        saves.tick().await;
        let mut file = File::options().append(true).open(house.config()).unwrap();
        file.write_all(b"# note\n").unwrap();
    }
}

#[tokio::test]
async fn ten_processes_that_add_servers_beside_an_editor_lose_none() {
    let house = house_with_daemon([fake("first").tool("echo", Step::Echo)]);
    let writers = (0..10).map(async |writer| {
        for round in 0..4 {
            let name = format!("s{writer}-{round}");
            let words = ["add", &name, "--disabled", "--", "npx", "-y", "x"];
            let mut tries = 0..=SAVES;
            loop {
                let added = house.cli(words).await;
                if added.code == Some(0) {
                    break;
                }
                assert!(added.stderr.contains("nothing was changed"), "{added:?}");
                assert!(tries.next().is_some(), "{name} was never added: {added:?}");
            }
        }
    });
    tokio::join!(futures_of(writers), save_often(&house));
    let listed = house.cli(["servers", "--json"]).await.json();
    assert_eq!(listed["servers"].as_array().unwrap().len(), 41);
    house.stops_clean().await;
}

#[tokio::test]
async fn what_cannot_be_changed_leaves_the_file_as_it_was() {
    let house = house_with_daemon([fake("first").tool("echo", Step::Echo)]);
    let before = std::fs::read(house.config()).unwrap();
    let check = async |words: &[&str], says: &str| {
        let refused = house.cli(words).await;
        refused.ended(2);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
        assert_eq!(std::fs::read(house.config()).unwrap(), before);
    };
    check(&["remove", "frist"], "no server `frist`").await;
    check(&["servers", "rename", "first", "My First"], "contains 'M'").await;
    check(
        &["add", "first", "https://example.com/mcp"],
        "proxy remove first",
    )
    .await;
    check(
        &["add", "x", "htps://example.com/mcp"],
        "nothing was changed",
    )
    .await;
    check(
        &["add", "x", "--cwd", "", "--", "npx"],
        "nothing was changed",
    )
    .await;
    house.stops_clean().await;
}
