//! The cards of a host: those that `proxy add https://HOST` reads, and the one of our own address.

use std::fs;

use journeys::{
    documents::Documents,
    fake::Step,
    house::{House, fake},
};
use serde_json::{Value, json};

use crate::house;

const CATALOG: &str = "/.well-known/mcp/catalog.json";

fn here() -> House {
    house([fake("any").tool("echo", Step::Echo)])
}

fn config(house: &House) -> String {
    fs::read_to_string(house.config()).unwrap()
}

fn card(name: &str, url: &str) -> Value {
    json!({"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": name, "version": "1.0.0", "description": "Looks things up.",
        "remotes": [{"type": "streamable-http", "url": url, "headers": [
            {"name": "Authorization", "value": "Bearer {key}", "isRequired": true,
             "variables": {"key": {"isSecret": true, "isRequired": true}}}]}]})
}

fn entry(name: &str, url: &str) -> Value {
    json!({"identifier": format!("urn:air:a.example:{name}"), "displayName": name,
        "type": "application/mcp-server-card+json", "url": url})
}

async fn add(house: &House, words: &[&str]) -> journeys::house::Output {
    house.cli([&["add", "--disabled"], words].concat()).await
}

/// Our own address has a card, by which another proxy adds it and sees its tools.
#[tokio::test]
async fn one_proxy_is_added_by_the_card_of_another() {
    let (far, near) = (here(), here());
    far.indexed().await;
    let site = far.site().await;
    let base = format!("http://{}", site.address());
    let added = near.cli(["add", "far", &base]).await;
    added.ended(0);
    assert!(added.stderr.contains("localhost/proxy"), "{added:?}");
    assert!(
        config(&near).contains(&format!("url = \"{base}/mcp\"")),
        "{}",
        config(&near)
    );
    let listed = near.cli(["list", "far"]).await;
    assert!(listed.ended(0).contains("far/search_tools"), "{listed:?}");
    let web = site.web();
    for path in ["/mcp/server-card", "/.well-known/mcp/server-card.json"] {
        let answer = web.ask("GET", path, "").await;
        assert_eq!(answer.status, 200, "{path}");
        let kind = answer.headers["content-type"].to_str().unwrap().to_owned();
        assert_eq!(kind, "application/mcp-server-card+json");
    }
    let foreign = web
        .with("origin", "https://evil.example")
        .ask("GET", "/mcp/server-card", "")
        .await;
    assert_eq!(foreign.status, 403);
    site.stop().await;
    far.stops_clean().await;
    near.stops_clean().await;
}

#[tokio::test]
async fn a_host_may_name_several_servers_and_servers_elsewhere() {
    let (house, host) = (here(), Documents::start().await);
    let url = host.url();
    let own = format!("{url}/weather/mcp");
    host.put("/weather/card", &card("a.example/weather", &own));
    host.put(
        "/maps/card",
        &card("a.example/maps", "https://maps.example/mcp"),
    );
    let entries = [
        entry("weather", "/weather/card"),
        entry("maps", &format!("{url}/maps/card")),
        json!({"type": "application/other+json", "url": "/x"}),
    ];
    host.put(
        CATALOG,
        &json!({"specVersion": "draft", "entries": entries}),
    );
    let several = add(&house, &[url]).await;
    several.ended(2);
    assert!(
        several.stderr.contains("weather: Looks things up."),
        "{several:?}"
    );
    assert!(several.stderr.contains("hint: --card NAME"), "{several:?}");

    let missing = add(&house, &["sky", url, "--card", "weather"]).await;
    missing.ended(2);
    assert!(missing.stderr.contains("WEATHER_KEY"), "{missing:?}");
    add(
        &house,
        &["sky", url, "--card", "weather", "--env", "WEATHER_KEY"],
    )
    .await
    .ended(0);
    let text = config(&house);
    assert!(
        text.contains("[servers.sky]") && text.contains(&own),
        "{text}"
    );
    assert!(
        text.contains(r#"Authorization = "Bearer ${WEATHER_KEY}""#),
        "{text}"
    );

    // Another host is added only by a person, or by an option that says so.
    let elsewhere = ["maps", url, "--card", "maps", "--env", "MAPS_KEY"];
    let refused = add(&house, &elsewhere).await;
    refused.ended(2);
    assert!(
        refused.stderr.contains("at another address than this host"),
        "{refused:?}"
    );
    add(&house, &[&elsewhere[..], &["--yes"]].concat())
        .await
        .ended(0);
    assert!(config(&house).contains("https://maps.example/mcp"));
    house.stops_clean().await;
}

#[tokio::test]
async fn a_host_without_cards_and_an_address_with_a_path_are_added_as_they_are() {
    let (house, host) = (here(), Documents::start().await);
    let url = host.url();
    host.put("/.well-known/mcp.json", &json!({"people": "read this"}));
    add(&house, &["bare", url]).await.ended(0);
    assert!(config(&house).contains(&format!("url = \"{url}\"")));
    let asked = host.asked().len();
    add(&house, &["path", &format!("{url}/mcp")]).await.ended(0);
    assert_eq!(host.asked().len(), asked);
    // A card of an earlier draft.
    let old = json!({"serverInfo": {"name": "books", "version": "2"},
        "transport": {"type": "streamable-http", "endpoint": "/books"}});
    host.put("/.well-known/mcp/server-card.json", &old);
    add(&house, &["books", url]).await.ended(0);
    assert!(config(&house).contains(&format!("url = \"{url}/books\"")));
    house.stops_clean().await;
}
