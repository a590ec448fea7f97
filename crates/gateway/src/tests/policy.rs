//! The rules for calls, by whatever way a call comes.

use std::sync::Arc;

use ::policy::{Policy, Preset, Rule};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tool::{Capability, ItemKind};

use super::{
    ask, execute,
    memory::{Memory, Scene},
    peer::Peer,
};
use crate::{Allowance, EXECUTE, OnAlways};

const ELICIT: &str = "elicitation/create";

async fn scene(preset: Preset, rules: &Value) -> Scene {
    let said = |_: &str| Ok(json!({"content": [{"type": "text", "text": "done"}]}));
    let tool = |name: &str, hints: Value| json!({"name": name, "annotations": hints, "inputSchema": {"type": "object"}});
    let scene = Memory::default()
        .tool("bank", &tool("pay", json!({})), said)
        .tool(
            "notes",
            &tool("wipe", json!({"destructiveHint": true})),
            said,
        )
        .tool("notes", &tool("write", json!({})), said)
        .item("bank", ItemKind::Prompt, &json!({"name": "draft"}))
        .item(
            "bank",
            ItemKind::Resource,
            &json!({"uri": "bank://one", "name": "one"}),
        )
        .can("bank", Capability::Subscribe)
        .can("bank", Capability::Completions)
        .open()
        .await;
    let mut settings = (*scene.gateway.settings()).clone();
    let read = |rule: &Value| Rule::read(rule.as_object().unwrap(), None).unwrap();
    let rules = rules.as_array().unwrap().iter().map(read).collect();
    settings.policy = Arc::new(Policy::new(preset, rules));
    scene.gateway.apply(settings).unwrap();
    scene
}

