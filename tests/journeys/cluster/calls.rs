//! Calls of servers that another node runs.

use std::fs;

use journeys::{
    fake::{FakeItem, Step},
    house::{Fake, fake},
};
use serde_json::{Value, json};

use super::{connected, nats, node, until_found};
use crate::{
    calling,
    calls::questions::{ELICIT, client_with, says},
    until_executed,
};

fn server() -> Fake {
    let progress = Step::Notify {
        method: "notifications/progress".to_owned(),
        params: json!({"progressToken": "$PROGRESS", "progress": 1, "message": "half"}),
    };
    let log = Step::Notify {
        method: "notifications/message".to_owned(),
        params: json!({"level": "error", "data": "careful"}),
    };
    fake("far")
        .tool("echo", Step::Echo)
        .tool("fail", Step::ToolError("no".to_owned()))
        .tool("lines", Step::Lines(2_000_000))
        .tool("ask", Step::elicit("Sure?"))
        .tool("told", vec![progress, log, Step::text("done")])
        .tool("stuck", Step::UntilCancelled)
        .setting("on = \"two\"")
}

#[tokio::test]
async fn a_server_of_another_node_is_found_and_called_as_if_it_were_here() {
    let nats = nats(1);
    let (one, two) = (
        node(&nats, "one", [server()]),
        node(&nats, "two", [server()]),
    );
    connected(&[&one, &two]).await;
    let client = client_with(&one, json!({"elicitation": {}})).await;
    until_found(&client, "far/echo").await;

    let hits = json!({"name": "search_tools", "arguments": {"query": "echo"}});
    let hits = client.request("tools/call", hits).await.good();
    assert!(hits.contains("far/echo"), "{hits}");
    let input = json!({"b": 1.0, "a": "\u{e9}"});
    let told = client.execute("far/echo", input.clone()).await.good();
    assert_eq!(
        told,
        input.to_string(),
        "the arguments arrive byte for byte"
    );
    let error = client.execute("far/fail", json!({})).await;
    assert!(error.is_error() && error.text().contains("no"));
    let unknown = client.execute("far/nothing", json!({})).await.bad();
    assert!(unknown.contains("error unknown_tool"), "{unknown}");

    // A question reaches the client at its node, and its answer the server.
    client.answers(ELICIT, says("yes"));
    let told = client.execute("far/ask", json!({})).await.good();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), says("yes"));

    // Progress and log belong to the call.
    let mut call = calling("far/told", &json!({}));
    call["_meta"] = json!({"progressToken": "p"});
    assert_eq!(client.request("tools/call", call).await.good(), "done");
    let progress = client.next("notifications/progress").await;
    assert_eq!(progress["params"]["message"], "half");
    assert_eq!(progress["params"]["progressToken"], "p");
    let log = client.next("notifications/message").await;
    assert_eq!(log["params"]["data"], "careful");

    // A cancellation reaches the server.
    let (id, _reply) = client
        .begin("tools/call", calling("far/stuck", &json!({})))
        .await;
    two.until_received("far", |line| line.contains("stuck"))
        .await;
    client.cancel(id).await;
    two.until_received("far", |line| line.contains("notifications/cancelled"))
        .await;

    assert_eq!(one.starts("far"), 0, "it runs at the other node alone");
    assert_eq!(two.starts("far"), 1);
    one.stops_clean().await;
    two.stops_clean().await;
}

#[tokio::test]
async fn a_call_that_waits_at_another_node_starts_only_if_the_rules_of_its_node_still_allow_it() {
    let nats = nats(1);
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let far = || {
        let slow = [Step::UntilExists(gate.clone()), Step::text("done")];
        server()
            .tool("slow", slow)
            .setting("max_concurrent_calls = 1")
    };
    let near = fake("near").tool("echo", Step::Echo);
    let (one, two) = (
        node(&nats, "one", [far(), near]),
        node(&nats, "two", [far()]),
    );
    connected(&[&one, &two]).await;
    let client = one.client().await;
    until_found(&client, "far/echo").await;
    let begin =
        async |tool: &str, input: &Value| client.begin("tools/call", calling(tool, input)).await;
    for (calls, is_denied) in [(1, false), (3, true)] {
        let (_, slow) = begin("far/slow", &json!({})).await;
        two.until_calls("far", calls).await;
        let (_, waiting) = begin("far/echo", &json!({"n": is_denied})).await;
        until_executed(&client, "near/echo", true).await;
        if is_denied {
            one.configure_more("[[rules]]\ndecision = \"deny\"\ntool = \"echo\"\n");
            until_executed(&client, "near/echo", false).await;
        }
        fs::write(&gate, "").unwrap();
        assert_eq!(slow.await.good(), "done");
        let waiting = waiting.await;
        if is_denied {
            let refused = waiting.bad();
            assert!(refused.contains("error denied"), "{refused}");
        } else {
            assert_eq!(waiting.good(), "{\"n\":false}");
        }
        fs::remove_file(&gate).unwrap();
    }
    let calls = two.received_method("far", "tools/call");
    let echoes = calls.iter().filter(|call| call["params"]["name"] == "echo");
    assert_eq!(echoes.count(), 1, "{calls:?}");
    one.stops_clean().await;
    two.stops_clean().await;
}

