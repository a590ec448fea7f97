//! Streams that break off and are taken up again.

use journeys::{
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
    site::Site,
    web::{Answer, Web},
};
use serde_json::{Value, json};

use crate::{calling, house};

const ELICIT: &str = "elicitation/create";

fn says(text: &str) -> Value {
    json!({"action": "accept", "content": {"text": text}})
}

async fn ready() -> (House, Site, Web) {
    let house = house::<journeys::house::Fake>([]);
    let slow = [
        Step::log("info", "begins"),
        Step::UntilExists(house.path("gone")),
        Step::log("info", "goes on"),
        Step::text("done"),
    ];
    let server = fake("any")
        .tool("slow", slow)
        .tool("ask", Step::elicit("Sure?"));
    house.add(server);
    house.indexed().await;
    let site = house.site().await;
    let can = json!({"elicitation": {}});
    let client = site
        .web()
        .initialize_with("wanderer", LEGACY_VERSION, can)
        .await;
    let client = client.with("mcp-protocol-version", LEGACY_VERSION);
    (house, site, client)
}

/// What the client comes back for.
async fn take_up(client: &Web, last_event: &str) -> Answer {
    let client = client.clone().with("last-event-id", last_event);
    let client = client
        .without("content-type")
        .with("accept", "text/event-stream");
    client.ask("GET", "/mcp", "").await
}

#[tokio::test]
async fn what_was_said_meanwhile_comes_when_its_client_is_back() {
    let (house, site, client) = ready().await;
    let (id, mut answer) = client
        .send("tools/call", calling("any/slow", &json!({})))
        .await;
    let first = answer.message().await;
    assert_eq!(first["params"]["data"], "begins");
    let seen = answer.last_event().to_owned();
    drop(answer);
    house.write("gone", "");
    let mut answer = take_up(&client, &seen).await;
    assert_eq!(answer.message().await["params"]["data"], "goes on");
    let reply = answer.message().await;
    assert_eq!(reply["id"], id);
    assert_eq!(reply["result"]["content"][0]["text"], "done");
    assert!(answer.event().await.is_none(), "the answer is the last");

    // All of it once more, for one who has seen nothing of it.
    let (stream, _) = seen.split_once('-').unwrap();
    let mut answer = take_up(&client, &format!("{stream}-0")).await;
    for data in ["begins", "goes on"] {
        assert_eq!(answer.message().await["params"]["data"], data);
    }
    assert_eq!(answer.message().await["id"], id);

    // Of another session it is nobody's: that is a stream like any other.
    let other = site.web().initialize("other", LEGACY_VERSION).await;
    let mut answer = take_up(&other, &format!("{stream}-0")).await;
    assert!(answer.is_stream());
    drop(other);
    client.execute("any/slow", json!({})).await.good();
    site.stop().await;
    assert!(answer.event().await.is_none());
    house.stops_clean().await;
}

#[tokio::test]
async fn a_question_waits_for_its_client_to_come_back() {
    let (house, site, client) = ready().await;
    let (id, mut answer) = client
        .send("tools/call", calling("any/ask", &json!({})))
        .await;
    let question = answer.message().await;
    assert_eq!(question["method"], ELICIT);
    let seen = answer.last_event().to_owned();
    let (stream, _) = seen.split_once('-').unwrap();
    drop(answer);
    let mut answer = take_up(&client, &format!("{stream}-0")).await;
    assert_eq!(
        answer.message().await,
        question,
        "the same, with the same id"
    );
    let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": says("yes")});
    assert_eq!(client.post(said.to_string()).await.status, 202);
    assert_eq!(answer.message().await["id"], id);
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_session_that_is_taken_up_by_the_next_process_is_still_asked() {
    let (house, site, client) = ready().await;
    let address = site.address();
    site.stop().await;
    let site = house.site_at(&address.to_string()).await;
    let (_, mut answer) = client
        .send("tools/call", calling("any/ask", &json!({})))
        .await;
    let question = answer.message().await;
    assert_eq!(question["method"], ELICIT);
    let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": says("yes")});
    assert_eq!(client.post(said.to_string()).await.status, 202);
    let reply = answer.message().await;
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), says("yes"));
    site.stop().await;
    house.stops_clean().await;
}
