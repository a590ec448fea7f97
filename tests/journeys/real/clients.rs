//! Third-party clients, over both transports.

use std::path::PathBuf;

use journeys::{
    fake::{FakeItem, Step},
    house::{Fake, House, fake},
    processes::HOUSE_VARIABLE,
    real_clients::RealClients,
    site::Site,
};
use serde_json::{Value, json};

use crate::{claude_code, house_with_daemon, programs, real_clients};

/// Returns the clients, a house with a tool that reports progress, and its HTTP site.
async fn ready() -> (RealClients, House, Site) {
    let clients = real_clients();
    let house = house_with_daemon::<Fake>([]);
    // The TypeScript SDK handles a response before a notification in the same chunk, and then drops
    // the notification; so each step waits until the client has received the previous one.
    let work = [
        Step::progress(1, 2),
        Step::UntilExists(house.path("heard-1")),
        Step::progress(2, 2),
        Step::UntilExists(house.path("heard-2")),
        Step::text("done"),
    ];
    house.add(fake("any").tool("work", work));
    house.indexed().await;
    let site = house.site().await;
    (clients, house, site)
}

/// Returns the server for a client's configuration: a command over stdio, an address over HTTP.
pub(super) fn servers(house: &House, site: &Site) -> [Vec<String>; 2] {
    let program = programs().proxy.display().to_string();
    let program = vec![program, "serve".to_owned()];
    let command = [vec!["env".to_owned()], variables(house), program];
    [command.concat(), vec![site.url().to_owned()]]
}

/// Returns the variables of the house. SDKs pass few variables to a server, so its command sets the
/// folders of its state.
pub(super) fn variables(house: &House) -> Vec<String> {
    let path = |path: PathBuf| path.display().to_string();
    vec![
        format!("PROXY_CONFIG={}", path(house.config())),
        format!("XDG_STATE_HOME={}", path(house.path("xdg-state"))),
        format!("XDG_CONFIG_HOME={}", path(house.path("xdg-config"))),
        format!("XDG_RUNTIME_DIR={}", path(house.path("run"))),
        format!("HOME={}", path(house.path("")).trim_end_matches('/')),
        // The house finds the daemon by this variable.
        format!(
            "{HOUSE_VARIABLE}={}",
            path(house.path("")).trim_end_matches('/')
        ),
        "PROXY_SEARCH__SEMANTIC=off".to_owned(),
    ]
}

/// Closes and returns the gate of the next scene.
fn gate(house: &House) -> PathBuf {
    for heard in ["heard-1", "heard-2"] {
        drop(std::fs::remove_file(house.path(heard)));
    }
    house.path("heard-")
}

