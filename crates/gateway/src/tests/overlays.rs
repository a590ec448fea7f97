//! Titles, remarks and guides of tools, and clients that may not call our own tools.

use std::sync::Arc;

use ::policy::{Policy, Preset, Rule};
use insta::assert_snapshot;
use registry::Overlay;
use serde_json::{Value, json, value::to_raw_value};

use super::{
    ask, execute,
    memory::{Memory, TestGateway},
    peer::TestClient,
};
use crate::{
    CallContext, DESCRIBE, EXECUTE, SEARCH,
    policy::{ClientPolicies, ClientRule},
};

fn servers() -> Memory {
    let said = |_: &str| Ok(json!({"content": [{"type": "text", "text": "found"}]}));
    let long = |_: &str| Ok(json!({"content": [{"type": "text", "text": "line\n".repeat(9_000)}]}));
    let tool = |name: &str, title: &str| json!({"name": name, "title": title, "inputSchema": {"type": "object"}});
    let guide = format!(
        "Draw a diagram.\n\n{}\nThe end.",
        "Use boxes and arrows. ".repeat(900)
    );
    let guide = json!({"name": "draw", "description": guide, "inputSchema": {"type": "object"}});
    Memory::default()
        .tool("code", &tool("rg", "ripgrep"), said)
        .tool("code", &tool("old", "Search Files"), long)
        .tool("files", &tool("find", "search files"), said)
        .tool("files", &guide, said)
}

fn set_overlay(scene: &TestGateway, tool: &str, overlay: Overlay) {
    let mut settings = (*scene.gateway.settings()).clone();
    let mut servers = settings.servers.iter_mut();
    let code = servers.find(|it| it.rules.name.as_str() == "code");
    let overlays = &mut code.unwrap().rules.overlays;
    overlays.insert(tool.to_owned(), overlay);
    scene.gateway.apply(settings).unwrap();
}

async fn describe(scene: &TestGateway, arguments: Value) -> String {
    ask(scene, DESCRIBE, &arguments).await.printable()
}

