//! The whole texts for models. To change one on purpose, run `cargo insta test --accept`, or edit
//! the snapshot by hand.

use fleet::{CallError, Failure, Ran};
use insta::assert_snapshot;
use regex::Regex;
use serde_json::{Value, json};

use super::{
    ask, execute,
    memory::{Memory, TestGateway},
    notes,
};
use crate::{DESCRIBE, EXECUTE, SEARCH};

async fn search(scene: &TestGateway, arguments: Value) -> String {
    ask(scene, SEARCH, &arguments).await.printable()
}

/// Replaces the random handles of a text.
fn with_fixed_handles(text: &str) -> String {
    let handle = Regex::new("r[0-9a-f]{16}").unwrap();
    handle.replace_all(text, "HANDLE").into_owned()
}

/// Returns the first and the last two lines, which are ours in a result that was cut.
fn ends(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (head, tail) = (&lines[..2], &lines[lines.len() - 2..]);
    with_fixed_handles(&format!("{}\n(…)\n{}", head.join("\n"), tail.join("\n")))
}

fn tracker() -> Memory {
    let done = |_: &str| Ok(json!({"content": [{"type": "text", "text": "done"}]}));
    let down = |_: &str| {
        Err(CallError::Unavailable {
            server: "db".parse().unwrap(),
            failure: Failure::new("it ended with exit code 3"),
            ran: Ran::No,
            tries: 2,
        })
    };
    notes()
        .tool(
            "tracker",
            &json!({"name": "create_issue", "description": "Create an issue in a repository. Labels are made where they are missing.",
                "inputSchema": {"type": "object", "properties": {
                    "repo": {"type": "string", "description": "owner/name"},
                    "title": {"type": "string"},
                    "labels": {"type": "array", "items": {"type": "string"}}},
                "required": ["repo", "title"]}}),
            done,
        )
        .tool(
            "tracker",
            &json!({"name": "delete_issue", "description": "Delete an issue", "annotations": {"destructiveHint": true},
                "inputSchema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}}),
            done,
        )
        .tool("db", &json!({"name": "read", "inputSchema": {"type": "object"}}), down)
}

#[tokio::test]
async fn searches() {
    let scene = tracker().open().await;
    assert_snapshot!(search(&scene, json!({"query": "create an issue"})).await, @r"
    2 of 2
    tracker/create_issue(repo: string, title: string, labels?: string[]) - Create an issue in a repository
    tracker/delete_issue(number: integer) - Delete an issue [destructive]
    ");
    assert_snapshot!(search(&scene, json!({"query": ["write a note", "delete an issue"]})).await, @r"
    4 of 4
    write a note:
    notes/add_note(title: string) - Write down a new note
    notes/read() - Read all notes
    delete an issue:
    tracker/delete_issue(number: integer) - Delete an issue [destructive]
    tracker/create_issue(repo: string, title: string, labels?: string[]) - Create an issue in a repository
    ");
    assert_snapshot!(search(&scene, json!({"query": "*", "max_results": 2})).await, @r#"
    2 of 10 (proxy 5, notes 2, tracker 2, 1 more)
    db/read() - Read
    notes/add_note(title: string) - Write down a new note
    more: "offset":2
    "#);
    assert_snapshot!(search(&scene, json!({"query": "quantum chess"})).await, @r#"
    perhaps: no tool surely matches "quantum chess": "quantum", "chess" match nothing. There are documents 2, planning 2, utility 1; some of them:
    db/read() - Read
    notes/read() - Read all notes
    notes/add_note(title: string) - Write down a new note
    "#);
    assert_snapshot!(search(&scene, json!({"query": "issue", "category": "gardening"})).await, @r#"
    nothing in "gardening" (there are documents 2, planning 2, utility 1); without that filter 2 of 2
    tracker/delete_issue(number: integer) - Delete an issue [destructive]
    tracker/create_issue(repo: string, title: string, labels?: string[]) - Create an issue in a repository
    "#);
    assert_snapshot!(search(&scene, json!({"query": "frobnicate a note"})).await, @r#"
    perhaps: no tool surely matches "frobnicate a note": "frobnicate" matches nothing. Nearest:
    notes/add_note(title: string) - Write down a new note
    notes/read() - Read all notes
    "#);
    assert_snapshot!(search(&scene, json!({"query": ["create an issue", "frobnicate a note"], "max_results": 2})).await, @r"
    2 of 3 (tracker 2, notes 1)
    create an issue:
    tracker/create_issue(repo: string, title: string, labels?: string[]) - Create an issue in a repository
    frobnicate a note: perhaps:
    notes/add_note(title: string) - Write down a new note
    ");
    let steps = json!({"query": "create an issue, then translate the poem"});
    assert_snapshot!(search(&scene, steps).await, @r#"
    2 of 2
    tracker/create_issue(repo: string, title: string, labels?: string[]) - Create an issue in a repository
    tracker/delete_issue(number: integer) - Delete an issue [destructive]
    No tool matches "then translate the poem". "queries" takes a list, one query for each step.
    "#);
    let wanted = json!({"query": "run a script that calls several tools"});
    let ours = search(&scene, wanted).await;
    assert!(ours.contains("\nproxy/run_script("), "{ours}");
    let held = tracker().open().await;
    let mut settings = held.gateway.settings().as_ref().clone();
    for server in &mut settings.servers {
        server.rules.pin = registry::Pin::Hold;
    }
    std::fs::write(settings.state_dir.join("pins.json"), "damaged").unwrap();
    held.gateway.apply(settings).unwrap();
    assert_snapshot!(search(&held, json!({"query": "create an issue"})).await, @r"
    No tools are known: those of the servers are held until a person has reviewed them. A person can run `proxy review`.
    ");
    let nothing = Memory::default().open().await;
    assert_snapshot!(search(&nothing, json!({"query": "create an issue"})).await, @r"
    No tools are known: no server offers any. A person can add servers to the configuration and run `proxy reindex`.
    ");
}

#[tokio::test]
async fn hits_outside_an_empty_filter_stand_apart_in_json() {
    let scene = tracker().open().await;
    let query = json!({"query": "issue", "category": "gardening", "format": "json"});
    let text = search(&scene, query).await;
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&found["found"], &found["tools"]), (&json!(0), &json!([])));
    assert_eq!(found["without_filter"].as_array().unwrap().len(), 2);
    assert_eq!(
        found["categories"][2],
        json!({"name": "utility", "tools": 1})
    );
    let message = found["message"].as_str().unwrap();
    assert!(
        message.starts_with("nothing in \"gardening\" (there are documents 2"),
        "{message}"
    );
    let score = Regex::new(r#""relevance_score":\d\.\d\d?[,}]"#).unwrap();
    assert!(score.is_match(&text), "{text}");
    let steps = json!({"query": ["create an issue", "translate a poem"], "server": "notes", "format": "json"});
    let found: Value = serde_json::from_str(&search(&scene, steps).await).unwrap();
    assert_eq!(found["found"], found["tools"].as_array().unwrap().len());
}

#[tokio::test]
async fn categories_and_popular_tools_are_listed() {
    let scene = tracker().open().await;
    let list = async |input: Value| execute(&scene, "proxy/list", &input).await;
    for _ in 0..2 {
        execute(&scene, "notes/add_note", &json!({"title": "x"})).await;
    }
    execute(&scene, "tracker/delete_issue", &json!({"number": 1})).await;
    assert_snapshot!(list(json!({"categories": true})).await, @r"
    documents 2
    planning 2
    utility 1
    ");
    assert_snapshot!(list(json!({"popular": true})).await, @"most used: notes/add_note (2), tracker/delete_issue (1)");
    assert_snapshot!(list(json!({"top_n": 1})).await, @"most used: notes/add_note (2)");
    let within = list(json!({"categories": true, "popular": true, "server": "tracker"})).await;
    assert_eq!(within, "planning 2\nmost used: tracker/delete_issue (1)");
    let unknown = list(json!({"categories": true, "server": "nobody"})).await;
    assert!(
        unknown.starts_with("error invalid_input: server"),
        "{unknown}"
    );
}

#[tokio::test]
async fn descriptions() {
    let scene = tracker().open().await;
    let describe = async |arguments: Value| ask(&scene, DESCRIBE, &arguments).await.printable();
    assert_snapshot!(describe(json!({"name": "tracker/create_issue"})).await, @r#"
    tracker/create_issue - planning; server
    Create an issue in a repository. Labels are made where they are missing.
    input {"type":"object","properties":{"repo":{"type":"string","description":"owner/name"},"title":{"type":"string"},"labels":{"type":"array","items":{"type":"string"}}},"required":["repo","title"]}
    example {"tool_name":"tracker/create_issue","tool_input":{"repo":"site","title":"Broken link"}}
    "#);
    assert_snapshot!(describe(json!({"name": "tracker/delete_issue"})).await, @r#"
    tracker/delete_issue - planning; server
    Delete an issue
    input {"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}
    example {"tool_name":"tracker/delete_issue","tool_input":{"number":1}}
    "#);
    assert_snapshot!(describe(json!({"name": "Tracker"})).await, @r#"
    tracker - 2 tools; planning
    tracker/create_issue(repo: string, title: string, labels?: string[]) - Create an issue in a repository
    tracker/delete_issue(number: integer) - Delete an issue [destructive]
    "#);
    assert_snapshot!(describe(json!({"name": ["tracker", "notes/read"]})).await, @r#"
    tracker - 2 tools; planning
    tracker/create_issue(repo: string, title: string, labels?: string[]) - Create an issue in a repository
    tracker/delete_issue(number: integer) - Delete an issue [destructive]

    notes/read - documents; tags notes; server
    Read all notes
    input {"type":"object"}
    example {"tool_name":"notes/read","tool_input":{}}
    "#);
    assert_snapshot!(execute(&scene, "proxy/list", &json!({})).await, @r"
    3 servers, 5 tools
    db - 1 tool; utility
    notes - 2 tools; documents
    tracker - 2 tools; planning
    ");
    assert_snapshot!(execute(&scene, "proxy/list", &json!({"server": "notes"})).await, @r"
    notes - 2 tools; documents
    notes/add_note(title: string) - Write down a new note
    notes/read() - Read all notes
    ");
    assert_snapshot!(execute(&scene, "proxy/list", &json!({"server": "nobody"})).await, @r#"
    error invalid_input: server: no server is called "nobody". Expected proxy/list(server?: string, categories?: boolean, popular?: boolean, top_n?: integer).
    "#);
    assert_snapshot!(describe(json!({"name": "tracker/create_isue"})).await, @r#"
    error unknown_tool: "tracker/create_isue". Did you mean tracker/create_issue(repo: string, title: string, labels?: string[]) or tracker/delete_issue(number: integer)? Otherwise use search_tools.
    "#);
}

#[tokio::test]
async fn errors() {
    let scene = tracker().open().await;
    let call = async |tool: &str, input: Value| execute(&scene, tool, &input).await;
    assert_snapshot!(call("tracker/create_isue", json!({})).await, @r#"
    error unknown_tool: "tracker/create_isue". Did you mean tracker/create_issue(repo: string, title: string, labels?: string[]) or tracker/delete_issue(number: integer)? Otherwise use search_tools.
    "#);
    assert_snapshot!(call("read", json!({})).await, @r#"
    error ambiguous_tool: "read" is on db/read() and notes/read(). Call one of them by its whole name.
    "#);
    assert_snapshot!(call("tracker/create_issue", json!({"repo": 7, "labels": "bug", "titel": "x"})).await, @r"
    error invalid_input: title: missing; expected string; is `titel` a misspelling of it? Expected tracker/create_issue(repo: string, title: string, labels?: string[]).
    ");
    assert_snapshot!(call("db/read", json!({})).await, @r"
    error server_unavailable: db: it ended with exit code 3. The call did not run. Tried 2 times in a row. Available: notes, tracker.
    ");
    assert_snapshot!(call("proxy/read_result", json!({"handle": "r0123456789abcdef"})).await, @r#"
    error handle_expired: "r0123456789abcdef": no such kept result, or it has expired. Call the tool that gave it again.
    "#);
    assert_snapshot!(call("proxy/read_result", json!({"handle": "r0", "part": 1, "grep": "x"})).await, @r#"
    error handle_expired: "r0": no such kept result, or it has expired. Call the tool that gave it again.
    "#);
    assert_snapshot!(call("proxy/call_many", json!({"calls": []})).await, @r"
    error invalid_input: calls: expected at least 1 item, got []. Expected proxy/call_many(calls: {tool_name?: string, tool_input?: object}[], stop_on_error?: boolean=false).
    ");
    let no_name = ask(&scene, EXECUTE, &json!({"tool_input": {}})).await;
    assert_snapshot!(no_name.printable(), @r"
    error invalid_input: tool_name: missing; expected string. Expected execute_dynamic_tool(tool_name: string, tool_input: {…}).
    ");
}

#[tokio::test]
async fn results_that_were_cut() {
    let scene = tracker().open().await;
    let said = execute(&scene, "notes/read", &json!({})).await;
    assert_snapshot!(ends(&said), @r#"
    [whole: 28,999 tokens; 5,000 lines]
    note number 0
    (…)
    note number 4999
    [cut: 3,841 of 28,999 tokens, first 577 and last 158 of 5,000 lines, part 1 of 8. More: execute_dynamic_tool {"tool_name":"proxy/read_result","tool_input":{"handle":"HANDLE","part":2}} or {"handle":"HANDLE","grep":"ERROR"}]
    "#);
    let handle = Regex::new("r[0-9a-f]{16}").unwrap();
    let handle = handle.find(&said).unwrap().as_str();
    let read = async |input: Value| execute(&scene, "proxy/read_result", &input).await;
    assert_snapshot!(ends(&read(json!({"handle": handle, "part": 2})).await), @r#"
    note number 577
    note number 578
    (…)

    [part 2 of 8. More: {"handle":"HANDLE","part":3}]
    "#);
    let few = json!({"handle": handle, "offset": 10, "limit": 2});
    assert_snapshot!(with_fixed_handles(&read(few).await), @r#"
    note number 10
    note number 11

    [lines 11 to 12 of 5,000. More: {"handle":"HANDLE","offset":12,"limit":2}]
    "#);
    let last = json!({"handle": handle, "offset": -2});
    assert_snapshot!(with_fixed_handles(&read(last).await), @r"
    note number 4998
    note number 4999
    [lines 4,999 to 5,000 of 5,000: the end]
    ");
    assert_snapshot!(with_fixed_handles(&read(json!({"handle": handle, "part": 99})).await), @r#"
    error invalid_input: part: there are 8 parts, counted from 1. Expected proxy/read_result(handle: string, part?: integer, offset?: integer, limit?: integer, unit?: "lines"|"bytes", grep?: string, select?: string).
    "#);
    assert_snapshot!(with_fixed_handles(&read(json!({"handle": handle, "offset": 99_999})).await), @r"
    [no lines there: there are 5,000, offset counts from 0]
    ");
}

#[tokio::test]
async fn several_calls() {
    let scene = tracker().open().await;
    let calls = json!([
        {"tool_name": "notes/add_note", "tool_input": {"title": "Milk"}},
        {"tool_name": "notes/add_note", "tool_input": {}},
        {"tool_name": "tracker/delete_issue", "tool_input": {"number": 7}},
    ]);
    let call = async |input: Value| execute(&scene, "proxy/call_many", &input).await;
    assert_snapshot!(call(json!({"calls": calls})).await, @r#"
    [1 of 3: notes/add_note ok]
    added {"title":"Milk"}
    [2 of 3: notes/add_note error]
    error invalid_input: title: missing; expected string. Expected notes/add_note(title: string).
    [3 of 3: tracker/delete_issue ok]
    done
    "#);
    assert_snapshot!(call(json!({"calls": calls, "stop_on_error": true})).await, @r#"
    [1 of 3: notes/add_note ok]
    added {"title":"Milk"}
    [2 of 3: notes/add_note error]
    error invalid_input: title: missing; expected string. Expected notes/add_note(title: string).
    [3 of 3: tracker/delete_issue ok]
    not called: a call before it failed, and stop_on_error is set
    "#);
}