#[tokio::test]
async fn no_way_leads_round_a_rule() {
    let scene = scene(
        Preset::Open,
        &json!([{"decision": "deny", "server": "bank", "reason": "by hand"}]),
    )
    .await;
    for name in [
        "bank/pay",
        "pay",
        "BANK/PAY",
        "mcp__bank__pay",
        "bank.pay",
        " bank/pay ",
    ] {
        let said = execute(&scene, name, &json!({})).await;
        assert!(
            said.starts_with("error denied: bank/pay is denied by rule 1 (by hand)"),
            "{name}: {said}"
        );
    }
    let many = json!({"calls": [{"tool_name": "bank/pay", "tool_input": {}}]});
    let prompt = json!({"name": "bank__draft"});
    for (tool, input) in [
        ("proxy/call_many", many),
        ("proxy/read_resource", json!({"uri": "bank://one"})),
        ("proxy/get_prompt", prompt),
    ] {
        let said = execute(&scene, tool, &input).await;
        assert!(said.contains("denied by rule 1"), "{tool}: {said}");
    }
    let (mut peer, _) = Peer::open(&scene, "test").await;
    let prompts = peer.ask("prompts/list", json!({})).await;
    let prompt = prompts["result"]["prompts"][0]["name"].clone();
    let of_prompt = json!({"ref": {"type": "ref/prompt", "name": prompt}, "argument": {"name": "a", "value": ""}});
    for (method, params) in [
        ("prompts/get", json!({"name": prompt})),
        ("resources/read", json!({"uri": "bank://one"})),
        ("resources/subscribe", json!({"uri": "bank://one"})),
        ("completion/complete", of_prompt),
    ] {
        let said = peer.ask(method, params).await;
        let message = said["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("denied by rule 1"), "{method}: {said}");
    }
    assert_eq!(scene.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn who_cannot_be_asked_is_told_what_to_type() {
    let scene = scene(Preset::Careful, &json!([])).await;
    let said = execute(&scene, "notes/wipe", &json!({})).await;
    assert!(
        said.starts_with(
            "error denied: notes/wipe needs a person's permission by policy = \"careful\""
        ),
        "{said}"
    );
    assert!(said.contains("`proxy allow notes/wipe`"), "{said}");
    assert_eq!(execute(&scene, "notes/write", &json!({})).await, "done");
    let dry = json!({"tool_name": "notes/wipe", "tool_input": {}, "dry_run": true});
    let said = ask(&scene, EXECUTE, &dry).await.printable();
    assert!(
        said.starts_with("would ask a person, by policy = \"careful\""),
        "{said}"
    );
    assert_eq!(scene.calls(), ["notes/write"]);
}

/// Calls a tool and answers the question, if one comes; what the model reads, and what was asked.
async fn call(peer: &mut Peer, answer: &str) -> (String, Option<Value>) {
    let call = json!({"name": EXECUTE, "arguments": {"tool_name": "notes/wipe", "tool_input": {}}});
    let request = peer.begin("tools/call", call).await;
    let mut said = peer.next().await;
    let mut asked = None;
    if said["method"] == ELICIT {
        let result = json!({"action": "accept", "content": {"allow": answer}});
        let reply = json!({"jsonrpc": "2.0", "id": said["id"], "result": result});
        peer.send(&reply).await;
        asked = Some(said["params"].clone());
        said = peer.next().await;
    }
    assert_eq!(said["id"], request, "{said}");
    let text = said["result"]["content"][0]["text"].as_str().unwrap();
    (text.to_owned(), asked)
}

#[tokio::test]
async fn a_person_allows_once_for_the_session_and_always() {
    let scene = scene(Preset::Careful, &json!([])).await;
    let written: Arc<Mutex<Vec<Allowance>>> = Arc::default();
    let writes = Arc::clone(&written);
    scene.gateway.on_always(OnAlways::new(move |allowance| {
        writes.lock().push(allowance.clone());
        Ok(())
    }));
    let (mut peer, _) = Peer::open_with(&scene, "Cursor", &json!({"elicitation": {}})).await;
    let (said, asked) = call(&mut peer, "no").await;
    assert!(said.contains("the person did not give it"), "{said}");
    let asked = asked.expect("a question");
    let message = asked["message"].as_str().unwrap();
    assert!(
        message.starts_with("[proxy] Allow notes/wipe?\narguments: {}\nwhy you are asked: "),
        "{message}"
    );
    let answers = &asked["requestedSchema"]["properties"]["allow"]["enum"];
    assert_eq!(*answers, json!(["once", "this session", "always", "no"]));
    for (answer, is_asked) in [("once", true), ("this session", true), ("no", false)] {
        let (said, asked) = call(&mut peer, answer).await;
        assert_eq!(
            (said.as_str(), asked.is_some()),
            ("done", is_asked),
            "{answer}"
        );
    }
    let (mut other, _) = Peer::open_with(&scene, "Cursor", &json!({"elicitation": {}})).await;
    assert_eq!(call(&mut other, "always").await.0, "done");
    assert!(call(&mut other, "no").await.1.is_none());
    let allowance = Allowance {
        key: "tool",
        server: "notes".to_owned(),
        name: "wipe".to_owned(),
        client: "cursor".to_owned(),
    };
    assert_eq!(*written.lock(), [allowance]);
}

#[tokio::test]
async fn a_client_that_goes_in_rounds_is_asked_in_its_own_way() {
    let rules = json!([{"decision": "ask", "tool": "bank/pay", "arguments": {"/to": "*"}}]);
    let scene = scene(Preset::Open, &rules).await;
    let mut peer = Peer::modern_with(&scene, &json!({"elicitation": {}}));
    let call = json!({"tool_name": "bank/pay", "tool_input": {"to": "eve"}});
    let asked = peer
        .ask("tools/call", json!({"name": EXECUTE, "arguments": call}))
        .await["result"]
        .clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, question) = asked["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    let answers = &question["params"]["requestedSchema"]["properties"]["allow"]["enum"];
    assert!(
        !answers.to_string().contains("always"),
        "the rule looks at arguments: {answers}"
    );
    let again = json!({"name": EXECUTE, "arguments": call, "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"allow": "once"}}}});
    let told = peer.ask("tools/call", again).await;
    assert_eq!(told["result"]["content"][0]["text"], "done", "{told}");
}