#[tokio::test]
async fn a_title_is_described_and_called_like_a_name() {
    let scene = servers().open().await;
    for name in ["ripgrep", "RipGrep", "code/ripgrep", "mcp__code__ripgrep"] {
        let said = execute(&scene, name, &json!({})).await;
        assert_eq!(said, "found", "{name}");
        let page = describe(&scene, json!({"name": name})).await;
        assert!(page.starts_with("code/rg - "), "{name}: {page}");
        assert!(page.contains("; title \"ripgrep\""), "{page}");
    }
    assert_eq!(scene.calls(), ["code/rg"; 4]);
    assert_snapshot!(execute(&scene, "search-files", &json!({})).await, @r#"
    error ambiguous_tool: "search-files" is on code/old() and files/find(). Call one of them by its whole name.
    "#);
    let said = execute(&scene, "files/ripgrep", &json!({})).await;
    assert!(said.starts_with("error unknown_tool"), "{said}");
    // A name goes before a title, and rules apply to the tool that the title names.
    let overlay = Overlay {
        title: Some("find".to_owned()),
        ..Overlay::default()
    };
    set_overlay(&scene, "rg", overlay);
    assert_eq!(execute(&scene, "find", &json!({})).await, "found");
    assert_eq!(scene.calls().last().unwrap(), "files/find");
    let said = execute(&scene, "ripgrep", &json!({})).await;
    assert!(said.starts_with("error unknown_tool"), "{said}");
    let mut settings = (*scene.gateway.settings()).clone();
    let rule = json!({"decision": "deny", "tool": "rg"});
    let rule = Rule::read(rule.as_object().unwrap(), None).unwrap();
    settings.policy = Arc::new(Policy::new(Preset::Open, vec![rule]));
    scene.gateway.apply(settings).unwrap();
    let said = execute(&scene, "code/find", &json!({})).await;
    assert!(
        said.starts_with("error denied: code/rg is denied by rule 1"),
        "{said}"
    );
}

#[tokio::test]
async fn a_person_says_more_about_a_tool() {
    let scene = servers().open().await;
    let overlay = Overlay {
        usage: Some("Begin with a word.".to_owned()),
        deprecated: Some("use files/find".to_owned()),
        tags: vec!["grep".to_owned(), "text".to_owned()],
        ..Overlay::default()
    };
    set_overlay(&scene, "rg", overlay);
    assert_snapshot!(describe(&scene, json!({"name": "code/rg"})).await, @r#"
    code/rg - utility; title "ripgrep"; tags grep, text; server; code/rg is deprecated: use files/find
    usage Begin with a word.
    input {"type":"object"}
    example {"tool_name":"code/rg","tool_input":{}}
    "#);
    let said = execute(&scene, "code/rg", &json!({})).await;
    assert_eq!(
        said,
        "found\n[proxy: code/rg is deprecated: use files/find]"
    );
    let found = ask(&scene, SEARCH, &json!({"query": "select:code/rg"})).await;
    let found = found.printable();
    assert!(
        found.contains("code/rg() - ripgrep: grep, text [deprecated]"),
        "{found}"
    );
}

#[tokio::test]
async fn a_guide_is_shortened_until_it_is_asked_for_in_full() {
    let scene = servers().open().await;
    let short = describe(&scene, json!({"name": "files/draw"})).await;
    assert!(excerpt::tokens::count(&short) < 500, "{short}");
    let next =
        r#" of 19826 characters. All of it: describe_tool {"name":"files/draw","full":true}]"#;
    assert!(
        short.contains(next) && short.contains("\ninput {"),
        "{short}"
    );
    let full = describe(&scene, json!({"name": "files/draw", "full": true})).await;
    let (_, handle) = full.split_once(r#""handle":""#).unwrap();
    let (handle, _) = handle.split_once('"').unwrap();
    let last = json!({"handle": handle, "part": 2});
    let last = execute(&scene, "proxy/read_result", &last).await;
    assert!(last.contains("The end."), "{last}");
    let small = describe(&scene, json!({"name": "code/rg", "full": true})).await;
    assert!(
        small.starts_with("code/rg - ") && !small.contains("[cut"),
        "{small}"
    );
}

#[tokio::test]
async fn a_client_without_our_tools_is_told_of_none() {
    let rule = ClientRule {
        deny: vec!["proxy".to_owned()],
        ..ClientRule::default()
    };
    let clients = ClientPolicies::new([("bare".to_owned(), rule)]).unwrap();
    let scene = servers().open_with(clients).await;
    let (mut peer, opened) = TestClient::open(&scene, "bare").await;
    let (_, other) = TestClient::open(&scene, "other").await;
    let says = |opened: &Value| opened["instructions"].as_str().unwrap().to_owned();
    assert!(says(&other).ends_with(" Never guess a tool name. Many calls: proxy/run_script."));
    assert!(
        says(&opened).ends_with(" Never guess a tool name."),
        "{opened}"
    );
    for (tool, arguments) in [
        (EXECUTE, json!({"tool_name": "code/old", "tool_input": {}})),
        (DESCRIBE, json!({"name": "files/draw", "full": true})),
        (
            SEARCH,
            json!({"query": "run a script that calls several tools"}),
        ),
    ] {
        let said = peer
            .ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        let said = said["result"]["content"].to_string();
        assert!(!said.contains("proxy/"), "{tool}: {said}");
        assert!(tool == SEARCH || said.contains("[cut: "), "{tool}: {said}");
    }
    let policy = scene.gateway.settings().clients.of(Some("bare"));
    let context = CallContext {
        policy: policy.into(),
        ..CallContext::default()
    };
    let call = json!({"tool_name": "code/old", "tool_input": {}});
    let call = to_raw_value(&call).unwrap();
    let said = scene.gateway.call_tool(EXECUTE, Some(&call), context).await;
    let said = said.unwrap().printable();
    let (_, footer) = said.rsplit_once('\n').unwrap();
    assert_snapshot!(footer, @r#"
    [cut: 3,843 of 18,000 tokens, first 1,443 and last 474 of 9,000 lines. The rest could not be kept: this client may not read on. To see more, narrow the arguments, or put "max_tokens" or "raw":true beside tool_input]
    "#);
}
