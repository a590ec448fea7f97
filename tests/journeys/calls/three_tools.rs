//! A session as a client sees it: three tools, independent of the servers behind them.

use journeys::{
    client::{Client, Reply},
    fake::Step,
    house::{Fake, fake},
};
use serde_json::{Value, json};

use crate::{definition_tokens, house, opened, tokens};

/// The maximum tokens of definitions and instructions together.
const TOKENS_UP_FRONT_MAX: usize = 320;
const TOKENS_FIVE_HITS_MAX: usize = 200;

fn github() -> Fake {
    let create = json!({
        "name": "create_issue",
        "description": "Create a new issue in a repository. Needs write access.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "owner": { "type": "string" },
                "repo": { "type": "string" },
                "title": { "type": "string" },
                "body": { "type": "string" },
                "labels": { "type": "array", "items": { "type": "string" } },
                "milestone": { "type": "integer" }
            },
            "required": ["owner", "repo", "title"]
        }
    });
    let search = json!({
        "name": "search_code",
        "description": "Search the code of all repositories for a text.",
        "inputSchema": { "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] },
        "annotations": { "readOnlyHint": true }
    });
    let delete = json!({
        "name": "delete_repository",
        "description": "Delete a repository for good.",
        "inputSchema": { "type": "object", "properties": { "repo": { "type": "string" } }, "required": ["repo"], "additionalProperties": false },
        "annotations": { "destructiveHint": true }
    });
    fake("github")
        .tool_as(create, Step::Echo)
        .tool_as(search, Step::Echo)
        .tool_as(delete, Step::Echo)
}

