//! The suite acts as the server, and `proxy` as its client.

use std::{collections::HashMap, fs, os::unix::fs::PermissionsExt as _};

use journeys::{
    client::{Client, ROUNDS_MAX},
    fake::META_CAPABILITIES,
    house::{Fake, House},
    real_clients::Checks,
};
use serde_json::{Value, json};
use tokio::task::{JoinError, JoinSet};

use crate::{house, real_clients, until};

/// The kind of client that calls the proxy, which then calls the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConformanceRequest {
    /// A client with a handshake, which gets questions as requests.
    Legacy,
    /// A client of 2026-07-28.
    Modern,
}

/// The calls to the suite's server in one scenario.
struct Scenario {
    name: &'static str,
    revision: &'static str,
    play: &'static [(&'static str, &'static str)],
}

const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";

/// Requests other than calls are listed with their method and purpose.
const SCENARIOS: [Scenario; 13] = [
    scenario("initialize", OLD, &[]),
    scenario("tools_call", OLD, SUM),
    scenario(
        "elicitation-sep1034-client-defaults",
        OLD,
        &[("test_client_elicitation_defaults", "{}")],
    ),
    scenario("sse-retry", OLD, &[("test_reconnection", "{}")]),
    scenario("json-schema-2020-12-preservation", OLD, ECHO),
    scenario("tools_call", NEW, SUM),
    scenario("request-metadata", NEW, &[]),
    scenario(
        "sep-2322-client-request-state",
        NEW,
        &[
            ("test_mrtr_echo_state", "{}"),
            ("test_mrtr_no_state", "{}"),
            ("test_mrtr_unrelated", "{}"),
            ("test_mrtr_no_result_type", "{}"),
        ],
    ),
    scenario(
        "http-standard-headers",
        NEW,
        &[
            ("test_headers", "{}"),
            ("my-hyphenated-tool", "{}"),
            ("resources/read", "file:///path/to/file%20name.txt"),
            ("resources/read", "https://example.com/resource?id=123"),
            ("prompts/get", "test_prompt"),
        ],
    ),
    scenario("http-custom-headers", NEW, CONTEXT),
    scenario("http-invalid-tool-headers", NEW, MARKED),
    scenario("json-schema-ref-no-deref", NEW, &[]),
    scenario("json-schema-2020-12-preservation", NEW, ECHO),
];

