//! The five scenes that must work (interface, section 10).

use journeys::{
    fake::Step,
    house::{Fake, fake},
};
use serde_json::{Value, json};

use crate::opened;

fn tool(name: &str, description: &str, properties: &Value) -> Value {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": properties, "required": required }
    })
}

fn echoing(server: &str, tools: impl IntoIterator<Item = Value>) -> Fake {
    tools.into_iter().fold(fake(server), |server, tool| {
        server.tool_as(tool, Step::Echo)
    })
}

fn ripgrep() -> Fake {
    let rg = tool(
        "rg",
        "Search within code and other text files by regular expression, fast.",
        &json!({ "pattern": { "type": "string" }, "path": { "type": "string" } }),
    );
    echoing("ripgrep", [rg])
}

fn mail() -> Fake {
    let send = tool(
        "send_email",
        "Send a message to an address.",
        &json!({ "to": { "type": "string" }, "text": { "type": "string" } }),
    );
    let drafts = tool("list_drafts", "List what is not sent yet.", &json!({}));
    echoing("mail", [send, drafts])
}

fn phone() -> Fake {
    let sms = tool(
        "send_sms",
        "Send a short text message to a phone.",
        &json!({ "a_number": { "type": "string" }, "text": { "type": "string" } }),
    );
    echoing("phone", [sms])
}

fn shop() -> Fake {
    let find = tool(
        "find_customer",
        "Look up a customer by name or number.",
        &json!({ "q": { "type": "string" } }),
    );
    let orders = tool("list_orders", "List the orders of a day.", &json!({}));
    echoing("shop", [find, orders])
}

fn files(server: &str) -> Fake {
    let read = tool(
        "read_file",
        "Read a text file.",
        &json!({ "path": { "type": "string" } }),
    );
    fake(server).tool_as(read, Step::text(format!("from {server}")))
}

/// Returns the tools of a response, the best one first.
fn hits(answer: &str) -> Vec<&str> {
    let lines = answer.lines().skip(1);
    lines
        .filter_map(|line| Some(line.split_once('(')?.0))
        .collect()
}

#[journey]
async fn which_tool_can_search_within_code() {
    let (house, client) = opened([ripgrep(), mail(), shop(), files("disk")]).await;
    let found = client.search("search code").await.good();
    assert_eq!(hits(&found).first(), Some(&"ripgrep/rg"), "{found}");
    for name in ["rg", "ripgrep/rg", "ripgrep"] {
        let described = client.describe(name).await.good();
        assert!(described.starts_with("ripgrep/rg - "), "{described}");
        assert!(described.contains("pattern"), "{described}");
    }
    house.stops_clean().await;
}

#[journey]
async fn a_word_is_no_prefix_of_another_and_a_plural_is_found() {
    let (house, client) = opened([phone(), mail(), shop()]).await;
    let found = client.search("look up a customer").await.good();
    assert_eq!(hits(&found).first(), Some(&"shop/find_customer"), "{found}");
    let found = client.search("emails").await.good();
    assert_eq!(hits(&found).first(), Some(&"mail/send_email"), "{found}");
    house.stops_clean().await;
}

#[journey]
async fn a_right_name_that_was_never_searched() {
    let (house, client) = opened([files("disk"), mail()]).await;
    let reply = client
        .execute("disk/read_file", json!({ "path": "a" }))
        .await;
    assert_eq!(reply.good(), "from disk");
    house.stops_clean().await;
}

#[journey]
async fn one_of_three_is_broken() {
    let (house, before) = opened([files("disk"), mail(), shop()]).await;
    before.close().await;
    house.rewrite(
        shop()
            .before([Step::stderr("no database\n"), Step::Exit(9)])
            .script(|it| it.tools.clear()),
    );

    let client = house.client().await;
    assert_eq!(client.tools_list().await.len(), 3);
    for (tool, input) in [
        ("disk/read_file", json!({ "path": "a" })),
        ("mail/list_drafts", json!({})),
    ] {
        client.execute(tool, input).await.good();
    }
    let why = client.execute("shop/list_orders", json!({})).await.bad();
    assert!(why.starts_with("error server_unavailable: "), "{why}");
    for word in ["shop", "9", "no database", "disk", "mail"] {
        assert!(why.contains(word), "`{word}` is missing: {why}");
    }
    let found = client.search("look up a customer").await.good();
    let hit = found
        .lines()
        .find(|line| line.starts_with("shop/find_customer("));
    assert!(hit.is_some_and(|line| line.ends_with(" [down]")), "{found}");
    house.stops_clean().await;
}

#[journey]
async fn two_servers_have_a_tool_of_one_name() {
    let (house, client) = opened([files("disk"), files("cloud")]).await;
    for server in ["disk", "cloud"] {
        let name = format!("{server}/read_file");
        let reply = client.execute(&name, json!({ "path": "a" })).await;
        assert_eq!(reply.good(), format!("from {server}"));
    }
    let asked = client
        .execute("read_file", json!({ "path": "a" }))
        .await
        .bad();
    assert_eq!(
        asked,
        "error ambiguous_tool: \"read_file\" is on cloud/read_file(path: string) and \
         disk/read_file(path: string). Call one of them by its whole name."
    );
    house.stops_clean().await;
}
