//! Many calls in several sessions, and the messages beside a call.

use journeys::{
    client::Client,
    fake::Step,
    house::{House, fake},
};
use serde_json::{Value, json};

use crate::{calling, house};

const IN_FLIGHT: usize = 32;

/// Creates a house with a tool that answers once the file `gate` exists.
async fn gated() -> House {
    let house = house::<journeys::house::Fake>([]);
    let wait = [Step::UntilExists(house.path("gate")), Step::Echo];
    house.add(fake("any").tool("wait", wait).tool("echo", Step::Echo));
    house.indexed().await;
    house
}

#[journey]
async fn each_of_many_calls_gets_its_own_answer() {
    let house = gated().await;
    let clients = [house.client().await, house.modern_client().await];
    let mut calls = Vec::new();
    for number in 0..IN_FLIGHT {
        for (client, session) in clients.iter().zip(["old", "new"]) {
            let input = json!({ "session": session, "number": number });
            let (_, reply) = client
                .begin("tools/call", calling("any/wait", &input))
                .await;
            calls.push((input, reply));
        }
    }
    house.until_calls("any", calls.len()).await;
    // No other client waits for these calls.
    for client in &clients {
        client.execute("any/echo", json!({})).await.good();
    }
    house.write("gate", "");
    for (input, reply) in calls {
        assert_eq!(reply.await.good(), input.to_string());
    }
    house.stops_clean().await;
}

#[journey]
async fn a_cancelled_call_ends_at_the_server_and_only_there() {
    let server = fake("any")
        .tool("stuck", Step::UntilCancelled)
        .tool("echo", Step::Echo);
    let house = house([server]);
    house.indexed().await;
    let client = house.client().await;
    let (first, _answer) = client
        .begin("tools/call", calling("any/stuck", &json!({ "n": 1 })))
        .await;
    let (_second, _answer) = client
        .begin("tools/call", calling("any/stuck", &json!({ "n": 2 })))
        .await;
    house.until_calls("any", 2).await;
    client.cancel(first).await;
    house
        .until_received("any", |line| line.contains("notifications/cancelled"))
        .await;

    let calls = house.received_method("any", "tools/call");
    let first = calls
        .iter()
        .find(|call| call["params"]["arguments"]["n"] == 1);
    let cancelled = house.received_method("any", "notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0]["params"]["requestId"], first.unwrap()["id"]);
    client.execute("any/echo", json!({})).await.good();
    house.stops_clean().await;
}

async fn progressed(client: &Client, token: &Value) {
    let mut params = calling("any/work", &json!({}));
    params["_meta"] = json!({ "progressToken": token });
    let (_, reply) = client.begin("tools/call", params).await;
    for progress in [1, 2] {
        let heard = client.next("notifications/progress").await;
        assert_eq!(&heard["params"]["progressToken"], token);
        assert_eq!(heard["params"]["progress"], progress);
        assert_eq!(heard["params"]["total"], 2);
    }
    assert_eq!(reply.await.good(), "done");
}

#[journey]
async fn progress_comes_under_the_clients_own_token() {
    let work = [
        Step::progress(1, 2),
        Step::progress(2, 2),
        Step::text("done"),
    ];
    let house = house([fake("any").tool("work", work)]);
    house.indexed().await;
    let clients = [house.client().await, house.modern_client().await];
    for token in [json!("mine"), json!(7)] {
        progressed(&clients[0], &token).await;
        progressed(&clients[1], &token).await;
    }
    house.stops_clean().await;
}

#[journey]
async fn broken_protocol_gets_a_protocol_error_and_the_session_lives() {
    let house = gated().await;
    let client = house.client().await;
    let fourth = client.call("any/echo", json!({})).await;
    assert_eq!(fourth.error()["code"], -32602);
    let unknown = client.request("no/such", json!({})).await;
    assert_eq!(unknown.error()["code"], -32601);
    for (line, code) in [
        ("this is no JSON", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"#, -32700),
        ("[1, 2]", -32600),
    ] {
        client.send_line(line).await;
        let error = client.next_stray().await;
        assert_eq!(error["error"]["code"], code, "{line}: {error}");
        assert_eq!(error["id"], Value::Null, "{line}");
    }
    client.send_line("").await;
    client.execute("any/echo", json!({})).await.good();
    house.stops_clean().await;
}
