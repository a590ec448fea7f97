//! A server over HTTP, and the failures of its connection.

use std::time::Duration;

use journeys::{
    client::{Client, ENDS_WITHIN},
    fake::{Far, Mood, Step},
    house::{House, fake},
    processes,
};
use serde_json::json;
use tokio::time::timeout;

use crate::{calling, house, until};

async fn reached(settings: &str) -> (House, Client, Far) {
    let far = Far::listen().await;
    let house = house([fake("near").tool("echo", Step::Echo)]);
    house.configure_more(&format!(
        "[servers.far]\nurl = \"{}\"\n{settings}\n",
        far.url()
    ));
    house.indexed().await;
    let client = house.client().await;
    works(&client).await;
    (house, client, far)
}

async fn works(client: &Client) {
    for tool in ["far/echo", "near/echo"] {
        let answer = client.execute(tool, json!({ "a": 1 })).await.good();
        assert_eq!(answer, r#"{"a":1}"#, "{tool}");
    }
}

/// Calls the tool until the server works; this may take several calls, because a failed server
/// pauses.
async fn works_again(client: &Client) {
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    let back = async {
        while client.execute("far/echo", json!({})).await.is_error() {
            looks.tick().await;
        }
    };
    client.within("recovery", back).await;
    works(client).await;
}

#[journey]
async fn answers_may_be_streams() {
    let (house, client, far) = reached("").await;
    far.be(Mood::Streams);
    works(&client).await;
    assert_eq!(
        client
            .search("say it again")
            .await
            .good()
            .matches("far/echo(")
            .count(),
        1
    );
    house.stops_clean().await;
}

#[journey]
async fn a_lost_session_is_made_anew_without_a_word() {
    let (house, client, far) = reached("").await;
    let sessions = far.sessions_made();
    far.forget_sessions();
    works(&client).await;
    assert_eq!(far.sessions_made(), sessions + 1);
    house.stops_clean().await;
}

#[journey]
async fn a_server_that_restarts_is_there_again() {
    let (house, client, mut far) = reached("").await;
    far.stop().await;
    let answer = client.execute("far/echo", json!({})).await.bad();
    assert!(
        answer.starts_with("error server_unavailable: far: "),
        "{answer}"
    );
    client.execute("near/echo", json!({})).await.good();
    far.start().await;
    works_again(&client).await;
    house.stops_clean().await;
}

#[journey]
async fn a_refused_call_says_why_and_the_next_may_work() {
    for status in [400, 401, 403, 429, 500, 503] {
        let (house, client, far) = reached("timeout_s = 20").await;
        far.be(Mood::Refuses(status));
        let answer = client.execute("far/echo", json!({})).await.bad();
        assert!(answer.starts_with("error "), "{status}: {answer}");
        assert!(answer.contains(&status.to_string()), "{status}: {answer}");
        client.execute("near/echo", json!({})).await.good();
        house.stops_clean().await;
    }
}

#[journey]
async fn a_server_that_recovers_works_again() {
    for status in [404, 429, 500] {
        let (house, client, far) = reached("").await;
        far.be(Mood::Refuses(status));
        client.execute("far/echo", json!({})).await.bad();
        far.be(Mood::Good);
        works_again(&client).await;
        house.stops_clean().await;
    }
}

#[journey]
async fn a_401_is_not_tried_again_and_again() {
    let (house, client, mut far) = reached("").await;
    // The connection is lost, and the new one is refused.
    far.stop().await;
    client.execute("far/echo", json!({})).await.bad();
    far.be(Mood::RefusesAll(401));
    far.start().await;
    let mut answer = String::new();
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    let refused = async {
        while !answer.contains("401") {
            looks.tick().await;
            answer = client.execute("far/echo", json!({})).await.bad();
        }
    };
    client.within("refusal", refused).await;
    // The DELETE of the refused session may still arrive.
    let asked = || {
        let requests = far.requests().into_iter();
        let posts = requests.filter(|request| request.starts_with("POST "));
        posts.collect::<Vec<_>>()
    };
    let before = asked();
    for _ in 0..20 {
        client.execute("far/echo", json!({})).await.bad();
    }
    assert_eq!(asked(), before, "no further request was sent");
    house.stops_clean().await;
}

#[journey]
async fn a_call_that_hangs_ends_at_its_limit_and_delays_nobody() {
    let (house, client, far) = reached("").await;
    far.be(Mood::Hangs);
    let calls = far.calls();
    let mut call = calling("far/echo", &json!({}));
    call["arguments"]["timeout_ms"] = json!(1_500);
    let (_, hangs) = client.begin("tools/call", call).await;
    until("the call that hangs", || far.calls() > calls).await;
    far.be(Mood::Good);
    works(&client).await;
    let answer = hangs.await.bad();
    assert!(answer.starts_with("error timeout: "), "{answer}");
    works(&client).await;
    house.stops_clean().await;
}

#[journey]
async fn a_stream_that_breaks_before_its_answer_fails_its_call_alone() {
    let (house, client, far) = reached("timeout_s = 20").await;
    far.be(Mood::DropsStreams);
    let answer = client.execute("far/echo", json!({})).await.bad();
    assert!(answer.starts_with("error "), "{answer}");
    assert!(!answer.starts_with("error timeout"), "{answer}");
    far.be(Mood::Good);
    works_again(&client).await;
    house.stops_clean().await;
}

#[journey(alone = "the daemon outlives a session")]
async fn an_end_of_the_session_waits_for_no_remote_server() {
    let (house, client, far) = reached("").await;
    far.be(Mood::Hangs);
    let calls = far.calls();
    let (_, _never) = client
        .begin("tools/call", calling("far/echo", &json!({})))
        .await;
    until("the call", || far.calls() > calls).await;
    processes::terminate(client.pid());
    let ended = timeout(ENDS_WITHIN, client.ended()).await;
    assert_eq!(ended.expect("the proxy exits in time").code(), Some(0));
    assert_eq!(house.all_gone().await, Ok(()));
}
