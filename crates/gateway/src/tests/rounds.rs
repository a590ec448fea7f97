//! Servers that send requests before they respond, and clients of either era.

use fleet::CallError;
use jsonrpc::ProtocolError;
use serde_json::{Value, json};
use tool::ItemKind;

use super::{
    memory::{Memory, TestGateway},
    peer::TestClient,
};

const ELICIT: &str = "elicitation/create";

/// The answer of a user who accepts.
fn accepted() -> Value {
    json!({"action": "accept", "content": {"who": "Ada"}})
}

/// Asks for a name, and then returns the answer.
fn inquire(params: &Value) -> Value {
    if params["inputResponses"].is_null() {
        let question = json!({"method": ELICIT, "params": {"message": "Who?"}});
        return json!({"resultType": "input_required", "inputRequests": {"who": question},
            "requestState": "theirs"});
    }
    json!({"heard": [params["inputResponses"], params["requestState"]]})
}

async fn curious() -> TestGateway {
    Memory::default()
        .item("notes", ItemKind::Prompt, &json!({"name": "draft"}))
        .item(
            "notes",
            ItemKind::Resource,
            &json!({"uri": "notes://one", "name": "one"}),
        )
        .says("notes", "prompts/get", |params| Ok(inquire(params)))
        .says("notes", "resources/read", |params| Ok(inquire(params)))
        .open()
        .await
}

const REQUESTS: [(&str, &str, &str); 2] = [
    ("prompts/get", "name", "draft"),
    ("resources/read", "uri", "notes://one"),
];

#[tokio::test]
async fn a_prompt_and_a_resource_wait_for_a_client_that_goes_in_rounds() {
    let scene = curious().await;
    let mut peer = TestClient::modern_with(&scene, &json!({"elicitation": {}}));
    for (method, key, id) in REQUESTS {
        let asked = peer.ask(method, json!({key: id})).await["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{method} {asked}");
        let question = &asked["inputRequests"]["who"]["params"]["message"];
        assert_eq!(question, "[notes] Who?");
        let state = asked["requestState"].clone();
        assert_ne!(state, "theirs");
        let again = |id: &str, state: &Value| json!({key: id, "requestState": state, "inputResponses": {"who": accepted()}});
        let other = peer.ask(method, again("another", &state)).await;
        assert_eq!(other["error"]["code"], -32602, "{method}");
        let told = peer.ask(method, again(id, &state)).await["result"].clone();
        assert_eq!(told["heard"], json!([{"who": accepted()}, "theirs"]));
        assert_eq!(told["resultType"], "complete");
    }
}

#[tokio::test]
async fn a_prompt_and_a_resource_wait_for_a_client_of_before() {
    let scene = curious().await;
    let (mut peer, _) = TestClient::open_with(&scene, "test", &json!({"elicitation": {}})).await;
    for (method, key, id) in REQUESTS {
        let request = peer.begin(method, json!({key: id})).await;
        let asked = peer.next().await;
        assert_eq!(asked["method"], ELICIT, "{method} {asked}");
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": accepted()});
        peer.send(&answer).await;
        let told = peer.next().await;
        assert_eq!(told["id"], request);
        assert_eq!(
            told["result"]["heard"],
            json!([{"who": accepted()}, "theirs"])
        );
    }
    let (mut deaf, _) = TestClient::open(&scene, "test").await;
    let refused = deaf.ask("prompts/get", json!({"name": "draft"})).await;
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(why.contains("does not offer elicitation"), "{why}");
}

/// A tool that is refused with this error until `ADDRESS` was visited.
async fn refusing(code: &'static str, data: Value) -> TestGateway {
    let definition = json!({"name": "pay", "inputSchema": {"type": "object"}});
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let pay = move |_: &str| {
        if calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0 {
            return Ok(json!({"content": [{"type": "text", "text": "paid"}]}));
        }
        Err(CallError::Protocol {
            server: "shop".parse().unwrap(),
            error: ProtocolError {
                code: code.to_owned(),
                message: "not yet".to_owned(),
                data: Some(data.to_string()),
            },
        })
    };
    Memory::default()
        .tool("shop", &definition, pay)
        .open()
        .await
}

fn pay() -> Value {
    json!({"name": "execute_dynamic_tool", "arguments": {"tool_name": "shop/pay"}})
}

fn addresses() -> Value {
    json!({"elicitations": [{"mode": "url", "url": "https://pay.example/1", "message": "Pay",
        "elicitationId": "e1"}]})
}

fn takes_addresses() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

#[tokio::test]
async fn addresses_that_must_be_visited_first_are_for_the_client_if_it_can_show_them() {
    let scene = refusing("-32042", addresses()).await;
    let (mut peer, _) = TestClient::open_with(&scene, "test", &takes_addresses()).await;
    let refused = peer.ask("tools/call", pay()).await;
    assert_eq!(refused["error"]["code"], -32042);
    assert_eq!(refused["error"]["data"], addresses());

    let scene = refusing("-32042", addresses()).await;
    let (mut peer, _) = TestClient::open(&scene, "test").await;
    let told = peer.ask("tools/call", pay()).await["result"].clone();
    assert_eq!(told["isError"], true, "{told}");
}

#[tokio::test]
async fn a_client_that_goes_in_rounds_is_asked_to_visit_them() {
    for (action, is_paid) in [("accept", true), ("decline", false)] {
        let scene = refusing("-32042", addresses()).await;
        let mut peer = TestClient::modern_with(&scene, &takes_addresses());
        let asked = peer.ask("tools/call", pay()).await["result"].clone();
        let question = &asked["inputRequests"]["address-1"];
        assert_eq!(question["method"], ELICIT, "{asked}");
        assert_eq!(question["params"]["url"], "https://pay.example/1");
        let mut again = pay();
        again["requestState"] = asked["requestState"].clone();
        again["inputResponses"] = json!({"address-1": {"action": action}});
        let told = peer.ask("tools/call", again).await["result"].clone();
        let text = told["content"][0]["text"].as_str().unwrap();
        assert_eq!(text == "paid", is_paid, "{text}");
    }
}

#[tokio::test]
async fn a_capability_that_is_missing_is_for_a_client_that_declares_it_with_each_request() {
    let data = json!({"requiredCapabilities": {"sampling": {}}});
    let scene = refusing("-32021", data.clone()).await;
    let refused = TestClient::modern(&scene).ask("tools/call", pay()).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert_eq!(refused["error"]["data"], data);

    let scene = refusing("-32021", data).await;
    let (mut peer, _) = TestClient::open(&scene, "test").await;
    let told = peer.ask("tools/call", pay()).await["result"].clone();
    assert_eq!(told["isError"], true, "{told}");
}
