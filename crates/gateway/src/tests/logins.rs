//! Servers that cannot be surveyed: a user has to log in first, or a variable is missing.

use serde_json::{Value, json};

use super::{
    memory::{Memory, TestGateway},
    peer::TestClient,
};

async fn locked() -> TestGateway {
    let tool = json!({"name": "whoami", "inputSchema": {"type": "object"}});
    Memory::default()
        .tool("guarded", &tool, |_| {
            Ok(json!({"content": [{"type": "text", "text": "you"}]}))
        })
        .locked("guarded")
        .open()
        .await
}

fn call() -> Value {
    json!({"name": "execute_dynamic_tool",
        "arguments": {"tool_name": "guarded/whoami", "tool_input": {}}})
}

/// Returns the first text of a result.
fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

/// Makes a call and answers its question; returns true if there was one, and the response.
async fn call_with(can: &Value, action: &str) -> (bool, Value) {
    let scene = locked().await;
    let (mut peer, _) = TestClient::open_with(&scene, "test", can).await;
    peer.begin("tools/call", call()).await;
    let mut said = peer.next().await;
    let was_asked = said["method"] == "elicitation/create";
    if was_asked {
        assert_eq!(said["params"]["mode"], "url", "{said}");
        let answer = json!({"jsonrpc": "2.0", "id": said["id"], "result": {"action": action}});
        peer.send(&answer).await;
        said = peer.next().await;
    }
    (was_asked, said)
}

#[tokio::test]
async fn the_first_call_of_a_server_that_never_told_its_tools_asks_for_the_login() {
    let (was_asked, answer) = call_with(&json!({"elicitation": {"url": {}}}), "accept").await;
    assert_eq!((was_asked, text(&answer)), (true, "you"), "{answer}");
}

#[tokio::test]
async fn whoever_declines_or_cannot_be_asked_is_told_to_log_in() {
    let with_addresses = json!({"elicitation": {"url": {}}});
    for (can, is_asked) in [(with_addresses, true), (json!({"elicitation": {}}), false)] {
        let (was_asked, answer) = call_with(&can, "decline").await;
        assert_eq!(was_asked, is_asked, "{answer}");
        let told = text(&answer);
        assert!(
            told.starts_with("error login_required: guarded: "),
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_client_in_rounds_is_asked_by_the_answer_to_its_call() {
    let scene = locked().await;
    let mut peer = TestClient::modern_with(&scene, &json!({"elicitation": {"url": {}}}));
    let asked = peer.ask("tools/call", call()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().unwrap();
    let key = requests.keys().next().unwrap();
    let mut again = call();
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({key.as_str(): {"action": "accept"}});
    assert_eq!(text(&peer.ask("tools/call", again).await), "you");
}

#[tokio::test]
async fn the_first_call_of_the_client_that_brings_a_variable_waits_for_the_servers_tools() {
    let tool = json!({"name": "whoami", "inputSchema": {"type": "object"}});
    let scene = Memory::default()
        .tool("guarded", &tool, |_| {
            Ok(json!({"content": [{"type": "text", "text": "you"}]}))
        })
        .incomplete("guarded")
        .open()
        .await;
    let (mut peer, began) = TestClient::open(&scene, "test").await;
    let says = began["instructions"].as_str().unwrap();
    assert!(says.contains("being asked now: guarded"), "{says}");
    peer.begin("tools/call", call()).await;
    let (answer, ()) = tokio::join!(peer.next(), async {
        tokio::task::yield_now().await;
        let surveying =
            crate::survey::know_completed(std::sync::Arc::clone(&scene.gateway.catalog));
        let until_surveyed = async {
            while !scene.gateway.catalog.surveys.list_first().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = surveying => {}
            () = until_surveyed => {}
        }
    });
    assert_eq!(text(&answer), "you", "{answer}");
}
