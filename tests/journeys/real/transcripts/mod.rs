//! Whole conversations with real servers, compared message by message through the proxy and
//! directly.
//!
//! These are the only differences: the message of a form begins with `[SERVER]`, the name of a
//! prompt with `SERVER__`; `_meta` of a result names the server of one hop; `requestState` is ours
//! if questions are bridged, and so is `roots/list`, which has no meaningful `params`; structured
//! content is left out if the text is the same.

mod side;

use std::path::Path;

use journeys::{
    client::Client,
    house::{Fake, House, Program, program},
};
use serde_json::{Value, json};

use self::side::Side;
use crate::{house, real_clients, real_servers};

const ELICIT: &str = "elicitation/create";
const SAMPLE: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

/// Two equal clients: one of the proxy, and one of the server itself.
struct Both {
    house: House,
    ours: Side,
    direct: Side,
}

impl Both {
    async fn of(name: &'static str, server: Program, is_modern: bool, answers: &Value) -> Self {
        let house = house::<Fake>([]);
        house.add(server.clone().setting("scope = \"client\""));
        house.indexed().await;
        let ours = Side::begin(house.serve(), Some(name), is_modern, answers).await;
        let direct = Client::start(server.to_command());
        let direct = Side::begin(direct, None, is_modern, answers).await;
        Self {
            house,
            ours,
            direct,
        }
    }

    /// Returns the messages, which are the same on both sides.
    async fn call(&self, tool: &str, input: Value) -> Vec<Value> {
        let ours = self.ours.call(tool, input.clone()).await;
        let direct = self.direct.call(tool, input).await;
        check_same(&ours, &direct, tool);
        ours
    }

    async fn request(&self, method: &str, params: impl Fn(&Side) -> Value) -> Vec<Value> {
        let ours = self.ours.play(method, params(&self.ours)).await;
        let direct = self.direct.play(method, params(&self.direct)).await;
        check_same(&ours, &direct, method);
        ours
    }

    async fn end(self) {
        self.direct.client.close().await;
        self.house.stops_clean().await;
    }
}

#[track_caller]
fn check_same(ours: &[Value], direct: &[Value], what: &str) {
    assert!(
        ours == direct,
        "{what}\nthrough us: {ours:#?}\ndirectly: {direct:#?}"
    );
}

/// Returns the methods of the notifications and requests before the response.
fn methods(said: &[Value]) -> Vec<&str> {
    let methods = said.iter().filter_map(|it| it["method"].as_str());
    methods.collect()
}

fn accepted(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn sampled() -> Value {
    json!({"role": "assistant", "model": "scene", "content": {"type": "text", "text": "tea"}})
}

fn roots(folder: &Path) -> Value {
    json!({"roots": [{"uri": format!("file://{}", folder.display()), "name": "work"}]})
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn everything_asks_tells_and_answers_the_same() {
    let form = accepted(&json!({"name": "Ada", "check": true, "number": 2.5, "integer": 42}));
    let answers = json!({ELICIT: form, SAMPLE: sampled(), ROOTS: roots(Path::new("/srv"))});
    let both = Both::of("everything", real_servers().everything(), false, &answers).await;
    // Each of them requests the roots when it starts, which belongs to no call.
    for side in [&both.ours, &both.direct] {
        side.call("get-roots-list", json!({})).await;
    }
    for (tool, input, told) in [
        (
            "trigger-elicitation-request",
            json!({}),
            [ELICIT].as_slice(),
        ),
        (
            "trigger-url-elicitation",
            json!({"url": "https://example.com/", "elicitationId": "one"}),
            &[ELICIT],
        ),
        (
            "trigger-sampling-request",
            json!({"prompt": "tea?", "maxTokens": 5}),
            &[SAMPLE],
        ),
        ("get-roots-list", json!({}), &[]),
        (
            "trigger-long-running-operation",
            json!({"duration": 0.2, "steps": 2}),
            &["notifications/progress"; 2],
        ),
        (
            "get-annotated-message",
            json!({"messageType": "error", "includeImage": true}),
            &[],
        ),
        ("get-resource-links", json!({"count": 3}), &[]),
        (
            "get-resource-reference",
            json!({"resourceType": "Text", "resourceId": 1}),
            &[],
        ),
        (
            "get-structured-content",
            json!({"location": "Chicago"}),
            &[],
        ),
        ("get-tiny-image", json!({}), &[]),
    ] {
        let said = both.call(tool, input).await;
        assert_eq!(methods(&said), told, "{tool}: {said:#?}");
    }
    both.end().await;
}

/// The server uses its client's roots instead of the folders of its command line, also after the
/// roots change.
#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn filesystem_follows_its_clients_roots() {
    let folders = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let folder = folders.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("note.txt"), name).unwrap();
        folder.canonicalize().unwrap()
    };
    let (start, one, two) = (folder("start"), folder("one"), folder("two"));
    let server = real_servers().filesystem(&start);
    let both = Both::of("filesystem", server, false, &json!({ROOTS: roots(&one)})).await;
    let sides = [&both.ours, &both.direct];
    for side in sides {
        until_allowed(side, &one).await;
    }
    let read = |folder: &Path| json!({"path": folder.join("note.txt")});
    for folder in [&start, &one, &two] {
        both.call("read_text_file", read(folder)).await;
    }
    for side in sides {
        side.client.answers(ROOTS, roots(&two));
        let changed = side
            .client
            .notify("notifications/roots/list_changed", json!({}));
        changed.await;
        until_allowed(side, &two).await;
    }
    for folder in [&start, &one, &two] {
        both.call("read_text_file", read(folder)).await;
    }
    both.end().await;
}