#[tokio::test]
async fn a_subscription_that_waits_at_another_node_begins_only_if_the_rules_still_allow_it() {
    let nats = nats(1);
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    fs::write(&gate, "").unwrap();
    let far = || {
        server().script(|script| {
            script.before = vec![Step::UntilExists(gate.clone())];
            let one = json!({"uri": "far://one", "name": "one"});
            script.resources = vec![FakeItem::defined(one, Step::text("one"))];
        })
    };
    let near = fake("near").tool("echo", Step::Echo);
    let (one, two) = (
        node(&nats, "one", [far(), near]),
        node(&nats, "two", [far()]),
    );
    connected(&[&one, &two]).await;
    let client = one.client().await;
    until_found(&client, "far/echo").await;

    fs::remove_file(&gate).unwrap();
    let starts = two.starts("far");
    let restart = two.cli(["servers", "restart", "far"]);
    let subscription = async {
        crate::until("the start of the server", || two.starts("far") > starts).await;
        let params = json!({"uri": "far://one"});
        let (_, waiting) = client.begin("resources/subscribe", params).await;
        until_executed(&client, "near/echo", true).await;
        one.configure_more("[[rules]]\ndecision = \"deny\"\n");
        until_executed(&client, "near/echo", false).await;
        fs::write(&gate, "").unwrap();
        waiting.await
    };
    let (restarted, refused) = tokio::join!(restart, subscription);
    restarted.ended(0);
    assert!(
        refused.raw().contains("denied by rule 1"),
        "{}",
        refused.raw()
    );
    two.until_received("far", |line| line.contains("resources/unsubscribe"))
        .await;
    one.stops_clean().await;
    two.stops_clean().await;
}

#[tokio::test]
async fn large_arguments_and_results_pass_between_nodes_whole() {
    let nats = nats(1);
    let (one, two) = (
        node(&nats, "one", [server()]),
        node(&nats, "two", [server()]),
    );
    connected(&[&one, &two]).await;
    let client = one.client().await;
    until_found(&client, "far/echo").await;
    let long = "x".repeat(3_000_000);
    let call = json!({"name": "execute_dynamic_tool", "arguments": {"tool_name": "far/echo",
        "tool_input": {"long": long}, "raw": true}});
    let told = client.request("tools/call", call).await.good();
    assert_eq!(told, json!({"long": long}).to_string());

    // Eight at one time, each with its own answer.
    let calls = (0..8).map(|n| {
        let client = client.clone();
        async move {
            let input = json!({"n": n, "long": "y".repeat(700_000)});
            let call = json!({"name": "execute_dynamic_tool", "arguments":
                {"tool_name": "far/echo", "tool_input": input, "raw": true}});
            let told = client.request("tools/call", call).await.good();
            assert_eq!(told, input.to_string());
        }
    });
    crate::futures_of(calls).await;

    let cut = client.execute("far/lines", json!({})).await.good();
    assert!(
        cut.contains("proxy/read_result"),
        "{}",
        &cut[cut.len() - 300..]
    );
    one.stops_clean().await;
    two.stops_clean().await;
}

#[tokio::test]
async fn the_list_of_a_server_that_changes_is_found_at_every_node() {
    let nats = nats(1);
    let growing = || {
        fake("growing")
            .tool("grow", vec![Step::Reveal, Step::text("grown")])
            .hidden_tool("late", Step::text("late"))
            .setting("on = \"two\"")
    };
    let (one, two) = (
        node(&nats, "one", [growing()]),
        node(&nats, "two", [growing()]),
    );
    connected(&[&one, &two]).await;
    let client = one.client().await;
    until_found(&client, "growing/grow").await;
    let early = client.execute("growing/late", json!({})).await.bad();
    assert!(early.contains("unknown_tool"), "{early}");
    client.execute("growing/grow", json!({})).await.good();
    until_found(&client, "growing/late").await;
    assert_eq!(
        client.execute("growing/late", json!({})).await.good(),
        "late"
    );
    one.stops_clean().await;
    two.stops_clean().await;
}
