//! Two clients that one shared server asks concurrently: each gets the question of its own call.

use journeys::{
    client::Client,
    fake::{Era, META_CAPABILITIES, Step},
    house::{Fake, House, fake},
};
use serde_json::{Value, json};

use crate::{
    calling,
    calls::questions::{ELICIT, client_with, says},
    house_with_daemon, until,
};

const NAMES: [&str; 2] = ["ada", "bob"];

/// Adds one tool per client to the server; each tool asks for the client's name.
fn asks_by_name(server: Fake, step: impl Fn(&str) -> Step) -> Fake {
    let tools = NAMES.map(|name| (name, step(&format!("Are you {name}?"))));
    let add = |server: Fake, (name, step)| server.tool(name, step);
    tools.into_iter().fold(server, add)
}

fn of_before() -> Fake {
    asks_by_name(fake("any").era(Era::Legacy), Step::elicit)
}

fn in_rounds() -> Fake {
    let form = |message: &str| json!({"method": ELICIT, "params": {"message": message, "requestedSchema": {}}});
    let step = |message: &str| Step::RequireInput(json!({"name": form(message)}));
    asks_by_name(fake("any").era(Era::Modern), step)
}

/// Plays one round of a call; earlier questions are answered with the client's name.
async fn play_round(client: &Client, name: &str, before: Option<&Value>) -> Value {
    let mut params = calling(&format!("any/{name}"), &json!({}));
    params["_meta"][META_CAPABILITIES] = json!({"elicitation": {}});
    if let Some(asked) = before {
        let keys = asked["inputRequests"].as_object().unwrap().keys();
        params["inputResponses"] = keys.map(|key| (key.clone(), says(name))).collect();
        params["requestState"] = asked["requestState"].clone();
    }
    let reply = client.request("tools/call", params).await;
    reply.into_result()
}

#[track_caller]
fn check_asked(result: &Value, name: &str) {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let requests = result["inputRequests"].as_object().unwrap();
    let messages: Vec<&Value> = requests
        .values()
        .map(|it| &it["params"]["message"])
        .collect();
    assert_eq!(messages, [&json!(format!("[any] Are you {name}?"))]);
}

