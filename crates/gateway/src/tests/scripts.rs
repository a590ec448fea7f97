//! Tests for scripts: each call of a script counts as one of its client, and saved scripts are
//! tools.

use std::{fs, sync::Arc};

use ::policy::{Policy, Preset, Rule};
use ::script::{ScriptRequest, Tools as _};
use serde_json::{Value, json, value::to_raw_value};

use super::{
    ask, execute,
    memory::{Memory, TestGateway},
};
use crate::{CallContext, DESCRIBE, SEARCH, built_in::Reach, script_caller::ScriptCaller, survey};

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
        .tool("notes", &tool("read", json!({"readOnlyHint": true})), said)
        .open()
        .await;
    let mut settings = (*scene.gateway.settings()).clone();
    let read = |rule: &Value| Rule::read(rule.as_object().unwrap(), None).unwrap();
    let rules = rules.as_array().unwrap().iter().map(read).collect();
    settings.policy = Arc::new(Policy::new(preset, rules));
    scene.gateway.apply(settings).unwrap();
    scene
}

/// The reach of a script in this scene.
fn reach(
    scene: &TestGateway,
    context: CallContext,
    caller: ScriptCaller,
    dry_run: bool,
) -> Reach<'_> {
    let gateway = &scene.gateway;
    Reach::new(
        &gateway.run_script.parts,
        &gateway.dispatcher,
        context,
        caller,
        dry_run,
    )
}

/// The reply to a call of a script; for a refusal its code, then its text.
async fn call(scene: &TestGateway, caller: &ScriptCaller, tool: &str, input: &Value) -> String {
    let context = CallContext::default();
    let reach = reach(scene, context, caller.clone(), false);
    let question = ScriptRequest::Call {
        tool: tool.to_owned(),
        input: to_raw_value(input).unwrap(),
    };
    match reach.answer(question).await {
        Ok(result) => result.get().to_owned(),
        Err(refusal) => format!("{}: {}", refusal.code, refusal.text),
    }
}

#[tokio::test]
async fn rules_hold_for_each_call_as_if_it_came_alone() {
    let rules = json!([
        {"decision": "allow", "tool": "bank/pay", "arguments": {"/to": "alice"}},
        {"decision": "deny", "server": "bank", "reason": "by hand"},
    ]);
    let scene = scene(Preset::Careful, &rules).await;
    let script = ScriptCaller::within(None, None).unwrap();
    for (tool, input, expected) in [
        ("bank/pay", json!({"to": "alice"}), "done"),
        (
            "bank/pay",
            json!({"to": "eve"}),
            "denied by rule 2 (by hand)",
        ),
        (
            "BANK/PAY",
            json!({"to": "eve"}),
            "denied by rule 2 (by hand)",
        ),
        ("notes/read", json!({}), "done"),
        (
            "notes/wipe",
            json!({}),
            "needs a person's permission by policy = \"careful\"",
        ),
    ] {
        let said = call(&scene, &script, tool, &input).await;
        assert!(said.contains(expected), "{tool} {input}: {said}");
        // The text is the same as outside a script.
        let alone = execute(&scene, tool, &input).await;
        assert!(alone.contains(expected), "{tool} {input}: {alone}");
    }
    assert_eq!(
        scene.calls(),
        ["bank/pay", "bank/pay", "notes/read", "notes/read"]
    );
}

#[tokio::test]
async fn a_script_that_only_reads_may_call_nothing_else_nor_may_those_within_it() {
    let scene = scene(Preset::Open, &json!([])).await;
    let reads = ScriptCaller::within(None, Some("scripts/look")).unwrap();
    let within = ScriptCaller::within(Some(&reads), None).unwrap();
    for script in [&reads, &within] {
        let said = call(&scene, script, "bank/pay", &json!({})).await;
        let expected = "denied: error denied: scripts/look is @readOnly, and bank/pay";
        assert!(said.starts_with(expected), "{said}");
        assert!(
            call(&scene, script, "notes/read", &json!({}))
                .await
                .contains("done")
        );
    }
    assert_eq!(scene.calls(), ["notes/read", "notes/read"]);
    // The same applies to calls through our own tools.
    let pays = json!({"calls": [{"tool_name": "bank/pay", "tool_input": {}}]});
    let said = call(&scene, &reads, "proxy/call_many", &pays).await;
    assert!(said.starts_with("denied: "), "{said}");
    let keep = ScriptRequest::Workspace {
        verb: "write".to_owned(),
        path: "a".to_owned(),
        text: Some("x".to_owned()),
    };
    let reach = reach(&scene, CallContext::default(), within, false);
    let said = reach.answer(keep).await.unwrap_err();
    assert_eq!(said.code, "denied", "{}", said.text);
    assert_eq!(scene.calls(), ["notes/read", "notes/read"]);
}

