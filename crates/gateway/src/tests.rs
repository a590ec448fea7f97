//! The gateway with in-memory servers, for tests that need no process.

mod apps;
mod exported;
mod forward;
mod instructions;
mod logins;
pub(crate) mod memory;
mod mistakes;
mod overlays;
mod peer;
mod policy;
mod rounds;
mod scripts;
mod texts;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use fleet::{CallError, Failure, Ran};
use serde_json::{Value, json, value::RawValue};

use self::memory::{Memory, TestGateway};
use crate::{CallContext, DESCRIBE, EXECUTE, SEARCH, ToolReply, surveys};

async fn ask(scene: &TestGateway, tool: &str, arguments: &Value) -> ToolReply {
    let arguments = RawValue::from_string(arguments.to_string()).unwrap();
    let context = CallContext::default();
    let reply = scene
        .gateway
        .call_tool(tool, Some(&arguments), context)
        .await;
    reply.unwrap()
}

/// Calls a tool; what a model reads.
async fn execute(scene: &TestGateway, tool: &str, input: &Value) -> String {
    let call = json!({"tool_name": tool, "tool_input": input});
    ask(scene, EXECUTE, &call).await.printable()
}

fn notes() -> Memory {
    Memory::default()
        .tool(
            "notes",
            &json!({"name": "add_note", "description": "Write down a new note", "inputSchema": {
                "type": "object", "properties": {"title": {"type": "string"}},
                "required": ["title"]}}),
            |arguments| Ok(json!({"content": [{"type": "text", "text": format!("added {arguments}")}]})),
        )
        .tool(
            "notes",
            &json!({"name": "read", "description": "Read all notes", "inputSchema": {"type": "object"}}),
            |_| {
                let lines: Vec<String> = (0..5_000).map(|n| format!("note number {n}")).collect();
                Ok(json!({"content": [{"type": "text", "text": lines.join("\n")}]}))
            },
        )
}

