//! The rules for calls, for every kind of call.

use std::sync::Arc;

use ::policy::{Allowance, Policy, Preset, Rule};
use parking_lot::Mutex;
use serde_json::{Value, json, value::to_raw_value};
use tool::{Capability, ItemKind};

use super::{
    ask, execute,
    memory::{Memory, TestGateway},
    peer::TestClient,
};
use crate::{
    CallContext, EXECUTE, SEARCH, Thing,
    policy::{ClientPolicies, ClientRule},
    script_caller::ScriptCaller,
};

const ELICIT: &str = "elicitation/create";

async fn scene(preset: Preset, rules: &Value) -> TestGateway {
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
        .says("bank", "completion/complete", |_| Ok(json!({})))
        .open()
        .await;
    set_rules(&scene, preset, rules);
    scene
}

fn set_rules(scene: &TestGateway, preset: Preset, rules: &Value) {
    let mut settings = (*scene.gateway.settings()).clone();
    let read = |rule: &Value| Rule::read(rule.as_object().unwrap(), None).unwrap();
    let rules = rules.as_array().unwrap().iter().map(read).collect();
    settings.policy = Arc::new(Policy::new(preset, rules));
    scene.gateway.apply(settings).unwrap();
}

/// Has allowances kept here, each with what writing it comes to.
fn keep_allowances(scene: &TestGateway, written: Result<(), String>) -> Arc<Mutex<Vec<Allowance>>> {
    let kept: Arc<Mutex<Vec<Allowance>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    scene.gateway.authorizer.set_on_always(move |allowance| {
        keeps.lock().push(allowance.clone());
        written.clone()
    });
    kept
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
    let (mut peer, _) = TestClient::open(&scene, "test").await;
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

/// Has the settings changed while the next request waits for its start.
fn change_meanwhile(
    scene: &TestGateway,
    change: impl FnOnce(&mut crate::Settings) + Send + 'static,
) {
    let gateway = Arc::downgrade(&scene.gateway);
    *scene.waiting.lock() = Some(Box::new(move || {
        let gateway = gateway.upgrade().unwrap();
        let mut settings = (*gateway.settings()).clone();
        change(&mut settings);
        gateway.apply(settings).unwrap();
    }));
}

#[tokio::test]
async fn no_request_starts_that_a_change_denied_while_it_waited() {
    let deny = |rule: Value| {
        let rule = Rule::read(rule.as_object().unwrap(), None).unwrap();
        move |settings: &mut crate::Settings| {
            settings.policy = Arc::new(Policy::new(Preset::Open, vec![rule]));
        }
    };
    let other = json!({"decision": "deny", "server": "notes"});
    let all = json!({"decision": "deny", "server": "bank", "reason": "by hand"});
    let scene = scene(Preset::Open, &json!([])).await;
    let nothing = json!({});
    let pay = || execute(&scene, "bank/pay", &nothing);
    change_meanwhile(&scene, deny(other));
    assert_eq!(pay().await, "done");
    change_meanwhile(&scene, deny(all.clone()));
    let refused = pay().await;
    // It has the error of a call that comes later.
    assert_eq!(refused, pay().await);
    assert!(
        refused.contains("bank/pay is denied by rule 1 (by hand)"),
        "{refused}"
    );

    let (mut peer, _) = TestClient::open(&scene, "test").await;
    for (method, params) in [
        ("prompts/get", json!({"name": "draft"})),
        ("resources/read", json!({"uri": "bank://one"})),
        ("resources/subscribe", json!({"uri": "bank://one"})),
    ] {
        set_rules(&scene, Preset::Open, &json!([]));
        change_meanwhile(&scene, deny(all.clone()));
        let refused = peer.ask(method, params.clone()).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("denied by rule 1"), "{method}: {refused}");
        let later = peer.ask(method, params).await;
        assert_eq!(refused["error"], later["error"], "{method}");
    }
    assert_eq!(scene.calls(), ["bank/pay"]);
}

