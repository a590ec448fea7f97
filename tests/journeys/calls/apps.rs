//! Apps of servers, as a client on the wire sees them: with the extension, and without it.

use std::fs;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use journeys::{
    client::Client,
    fake::{FakeItem, LEGACY_VERSION, META_CAPABILITIES, Step},
    house::{Fake, House, fake},
};
use serde_json::{Value, json};

use super::pins::digest_of;
use crate::{calling, house};

const APP: &str = "ui://shop/cart.html";

const NEEDS: &str = "https://a.test";

fn with_apps() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}})
}

/// A server with an app that needs a domain, and with a tool for the app alone.
fn shop(domain: &str) -> Fake {
    let tool = |name: &str, ui: Value| {
        json!({"name": name, "description": "Shows the cart", "inputSchema": {"type": "object"},
            "_meta": {"ui": ui}})
    };
    let cart = tool("cart", json!({"resourceUri": APP}));
    let refresh = tool("refresh", json!({"visibility": ["app"]}));
    let page = json!({"uri": APP, "mimeType": "text/html;profile=mcp-app", "text": "<p>cart</p>",
        "_meta": {"ui": {"csp": {"connectDomains": [domain]}}}});
    fake("shop")
        .tool_as(cart, Step::StructuredOfBytes(200_000))
        .tool_as(refresh, Step::Echo)
        .script(|script| {
            let read = Step::Result(json!({"contents": [page]}));
            let listed = json!({"uri": APP, "name": "cart"});
            script.resources = vec![FakeItem::defined(listed, read)];
        })
}

async fn client_with_apps(house: &House) -> Client {
    let client = house.serve();
    client.initialize_with(LEGACY_VERSION, with_apps()).await;
    client
}

async fn read(client: &Client, uri: &str) -> Value {
    let read = client.request("resources/read", json!({ "uri": uri }));
    read.await.into_result()["contents"].clone()
}

fn uri_of(tool: &str) -> String {
    format!("ui://proxy/tool/{}", BASE64_URL_SAFE_NO_PAD.encode(tool))
}

/// The domains that our page declares.
async fn domains(client: &Client) -> Value {
    read(client, "ui://proxy/frame").await[0]["_meta"]["ui"]["csp"]["connectDomains"].clone()
}

#[journey]
async fn a_client_without_the_extension_gets_what_it_always_got() {
    let house = house([shop(NEEDS)]);
    house.indexed().await;
    let plain = house.client().await;
    let shows = client_with_apps(&house).await;
    let mut listed = shows.tools_list().await;
    let meta = listed[2]["_meta"].as_object_mut().unwrap();
    let ui = meta.remove("ui").unwrap();
    assert_eq!(ui, json!({"resourceUri": "ui://proxy/frame"}));
    assert_eq!(plain.tools_list().await, listed);
    let modern = house.modern_client().await;
    for (capabilities, has_page) in [(json!({}), false), (with_apps(), true)] {
        let params = json!({"_meta": {META_CAPABILITIES: capabilities}});
        let listed = modern.request("tools/list", params).await.into_result();
        let ui = &listed["tools"][2]["_meta"]["ui"];
        assert_eq!(ui.is_object(), has_page, "{listed}");
    }
    // The result that is cut for both models is whole for the app.
    let call = || calling("shop/cart", &json!({}));
    let plain = plain.request("tools/call", call()).await.into_result();
    assert!(plain["_meta"].is_null(), "{plain}");
    let said = shows.request("tools/call", call()).await.into_result();
    let text = said["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("[cut: "), "{text}");
    let handle = said["_meta"]["proxy/app"]["whole"].as_str().unwrap();
    let whole = read(&shows, &format!("ui://proxy/result/{handle}")).await;
    let whole: Value = serde_json::from_str(whole[0]["text"].as_str().unwrap()).unwrap();
    assert!(whole["structuredContent"].to_string().len() > 150_000);
    house.stops_clean().await;
}

#[journey]
async fn rules_and_records_are_for_calls_of_apps_too() {
    let house = house([shop(NEEDS)]);
    house.configure_more("[[rules]]\ndecision = \"deny\"\ntool = \"shop/cart\"\n");
    house.indexed().await;
    let client = client_with_apps(&house).await;
    let shown = read(&client, &uri_of("shop/cart")).await;
    assert_eq!(shown[1]["text"], "<p>cart</p>");
    let own = json!({"proxy/app": "shop", "a": 1});
    let called = client.execute("shop/refresh", own).await.good();
    assert_eq!(called, r#"{"a":1}"#);
    let refused = client.execute("shop/refresh", json!({})).await.bad();
    assert!(
        refused.contains("only for the apps of its server"),
        "{refused}"
    );
    let found = client.search("refresh the cart").await.text();
    assert!(!found.contains("shop/refresh"), "{found}");
    let own = json!({"proxy/app": "shop"});
    let refused = client.execute("shop/cart", own).await.bad();
    assert!(refused.contains("is denied by rule 1"), "{refused}");
    client.close().await;
    let log = house.cli(["audit", "--json"]).await;
    let calls = log.ended(0).lines();
    let calls: Vec<Value> = calls.map(|it| serde_json::from_str(it).unwrap()).collect();
    let outcome = |it: &Value| {
        (
            it["outcome"].as_str().unwrap().to_owned(),
            it["app"] == true,
        )
    };
    let outcomes: Vec<(String, bool)> = calls.iter().map(outcome).collect();
    let expected = [
        ("ok", false),
        ("ok", true),
        ("denied", false),
        ("denied", true),
    ];
    let expected = expected.map(|(it, by_app)| (it.to_owned(), by_app));
    assert_eq!(outcomes, expected, "{calls:?}");
    house.stops_clean().await;
}

#[journey]
async fn an_app_that_needs_more_waits_for_a_person() {
    let house = house([shop(NEEDS)]);
    let text = fs::read_to_string(house.config()).unwrap();
    house.configure(&format!("pin = \"hold\"\n{text}"));
    house.indexed().await;
    let client = client_with_apps(&house).await;
    assert_eq!(domains(&client).await, json!([NEEDS]));
    client.close().await;
    house.rewrite(shop("https://b.test"));
    house.cli(["reindex"]).await.ended(0);
    let client = client_with_apps(&house).await;
    let asked = json!({ "uri": uri_of("shop/cart") });
    let refused = client.request("resources/read", asked).await;
    let said = refused.error()["message"].as_str().unwrap();
    assert!(said.contains("`proxy review shop`"), "{said}");
    let digest = digest_of(&house, &format!("shop app {APP}")).await;
    let accept = ["review", "shop", "--accept", &digest];
    house.cli(accept).await.ended(0);
    let shown = read(&client, &uri_of("shop/cart")).await;
    assert_eq!(shown[1]["text"], "<p>cart</p>");
    assert_eq!(domains(&client).await, json!(["https://b.test"]));
    house.stops_clean().await;
}