#[tokio::test]
async fn a_tool_is_found_described_and_called() {
    let scene = notes().open().await;
    let found = ask(&scene, SEARCH, &json!({"query": "write a note"})).await;
    assert!(
        found.printable().contains("notes/add_note(title: string)"),
        "{}",
        found.printable()
    );
    let described = ask(&scene, DESCRIBE, &json!({"name": "notes/add_note"})).await;
    assert!(described.printable().contains(r#"input {"type":"object""#));
    let said = execute(&scene, "notes/add_note", &json!({"title": "Milk"})).await;
    assert_eq!(said, r#"added {"title":"Milk"}"#);
    assert_eq!(scene.calls(), ["notes/add_note"]);
}

#[tokio::test]
async fn the_first_search_without_a_sure_hit_waits_for_the_embeddings_of_a_few_tools() {
    let said = |_: &str| Ok(json!({"content": []}));
    let mut servers = Memory::default().embeds();
    for (server, name, description) in [
        ("repo", "status", "Show the working tree state of files"),
        ("repo", "push", "Upload commits to the remote"),
        ("player", "next", "Skip to the following song"),
        ("player", "louder", "Turn the volume up"),
    ] {
        let tool =
            json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
        servers = servers.tool(server, &tool, said);
    }
    let scene = servers.open().await;
    // While a run is known to be late, a search does not wait for it.
    let catalog = &scene.gateway.catalog;
    catalog.embeddings.is_late.store(true, Ordering::Relaxed);
    let query = json!({"query": "make the music stronger"});
    let early = ask(&scene, SEARCH, &query).await.printable();
    assert!(early.contains("no tool surely"), "{early}");
    catalog.embeddings.is_late.store(false, Ordering::Relaxed);
    let searches = ["make the music stronger", "upload what I committed"];
    let searches = searches.map(|query| {
        let scene = &scene;
        async move { ask(scene, SEARCH, &json!({"query": query})).await }
    });
    let found = futures::future::join_all(searches).await;
    for (found, tool) in found.iter().zip(["player/louder", "repo/push"]) {
        let text = found.printable();
        let first = text.lines().find(|line| line.contains(tool));
        assert!(
            first.is_some() && !text.contains("no tool surely"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_sure_hit_waits_for_no_server_that_never_told_its_tools() {
    let scene = notes().open().await;
    let _asked = scene
        .gateway
        .catalog
        .surveys
        .begin(&"slow".parse().unwrap(), false);
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    for query in [
        json!({"query": "write a note"}),
        json!({"query": "notes/read"}),
        json!({"query": ["write a note", "read all notes"]}),
        json!({"query": "select:notes/read"}),
        json!({"query": "*"}),
    ] {
        let found = ask(&scene, SEARCH, &query).await.printable();
        let is_exact = query["query"] == "notes/read";
        let names = "Being asked for their tools right now: slow.";
        assert_eq!(found.contains(names), !is_exact, "{found}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Without a certain hit a search waits, and so does an unknown name of a tool; all of them
    // once.
    let found = ask(&scene, SEARCH, &json!({"query": "frobnicate"})).await;
    assert!(
        found
            .printable()
            .starts_with("perhaps: no tool known so far")
    );
    let waited = began.elapsed();
    assert!(waited >= surveys::ANSWER_WAIT);
    for query in ["frobnicate", "widgets", "write a note and frobnicate"] {
        ask(&scene, SEARCH, &json!({ "query": query })).await;
    }
    execute(&scene, "slow/tool", &json!({})).await;
    assert_eq!(began.elapsed(), waited);
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_told_before_a_server_hears_of_it() {
    let scene = notes().open().await;
    let check = async |tool: &str, input: Value, expected: &str| {
        let said = execute(&scene, tool, &input).await;
        assert!(said.starts_with(expected), "{tool} {input}: {said}");
    };
    check("notes/add_note", json!({}), "error invalid_input: ").await;
    check("notes/add_notes", json!({}), "error unknown_tool: ").await;
    check("nobody/add_note", json!({}), "error unknown_tool: ").await;
    check("notes/delete", json!({}), "error unknown_tool: ").await;
    assert_eq!(scene.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn a_dry_run_calls_nothing() {
    let scene = notes().open().await;
    let call =
        json!({"tool_name": "notes/add_note", "tool_input": {"title": "x"}, "dry_run": true});
    let said = ask(&scene, EXECUTE, &call).await.printable();
    assert_eq!(said, r#"would call notes/add_note {"title":"x"}"#);
    assert_eq!(scene.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_two_servers_have_is_asked_back() {
    let echo = |_: &str| Ok(json!({"content": []}));
    let tool = json!({"name": "read_file", "inputSchema": {"type": "object"}});
    let scene = Memory::default()
        .tool("one", &tool, echo)
        .tool("two", &tool, echo)
        .open()
        .await;
    let said = execute(&scene, "read_file", &json!({})).await;
    assert!(said.starts_with("error ambiguous_tool: "), "{said}");
    assert!(
        said.contains("one/read_file") && said.contains("two/read_file"),
        "{said}"
    );
}

#[tokio::test]
async fn a_server_that_is_down_says_why_and_who_is_there() {
    let scene = notes()
        .tool(
            "db",
            &json!({"name": "query", "inputSchema": {"type": "object"}}),
            |_| {
                Err(CallError::Unavailable {
                    server: "db".parse().unwrap(),
                    failure: Failure::new("it ended with exit code 3"),
                    ran: Ran::No,
                    tries: 1,
                })
            },
        )
        .open()
        .await;
    let said = execute(&scene, "db/query", &json!({})).await;
    assert!(said.starts_with("error server_unavailable: "), "{said}");
    assert!(
        said.contains("exit code 3") && said.contains("notes"),
        "{said}"
    );
}

#[tokio::test]
async fn a_server_that_asks_for_more_is_told_as_an_error() {
    let asks: Arc<str> =
        r#"{"resultType":"input_required","inputRequests":{},"requestState":"s"}"#.into();
    let definition = json!({"name": "risky", "inputSchema": {"type": "object"}});
    let scene = Memory::default().raw("db", &definition, asks).open().await;
    let said = execute(&scene, "db/risky", &json!({})).await;
    assert!(
        said.starts_with("error input_required: db/risky asks for more"),
        "{said}"
    );
}

#[tokio::test]
async fn a_long_result_is_cut_and_its_parts_joined_are_the_whole() {
    let scene = notes().open().await;
    let said = execute(&scene, "notes/read", &json!({})).await;
    let footer = said.lines().last().unwrap();
    assert!(footer.starts_with("[cut: "), "{footer}");
    let (_, rest) = footer.split_once(r#""handle":""#).unwrap();
    let handle = rest.split('"').next().unwrap();
    let mut whole = String::new();
    for part in 1.. {
        let input = json!({"handle": handle, "part": part});
        let reply = ask(
            &scene,
            EXECUTE,
            &json!({"tool_name": "proxy/read_result", "tool_input": input}),
        )
        .await;
        let value: Value = serde_json::from_str(reply.json().as_str()).unwrap();
        whole.push_str(value["content"][0]["text"].as_str().unwrap());
        if reply.printable().ends_with(": the end]") {
            break;
        }
    }
    let lines: Vec<String> = (0..5_000).map(|n| format!("note number {n}")).collect();
    assert_eq!(whole, lines.join("\n"));
}

#[tokio::test]
async fn what_a_server_says_passes_byte_for_byte() {
    let odd = r#"{"content":[{"type":"hologram","n":1.0,"big":1e400}],"zeta":1}"#;
    let raw: Arc<str> = odd.into();
    let scene = Memory::default()
        .raw(
            "odd",
            &json!({"name": "x", "inputSchema": {"type": "object"}}),
            raw,
        )
        .open()
        .await;
    let reply = ask(
        &scene,
        EXECUTE,
        &json!({"tool_name": "odd/x", "tool_input": {}}),
    )
    .await;
    assert_eq!(reply.json().as_str(), odd);
}
