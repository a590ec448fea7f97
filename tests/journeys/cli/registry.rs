//! Servers of a registry of MCP: found by words, shown as a whole, and added with their version.

use std::{fs, path::PathBuf};

use journeys::{
    documents::Documents,
    fake::Step,
    house::{House, fake},
};
use serde_json::{Value, json};

use crate::house;

const BRAVE: &str = "io.github.brave/brave-search-mcp-server";

fn answers() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("catalogues/registry/servers.json")
}

/// A registry with these servers, which compares one text with names as the official one does.
async fn registry() -> Documents {
    let all: Value = serde_json::from_str(&fs::read_to_string(answers()).unwrap()).unwrap();
    let all = all["servers"].as_array().unwrap();
    let registry = Documents::start().await;
    for word in ["brave", "rich", "memory", "context7", "notes"] {
        let name = |it: &&Value| it["server"]["name"].as_str().unwrap().contains(word);
        let found: Vec<&Value> = all.iter().filter(name).collect();
        let path = format!("/v0.1/servers?version=latest&limit=100&search={word}");
        registry.put(
            &path,
            &json!({"servers": found, "metadata": {"count": found.len()}}),
        );
    }
    for it in all {
        let name = it["server"]["name"].as_str().unwrap().replace('/', "%2F");
        let version = it["server"]["version"].as_str().unwrap();
        for version in [version, "latest"] {
            registry.put(&format!("/v0.1/servers/{name}/versions/{version}"), it);
        }
    }
    registry
}

fn here() -> House {
    house([fake("any").tool("echo", Step::Echo)])
}

fn config(house: &House) -> String {
    fs::read_to_string(house.config()).unwrap()
}

#[tokio::test]
async fn a_registry_is_searched_by_each_word() {
    let (house, registry) = (here(), registry().await);
    let url = registry.url();
    let found = house
        .cli([
            "add",
            "--list",
            "--registry",
            "--from",
            url,
            "brave",
            "rich",
        ])
        .await;
    let lines: Vec<&str> = found.ended(0).lines().collect();
    assert_eq!(lines.len(), 2, "{found:?}");
    assert!(
        lines[0].starts_with(BRAVE) && lines[0].contains("2.1.3"),
        "{found:?}"
    );
    assert!(
        lines[1].starts_with("io.github.triuzzi/brave-mcp"),
        "{found:?}"
    );
    let listed = house
        .cli([
            "add",
            "--list",
            "--registry",
            "--from",
            url,
            "--json",
            "memory",
        ])
        .await
        .json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        listed[0]["ways"][0]["way"]["command"],
        json!(["uvx", "bettermemory@7.2.0"])
    );
    let none = house
        .cli(["add", "--list", "--registry", "--from", url, "astrolabe"])
        .await;
    none.ended(1);
    // Nothing else asks a registry.
    let before = registry.asked().len();
    let mut command = house.command(["add", "--list", "memory"]);
    command.env("PROXY_REGISTRY", url);
    assert!(command.output().await.unwrap().status.success());
    assert_eq!(registry.asked().len(), before);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_server_is_shown_before_it_is_added_with_its_version() {
    let (house, registry) = (here(), registry().await);
    let name = format!("registry:{BRAVE}");
    let add = async |words: &[&str]| {
        let all = [&["add", "--from", registry.url(), "--disabled"], words].concat();
        house.cli(all).await
    };
    let before = config(&house);
    let shown = add(&[&name]).await;
    shown.ended(2);
    for expected in [
        "io.github.brave/brave-search-mcp-server 2.1.3: Brave Search",
        "package   @brave/brave-search-mcp-server 2.1.3 (npm)",
        "command   npx -y @brave/brave-search-mcp-server@2.1.3",
        "gets      BRAVE_API_KEY (secret): Your API key",
        "nothing was added without a person",
    ] {
        let said = shown.stderr.replace('\'', "");
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let missing = add(&[&name, "--yes"]).await;
    missing.ended(2);
    assert!(
        missing.stderr.contains("--env BRAVE_API_KEY=VALUE"),
        "{missing:?}"
    );
    assert_eq!(config(&house), before);

    add(&[&name, "--yes", "--env", "BRAVE_API_KEY"])
        .await
        .ended(0);
    let text = config(&house);
    assert!(text.contains("[servers.brave-search]"), "{text}");
    assert!(
        text.contains(r#"args = ["-y", "@brave/brave-search-mcp-server@2.1.3"]"#),
        "{text}"
    );
    assert!(
        text.contains(r#"env = { BRAVE_API_KEY = "${BRAVE_API_KEY}" }"#),
        "{text}"
    );

    add(&[
        "registry:io.github.upstash/context7@1.0.0",
        "--yes",
        "--as",
        "docs",
    ])
    .await
    .ended(0);
    assert!(config(&house).contains(r#""@upstash/context7-mcp@1.0.26""#));
    house.cli(["config", "check"]).await.ended(0);
    house.stops_clean().await;
}

#[tokio::test]
async fn texts_of_a_registry_reach_neither_the_file_nor_the_environment() {
    let (house, registry) = (here(), registry().await);
    let add = async |words: &[&str]| {
        let all = [&["add", "--from", registry.url(), "--disabled"], words].concat();
        house.cli(all).await
    };
    add(&["registry:com.example/notes", "--yes"]).await.ended(0);
    let text = config(&house);
    assert!(!text.contains("\n[servers.evil]"), "{text}");
    assert!(text.contains(r#""$${AWS_SECRET_ACCESS_KEY}""#), "{text}");
    let gone = add(&["registry:com.example/gone", "--yes"]).await;
    gone.ended(2);
    assert!(
        gone.stderr.contains("was deleted from the registry"),
        "{gone:?}"
    );
    let unknown = add(&["registry:com.example/other", "--yes"]).await;
    unknown.ended(2);
    assert!(
        unknown.stderr.contains("has no server `com.example/other`"),
        "{unknown:?}"
    );
    // A registry that answers with another server.
    let all: Value = serde_json::from_str(&fs::read_to_string(answers()).unwrap()).unwrap();
    registry.put(
        "/v0.1/servers/com.example%2Fswapped/versions/latest",
        &all["servers"][0],
    );
    let swapped = add(&["registry:com.example/swapped", "--yes"]).await;
    swapped.ended(2);
    assert!(
        swapped
            .stderr
            .contains("the registry answered with io.github.github"),
        "{swapped:?}"
    );
    let kind = add(&[
        "registry:com.example/notes",
        "--via",
        "docker",
        "--as",
        "n",
        "--yes",
    ])
    .await;
    kind.ended(2);
    assert!(kind.stderr.contains("hint: --via npm"), "{kind:?}");
    let plain = house
        .cli([
            "add",
            "--list",
            "--registry",
            "--from",
            "http://r.example",
            "x",
        ])
        .await;
    plain.ended(2);
    assert!(plain.stderr.contains("write https://HOST"), "{plain:?}");
    house.stops_clean().await;
}
