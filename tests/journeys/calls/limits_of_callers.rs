//! The limits that the configuration sets for callers: arguments and redaction.

use std::path::{Path, PathBuf};

use journeys::{
    fake::Step,
    house::{Fake, fake},
};
use serde_json::json;

use crate::{handle, house};

const KEY: &str = "ghp_0123456789abcdef0123";

fn github() -> Fake {
    let definition = json!({"name": "create", "inputSchema": {"type": "object",
        "required": ["owner", "title"], "properties": {"owner": {"type": "string"},
        "title": {"type": "string"}, "limit": {"type": "integer"}}}});
    fake("github")
        .tool_as(definition, Step::Echo)
        .setting("arguments = { owner = { fixed = \"acme\" }, limit = { default = 7 } }")
}

#[journey]
async fn a_fixed_argument_is_sent_and_no_form_of_a_call_sets_it() {
    let house = house([github()]);
    house
        .configure_more("[[rules]]\ndecision = \"deny\"\narguments = { \"/owner\" = \"other\" }\n");
    house.indexed().await;
    let client = house.client().await;
    let found = client.search("create").await.good();
    let is_hidden = !found.contains("owner") && found.contains(r#""default":7"#);
    assert!(is_hidden, "{found}");
    let sent = client.execute("github/create", json!({"title": "a"})).await;
    let sent = sent.good();
    assert!(
        sent.contains(r#""owner":"acme""#) && sent.contains(r#""limit":7"#),
        "{sent}"
    );
    for name in ["owner", "Owner", "OWNER"] {
        for input in [
            json!({"title": "a", name: "evil"}),
            json!({"title": "a", name: "evil", "proxy/dry_run": true}),
            json!({"arguments": {"title": "a", name: "evil"}}),
            json!({"arguments": format!("{{\"title\": \"a\", {name:?}: \"evil\"}}")}),
        ] {
            let error = client.execute("github/create", input).await.bad();
            let says = format!("{name}: the configuration sets this argument");
            assert!(error.contains(&says), "{error}");
        }
        let flat = json!({"tool_name": "github/create", "title": "a", name: "evil"});
        client.call("execute_dynamic_tool", flat).await.bad();
        let script = format!("await github.create({{title: 'b', {name}: 'evil'}})");
        let script = json!({"script": script});
        client.execute("proxy/run_script", script).await.bad();
        let input = json!({"title": "c", name: "evil"});
        let many = json!({"calls": [{"tool_name": "create", "tool_input": input}]});
        let many = client.execute("proxy/call_many", many).await.text();
        assert!(
            many.contains("the configuration sets") && !many.contains("evil"),
            "{many}"
        );
        let refused = house
            .cli(["call", "github/create", "title=d", &format!("{name}=evil")])
            .await;
        assert!(refused.stdout.is_empty(), "{refused:?}");
    }
    let script = json!({"script": "await github.create({title: 'b'})"});
    let in_script = client.execute("proxy/run_script", script).await.good();
    assert!(in_script.contains("acme"), "{in_script}");
    let many = json!({"calls": [{"tool_name": "create", "tool_input": {"title": "c"}}]});
    let many = client.execute("proxy/call_many", many).await.good();
    assert!(many.contains("acme"), "{many}");
    house.stops_clean().await;
}

#[journey]
async fn what_a_server_sends_is_redacted_before_anything_keeps_it() {
    let lines: Vec<String> = (0..3_000).map(|it| format!("{it} {KEY}")).collect();
    let error = json!({"code": -32000, "message": format!("no {KEY}")});
    let server = fake("vault")
        .tool("long", Step::Text(lines.join("\n")))
        .tool(
            "structured",
            Step::Result(json!({"content": [], "structuredContent": {KEY: KEY}})),
        )
        .tool(
            "fail",
            vec![Step::Stderr(format!("stderr {KEY}\n")), Step::Error(error)],
        )
        .setting("redact = true");
    let house = house([
        server,
        fake("other").tool("plain", Step::Text(KEY.to_owned())),
    ]);
    house.indexed().await;
    let client = house.client().await;
    let first = client.execute("vault/long", json!({})).await.good();
    let read = json!({"handle": handle(&first), "grep": "2999 "});
    let rest = client.execute("proxy/read_result", read).await.good();
    let structured = client.execute("vault/structured", json!({})).await.good();
    let failed = client.execute("vault/fail", json!({})).await.bad();
    for text in [&first, &rest, &structured, &failed] {
        assert!(
            text.contains("[redacted: github token]") && !text.contains(KEY),
            "{text}"
        );
    }
    let plain = client.execute("other/plain", json!({})).await.good();
    assert!(plain.contains(KEY), "{plain}");
    client.close().await;
    let kept = files_with(&house.state(), KEY);
    assert!(kept.is_empty(), "{kept:?}");
    house.stops_clean().await;
}

/// The files below a folder that contain this text.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let found = entries.flat_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return files_with(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let has = String::from_utf8_lossy(&bytes).contains(text);
        has.then_some(path).into_iter().collect()
    });
    found.collect()
}
