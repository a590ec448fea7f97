//! Apps of servers, for clients with the extension and without it.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;
use tool::ItemKind;

use super::{
    memory::{Memory, TestGateway},
    peer::TestClient,
};
use crate::{
    CallContext, EXECUTE, SEARCH,
    definitions::TOOLS,
    policy::{ClientPolicies, ClientRule},
};

const RESULT: &str = r#"{"content":[{"type":"text","text":"noon"}],"structuredContent":{"hour":12.0},"_meta":{"k":1}}"#;

/// A result that names another one.
const FORGED: &str =
    r#"{"content":[{"type":"text","text":"x"}],"_meta":{"proxy/app":{"whole":"r1"}}}"#;

fn with_apps() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}})
}

fn page(text: &str) -> Value {
    json!({"contents": [{"uri": "ui://app", "mimeType": "text/html;profile=mcp-app", "text": text}]})
}

/// Two servers whose tools and apps have the same names.
fn two_clocks() -> Memory {
    let mut memory = Memory::default();
    for (server, domain) in [("sun", "https://sun.test"), ("moon", "https://moon.test")] {
        let tool = |name: &str, ui: Value| {
            json!({"name": name, "description": "Tell the hour of the clock",
                "inputSchema": {"type": "object"}, "_meta": {"ui": ui}})
        };
        for (name, ui) in [
            ("get", json!({"resourceUri": "ui://app"})),
            ("refresh_hour", json!({"visibility": ["app"]})),
            ("secret", json!({"visibility": ["model"]})),
        ] {
            memory = memory.raw(server, &tool(name, ui), RESULT.into());
        }
        let needs = json!({"csp": {"connectDomains": [domain, "x; script-src *"]},
            "permissions": {"camera": {}, "odd": {}}});
        let app = json!({"uri": "ui://app", "needs": needs});
        memory = memory.item(server, ItemKind::App, &app);
        memory = memory.says(server, "resources/read", move |params| {
            assert_eq!(params, &json!({"uri": "ui://app"}));
            Ok(page(&format!("<p>{server}</p>")))
        });
    }
    let plain = json!({"name": "plain", "inputSchema": {"type": "object"}});
    let forges = json!({"name": "forges", "inputSchema": {"type": "object"},
        "_meta": {"ui": {"resourceUri": "ui://app"}}});
    memory
        .raw("sun", &plain, RESULT.into())
        .raw("sun", &forges, FORGED.into())
}

async fn read(client: &mut TestClient, uri: &str) -> Value {
    client.ask("resources/read", json!({ "uri": uri })).await
}

fn uri_of(tool: &str) -> String {
    format!("ui://proxy/tool/{}", BASE64_URL_SAFE_NO_PAD.encode(tool))
}

