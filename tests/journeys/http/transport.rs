//! Clients over HTTP: both eras, with and without sessions, each with its own state.

use journeys::{
    fake::{LEGACY_VERSION, LEGACY_VERSIONS, Step},
    house::{Fake, House, fake},
    site::Site,
    web::Web,
};
use serde_json::{Value, json};

use crate::{calling, house, until};

/// A result that no JSON serializer would write.
const ODD: &str =
    r#"{ "content" : [{"type":"text","text":"a\u0062c","odd":1.50}], "_meta":{"x":[ ]} }"#;

async fn site_of(server: Fake) -> (House, Site) {
    let house = house([server]);
    house.indexed().await;
    let site = house.site().await;
    (house, site)
}

fn odd() -> Fake {
    fake("any")
        .tool("odd", Step::RawResult(ODD.to_owned()))
        .tool("echo", Step::Echo)
}

/// Plays the scene of the three tools with any client.
async fn plays(client: &Web) {
    let list = client.request("tools/list", json!({})).await.into_result();
    assert_eq!(list["tools"].as_array().unwrap().len(), 3);
    let found = client.search("do echo").await.good();
    assert!(found.contains("any/echo("), "{found}");
    let described = client
        .call("describe_tool", json!({ "name": "any/echo" }))
        .await
        .good();
    assert!(described.contains("\ninput {"), "{described}");
    let echoed = client.execute("any/echo", json!({ "a": [1.50] })).await;
    assert_eq!(echoed.good(), r#"{"a":[1.5]}"#);
    let fourth = client.call("any/echo", json!({})).await;
    assert_eq!(fourth.error()["code"], -32602);
}

#[tokio::test]
async fn three_tools_in_both_eras_with_sessions_and_without() {
    let (house, site) = site_of(odd()).await;
    for version in LEGACY_VERSIONS {
        let client = site.web().initialize("journeys", version).await;
        plays(&client).await;
        assert_eq!(
            client.request("ping", json!({})).await.into_result(),
            json!({})
        );
    }
    plays(&site.web().modern("journeys")).await;
    plays(&site.web()).await;
    plays(&site.web().with("accept", "application/json")).await;
    plays(&site.web().with("accept", "text/event-stream")).await;
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_result_passes_byte_for_byte() {
    let (house, site) = site_of(odd()).await;
    let session = site.web().initialize("journeys", LEGACY_VERSION).await;
    let as_events = site.web().with("accept", "text/event-stream");
    for client in [session, site.web(), as_events] {
        let reply = client.execute("any/odd", json!({})).await;
        assert!(reply.raw().contains(ODD), "{}", reply.raw());
    }
    let modern = site.web().modern("journeys");
    let reply = modern.execute("any/odd", json!({})).await;
    let expected = ODD.replacen('{', r#"{"resultType":"complete","#, 1);
    assert!(reply.raw().contains(&expected), "{}", reply.raw());
    // A body of several lines is one line to a server.
    let body = "{\n\"jsonrpc\":\"2.0\",\r\n\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\
                \"execute_dynamic_tool\",\"arguments\":{\"tool_name\":\"any/echo\",\"tool_input\":\
                {\"a\":\n1}}}}";
    let reply = site.web().post(body).await.reply().await;
    assert_eq!(reply.good(), r#"{"a": 1}"#);
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn the_modern_era_says_protocol_errors_in_http_too() {
    let (house, site) = site_of(odd()).await;
    let client = site.web().modern("journeys");
    let (_, answer) = client.send("no/such", json!({})).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.reply().await.error()["code"], -32601);
    let bare = |web: Web| web.with("mcp-method", "tools/list");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let answer = bare(client.clone()).post(body.to_string()).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.reply().await.error()["code"], -32602);
    let unknown = client.clone().with("mcp-protocol-version", "2099-01-01");
    let (_, answer) = unknown.send("tools/list", json!({})).await;
    assert_eq!(
        (answer.status, answer.reply().await.error()["code"].clone()),
        (400, json!(-32020))
    );
    let (_, answer) = client
        .clone()
        .without("mcp-protocol-version")
        .send("ping", json!({}))
        .await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.reply().await.error()["code"], -32020);
    site.stop().await;
    house.stops_clean().await;
}

fn works() -> Fake {
    let work = [
        Step::progress(1, 2),
        Step::log("warning", "half"),
        Step::progress(2, 2),
        Step::text("done"),
    ];
    fake("any").tool("work", work)
}

#[tokio::test]
async fn what_comes_before_an_answer_comes_in_its_stream() {
    let (house, site) = site_of(works()).await;
    let session = site.web().initialize("journeys", LEGACY_VERSION).await;
    let mut standing = session.ask("GET", "/mcp", "").await;
    assert_eq!(standing.status, 200);
    assert!(standing.is_stream());
    let modern = site.web().modern("journeys");
    for (client, token) in [(&session, json!("mine")), (&modern, json!(7))] {
        let mut params = calling("any/work", &json!({}));
        params["_meta"] = json!({
            "progressToken": token,
            "io.modelcontextprotocol/logLevel": "info"
        });
        let (id, mut answer) = client.send("tools/call", params).await;
        assert!(answer.is_stream());
        let methods = ["progress", "message", "progress"];
        for method in methods {
            let heard = answer.message().await;
            assert_eq!(heard["method"], format!("notifications/{method}"));
            if method == "progress" {
                assert_eq!(heard["params"]["progressToken"], token);
            }
        }
        let last = answer.message().await;
        assert_eq!(
            (&last["id"], &last["result"]["content"][0]["text"]),
            (&json!(id), &json!("done"))
        );
        assert_eq!(answer.event().await, None);
    }
    session.ask("DELETE", "/mcp", "").await;
    assert_eq!(
        standing.event().await,
        None,
        "the message belongs to no request"
    );
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_session_begins_and_ends_and_belongs_to_its_client() {
    let house = house([odd()]);
    let [first, second] = ["0123456789abcdef0123", "fedcba9876543210fedc"];
    let tokens = format!("[http.tokens]\nfirst = \"{first}\"\nsecond = \"{second}\"");
    house.configure_more(&tokens);
    house.indexed().await;
    let site = house.site().await;
    let by = |token: &str| site.web().with("authorization", &format!("Bearer {token}"));
    let session = by(first).initialize("journeys", LEGACY_VERSION).await;
    session.execute("any/echo", json!({})).await.good();
    let thief = session
        .clone()
        .with("authorization", &format!("Bearer {second}"));
    let (_, answer) = thief.send("ping", json!({})).await;
    assert_eq!(answer.status, 404);
    assert_eq!(session.ask("DELETE", "/mcp", "").await.status, 204);
    let (_, answer) = session.send("ping", json!({})).await;
    assert_eq!(answer.status, 404);
    assert!(answer.text().await.contains("send `initialize`"));
    assert_eq!(session.ask("GET", "/mcp", "").await.status, 404);
    assert_eq!(by(first).ask("GET", "/mcp", "").await.status, 405);
    assert_eq!(by(first).ask("DELETE", "/mcp", "").await.status, 400);
    site.stop().await;
    house.stops_clean().await;
}

fn stuck() -> Fake {
    fake("any")
        .tool("stuck", Step::UntilCancelled)
        .tool("echo", Step::Echo)
}

fn cancelled(house: &House) -> Vec<Value> {
    house.received_method("any", "notifications/cancelled")
}

#[tokio::test]
async fn a_session_cancels_by_a_message_and_not_by_going_away() {
    let (house, site) = site_of(stuck()).await;
    let session = site.web().initialize("journeys", LEGACY_VERSION).await;
    let mut calls = Vec::new();
    for number in [1, 2] {
        let session = session.clone();
        let input = json!({ "n": number });
        let call = async move {
            session
                .send("tools/call", calling("any/stuck", &input))
                .await
        };
        calls.push(tokio::spawn(call));
        house.until_calls("any", number).await;
    }
    calls.remove(0).abort();
    session.execute("any/echo", json!({})).await.good();
    assert!(cancelled(&house).is_empty());
    // `initialize` has id 1, the calls have 2 and 3.
    let params = json!({ "requestId": 3, "reason": "enough" });
    let taken = session.notify("notifications/cancelled", params).await;
    assert_eq!(taken.status, 202);
    let (_, mut answer) = calls.remove(0).await.unwrap();
    assert!(answer.is_stream() && answer.event().await.is_none());
    until("cancellation of call 2", || cancelled(&house).len() == 1).await;
    session.ask("DELETE", "/mcp", "").await;
    until("cancellation of call 1", || cancelled(&house).len() == 2).await;
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_client_without_a_session_cancels_by_going_away() {
    let (house, site) = site_of(stuck()).await;
    for (number, client) in [(1, site.web().modern("journeys")), (2, site.web())] {
        let call = tokio::spawn(async move {
            client
                .send("tools/call", calling("any/stuck", &json!({})))
                .await
        });
        house.until_calls("any", number).await;
        call.abort();
        until("the cancellation", || cancelled(&house).len() == number).await;
    }
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn ten_clients_share_one_server_and_none_gets_anothers_answer() {
    let house = house::<Fake>([]);
    let wait = [Step::UntilExists(house.path("gate")), Step::Echo];
    house.add(fake("any").tool("wait", wait));
    house.indexed().await;
    let indexing = house.starts("any");
    let site = house.site().await;
    let mut clients = Vec::new();
    for number in 0..10 {
        let web = Web::new(site.address());
        clients.push(match number % 3 {
            0 => web.initialize("journeys", LEGACY_VERSION).await,
            1 => web.modern("journeys"),
            _ => web,
        });
    }
    let mut calls = Vec::new();
    for turn in 0..3 {
        for (number, client) in clients.iter().enumerate() {
            let client = client.clone();
            let input = json!({ "client": number, "turn": turn });
            let call = async move { (client.execute("any/wait", input.clone()).await, input) };
            calls.push(tokio::spawn(call));
        }
    }
    house.until_calls("any", calls.len()).await;
    house.write("gate", "");
    for call in calls {
        let (reply, input) = call.await.unwrap();
        assert_eq!(reply.good(), input.to_string());
    }
    assert_eq!(house.starts("any"), indexing + 1);
    site.stop().await;
    house.stops_clean().await;
}
