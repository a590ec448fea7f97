//! One server is broken; the others work, and the errors explain the cause.

use journeys::{
    fake::Step,
    house::{Fake, House, Server, fake, program},
};
use serde_json::json;

use crate::house;

fn good() -> Fake {
    fake("good").tool("echo", Step::Echo)
}

/// Checks that the good server works beside the broken one, and the start is not delayed.
async fn check(broken: impl Into<Server>, explains: &[&str]) {
    let house = house([good().into(), broken.into()]);
    let reindexed = house.cli(["reindex"]).await;
    assert!(reindexed.stdout.contains("good"), "{}", reindexed.stdout);
    let said = format!("{}{}", reindexed.stdout, reindexed.stderr);
    for word in explains {
        assert!(said.contains(word), "`{word}` is missing:\n{said}");
    }
    let client = house.client().await;
    assert_eq!(client.tools_list().await.len(), 3);
    assert_eq!(
        client.execute("good/echo", json!({ "a": 1 })).await.good(),
        r#"{"a":1}"#
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn a_server_that_is_not_installed() {
    check(
        program("broken", "no-such-program-anywhere", ["x"]),
        &["broken", "no-such-program-anywhere"],
    )
    .await;
}

#[tokio::test]
async fn a_server_that_exits_at_once() {
    let broken = fake("broken").before([Step::stderr("licence expired\n"), Step::Exit(3)]);
    check(broken, &["broken", "licence expired", "3"]).await;
}

#[tokio::test]
async fn a_server_that_never_answers() {
    let broken = fake("broken").script(|it| {
        it.on_initialize = Some(Vec::new());
        it.on_discover = Some(Vec::new());
    });
    check(broken.setting("start_timeout_s = 1"), &["broken"]).await;
}

#[tokio::test]
async fn a_server_that_says_garbage_first_works() {
    let house = house([fake("noisy").tool("echo", Step::Echo).before([
        Step::line("\u{1b}[32mINFO\u{1b}[0m listening"),
        Step::line(r#"{"level":"info","msg":"ready"}"#),
        Step::Bytes(vec![0xff, 0xfe, b'\n']),
    ])]);
    house.indexed().await;
    let client = house.client().await;
    assert_eq!(
        client.execute("noisy/echo", json!({ "a": 1 })).await.good(),
        r#"{"a":1}"#
    );
    house.stops_clean().await;
}

/// Creates a house with a server that worked at the reindex and no longer starts.
async fn house_with_one_that_breaks() -> House {
    let house = house([good()]);
    house.add(fake("frail").tool("act", Step::Echo));
    house.cli(["reindex"]).await.ended(0);
    let broken = fake("frail").before([Step::stderr("database is gone\n"), Step::Exit(4)]);
    house.rewrite(broken);
    house
}

#[tokio::test]
async fn a_broken_server_is_still_searchable_and_a_call_says_why() {
    let house = house_with_one_that_breaks().await;
    let client = house.client().await;
    let found = client.search("do act").await.good();
    assert!(found.contains("frail/act("), "{found}");
    let answer = client.execute("frail/act", json!({})).await.bad();
    assert!(answer.starts_with("error server_unavailable: "), "{answer}");
    for word in ["frail", "4", "database is gone", "good"] {
        assert!(answer.contains(word), "`{word}` is missing: {answer}");
    }
    let found = client.search("do act").await.good();
    let line = found
        .lines()
        .find(|line| line.starts_with("frail/act("))
        .unwrap();
    assert!(line.contains("[down]"), "{line}");
    client.execute("good/echo", json!({})).await.good();
    house.stops_clean().await;
}

#[tokio::test]
async fn a_failed_reindex_keeps_the_last_snapshot_marked_down() {
    let house = house_with_one_that_breaks().await;
    let again = house.cli(["reindex"]).await;
    assert_ne!(again.code, Some(0));
    assert!(format!("{}{}", again.stdout, again.stderr).contains("database is gone"));
    let client = house.client().await;
    let found = client.search("do act").await.good();
    let line = found
        .lines()
        .find(|line| line.starts_with("frail/act("))
        .unwrap();
    assert!(line.contains("[down]"), "{line}");
    house.stops_clean().await;
}

#[tokio::test]
async fn a_crash_in_a_call_is_explained_and_the_next_call_starts_anew() {
    let crash = [Step::stderr("out of memory\n"), Step::Exit(7)];
    let house = house([good().tool("crash", crash)]);
    house.indexed().await;
    let client = house.client().await;
    let answer = client.execute("good/crash", json!({})).await.bad();
    assert!(answer.starts_with("error server_unavailable: "), "{answer}");
    assert!(answer.contains("out of memory"), "{answer}");
    assert_eq!(
        client.execute("good/echo", json!({ "b": 2 })).await.good(),
        r#"{"b":2}"#
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn a_call_without_an_answer_ends_at_its_limit_and_is_cancelled() {
    let server = good()
        .tool("stuck", Step::UntilCancelled)
        .setting("timeout_s = 1");
    let house = house([server]);
    house.indexed().await;
    let client = house.client().await;
    // On a busy machine the limit may pass before the server has read the call.
    let mut answer = String::new();
    while house.received_method("good", "tools/call").is_empty() {
        answer = client.execute("good/stuck", json!({})).await.bad();
        assert!(answer.starts_with("error timeout: "), "{answer}");
    }
    assert!(
        answer.contains("cancelled") && answer.contains("timeout_ms"),
        "{answer}"
    );
    house
        .until_received("good", |line| line.contains("notifications/cancelled"))
        .await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_slow_call_delays_nobody_else_and_can_be_cancelled() {
    let house = house([good().tool("stuck", Step::UntilCancelled)]);
    house.indexed().await;
    let client = house.client().await;
    let arguments = json!({ "tool_name": "good/stuck", "tool_input": {} });
    let params = json!({ "name": "execute_dynamic_tool", "arguments": arguments });
    let (id, _stuck) = client.begin("tools/call", params).await;
    house
        .until_received("good", |line| line.contains(r#""name":"stuck""#))
        .await;
    client.execute("good/echo", json!({})).await.good();
    client.cancel(id).await;
    house
        .until_received("good", |line| line.contains("notifications/cancelled"))
        .await;
    house.stops_clean().await;
}

#[tokio::test]
async fn odd_errors_and_stray_answers_do_not_hang_a_call() {
    let server = fake("odd")
        .tool(
            "string_code",
            Step::Error(json!({ "code": "E_FAIL", "message": "string code" })),
        )
        .tool(
            "big_code",
            Step::Error(json!({ "code": 99_999_999_999_u64, "message": "big code" })),
        )
        .tool(
            "stray",
            [
                Step::line(r#"{"jsonrpc":"2.0","id":"nobody","result":{}}"#),
                Step::text("right"),
            ],
        )
        .tool("twice", [Step::text("first"), Step::text("second")]);
    let house = house([server]);
    house.indexed().await;
    let client = house.client().await;
    for (tool, message) in [("string_code", "string code"), ("big_code", "big code")] {
        let answer = client
            .execute(&format!("odd/{tool}"), json!({}))
            .await
            .bad();
        assert!(answer.starts_with("error downstream_error: "), "{answer}");
        assert!(answer.contains(message), "{answer}");
    }
    assert_eq!(client.execute("odd/stray", json!({})).await.good(), "right");
    for _ in 0..2 {
        assert_eq!(client.execute("odd/twice", json!({})).await.good(), "first");
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn deaf_servers_and_their_grandchildren_end_with_us() {
    let deaf = good().before(Step::Spawn).script(|it| {
        (it.ignores_stdin_end, it.ignores_sigterm) = (true, true);
    });
    let house = house([deaf]);
    house.indexed().await;
    assert_eq!(house.all_gone().await, Ok(()));
    let client = house.client().await;
    client.execute("good/echo", json!({})).await.good();
    house.stops_clean().await;
}

#[tokio::test]
async fn servers_end_when_we_are_killed() {
    let house = house([good()]);
    house.indexed().await;
    let client = house.client().await;
    client.execute("good/echo", json!({})).await.good();
    client.kill().await;
    assert_eq!(house.all_gone().await, Ok(()));
}
