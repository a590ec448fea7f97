//! Streams that break off and are resumed.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use journeys::{
    client::DEADLINE,
    fake::{LEGACY_VERSION, Step},
    house::{Fake, House, fake},
    port::ReservedPort,
    processes,
    site::Site,
    web::{Answer, Web},
};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use crate::{calling, house, house_with_daemon, until};

const ELICIT: &str = "elicitation/create";

fn says(text: &str) -> Value {
    json!({"action": "accept", "content": {"text": text}})
}

async fn ready() -> (House, Site, Web) {
    ready_in(house::<Fake>([])).await
}

async fn ready_in(house: House) -> (House, Site, Web) {
    ready_at(house, (Ipv4Addr::LOCALHOST, 0).into()).await
}

async fn ready_at(house: House, address: SocketAddr) -> (House, Site, Web) {
    let slow = [
        Step::log("info", "begins"),
        Step::UntilExists(house.path("gone")),
        Step::log("info", "goes on"),
        Step::text("done"),
    ];
    let server = fake("any")
        .tool("slow", slow)
        .tool(
            "silent",
            [Step::UntilExists(house.path("gone")), Step::text("done")],
        )
        .tool("ask", Step::elicit("Sure?"));
    house.add(server);
    house.indexed().await;
    let site = house.site_at(address).await;
    let can = json!({"elicitation": {}});
    let client = site
        .web()
        .initialize_with("wanderer", LEGACY_VERSION, can)
        .await;
    let client = client.with("mcp-protocol-version", LEGACY_VERSION);
    (house, site, client)
}

/// Requests the events after the last one that the client received.
async fn take_up(client: &Web, last_event: &str) -> Answer {
    let client = client.clone().with("last-event-id", last_event);
    let client = client
        .without("content-type")
        .with("accept", "text/event-stream");
    client.ask("GET", "/mcp", "").await
}

/// Returns the id of the first event of this event's stream.
fn begin_of(event: &str) -> String {
    let mut parts: Vec<&str> = event.splitn(4, '-').collect();
    parts[2] = "0";
    parts.join("-")
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
    assert!(
        answer.event().await.is_none(),
        "the response is the last event"
    );

    // A client that has seen nothing gets every event again.
    let begin = begin_of(&seen);
    let mut answer = take_up(&client, &begin).await;
    for data in ["begins", "goes on"] {
        assert_eq!(answer.message().await["params"]["data"], data);
    }
    assert_eq!(answer.message().await["id"], id);

    // In another session the event id only belongs to a lost request.
    let other = site.web().initialize("other", LEGACY_VERSION).await;
    let mut lost = take_up(&other, &begin).await;
    assert!(lost.message().await["result"]["isError"] == true);
    assert!(lost.event().await.is_none());
    let mut answer = take_up(&other, "7-1").await;
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
    let begin = begin_of(answer.last_event());
    drop(answer);
    let mut answer = take_up(&client, &begin).await;
    assert_eq!(
        answer.message().await,
        question,
        "the events have the same ids"
    );
    let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": says("yes")});
    assert_eq!(client.post(said.to_string()).await.status, 202);
    assert_eq!(answer.message().await["id"], id);
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_session_that_is_taken_up_by_the_next_process_is_still_asked() {
    let port = ReservedPort::new();
    let (house, site, client) = ready_at(house::<Fake>([]), port.address()).await;
    site.stop().await;
    let site = house.site_at(port.address()).await;
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

/// Kills the daemon during a call of this tool; the client reconnects after calls of another tool.
async fn check_killed(tool: &str) {
    let (house, site, client) = ready_in(house_with_daemon::<Fake>([])).await;
    let (id, mut answer) = client.send("tools/call", calling(tool, &json!({}))).await;
    assert!(answer.is_stream());
    answer.first_event_id().await;
    if tool == "any/slow" {
        assert_eq!(answer.message().await["params"]["data"], "begins");
    }
    let seen = answer.last_event().to_owned();
    house.until_calls("any", 1).await;
    let daemon = house.daemon().await;
    processes::kill(daemon);
    until("the end of the daemon", || !processes::lives(daemon)).await;
    let mut looks = interval(Duration::from_millis(20));
    let back = async {
        while client.try_ask("GET", "/healthz", "".into()).await.is_err() {
            looks.tick().await;
        }
    };
    timeout(DEADLINE, back).await.expect("HTTP is served again");
    for _ in 0..3 {
        client.search("slow").await.good();
    }
    // The client gets the same each time it reconnects.
    for _ in 0..2 {
        let mut answer = take_up(&client, &seen).await;
        let reply = answer.message().await;
        assert_eq!(reply["id"], id);
        assert_eq!(reply["result"]["isError"], true);
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("daemon ended") && text.contains("may have run"),
            "{text}"
        );
        assert!(
            answer.event().await.is_none(),
            "the response is the last event"
        );
    }
    house.write("gone", "");
    client.execute(tool, json!({})).await.good();
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_call_under_which_the_daemon_is_killed_is_answered_as_one_that_may_have_run() {
    check_killed("any/slow").await;
    check_killed("any/silent").await;
}