#[tokio::test]
async fn calls_within_call_many_count_like_any_other() {
    let scene = scene(Preset::Open, &json!([])).await;
    let outer = ScriptCaller::within(None, None).unwrap();
    let inner = ScriptCaller::within(Some(&outer), None).unwrap();
    let many = |count: usize| {
        let one = json!({"tool_name": "notes/read", "tool_input": {}});
        json!({"calls": vec![one; count]})
    };
    call(&scene, &inner, "proxy/call_many", &many(64)).await;
    assert_eq!((outer.calls(), inner.calls()), (65, 65));
    let said = call(&scene, &outer, "proxy/call_many", &many(64)).await;
    // The second `call_many` counts as one call; 34 calls were left for those within it.
    assert_eq!(said.matches("notes/read ok").count(), 34, "{said}");
    assert_eq!(
        said.matches("error script_limit: calls: more than 100")
            .count(),
        30
    );
    assert_eq!((outer.calls(), inner.calls()), (::script::CALLS_MAX, 65));
    let context = CallContext::default();
    let reach = reach(&scene, context, outer, false);
    let question = ScriptRequest::Call {
        tool: "notes/read".to_owned(),
        input: to_raw_value(&json!({})).unwrap(),
    };
    // The refusal ends the script, which cannot catch it.
    let refusal = reach.answer(question).await.unwrap_err();
    assert_eq!(refusal.limit, Some(::script::Limit::Calls));
    assert_eq!(scene.calls().len(), 98);
}

#[tokio::test]
async fn scripts_within_each_other_have_one_count_of_calls_and_an_end() {
    let scene = scene(Preset::Open, &json!([])).await;
    let outer = ScriptCaller::within(None, None).unwrap();
    let inner = ScriptCaller::within(Some(&outer), None).unwrap();
    let innermost = ScriptCaller::within(Some(&inner), None).unwrap();
    let error = ScriptCaller::within(Some(&innermost), None).unwrap_err();
    assert!(
        error.to_string().contains("nesting: more than 3 scripts"),
        "{error}"
    );
    for n in 0..::script::CALLS_MAX {
        let caller = [&outer, &inner, &innermost][n % 3];
        call(&scene, caller, "notes/read", &json!({})).await;
    }
    let said = call(&scene, &outer, "notes/read", &json!({})).await;
    assert!(said.starts_with("script_limit: "), "{said}");
    assert_eq!(scene.calls().len(), ::script::CALLS_MAX);
}

#[tokio::test]
async fn files_of_the_folder_are_found_and_described_as_long_as_they_are_there() {
    let scene = scene(Preset::Open, &json!([])).await;
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("scripts");
    let mut settings = (*scene.gateway.settings()).clone();
    settings.scripts = Some(scripts.clone());
    scene.gateway.apply(settings).unwrap();
    let find = async || {
        survey::take_in_scripts(&scene.gateway.catalog).await;
        let asked = json!({"query": "count stale invoices"});
        ask(&scene, SEARCH, &asked).await.printable()
    };
    assert!(!find().await.contains("scripts/"));
    fs::create_dir(&scripts).unwrap();
    let text = "/** Count stale invoices.\n @readOnly */\nfunction main(args: { /** In days. */ age: number }) {}";
    fs::write(scripts.join("stale.ts"), text).unwrap();
    assert!(
        find()
            .await
            .contains("scripts/stale(age: number) - Count stale invoices")
    );
    let described = ask(&scene, DESCRIBE, &json!({"name": "scripts/stale"})).await;
    let schema = r#"input {"type":"object","properties":{"age":{"type":"number","description":"In days."}},"required":["age"],"additionalProperties":false}"#;
    let described = described.printable();
    assert!(described.contains(schema), "{described}");
    let said = execute(&scene, "scripts/stale", &json!({"age": "old"})).await;
    assert!(said.starts_with("error invalid_input: "), "{said}");
    fs::remove_file(scripts.join("stale.ts")).unwrap();
    fs::write(scripts.join("other.ts"), "1").unwrap();
    let found = find().await;
    assert!(!found.contains("scripts/stale"), "{found}");
    fs::remove_dir_all(&scripts).unwrap();
    find().await;
    let said = execute(&scene, "scripts/other", &json!({})).await;
    assert!(said.starts_with("error unknown_tool: "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_readings_of_the_scripts_at_once_the_later_one_is_kept() {
    let scene = scene(Preset::Open, &json!([])).await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = (*scene.gateway.settings()).clone();
    settings.scripts = Some(folder.path().to_owned());
    let catalog = Arc::clone(&scene.gateway.catalog);
    // Nothing is read yet: the settings alone are replaced.
    catalog.current.store(Arc::new(settings));

    let earlier = catalog.scripts_reading.lock();
    let reading = std::thread::spawn({
        let (catalog, waiting) = (Arc::clone(&catalog), std::thread::current());
        move || {
            catalog.survey_scripts().unwrap();
            waiting.unpark();
        }
    });
    // A reading that does not wait for the earlier one ends within this time, without the file.
    std::thread::park_timeout(std::time::Duration::from_millis(200));
    // The later reading begins after the earlier one, so it finds this file.
    fs::write(
        folder.path().join("report.ts"),
        "/** Reports. */\nfunction main() {}",
    )
    .unwrap();
    drop(earlier);
    reading.join().unwrap();
    assert!(catalog.saved_scripts().get("report").is_some());
}