/// Calls a tool until the server uses its client's folder: no notification announces the change.
async fn until_allowed(side: &Side, folder: &Path) {
    let wanted = format!("Allowed directories:\n{}", folder.display());
    let asking = async {
        loop {
            let said = side.call("list_allowed_directories", json!({})).await;
            if said.last().unwrap()["content"][0]["text"] == wanted.as_str() {
                return;
            }
        }
    };
    side.client.within(&wanted, asking).await;
}

/// Starts a server of the folder `servers`, with the Python of the real clients.
fn python_server(name: &str, file: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("servers")
        .join(file);
    program(
        name,
        real_clients().python_program(),
        [path.display().to_string()],
    )
}

/// Compares everything besides tools.
async fn compare_offer(both: &Both) {
    for (method, key) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let said = both.request(method, |_| json!({})).await;
        assert_eq!(said[0][key].as_array().unwrap().len(), 1, "{said:#?}");
    }
    let prompt = |side: &Side| json!({"name": side.name("review"), "arguments": {"code": "x"}});
    both.request("prompts/get", prompt).await;
    for uri in ["note://one", "note://two/part"] {
        both.request("resources/read", |_| json!({"uri": uri}))
            .await;
    }
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_server_of_the_python_sdk_asks_tells_and_answers_the_same() {
    let form = accepted(&json!({"sure": true, "date": "2026-12-31"}));
    let answers = json!({ELICIT: form, SAMPLE: sampled()});
    for is_modern in [false, true] {
        let both = Both::of(
            "sdk",
            python_server("sdk", "on_sdk.py"),
            is_modern,
            &answers,
        )
        .await;
        for (tool, input, told) in [
            (
                "weather",
                json!({"city": "Ulm"}),
                [
                    "notifications/progress",
                    "notifications/message",
                    "notifications/progress",
                ]
                .as_slice(),
            ),
            ("book", json!({"date": "2026-12-24"}), &[ELICIT]),
            ("poem", json!({"topic": "rain"}), &[SAMPLE]),
        ] {
            let said = both.call(tool, input).await;
            assert_eq!(methods(&said), told, "{tool}: {said:#?}");
        }
        compare_offer(&both).await;
        both.end().await;
    }
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_server_of_fastmcp_asks_tells_and_answers_the_same() {
    let form = accepted(&json!({"sure": true, "date": "2026-12-31"}));
    let answers = json!({ELICIT: form, SAMPLE: sampled(), ROOTS: roots(Path::new("/srv"))});
    for is_modern in [false, true] {
        let server = python_server("fastmcp", "on_fastmcp.py");
        let both = Both::of("fastmcp", server, is_modern, &answers).await;
        for (tool, input, told) in [
            (
                "weather",
                json!({"city": "Ulm"}),
                [
                    "notifications/progress",
                    "notifications/message",
                    "notifications/progress",
                ]
                .as_slice(),
            ),
            ("book", json!({"date": "2026-12-24"}), &[ELICIT]),
            ("poem", json!({"topic": "rain"}), &[SAMPLE]),
            ("where", json!({}), &[ROOTS]),
        ] {
            let said = both.call(tool, input).await;
            // The server only asks by requests, which fail for clients that accept none.
            let told = if is_modern && told.len() == 1 {
                &[]
            } else {
                told
            };
            assert_eq!(methods(&said), told, "{tool}: {said:#?}");
        }
        compare_offer(&both).await;
        both.end().await;
    }
}