#[tokio::test]
async fn no_call_starts_of_a_tool_or_server_that_a_change_hid_while_it_waited() {
    let scene = scene(Preset::Open, &json!([])).await;
    let before = scene.gateway.settings();
    let hide: [fn(&mut crate::Settings); 3] = [
        |settings| settings.servers[0].enabled = false,
        |settings| drop(settings.servers.remove(0)),
        |settings| {
            let deny = ClientRule {
                deny: vec!["bank".to_owned()],
                ..ClientRule::default()
            };
            settings.clients = ClientPolicies::new([("*".to_owned(), deny)]).unwrap();
        },
    ];
    for hide in hide {
        scene.gateway.apply((*before).clone()).unwrap();
        let (mut peer, _) = TestClient::open(&scene, "test").await;
        let call =
            json!({"name": EXECUTE, "arguments": {"tool_name": "bank/pay", "tool_input": {}}});
        change_meanwhile(&scene, hide);
        let refused = peer.ask("tools/call", call.clone()).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let later = peer.ask("tools/call", call).await;
        assert_eq!(refused["result"], later["result"]);
    }
    assert_eq!(scene.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn a_completion_of_a_prompt_is_no_request_for_a_resource_that_it_names_besides() {
    let rule = json!([{"decision": "deny", "prompt": "bank/draft", "reason": "by hand"}]);
    let scene = scene(Preset::Open, &rule).await;
    let (mut peer, _) = TestClient::open(&scene, "test").await;
    for reference in [
        json!({"type": "ref/prompt", "name": "bank__draft"}),
        json!({"type": "ref/prompt", "name": "bank__draft", "uri": "bank://one"}),
    ] {
        let params = json!({"ref": reference, "argument": {"name": "a", "value": ""}});
        let said = peer.ask("completion/complete", params).await;
        let message = said["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("denied by rule 1"), "{said}");
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
    assert!(said.contains("`proxy policy allow notes/wipe`"), "{said}");
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
async fn call(peer: &mut TestClient, answer: &str) -> (String, Option<Value>) {
    call_with(peer, "notes/wipe", &json!({}), answer).await
}

async fn call_with(
    peer: &mut TestClient,
    tool: &str,
    input: &Value,
    answer: &str,
) -> (String, Option<Value>) {
    let call = json!({"name": EXECUTE, "arguments": {"tool_name": tool, "tool_input": input}});
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
    let written = keep_allowances(&scene, Ok(()));
    let (mut peer, _) = TestClient::open_with(&scene, "Cursor", &json!({"elicitation": {}})).await;
    let (said, asked) = call(&mut peer, "no").await;
    assert!(said.contains("the person did not give it"), "{said}");
    let asked = asked.expect("the user is asked");
    let message = asked["message"].as_str().unwrap();
    assert!(
        message.starts_with("[proxy] Allow notes/wipe?\narguments: none\nwhy you are asked: "),
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
    let (mut other, _) = TestClient::open_with(&scene, "Cursor", &json!({"elicitation": {}})).await;
    assert_eq!(call(&mut other, "always").await.0, "done");
    assert!(call(&mut other, "no").await.1.is_none());
    let rules: Vec<_> = written.lock().iter().map(Allowance::rule).collect();
    let rule = [
        ("decision", "allow"),
        ("client", "cursor"),
        ("server", "notes"),
        ("tool", "wipe"),
    ];
    assert_eq!(rules, [rule.map(|(key, value)| (key, value.to_owned()))]);
}

fn answers(asked: Option<&Value>) -> Value {
    let asked = asked.expect("the user is asked");
    asked["requestedSchema"]["properties"]["allow"]["enum"].clone()
}

#[tokio::test]
async fn always_is_offered_where_it_overrides_nothing_that_was_not_seen() {
    let ask = json!({"decision": "ask", "server": "notes"});
    let reads = json!({"decision": "deny", "tool": "notes/*", "arguments": {"/path": {"inside": "/secret"}}});
    let scene = scene(Preset::Open, &json!([reads, ask])).await;
    let written = keep_allowances(&scene, Ok(()));
    let can = json!({"elicitation": {}});
    let (mut peer, _) = TestClient::open_with(&scene, "cursor", &can).await;
    let open = json!({"path": "/open/a"});
    let (said, asked) = call_with(&mut peer, "notes/write", &open, "once").await;
    assert_eq!(said, "done");
    assert_eq!(
        answers(asked.as_ref()),
        json!(["once", "this session", "no"])
    );
    // An answer that was not offered has no effect.
    let (said, _) = call_with(&mut peer, "notes/write", &open, "always").await;
    assert!(said.contains("the person did not give it"), "{said}");
    assert_eq!(*written.lock(), []);

    set_rules(&scene, Preset::Open, &json!([ask, reads]));
    for (name, is_offered) in [("cursor", true), ("", false), ("  ", false)] {
        let (mut peer, _) = TestClient::open_with(&scene, name, &can).await;
        let (_, asked) = call(&mut peer, "once").await;
        let answers = answers(asked.as_ref()).to_string();
        assert_eq!(answers.contains("always"), is_offered, "{name:?}");
    }
}

#[tokio::test]
async fn a_person_is_shown_the_whole_call_or_not_asked() {
    let scene = scene(
        Preset::Open,
        &json!([{"decision": "ask", "server": "notes"}]),
    )
    .await;
    let (mut peer, _) = TestClient::open_with(&scene, "cursor", &json!({"elicitation": {}})).await;
    let input = json!({"text": "x".repeat(8_000), "path": "/etc/\u{202e}hosts"});
    let (said, asked) = call_with(&mut peer, "notes/write", &input, "once").await;
    assert_eq!(said, "done");
    let message = asked.unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&"x".repeat(8_000)), "{message}");
    assert!(
        message.contains("\n  \"path\": \"/etc/\\u202ehosts\"\n"),
        "{message}"
    );
    let input = json!({"text": "x".repeat(30_000), "path": "/etc/hosts"});
    let (said, asked) = call_with(&mut peer, "notes/write", &input, "once").await;
    assert_eq!(asked, None);
    assert!(
        said.contains("characters, at most 20000 can be shown"),
        "{said}"
    );
    assert_eq!(scene.calls(), ["notes/write"]);
}

#[tokio::test]
async fn calls_that_wait_for_an_answer_share_a_no_and_a_later_one_is_asked_about() {
    let scene = scene(Preset::Careful, &json!([])).await;
    for mut peer in [
        TestClient::open_with(&scene, "cursor", &json!({"elicitation": {}}))
            .await
            .0,
        TestClient::open_with(&scene, "", &json!({"elicitation": {}}))
            .await
            .0,
    ] {
        for _ in 0..2 {
            let call = json!({"name": EXECUTE, "arguments": {"tool_name": "notes/wipe", "tool_input": {}}});
            for _ in 0..50 {
                peer.begin("tools/call", call.clone()).await;
            }
            let (mut asked, mut refused) = (0, 0);
            while refused < 50 {
                let said = peer.next().await;
                if said["method"] == ELICIT {
                    asked += 1;
                    let result = json!({"action": "decline"});
                    peer.send(&json!({"jsonrpc": "2.0", "id": said["id"], "result": result}))
                        .await;
                } else {
                    let text = said["result"]["content"][0]["text"].as_str().unwrap();
                    assert!(text.contains("the person did not give it"), "{text}");
                    refused += 1;
                }
            }
            assert_eq!(asked, 1);
        }
    }
    assert_eq!(scene.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn a_rule_that_comes_while_its_question_is_open_decides() {
    let ask = json!({"decision": "ask", "server": "notes"});
    let scene = scene(Preset::Open, &json!([ask])).await;
    let written = keep_allowances(&scene, Err("the rules are others".to_owned()));
    let (mut peer, _) = TestClient::open_with(&scene, "cursor", &json!({"elicitation": {}})).await;
    let params =
        json!({"name": EXECUTE, "arguments": {"tool_name": "notes/wipe", "tool_input": {}}});
    let request = peer.begin("tools/call", params).await;
    let question = peer.next().await;
    assert_eq!(question["method"], ELICIT);
    set_rules(
        &scene,
        Preset::Open,
        &json!([{"decision": "deny", "server": "notes"}, ask]),
    );
    let result = json!({"action": "accept", "content": {"allow": "always"}});
    peer.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
        .await;
    let said = peer.next().await;
    assert_eq!(said["id"], request);
    assert!(said.to_string().contains("denied by rule 1"), "{said}");
    assert_eq!(written.lock().len(), 1);
    assert_eq!(scene.calls(), Vec::<String>::new());

    // An `always` that cannot be written allows one call.
    set_rules(&scene, Preset::Open, &json!([ask]));
    for _ in 0..2 {
        let (said, asked) = call(&mut peer, "always").await;
        assert_eq!((said.as_str(), asked.is_some()), ("done", true));
    }
    assert_eq!(call(&mut peer, "this session").await.0, "done");
    assert!(call(&mut peer, "no").await.1.is_none());
    // The same tool under another rule asks again.
    let other = json!({"decision": "ask", "server": "notes", "reason": "new"});
    set_rules(&scene, Preset::Open, &json!([other]));
    assert!(call(&mut peer, "no").await.1.is_some());
}

#[tokio::test]
async fn a_command_is_told_that_allows_what_was_refused_and_no_more() {
    let ask = json!({"decision": "ask", "server": "notes"});
    let guests = json!({"decision": "ask", "client": "guest*", "server": "notes"});
    let reads = json!({"decision": "ask", "server": "notes", "arguments": {"/**": "*"}});
    let scene = scene(Preset::Open, &json!([])).await;
    let check = async |rules: Value, expected: &str| {
        set_rules(&scene, Preset::Open, &rules);
        let (mut peer, _) = TestClient::open(&scene, "Guest One").await;
        let said = call_with(&mut peer, "notes/wipe", &json!({"a": 1}), "")
            .await
            .0;
        assert!(said.contains(expected), "{rules}: {said}");
    };
    check(
        json!([ask]),
        "The person can type `proxy policy allow notes/wipe`",
    )
    .await;
    check(
        json!([guests]),
        "`proxy policy allow notes/wipe --client 'guest one'`",
    )
    .await;
    let rest = json!({"decision": "allow", "server": "notes"});
    let named = "`proxy policy allow notes/wipe --client 'guest one'`";
    check(json!([guests, rest]), named).await;
    check(json!([reads]), "The person can change the rules").await;
    check(json!([reads, ask]), "The person can change the rules").await;
    set_rules(&scene, Preset::Open, &json!([ask]));
    let generation = scene.gateway.catalog.registry.generation().unwrap();
    let server = generation.server(&"notes".parse().unwrap()).unwrap();
    for thing in [
        Thing::Tool("NOTES/wipe"),
        Thing::Prompt(server, "draft"),
        Thing::Resource(server, "a:b"),
    ] {
        let found = scene
            .gateway
            .authorizer
            .find_allowance(thing, None)
            .await
            .unwrap();
        assert!(found.is_ok(), "{thing:?}: {found:?}");
    }
    let unknown = scene
        .gateway
        .authorizer
        .find_allowance(Thing::Tool("notes/nothing"), None)
        .await;
    assert!(unknown.is_err());
}

#[tokio::test]
async fn a_client_that_goes_in_rounds_is_asked_in_its_own_way() {
    let rules = json!([{"decision": "ask", "tool": "bank/pay", "arguments": {"/to": "*"}}]);
    let scene = scene(Preset::Open, &rules).await;
    let mut peer = TestClient::modern_with(&scene, &json!({"elicitation": {}}));
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
        "`always` is offered for a rule with arguments: {answers}"
    );
    let again = json!({"name": EXECUTE, "arguments": call, "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"allow": "once"}}}});
    let told = peer.ask("tools/call", again).await;
    assert_eq!(told["result"]["content"][0]["text"], "done", "{told}");
}

/// The same scene with other tables of clients.
fn set_clients(scene: &TestGateway, denied: &[&str]) {
    let mut settings = (*scene.gateway.settings()).clone();
    let rule = ClientRule {
        deny: denied.iter().map(ToString::to_string).collect(),
        ..ClientRule::default()
    };
    settings.clients = ClientPolicies::new([("curs*".to_owned(), rule)]).unwrap();
    scene.gateway.apply(settings).unwrap();
}

#[tokio::test]
async fn a_changed_client_table_reaches_sessions_that_are_open() {
    let scene = scene(Preset::Open, &json!([])).await;
    let (mut peer, _) = TestClient::open(&scene, "Cursor").await;
    let (mut other, _) = TestClient::open(&scene, "other").await;
    let pay = json!({"name": EXECUTE, "arguments": {"tool_name": "bank/pay", "tool_input": {}}});
    let find = json!({"name": SEARCH, "arguments": {"query": "pay"}});
    let text = |said: &Value| said["result"]["content"][0]["text"].to_string();
    let check = async |peer: &mut TestClient, is_seen: bool| {
        let said = text(&peer.ask("tools/call", pay.clone()).await);
        let expected = if is_seen { "done" } else { "error denied" };
        assert!(said.contains(expected), "{said}");
        let found = text(&peer.ask("tools/call", find.clone()).await);
        assert_eq!(found.contains("bank/pay"), is_seen, "{found}");
        let prompts = peer.ask("prompts/list", json!({})).await;
        let prompts = prompts["result"]["prompts"].as_array().unwrap().len();
        assert_eq!(prompts, usize::from(is_seen));
    };
    check(&mut peer, true).await;
    set_clients(&scene, &["bank"]);
    peer.hear("notifications/prompts/list_changed").await;
    check(&mut peer, false).await;
    check(&mut other, true).await;
    set_clients(&scene, &[]);
    peer.hear("notifications/prompts/list_changed").await;
    check(&mut peer, true).await;
}

#[tokio::test]
async fn a_script_that_runs_follows_a_changed_client_table() {
    let scene = scene(Preset::Open, &json!([])).await;
    let context = CallContext {
        policy: Arc::new(scene.gateway.settings().clients.of(Some("Cursor"))),
        script: Some(ScriptCaller::within(None, None).unwrap()),
        ..CallContext::default()
    };
    let call = async || {
        let call = to_raw_value(&json!({"tool_name": "bank/pay", "tool_input": {}})).unwrap();
        let called = scene
            .gateway
            .call_tool(EXECUTE, Some(&call), context.clone());
        called.await.unwrap().printable()
    };
    assert_eq!(call().await, "done");
    set_clients(&scene, &["bank"]);
    let said = call().await;
    assert!(said.contains("error denied"), "{said}");
}

#[tokio::test]
async fn a_refused_call_is_recorded_with_its_caller_server_and_tool() {
    let scene = scene(
        Preset::Open,
        &json!([{"decision": "deny", "tool": "notes/wipe"}]),
    )
    .await;
    let mut settings = (*scene.gateway.settings()).clone();
    for server in &mut settings.servers {
        if server.spec.name.as_str() == "bank" {
            server.rules.deny = vec!["pay".to_owned()];
        }
    }
    scene.gateway.apply(settings).unwrap();
    set_clients(&scene, &["notes"]);
    let context = |client: &str| CallContext {
        policy: Arc::new(scene.gateway.settings().clients.of(Some(client))),
        admitted_as: Some("token laptop".into()),
        ..CallContext::default()
    };
    for (client, name) in [
        ("other", "bank/pay"),
        ("other", "Bank__Pay"),
        ("other", "pay"),
        ("other", "mcp__bank__nothing"),
        ("other", "notes/wipe"),
        ("cursor", "notes/write"),
        ("other", "nowhere/pay"),
    ] {
        let call = to_raw_value(&json!({"tool_name": name, "tool_input": {}})).unwrap();
        let called = scene
            .gateway
            .call_tool(EXECUTE, Some(&call), context(client));
        assert!(called.await.unwrap().is_error(), "{name}");
    }
    scene.gateway.recorder.flush();
    let mut told = Vec::new();
    let folder = scene.gateway.settings().state_dir.join("audit");
    telemetry::read(&folder, &telemetry::Filter::default(), |line| {
        assert_eq!(line["caller"], "token laptop", "{line}");
        told.push(format!(
            "{} {}",
            line["server"].as_str().unwrap(),
            line["tool"].as_str().unwrap()
        ));
    })
    .unwrap();
    assert_eq!(
        told,
        [
            "bank pay",
            "bank pay",
            "bank pay",
            "bank nothing",
            "notes wipe",
            "notes write",
            " nowhere/pay"
        ]
    );
}