#[track_caller]
fn saw_the_scene(seen: &Value, revision: Option<&str>) {
    if let Some(revision) = revision {
        assert_eq!(seen["revision"], revision, "{seen}");
    }
    let tools = json!(["search_tools", "describe_tool", "execute_dynamic_tool"]);
    assert_eq!(seen["tools"], tools);
    let text = |key: &str| seen[key].as_str().unwrap_or_default();
    assert!(
        text("instructions").starts_with("Gateway to 1 tool: any 1. "),
        "{seen}"
    );
    assert!(text("found").starts_with("any/work - "), "{seen}");
    assert_eq!(text("done"), "done");
    assert!(text("wrong").starts_with("error unknown_tool: "), "{seen}");
    assert_eq!(seen["wrong_is_error"], true);
    assert_eq!(seen["progress"], json!([[1, 2], [2, 2]]), "{seen}");
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn the_python_sdk_in_both_eras() {
    let (clients, house, site) = ready().await;
    for server in servers(&house, &site) {
        for (mode, revision) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
            let seen = clients.python(mode, &gate(&house), &server).await;
            saw_the_scene(&seen, Some(revision));
        }
    }
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn the_typescript_sdk_old_and_new() {
    let (clients, house, site) = ready().await;
    for server in servers(&house, &site) {
        // The old SDK does not expose the revision over stdio.
        let revisions = [
            ("v1", None),
            ("v2", Some("2025-11-25")),
            ("v2-auto", Some("2026-07-28")),
        ];
        for (sdk, revision) in revisions {
            let seen = clients.typescript(sdk, &gate(&house), &server).await;
            saw_the_scene(&seen, revision);
        }
    }
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn the_inspectors_command_line() {
    let (clients, house, site) = ready().await;
    let [command, mut address] = servers(&house, &site);
    address.extend(["--transport".to_owned(), "http".to_owned()]);
    for server in [command, address] {
        let listed = clients
            .inspector(&server, &["--method", "tools/list"])
            .await;
        assert_eq!(listed["tools"].as_array().unwrap().len(), 3);
        // The gate is open, because the inspector requests no progress.
        for heard in ["heard-1", "heard-2"] {
            house.write(heard, "");
        }
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            "execute_dynamic_tool",
            "--tool-arg",
            "tool_name=any/work",
            "tool_input={}",
        ];
        let answer = clients.inspector(&server, &call).await;
        assert_eq!(answer["content"][0]["text"], "done", "{answer}");
    }
    site.stop().await;
    house.stops_clean().await;
}

/// Creates a house with a server that has prompts, resources and questions besides tools, and its
/// HTTP site.
async fn ready_to_pass() -> (House, Site) {
    let house = house_with_daemon::<Fake>([]);
    let sample = json!({"maxTokens": 5, "messages":
        [{"role": "user", "content": {"type": "text", "text": "What to drink?"}}]});
    let asks = |method: &str, params: Value| Step::AskAndTell {
        method: method.to_owned(),
        params,
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let server = fake("any")
        .setting("scope = \"client\"")
        .tool("ask", Step::elicit("Who are you?"))
        .tool("sample", asks("sampling/createMessage", sample))
        .tool("roots", asks("roots/list", json!({})))
        .script(|script| {
            let prompt =
                json!({"name": "greet", "arguments": [{"name": "name", "required": true}]});
            let greeting = json!({"messages": [{"role": "user", "content": text("Greet $name.")}]});
            script.prompts = vec![FakeItem::defined(prompt, Step::Filled(greeting))];
            let read =
                |text: &str| Step::Filled(json!({"contents": [{"uri": "$uri", "text": text}]}));
            let one = json!({"uri": "note://one", "name": "one"});
            script.resources = vec![FakeItem::defined(one, read("the first"))];
            let part = json!({"uriTemplate": "note://{id}/part", "name": "part"});
            script.templates = vec![FakeItem::defined(part, read("part of $id"))];
            script.completions = vec!["Ada".to_owned(), "bob".to_owned()];
        });
    house.add(server);
    house.indexed().await;
    let site = house.site().await;
    (house, site)
}

#[track_caller]
fn saw_what_passes(seen: &Value) {
    let expected = json!({
        "prompts": ["any__greet"],
        "prompt": "Greet Bob.",
        "resources": ["note://one"],
        "templates": ["note://{id}/part"],
        "resource": "the first",
        "part": "part of two",
        "completion": ["bob"],
        "asked": ["[any] Who are you?", "What to drink?"],
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(seen[key], *value, "{key}: {seen}");
    }
    assert_eq!(
        seen["elicited"],
        json!({"action": "accept", "content": {"text": "Ada"}})
    );
    assert_eq!(
        seen["sampled"]["content"],
        json!({"type": "text", "text": "tea"})
    );
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn prompts_resources_and_questions_pass_to_the_sdks() {
    let clients = real_clients();
    let (house, site) = ready_to_pass().await;
    let players = [
        ("passing.py", "legacy", Some("2025-11-25")),
        ("passing.py", "auto", Some("2026-07-28")),
        ("passing_fastmcp.py", "legacy", None),
        ("passing_fastmcp.py", "auto", None),
        ("passing.mjs", "v1", None),
        ("passing.mjs", "v2", Some("2025-11-25")),
        ("passing.mjs", "v2-auto", Some("2026-07-28")),
    ];
    for (server, is_http) in servers(&house, &site).into_iter().zip([false, true]) {
        for (player, mode, revision) in players {
            let seen = clients.passing(player, mode, &server).await;
            saw_what_passes(&seen);
            assert!(revision.is_none_or(|it| seen["revision"] == it), "{seen}");
            // Over HTTP without a session the client has no server process of its own, and only
            // such a process gets its roots.
            let is_nobody = is_http && mode.ends_with("auto");
            let root = (!is_nobody).then_some("file:///scene/folder");
            assert_eq!(seen["roots"]["roots"][0]["uri"].as_str(), root, "{seen}");
        }
    }
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn fifty_calls_at_once_that_ask_are_all_answered_by_the_sdks() {
    const CALLS: usize = 50;
    let clients = real_clients();
    let house = house_with_daemon::<Fake>([]);
    let server = fake("any")
        .tool("ask", Step::elicit("Who are you?"))
        .tool("echo", Step::Echo);
    house.add(server);
    house.indexed().await;
    let site = house.site().await;
    for server in servers(&house, &site) {
        for (player, mode) in [
            ("asking.mjs", "v1"),
            ("asking.mjs", "v2"),
            ("asking.mjs", "v2-auto"),
            ("asking.py", "legacy"),
            ("asking.py", "auto"),
        ] {
            let seen = clients.asking(player, mode, CALLS, &server).await;
            let texts = seen["texts"].as_array().unwrap();
            assert_eq!(texts.len(), CALLS);
            for (n, text) in texts.iter().enumerate() {
                let wanted = if n % 5 == 0 {
                    json!({"action": "accept", "content": {"text": "Ada"}})
                } else {
                    json!({ "n": n })
                };
                let text: Value = serde_json::from_str(text.as_str().unwrap())
                    .unwrap_or_else(|_| panic!("{player} {mode}, call {n}: {text}"));
                assert_eq!(text, wanted, "{player} {mode}, call {n}");
            }
            assert_eq!(
                seen["asked"],
                CALLS / 5,
                "{player} {mode}: each call asks once"
            );
        }
    }
    site.stop().await;
    house.stops_clean().await;
}

/// A prompt as a slash command, a resource by `@`, and a tool that asks: `-p` has no user, and
/// Claude Code cancels the question.
#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn claude_code_takes_prompts_resources_and_questions() {
    let claude = claude_code();
    let (house, site) = ready_to_pass().await;
    let home = house.path("claude");
    std::fs::create_dir(&home).unwrap();
    let [command, _] = servers(&house, &site);
    let seen = claude.passing(&home, &command).await;
    for (key, wanted) in [
        ("prompt", "Greet Bob."),
        ("resource", "the first"),
        ("asked", r#"{\"action\":\"cancel\"}"#),
    ] {
        let reached = seen[key].as_str().unwrap();
        assert!(reached.contains(wanted), "{key}: {reached}");
    }
    site.stop().await;
    house.stops_clean().await;
}

/// The inspector makes one request per run and answers no questions.
#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn prompts_and_resources_pass_to_the_inspectors_command_line() {
    let clients = real_clients();
    let (house, site) = ready_to_pass().await;
    let [command, _] = servers(&house, &site);
    for (request, pointer, wanted) in [
        (["prompts/list"].as_slice(), "/prompts/0/name", "any__greet"),
        (
            &[
                "prompts/get",
                "--prompt-name",
                "any__greet",
                "--prompt-args",
                "name=Bob",
            ],
            "/messages/0/content/text",
            "Greet Bob.",
        ),
        (&["resources/list"], "/resources/0/uri", "note://one"),
        (
            &["resources/templates/list"],
            "/resourceTemplates/0/uriTemplate",
            "note://{id}/part",
        ),
        (
            &["resources/read", "--uri", "note://two/part"],
            "/contents/0/text",
            "part of two",
        ),
    ] {
        let request = [&["--method"], request].concat();
        let answer = clients.inspector(&command, &request).await;
        assert_eq!(answer.pointer(pointer).unwrap(), wanted, "{answer}");
    }
    site.stop().await;
    house.stops_clean().await;
}