const SUM: &[(&str, &str)] = &[("add_numbers", r#"{"a": 5, "b": 3}"#)];
/// A tool with a valid mark, and one for each invalid form, which nobody may call.
const MARKED: &[(&str, &str)] = &[
    ("valid_tool", r#"{"region": "us-east1"}"#),
    ("invalid_empty_header", r#"{"value": "x"}"#),
    ("invalid_object_header", r#"{"data": {}}"#),
    ("invalid_array_header", r#"{"items": ["x"]}"#),
    ("invalid_null_header", r#"{"nil": null}"#),
    (
        "invalid_duplicate_same_case",
        r#"{"field1": "x", "field2": "y"}"#,
    ),
    (
        "invalid_duplicate_diff_case",
        r#"{"field1": "x", "field2": "y"}"#,
    ),
    ("invalid_space_in_name", r#"{"value": "x"}"#),
    ("invalid_colon_in_name", r#"{"value": "x"}"#),
    ("invalid_non_ascii_name", r#"{"value": "x"}"#),
    ("invalid_control_char_name", r#"{"value": "x"}"#),
];
/// The calls that the suite itself lists.
const CONTEXT: &[(&str, &str)] = &[("", "context")];
/// The first tool's schema, as we show it, is the argument of the second.
const ECHO: &[(&str, &str)] = &[("json_schema_echo", "schema of json_schema_2020_12_tool")];

const fn scenario(
    name: &'static str,
    revision: &'static str,
    play: &'static [(&'static str, &'static str)],
) -> Scenario {
    Scenario {
        name,
        revision,
        play,
    }
}

/// Checks that do not apply to a proxy, and the reason.
const NOT_SAID: [(&str, &str); 2] = [
    (
        "sep-2243-client-includes-standard-headers",
        "a server that is asked in the new revision first hears no `initialize`",
    ),
    (
        "sep-2575-client-declares-roots-capability",
        "a shared server is told of no roots (decision 0020)",
    ),
];

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn every_scenario_for_clients_passes() {
    let mut running = JoinSet::new();
    let mut waiting = SCENARIOS.iter().flat_map(|it| {
        [
            (it, ConformanceRequest::Legacy),
            (it, ConformanceRequest::Modern),
        ]
    });
    let (mut bad, mut names) = (Vec::new(), HashMap::new());
    loop {
        // Each scenario runs its own Node.js and proxy; three at a time are enough.
        while running.len() < 3
            && let Some((scenario, asked)) = waiting.next()
        {
            let task = running.spawn(run(scenario, asked));
            names.insert(task.id(), (scenario, asked));
        }
        let Some(ended) = running.join_next_with_id().await else {
            break;
        };
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let (scenario, asked) = names[&id];
        let (_, checks) = ended.unwrap_or_else(|error| {
            panic!(
                "{}, {}, {asked:?}: {error}",
                scenario.name, scenario.revision
            )
        });
        let is_unsaid = |id: &str| NOT_SAID.iter().any(|(unsaid, _)| *unsaid == id);
        for (id, why) in &checks.bad {
            if !(is_unsaid(id) && why.starts_with("SKIPPED")) {
                bad.push((
                    scenario.name,
                    scenario.revision,
                    asked,
                    id.clone(),
                    why.clone(),
                ));
            }
        }
        if checks.passed == 0 {
            let why = "nothing was checked".to_owned();
            bad.push((scenario.name, scenario.revision, asked, String::new(), why));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Runs a scenario. The suite starts a program with its address as the client and waits for it:
/// this one writes the address to a file and waits.
async fn run(scenario: &'static Scenario, asked: ConformanceRequest) -> Checks {
    let house = house::<Fake>([]);
    let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\nprintf '%s' \"$MCP_CONFORMANCE_CONTEXT\" > context\n\
                  printf '%s' \"$1\" > url.part\nmv url.part url\n\
                  while [ ! -e done ]; do sleep 0.05; done\n";
    let program = house.write("client", script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let results = house.path("results");
    let clients = real_clients();
    let (name, revision) = (scenario.name, scenario.revision);
    let checking = tokio::spawn(async move {
        clients
            .conformance_of_client(name, revision, &program, &results)
            .await
    });
    until("the suite to listen", || house.path("url").exists()).await;
    let url = fs::read_to_string(house.path("url")).unwrap();
    house.configure_more(&format!("[servers.suite]\nurl = {url:?}\n"));
    house.cli(["reindex"]).await.ended(0);
    let client = open(&house, asked).await;
    for (what, with) in scenario.play {
        play(&house, &client, what, with).await;
    }
    client.close().await;
    house.write("done", "");
    let checks = checking.await.unwrap();
    house.stops_clean().await;
    checks
}

/// Returns the answer of the user behind the client, who accepts everything.
fn answer() -> Value {
    let content = json!({"name": "John Doe", "age": 30, "score": 95.5, "status": "active",
        "verified": true});
    json!({"action": "accept", "content": content})
}

async fn open(house: &House, asked: ConformanceRequest) -> Client {
    if asked == ConformanceRequest::Modern {
        return house.modern_client().await;
    }
    let client = house.serve();
    client
        .initialize_with(OLD, json!({"elicitation": {}}))
        .await;
    client.answers("elicitation/create", answer());
    client
}

async fn play(house: &House, client: &Client, what: &str, with: &str) {
    match (what, with) {
        ("resources/read", uri) => ask(client, what, json!({"uri": uri})).await,
        ("prompts/get", name) => ask(client, what, json!({"name": name})).await,
        (_, "context") => {
            let context = fs::read_to_string(house.path("context")).unwrap();
            let context: Value = serde_json::from_str(&context).unwrap();
            for call in context["toolCalls"].as_array().unwrap() {
                let tool = call["name"].as_str().unwrap();
                execute(client, tool, call["arguments"].clone()).await;
            }
        }
        (echo, with) if with.starts_with("schema of ") => {
            let tool = with.trim_start_matches("schema of ");
            let shown = house
                .cli(["describe", "--json", &format!("suite/{tool}")])
                .await;
            let shown: Value = serde_json::from_str(shown.ended(0)).unwrap();
            let shown = shown.as_array().map_or(&shown, |all| &all[0]);
            let schema = shown["input_schema"].clone();
            assert!(schema.is_object(), "{shown}");
            execute(client, echo, json!({"schema": schema})).await;
        }
        (tool, input) if tool.starts_with("invalid_") => {
            let input: Value = serde_json::from_str(input).unwrap();
            let refused = client.execute(&format!("suite/{tool}"), input).await.bad();
            assert!(
                refused.starts_with("error unknown_tool"),
                "{tool}: {refused}"
            );
        }
        (tool, input) => execute(client, tool, serde_json::from_str(input).unwrap()).await,
    }
}

async fn execute(client: &Client, tool: &str, input: Value) {
    let arguments = json!({"tool_name": format!("suite/{tool}"), "tool_input": input});
    let params = json!({"name": "execute_dynamic_tool", "arguments": arguments});
    ask(client, "tools/call", params).await;
}

/// Sends the request until there is a result: a client of 2026-07-28 answers the questions in
/// between.
async fn ask(client: &Client, method: &str, mut params: Value) {
    params["_meta"][META_CAPABILITIES] = json!({"elicitation": {}, "sampling": {}});
    for _ in 0..ROUNDS_MAX {
        let result = client.request(method, params.clone()).await.into_result();
        let Some(requests) = result["inputRequests"].as_object() else {
            assert_ne!(result["isError"], true, "{method} {params}: {result}");
            return;
        };
        let answers = requests.keys().map(|key| (key.clone(), answer()));
        params["inputResponses"] = answers.collect();
        params["requestState"] = result["requestState"].clone();
    }
    panic!("{method} {params} still asks after {ROUNDS_MAX} rounds");
}
