//! A server that misbehaves affects neither other servers nor its own other calls.

use std::path::PathBuf;

use journeys::{
    client::Client,
    fake::{Step, payload},
    house::{House, fake},
};
use serde_json::json;

use crate::{calling, house, until};

const QUICK_CALLS: usize = 30;
/// The required maximum length of a line.
const LONG_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Creates a house with a quick server and a bad one, whose bad tool runs until the file `gate`
/// exists, or forever.
async fn beside(bad: impl FnOnce(PathBuf) -> Vec<Step>) -> (House, Client) {
    let house = house([fake("quick").tool("echo", Step::Echo)]);
    let steps = bad(house.path("gate"));
    house.add(fake("bad").tool("act", steps).tool("echo", Step::Echo));
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    client.execute("quick/echo", json!({})).await.good();
    (house, client)
}

async fn echoes(client: &Client, server: &str) {
    let tool = format!("{server}/echo");
    for number in 0..QUICK_CALLS {
        let input = json!({ "n": number });
        let answer = client.execute(&tool, input.clone()).await.good();
        assert_eq!(answer, input.to_string());
    }
}

/// Checks that both servers answer other calls while the bad tool runs, and that it succeeds then.
async fn check(bad: impl FnOnce(PathBuf) -> Vec<Step>) {
    let (house, client) = beside(bad).await;
    let (_, reply) = client
        .begin("tools/call", calling("bad/act", &json!({})))
        .await;
    house.until_calls("bad", 1).await;
    echoes(&client, "quick").await;
    echoes(&client, "bad").await;
    house.write("gate", "");
    assert_eq!(reply.await.good(), "done");
    house.stops_clean().await;
}

#[tokio::test]
async fn one_that_sleeps() {
    check(|gate| vec![Step::UntilExists(gate), Step::text("done")]).await;
}

#[tokio::test]
async fn one_that_floods_notifications() {
    check(|gate| {
        let noise = Step::log("info", "noise of no importance");
        vec![Step::flood(gate, noise), Step::text("done")]
    })
    .await;
}

#[tokio::test]
async fn one_that_floods_progress_nobody_asked_for() {
    check(|gate| {
        let noise = Step::Notify {
            method: "notifications/progress".to_owned(),
            params: json!({ "progressToken": "nobody", "progress": 1 }),
        };
        vec![Step::flood(gate, noise), Step::text("done")]
    })
    .await;
}

#[tokio::test]
async fn one_that_writes_a_megabyte_a_second_to_stderr() {
    check(|gate| {
        let noise = Step::StderrOfBytes(100_000);
        vec![Step::every(100, gate, noise), Step::text("done")]
    })
    .await;
}

#[tokio::test]
async fn one_that_answers_with_a_line_of_16_mib() {
    let (house, client) = beside(|_| vec![Step::TextOfBytes(LONG_LINE_BYTES)]).await;
    let mut call = calling("bad/act", &json!({}));
    call["arguments"]["raw"] = json!(true);
    let (_, reply) = client.begin("tools/call", call).await;
    house.until_calls("bad", 1).await;
    echoes(&client, "quick").await;
    let answer = reply.await.good();
    assert!(
        answer == payload::text(LONG_LINE_BYTES),
        "{} bytes came",
        answer.len()
    );
    echoes(&client, "bad").await;
    house.stops_clean().await;
}

#[tokio::test]
async fn one_that_never_reads() {
    let (house, client) = beside(|_| vec![Step::StopReading, Step::text("done")]).await;
    client.execute("bad/act", json!({})).await.good();
    // The pipe and the queue before it fill up.
    let mut replies = Vec::new();
    let big = payload::text(2 * 1024 * 1024);
    for _ in 0..12 {
        let mut call = calling("bad/echo", &json!({ "text": big }));
        call["arguments"]["timeout_ms"] = json!(3_000);
        replies.push(client.begin("tools/call", call).await.1);
    }
    echoes(&client, "quick").await;
    for reply in replies {
        let answer = reply.await.bad();
        assert!(answer.starts_with("error timeout: "), "{answer}");
    }
    echoes(&client, "quick").await;
    house.stops_clean().await;
}

#[tokio::test]
async fn one_that_hangs_at_its_start() {
    let hangs = fake("hangs").tool("echo", Step::Echo);
    let house = house([fake("quick").tool("echo", Step::Echo), hangs.clone()]);
    house.cli(["reindex"]).await.ended(0);
    house.rewrite(hangs.script(|it| {
        it.on_initialize = Some(Vec::new());
        it.on_discover = Some(Vec::new());
    }));
    let client = house.client().await;
    let mut call = calling("hangs/echo", &json!({}));
    call["arguments"]["timeout_ms"] = json!(2_000);
    let (_, reply) = client.begin("tools/call", call).await;
    until("its start", || house.starts("hangs") == 2).await;
    echoes(&client, "quick").await;
    let answer = reply.await.bad();
    assert!(answer.starts_with("error timeout: "), "{answer}");
    assert!(answer.contains("did not run"), "{answer}");
    house.stops_clean().await;
}