#[track_caller]
fn check_answered(result: &Value, name: &str) {
    assert_eq!(result["resultType"], "complete", "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&says(name)["content"].to_string()), "{text}");
}

#[tokio::test]
async fn clients_in_rounds_before_a_server_in_rounds_are_asked_at_once() {
    let house = house_with_daemon([in_rounds()]);
    house.indexed().await;
    let clients = [house.modern_client().await, house.modern_client().await];
    let mut asked = Vec::new();
    for (client, name) in clients.iter().zip(NAMES) {
        asked.push(play_round(client, name, None).await);
        check_asked(&asked[asked.len() - 1], name);
    }
    for ((client, name), asked) in clients.iter().zip(NAMES).zip(&asked) {
        check_answered(&play_round(client, name, Some(asked)).await, name);
    }
    // The state of another client is refused.
    let asked = play_round(&clients[0], NAMES[0], None).await;
    let mut params = calling(&format!("any/{}", NAMES[0]), &json!({"x": 1}));
    params["requestState"] = asked["requestState"].clone();
    let refused = clients[1].request("tools/call", params).await;
    assert_eq!(refused.error()["code"], -32602);
    house.stops_clean().await;
}

#[tokio::test]
async fn clients_in_rounds_before_a_server_of_before_are_asked_one_after_another() {
    let house = house_with_daemon([of_before()]);
    house.indexed().await;
    let [ada, bob] = [house.modern_client().await, house.modern_client().await];
    let asked = play_round(&ada, NAMES[0], None).await;
    check_asked(&asked, NAMES[0]);
    let of_bob = async {
        let asked = play_round(&bob, NAMES[1], None).await;
        check_asked(&asked, NAMES[1]);
        play_round(&bob, NAMES[1], Some(&asked)).await
    };
    let of_ada = play_round(&ada, NAMES[0], Some(&asked));
    let (of_bob, of_ada) = tokio::join!(of_bob, of_ada);
    check_answered(&of_ada, NAMES[0]);
    check_answered(&of_bob, NAMES[1]);
    house.stops_clean().await;
}

/// The first question marks the server as one that asks; its snapshot stores the mark.
#[tokio::test]
async fn a_server_that_once_asked_is_known_to_ask_by_the_next_daemon() {
    let house = House::without_config(&crate::programs()).with_daemon();
    house.configure("");
    let gate = house.path("gate");
    let step = |message: &str| Step::elicit(message);
    let server = NAMES.into_iter().fold(fake("any"), |server, name| {
        let ask = step(&format!("Are you {name}?"));
        server.tool(name, [Step::UntilExists(gate.clone()), ask])
    });
    house.add(server);
    house.indexed().await;
    house.write("gate", "");
    let can = json!({"elicitation": {}});
    let first = client_with(&house, can.clone()).await;
    first.answers(ELICIT, says("x"));
    first.execute("any/ada", json!({})).await.good();
    until("the mark of a server that asks", || {
        let catalog = std::fs::read_to_string(house.state().join("catalog.json"));
        catalog.is_ok_and(|it| it.contains(r#""asking_calls":["tools/call ada"]"#))
    })
    .await;
    house.cli(["daemon", "stop"]).await.ended(0);
    std::fs::remove_file(&gate).unwrap();

    let clients = [
        client_with(&house, can.clone()).await,
        client_with(&house, can).await,
    ];
    let mut calls = Vec::new();
    for (client, name) in clients.iter().zip(NAMES) {
        client.answers(ELICIT, says(name));
        let (_, reply) = client
            .begin("tools/call", calling(&format!("any/{name}"), &json!({})))
            .await;
        calls.push(reply);
        // Both calls have reached the daemon before the first question.
        client.request("ping", json!({})).await.into_result();
    }
    house.write("gate", "");
    for (reply, name) in calls.into_iter().zip(NAMES) {
        let told = reply.await.good();
        assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), says(name));
    }
    house.stops_clean().await;
}

/// A server on a common SDK asks by requests only after a handshake, and in rounds only without
/// one.
#[tokio::test]
async fn a_server_of_both_eras_asks_the_client_of_each_in_its_own_way_whoever_came_first() {
    for modern_first in [true, false] {
        let rounds = json!({"name": {"method": ELICIT,
            "params": {"message": "Are you ada?", "requestedSchema": {}}}});
        let server = fake("any").era(Era::Both);
        let server = server.tool(NAMES[0], Step::RequireInput(rounds));
        let house = house_with_daemon([server.tool(NAMES[1], Step::elicit("Are you bob?"))]);
        house.cli(["reindex"]).await.ended(0);
        let ada = house.modern_client().await;
        let bob = client_with(&house, json!({"elicitation": {}})).await;
        bob.answers(ELICIT, says(NAMES[1]));
        let of_ada = async || {
            let asked = play_round(&ada, NAMES[0], None).await;
            check_asked(&asked, NAMES[0]);
            check_answered(&play_round(&ada, NAMES[0], Some(&asked)).await, NAMES[0]);
        };
        let of_bob = async || {
            let told = bob.execute("any/bob", json!({})).await.good();
            assert_eq!(
                serde_json::from_str::<Value>(&told).unwrap(),
                says(NAMES[1])
            );
        };
        if modern_first {
            of_ada().await;
            of_bob().await;
        } else {
            of_bob().await;
            of_ada().await;
        }
        tokio::join!(of_ada(), of_bob());
        for call in house.received_method("any", "tools/call") {
            let is_stateless = call["params"]["_meta"][META_CAPABILITIES].is_object();
            assert_eq!(is_stateless, call["params"]["name"] == NAMES[0], "{call}");
        }
        let status = house.cli(["status"]).await;
        let rows = ["any, 2026-07-28  ready", "any, 2025-11-25  ready"];
        assert!(
            rows.iter().all(|row| status.stdout.contains(row)),
            "{status:?}"
        );
        house.stops_clean().await;
    }
}