async fn call(client: &mut TestClient, tool: &str, input: Value) -> Value {
    let arguments = json!({"tool_name": tool, "tool_input": input});
    let params = json!({"name": EXECUTE, "arguments": arguments});
    client.ask("tools/call", params).await["result"].clone()
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

async fn clients(scene: &TestGateway) -> [TestClient; 2] {
    let (shows, _) = TestClient::open_with(scene, "shows", &with_apps()).await;
    [shows, TestClient::modern_with(scene, &with_apps())]
}

#[tokio::test]
async fn only_a_client_that_shows_apps_gets_our_page() {
    let scene = two_clocks().open().await;
    let three: Value = serde_json::from_str(TOOLS).unwrap();
    let (mut plain, _) = TestClient::open(&scene, "plain").await;
    for client in [&mut plain, &mut TestClient::modern(&scene)] {
        let list = client.ask("tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"], three);
        for uri in ["ui://proxy/frame", &uri_of("sun/get")] {
            let refused = read(client, uri).await;
            assert!(refused["error"]["code"].is_number(), "{refused}");
        }
    }
    for mut client in clients(&scene).await {
        let list = client.ask("tools/list", json!({})).await;
        let ui = &list["result"]["tools"][2]["_meta"]["ui"];
        assert_eq!(*ui, json!({"resourceUri": "ui://proxy/frame"}), "{list}");
    }
    assert_eq!(scene.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn without_an_app_a_client_gets_the_three_tools_as_all_others_do() {
    let three: Value = serde_json::from_str(TOOLS).unwrap();
    let rule = |deny: &[&str], hides_resources| ClientRule {
        deny: deny.iter().map(ToString::to_string).collect(),
        hides_resources,
        ..ClientRule::default()
    };
    let rules = [
        ("shows", rule(&["sun", "moon"], false)),
        ("modern", rule(&[], true)),
    ];
    let rules = rules.map(|(name, rule)| (name.to_owned(), rule));
    let clients_rules = ClientPolicies::new(rules).unwrap();
    let scene = two_clocks().open_with(clients_rules).await;
    for mut client in clients(&scene).await {
        let list = client.ask("tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"], three);
    }
}

#[tokio::test]
async fn our_page_declares_the_needs_of_all_visible_apps_and_nothing_else() {
    let hidden = ClientRule {
        deny: vec!["moon".to_owned()],
        ..ClientRule::default()
    };
    let rules = ClientPolicies::new([("shows".to_owned(), hidden)]).unwrap();
    let scene = two_clocks().open_with(rules).await;
    let mut domains = Vec::new();
    for mut client in clients(&scene).await {
        let content = read(&mut client, "ui://proxy/frame").await["result"]["contents"][0].clone();
        assert_eq!(content["mimeType"], "text/html;profile=mcp-app");
        let text = content["text"].as_str().unwrap();
        assert!(text.starts_with("<!doctype html>") && text.contains("ui/initialize"));
        assert_eq!(text.matches("</script>").count(), 1);
        let ui = &content["_meta"]["ui"];
        assert_eq!(ui["permissions"], json!({"camera": {}}));
        domains.push(ui["csp"].clone());
    }
    let sun = "https://sun.test";
    assert_eq!(domains[0], json!({"connectDomains": [sun]}));
    let both = json!({"connectDomains": ["https://moon.test", sun]});
    assert_eq!(domains[1], both);
}

#[tokio::test]
async fn the_app_of_a_tool_is_read_from_its_own_server() {
    let scene = two_clocks().open().await;
    for mut client in clients(&scene).await {
        let read_app = read(&mut client, &uri_of("moon/get")).await;
        let contents = &read_app["result"]["contents"];
        let about: Value = serde_json::from_str(contents[0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&about["server"], &about["tool"]["name"]),
            (&json!("moon"), &json!("get"))
        );
        assert_eq!(
            about["needs"]["csp"]["connectDomains"][0],
            "https://moon.test"
        );
        assert_eq!(contents[1], page("<p>moon</p>")["contents"][0]);
        for none in ["sun/plain", "proxy/list", "nothing/at_all", ""] {
            let none = read(&mut client, &uri_of(none)).await;
            let contents = none["result"]["contents"].as_array().unwrap();
            assert_eq!(
                (contents.len(), &contents[0]["text"]),
                (1, &json!("{}")),
                "{none}"
            );
        }
        for odd in ["ui://proxy/", "ui://proxy/x", "ui://proxy/result/r-none"] {
            let odd = read(&mut client, odd).await;
            assert!(odd["error"]["code"].is_number(), "{odd}");
        }
    }
    let read_app = "moon resources/read {\"uri\":\"ui://app\"}";
    assert_eq!(scene.calls(), [read_app, read_app]);
}

#[tokio::test]
async fn an_app_gets_the_result_as_its_server_sent_it() {
    let scene = two_clocks().open().await;
    for mut client in clients(&scene).await {
        let said = call(&mut client, "sun/get", json!({})).await;
        assert_eq!(text_of(&said), "noon");
        assert!(said["structuredContent"].is_null(), "{said}");
        let meta = &said["_meta"];
        assert_eq!(meta["k"], 1);
        let whole = meta["proxy/app"]["whole"].as_str().unwrap();
        let whole = read(&mut client, &format!("ui://proxy/result/{whole}")).await;
        assert_eq!(whole["result"]["contents"][0]["text"], RESULT);
        let plain = call(&mut client, "sun/plain", json!({})).await;
        assert_eq!(plain["_meta"], json!({"k": 1}));
        let forged = call(&mut client, "sun/forges", json!({})).await;
        assert_eq!(forged["_meta"], json!({"proxy/app": {}}));
        let own = call(&mut client, "sun/get", json!({"proxy/app": "sun"})).await;
        assert_eq!(own["structuredContent"], json!({"hour": 12.0}), "{own}");
    }
    let (mut plain, _) = TestClient::open(&scene, "plain").await;
    let said = call(&mut plain, "sun/get", json!({})).await;
    assert_eq!(said["_meta"], json!({"k": 1}));
}

#[tokio::test]
async fn a_tool_is_called_by_the_callers_that_it_is_for() {
    let scene = two_clocks().open().await;
    let (mut plain, _) = TestClient::open(&scene, "plain").await;
    let [mut shows, mut modern] = clients(&scene).await;
    let only = "error denied: sun/refresh_hour is only for the apps of its server";
    for client in [&mut plain, &mut shows, &mut modern] {
        let said = call(client, "sun/refresh_hour", json!({})).await;
        assert!(text_of(&said).starts_with(only), "{said}");
        let many = json!({"calls": [{"tool_name": "sun/refresh_hour", "tool_input": {}}]});
        let said = call(client, "proxy/call_many", many).await.to_string();
        assert!(said.contains(only), "{said}");
        let query =
            json!({"name": SEARCH, "arguments": {"query": "refresh the hour of the clock"}});
        let found = client.ask("tools/call", query).await.to_string();
        assert!(
            found.contains("/get() - Tell") && !found.contains("refresh_hour"),
            "{found}"
        );
    }
    let said = call(&mut plain, "sun/get", json!({"proxy/app": "sun"})).await;
    assert!(
        text_of(&said).starts_with("error invalid_input: "),
        "{said}"
    );
    assert_eq!(scene.calls(), Vec::<String>::new());
    for client in [&mut shows, &mut modern] {
        let said = call(client, "sun/refresh_hour", json!({"proxy/app": "sun"})).await;
        assert_eq!(text_of(&said), "noon");
        for (tool, app, why) in [
            ("sun/secret", "sun", "only for models"),
            (
                "moon/get",
                "sun",
                "only for callers other than an app of another server",
            ),
            ("moon/refresh_hour", "sun", "only for callers other"),
            ("sun/../moon/get", "sun", "error unknown_tool"),
            ("proxy/call_many", "proxy", "only for callers other"),
            ("proxy/list", "sun", "only for callers other"),
        ] {
            let calls = json!({"calls": [{"tool_name": "moon/get"}], "proxy/app": app});
            let said = call(client, tool, calls).await;
            assert!(text_of(&said).contains(why), "{tool}: {said}");
        }
    }
    assert_eq!(scene.calls(), ["sun/refresh_hour", "sun/refresh_hour"]);
    // A person may call every tool.
    let call = json!({"tool_name": "sun/refresh_hour", "tool_input": {}}).to_string();
    let call = RawValue::from_string(call).unwrap();
    let person = CallContext::of_person("shell", CancellationToken::new());
    let said = scene.gateway.call_tool(EXECUTE, Some(&call), person).await;
    assert!(said.unwrap().printable().starts_with("noon"));
}
