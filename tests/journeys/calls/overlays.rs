//! Overlays of tools in the configuration: hidden tools and better descriptions.

use journeys::{fake::Step, house::fake};
use serde_json::json;

use crate::house;

const OVERLAYS: &str = r#"
[servers.issues.overlay.create_issue]
title = "New ticket"
usage = "One ticket for each tap."
min_version = "1.2"
deprecated = "use issues/report"
description = "Open a ticket for the plumbers."
category = "plumbing"
tags = ["water"]
notes = "Call before noon."
example = { title = "Dripping tap" }

[servers.issues.overlay.purge]
hidden = true
"#;

#[journey]
async fn denied_tools_are_refused_and_overlays_are_shown() {
    let tool = |name: &str| {
        json!({
            "name": name,
            "description": "Do what the name says.",
            "inputSchema": { "type": "object", "properties": { "title": { "type": "string" } } }
        })
    };
    let server = fake("issues")
        .tool_as(tool("create_issue"), Step::Echo)
        .tool_as(tool("delete_issue"), Step::Echo)
        .tool_as(tool("purge"), Step::Echo)
        .setting(r#"tools.deny = ["delete_*"]"#);
    let house = house([server]);
    house.configure_more(OVERLAYS);
    house.indexed().await;
    let client = house.client().await;

    let found = client.search("ticket for the plumbers").await.good();
    assert!(
        found.contains(
            "issues/create_issue(title?: string) - Open a ticket for the plumbers [outdated] \
             [deprecated]"
        ),
        "{found}"
    );
    let described = client.describe("new ticket").await.good();
    let expected = "issues/create_issue - plumbing; title \"New ticket\"; tags water; server fake-server \
        1.0.0; issues/create_issue is deprecated: use issues/report; issues/create_issue needs version 1.2 \
        of its server, which reports 1.0.0: update it, then `proxy reindex issues`\n\
        Open a ticket for the plumbers.\n\
        usage One ticket for each tap.\n\
        input {\"type\":\"object\",\"properties\":{\"title\":{\"type\":\"string\"}}}\n\
        example {\"tool_name\":\"issues/create_issue\",\"tool_input\":{\"title\":\"Dripping tap\"}}\n\
        notes Call before noon.";
    assert_eq!(described, expected);

    for name in ["New ticket", "issues/new-ticket", "mcp__issues__new_ticket"] {
        let called = client.execute(name, json!({"title": "a"})).await.good();
        let note = "[proxy: issues/create_issue is deprecated: use issues/report]";
        assert!(called.contains(note), "{name}: {called}");
    }
    let page = house.cli(["describe", "New ticket"]).await;
    assert!(
        page.ended(0)
            .contains("Title New ticket; category plumbing")
    );
    assert!(
        page.stdout
            .contains("Note: issues/create_issue is deprecated: use issues/report")
    );
    let called = house.cli(["call", "New ticket", "title=a"]).await;
    assert!(
        called.ended(0).contains("is deprecated"),
        "{}",
        called.stdout
    );
    let calls = house.received_method("issues", "tools/call").len();

    let listed = house.cli(["search", "*"]).await;
    for absent in ["delete_issue", "purge"] {
        assert!(!listed.ended(0).contains(absent), "{}", listed.stdout);
        let found = client.search(absent).await.good();
        assert!(!found.contains(&format!("issues/{absent}(")), "{found}");
    }
    let denied = client.execute("issues/delete_issue", json!({})).await.bad();
    assert!(denied.starts_with("error denied: "), "{denied}");
    for word in ["delete_*", "servers.issues"] {
        assert!(denied.contains(word), "`{word}` is missing: {denied}");
    }
    let after = house.received_method("issues", "tools/call").len();
    assert_eq!((calls, after), (4, 4));
    house.stops_clean().await;
}
