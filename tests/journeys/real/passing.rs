//! Prompts, resources and completions of a real server are the same through the proxy and directly.

use journeys::{client::Client, house::Fake};
use serde_json::{Value, json};

use super::servers::listening;
use crate::{house, real_servers};

/// The maximum number of pages of one list; a server that repeats a cursor fails the test.
const PAGES_MAX: usize = 100;

/// Returns every element of a list.
async fn all(client: &Client, method: &str, key: &str) -> Vec<Value> {
    let mut elements = Vec::new();
    let mut params = json!({});
    for _ in 0..PAGES_MAX {
        let page = client.request(method, params).await.into_result();
        elements.extend(page[key].as_array().unwrap().clone());
        let Some(cursor) = page["nextCursor"].as_str() else {
            return elements;
        };
        params = json!({ "cursor": cursor });
    }
    panic!("{method} has more than {PAGES_MAX} pages");
}

fn required(prompt: &Value) -> Vec<String> {
    let arguments = prompt["arguments"].as_array().cloned().unwrap_or_default();
    let required = arguments.iter().filter(|it| it["required"] == true);
    required
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Sends the same requests to both and compares the responses.
async fn compare(ours: &Client, direct: &Client) {
    for (method, key) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let listed = all(direct, method, key).await;
        assert!(!listed.is_empty(), "{method}");
        assert_eq!(all(ours, method, key).await, listed, "{method}");
    }
    let prompts = all(direct, "prompts/list", "prompts").await;
    let listed = all(ours, "prompts/list", "prompts").await;
    assert!(!prompts.is_empty());
    for (mut listed, prompt) in listed.into_iter().zip(&prompts) {
        let name = prompt["name"].as_str().unwrap();
        assert_eq!(listed["name"], format!("everything__{name}"));
        let listed_name = std::mem::replace(&mut listed["name"], name.into());
        assert_eq!(listed, *prompt);
        for argument in required(prompt) {
            let asked = |name: &Value| {
                json!({"ref": {"type": "ref/prompt", "name": name},
                    "argument": {"name": argument, "value": ""}})
            };
            let said = ours
                .request("completion/complete", asked(&listed_name))
                .await;
            let theirs = direct
                .request("completion/complete", asked(&prompt["name"]))
                .await;
            assert_eq!(said.into_result(), theirs.into_result(), "{name}");
        }
        if required(prompt).is_empty() {
            let said = ours
                .request("prompts/get", json!({ "name": listed_name }))
                .await;
            let theirs = direct.request("prompts/get", json!({ "name": name })).await;
            assert_eq!(said.into_result(), theirs.into_result(), "{name}");
        }
    }
    let first = all(direct, "resources/list", "resources").await[0]["uri"].clone();
    for uri in [
        first.clone(),
        json!(format!("proxy://everything/{}", first.as_str().unwrap())),
    ] {
        let said = ours.request("resources/read", json!({ "uri": uri })).await;
        let theirs = direct
            .request("resources/read", json!({ "uri": first }))
            .await;
        assert_eq!(said.into_result(), theirs.into_result(), "{uri}");
    }
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn everything_says_the_same_through_us_over_stdio() {
    let real = real_servers();
    let house = house::<Fake>([]);
    house.add(real.everything());
    house.indexed().await;
    let client = house.client().await;
    let direct = Client::start(real.everything().to_command());
    direct.initialize("2025-11-25").await;
    compare(&client, &direct).await;
    let uri = all(&direct, "resources/list", "resources").await[0]["uri"].clone();
    let params = json!({ "uri": uri });
    client
        .request("resources/subscribe", params.clone())
        .await
        .into_result();
    client
        .execute("everything/toggle-subscriber-updates", json!({}))
        .await
        .good();
    let told = client.next("notifications/resources/updated").await;
    assert_eq!(told["params"]["uri"], uri);
    client
        .request("resources/unsubscribe", params)
        .await
        .into_result();
    direct.close().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn everything_says_the_same_through_us_over_http() {
    let real = real_servers();
    let (server, port) = listening(&real).await;
    let house = house::<Fake>([]);
    house.configure_more(&format!(
        "[servers.everything]\nurl = \"http://{}/mcp\"\n",
        port.address()
    ));
    house.indexed().await;
    let client = house.client().await;
    let direct = Client::start(real.everything().to_command());
    direct.initialize("2025-11-25").await;
    compare(&client, &direct).await;
    direct.close().await;
    house.stops_clean().await;
    drop(server);
}