fn files(name: &str) -> Fake {
    let read = json!({
        "name": "read_file",
        "description": "Read a text file.",
        "inputSchema": { "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] }
    });
    fake(name).tool_as(read, Step::text(format!("from {name}")))
}

const SIGNATURE: &str = "github/create_issue(owner: string, repo: string, title: string, body?: string, labels?: string[], milestone?: integer)";

#[journey]
async fn the_list_is_these_three_and_the_same_for_any_registry() {
    let expected = json!([
        {
            "name": "search_tools",
            "description": "Find tools on the connected servers. Query by action in English, e.g. \"create github issue\". Hits read name(arguments) - purpose; when the arguments are clear, call execute_dynamic_tool next.",
            "inputSchema": { "type": "object", "properties": {
                "query": { "type": "string" },
                "category": { "type": "string", "description": "category or server name" },
                "max_results": { "type": "integer", "default": 5 } }, "required": ["query"] },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
            "_meta": { "anthropic/alwaysLoad": true }
        },
        {
            "name": "describe_tool",
            "description": "Full input schema, notes and example of one tool, when its signature is not enough.",
            "inputSchema": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
            "_meta": { "anthropic/alwaysLoad": true }
        },
        {
            "name": "execute_dynamic_tool",
            "description": "Call a tool by the name search_tools gave. Long results are cut and say how to read on.",
            "inputSchema": { "type": "object", "properties": {
                "tool_name": { "type": "string" },
                "tool_input": { "type": "object", "description": "the tool's arguments", "additionalProperties": true } },
                "required": ["tool_name", "tool_input"] },
            "annotations": { "readOnlyHint": false, "openWorldHint": true },
            "_meta": { "anthropic/alwaysLoad": true }
        }
    ]);
    let empty = house::<Fake>([]);
    let nobody = empty.client().await;
    assert_eq!(json!(nobody.tools_list().await), expected);

    let (house, client) = opened([github(), files("disk")]).await;
    let lists = [&nobody, &client].map(|client| client.request("tools/list", json!({})));
    let [first, second] = lists;
    assert_eq!(
        first.await.result().to_string(),
        second.await.result().to_string()
    );
    empty.stops_clean().await;
    house.stops_clean().await;
}

#[journey]
async fn what_is_loaded_up_front_is_small() {
    let names = [
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta",
    ];
    let house = house(names.map(files));
    house.indexed().await;
    let client = house.serve();
    let greeting = client.initialize("2025-11-25").await;
    let instructions = greeting["instructions"].as_str().unwrap();
    assert!(
        instructions.starts_with("Gateway to 8 tools: "),
        "{instructions}"
    );
    assert!(
        names.iter().all(|name| instructions.contains(name)),
        "{instructions}"
    );
    assert!(instructions.len() < 2_000);

    let definitions = client.tools_list().await;
    let definitions = definitions.iter().map(definition_tokens);
    let tokens = definitions.sum::<usize>() + tokens(instructions);
    assert!(tokens <= TOKENS_UP_FRONT_MAX, "{tokens} tokens");
    house.stops_clean().await;
}

#[journey]
async fn a_tool_is_found_described_and_called() {
    let (house, client) = opened([github(), files("disk")]).await;

    let found = client.search("create an issue").await.good();
    let purpose = " - Create a new issue in a repository";
    assert!(
        found
            .lines()
            .any(|line| line == format!("{SIGNATURE}{purpose}")),
        "{found}"
    );

    let described = client.describe("github/create_issue").await.good();
    assert!(
        described.starts_with("github/create_issue - "),
        "{described}"
    );
    let input = described
        .lines()
        .find_map(|line| line.strip_prefix("input "))
        .unwrap();
    let input: Value = serde_json::from_str(input).unwrap();
    assert_eq!(input["required"], json!(["owner", "repo", "title"]));
    assert!(described.contains("Needs write access."));

    let example = described
        .lines()
        .find_map(|line| line.strip_prefix("example "))
        .unwrap();
    let example: Value = serde_json::from_str(example).unwrap();
    let reply = client.call("execute_dynamic_tool", example.clone()).await;
    let echoed: Value = serde_json::from_str(&reply.good()).unwrap();
    assert_eq!(echoed, example["tool_input"]);
    house.stops_clean().await;
}

#[journey]
async fn marks_stand_only_where_they_are_true() {
    let (house, client) = opened([github()]).await;
    let found = client.search("delete repository").await.good();
    let line = found
        .lines()
        .find(|line| line.starts_with("github/delete_repository("))
        .unwrap();
    assert!(line.ends_with("[destructive]"), "{line}");
    let found = client.search("search code").await.good();
    let line = found
        .lines()
        .find(|line| line.starts_with("github/search_code("))
        .unwrap();
    assert!(!line.contains('['), "{line}");
    house.stops_clean().await;
}

#[journey]
async fn five_hits_are_short() {
    let (house, client) = opened([github(), files("disk"), files("other")]).await;
    let found = client.search("repository file issue code").await.good();
    let tokens = tokens(&found);
    assert!(tokens <= TOKENS_FIVE_HITS_MAX, "{tokens} tokens:\n{found}");
    house.stops_clean().await;
}

#[journey]
async fn a_search_that_fits_nothing_says_so() {
    let (house, client) = opened([github()]).await;
    let answer = client.search("frobnicate").await.good();
    assert!(
        answer.starts_with("perhaps: no tool surely matches \"frobnicate\""),
        "{answer}"
    );
    house.stops_clean().await;
}

#[journey]
async fn a_right_name_works_though_it_was_never_searched() {
    let (house, client) = opened([files("disk")]).await;
    for name in [
        "disk/read_file",
        "disk__read_file",
        "mcp__disk__read_file",
        "disk.read_file",
        "disk:read_file",
        "Disk/Read_File",
        "disk/read-file",
        " disk/read_file ",
        "read_file",
    ] {
        let reply = client.execute(name, json!({ "path": "a" })).await;
        assert_eq!(reply.good(), "from disk", "{name}");
    }
    house.stops_clean().await;
}

#[journey]
async fn a_wrong_name_is_corrected() {
    let (house, client) = opened([github()]).await;
    let answer = client.execute("github/creat_issue", json!({})).await.bad();
    let start = format!("error unknown_tool: \"github/creat_issue\". Did you mean {SIGNATURE}?");
    assert!(answer.starts_with(&start), "{answer}");
    assert!(answer.contains("search_tools"), "{answer}");
    house.stops_clean().await;
}

#[journey]
async fn a_name_two_servers_have_is_asked_back() {
    let (house, client) = opened([files("disk"), files("cloud")]).await;
    let answer = client
        .execute("read_file", json!({ "path": "a" }))
        .await
        .bad();
    assert!(
        answer.starts_with("error ambiguous_tool: \"read_file\" is on "),
        "{answer}"
    );
    for server in ["disk", "cloud"] {
        assert!(
            answer.contains(&format!("{server}/read_file(path: string)")),
            "{answer}"
        );
        let reply = client
            .execute(&format!("{server}/read_file"), json!({ "path": "a" }))
            .await;
        assert_eq!(reply.good(), format!("from {server}"));
    }
    house.stops_clean().await;
}

/// Calls `execute_dynamic_tool` with exactly these arguments.
async fn sent(client: &Client, arguments: Value) -> Reply {
    client.call("execute_dynamic_tool", arguments).await
}

#[journey]
async fn a_bent_envelope_is_straightened() {
    let (house, client) = opened([github()]).await;
    let (name, input) = ("github/search_code", json!({ "q": "x" }));
    for arguments in [
        json!({ "tool_name": name, "tool_input": input }),
        json!({ "tool_name": name, "tool_input": input.to_string() }),
        json!({ "tool_name": name, "q": "x" }),
        json!({ "tool_input": { "tool_name": name, "q": "x" } }),
        json!({ "name": name, "arguments": input }),
        json!({ "tool": name, "args": input }),
        json!({ "tool_name": name, "parameters": input }),
        json!({ "tool_name": name, "input": input }),
        json!({ "tool_name": name, "tool_input": { "tool_name": name, "tool_input": input } }),
    ] {
        let reply = sent(&client, arguments.clone()).await;
        assert_eq!(reply.good(), r#"{"q":"x"}"#, "{arguments}");
    }
    house.stops_clean().await;
}

#[journey]
async fn wrong_arguments_are_refused_before_the_server_starts() {
    let house = house([github()]);
    house.indexed().await;
    let client = house.client().await;
    let starts = house.starts("github");

    let bad = json!({ "owner": 5, "repo": "r", "milestone": "abc" });
    let answer = client.execute("github/create_issue", bad).await.bad();
    assert!(answer.starts_with("error invalid_input: "), "{answer}");
    for named in ["owner", "title", "milestone", SIGNATURE] {
        assert!(answer.contains(named), "{named} is missing: {answer}");
    }
    let unread = json!({ "tool_name": "github/search_code", "tool_input": "{\"q\": " });
    assert!(
        sent(&client, unread)
            .await
            .bad()
            .starts_with("error invalid_input: ")
    );
    let forbidden = json!({ "repo": "r", "repos": "x" });
    let answer = client
        .execute("github/delete_repository", forbidden)
        .await
        .bad();
    assert!(answer.contains("repos"), "{answer}");
    assert_eq!(house.starts("github"), starts);

    let coerced = json!({ "owner": "o", "repo": "r", "title": "t", "milestone": "5" });
    let reply = client.execute("github/create_issue", coerced).await.good();
    assert!(reply.contains(r#""milestone":5"#), "{reply}");
    house.stops_clean().await;
}

#[journey]
async fn only_broken_protocol_is_a_protocol_error() {
    let (house, client) = opened([github()]).await;
    assert_eq!(
        client.call("create_issue", json!({})).await.error()["code"],
        -32602
    );
    assert_eq!(
        client.request("no/such", json!({})).await.error()["code"],
        -32601
    );
    client.search("issue").await.good();
    house.stops_clean().await;
}

#[journey]
async fn a_server_starts_at_its_first_call_and_not_before() {
    let house = house([github(), files("disk")]);
    house.indexed().await;
    let before = [house.starts("github"), house.starts("disk")];
    let client = house.client().await;
    client.tools_list().await;
    client.search("read a file").await.good();
    client.describe("disk/read_file").await.good();
    assert_eq!([house.starts("github"), house.starts("disk")], before);
    for _ in 0..2 {
        client
            .execute("disk/read_file", json!({ "path": "a" }))
            .await
            .good();
    }
    assert_eq!(
        [house.starts("github"), house.starts("disk")],
        [before[0], before[1] + 1]
    );
    house.stops_clean().await;
}
