//! The steps of a fake server's script.

use std::os::unix::process::ExitStatusExt as _;

use journeys::{
    client::Client,
    fake::{Era, LEGACY_VERSION, Paging, Script, Step, payload},
    house::{Fake, House, fake},
    processes,
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{alone, programs, until};

async fn greeted(server: Fake) -> Client {
    let client = alone(&server.into_script());
    client.initialize(LEGACY_VERSION).await;
    client
}

async fn answer_to(steps: impl Into<Vec<Step>>) -> journeys::client::Reply {
    greeted(fake("any").tool("act", steps))
        .await
        .call("act", json!({}))
        .await
}

#[tokio::test]
async fn results_have_their_size_and_form() {
    assert_eq!(
        answer_to(Step::TextOfBytes(3_000_000)).await.text(),
        payload::text(3_000_000)
    );
    assert_eq!(
        answer_to(Step::Lines(847)).await.text(),
        payload::lines(847)
    );
    let structured = answer_to(Step::StructuredOfBytes(120_000)).await;
    assert_eq!(
        structured.result()["structuredContent"],
        payload::items(120_000)
    );
    assert_eq!(structured.text(), payload::items(120_000).to_string());
    assert_eq!(
        answer_to(Step::ToolError("no".to_owned())).await.bad(),
        "no"
    );
}

#[tokio::test]
async fn a_raw_result_keeps_its_bytes() {
    let raw =
        r#"{"content":[{"type":"hologram","z":1.50,"a":"\u00e9"}],"_meta":{"x/y":null}, "n":1e2}"#;
    let reply = answer_to(Step::RawResult(raw.to_owned())).await;
    assert!(reply.raw().contains(raw), "{}", reply.raw());
}

#[tokio::test]
async fn an_error_may_be_no_error_the_specification_knows() {
    for error in [
        json!({ "code": "E_STRING", "message": "odd" }),
        json!({ "code": 99_999_999_999_u64, "message": "big", "data": { "kept": 1 } }),
    ] {
        assert_eq!(answer_to(Step::Error(error.clone())).await.error(), &error);
    }
}

#[tokio::test]
async fn a_call_may_be_answered_twice_or_under_another_id() {
    let stray = r#"{"jsonrpc":"2.0","id":987654,"result":{}}"#;
    let steps = [Step::line(stray), Step::text("first"), Step::text("second")];
    let client = greeted(fake("any").tool("act", steps).tool("next", Step::Echo)).await;
    assert_eq!(client.call("act", json!({})).await.text(), "first");
    client.call("next", json!({})).await.good();
    assert_eq!(client.next_stray().await.to_string(), stray);
    let second = client.next_stray().await;
    assert_eq!(second["result"]["content"][0]["text"], "second");
}

#[tokio::test]
async fn garbage_comes_before_and_after_the_handshake() {
    let before = [
        Step::line("\u{1b}[32mINFO\u{1b}[0m ready"),
        Step::line(r#"{"level":"info"}"#),
        Step::Bytes(vec![0xff, 0xfe, b'\n']),
        Step::stderr("warming up\n"),
    ];
    let server = fake("any").before(before);
    let client =
        greeted(server.script(|it| it.at_end = vec![Step::Bytes(b"{\"half".to_vec())])).await;
    client.close().await;
    assert_eq!(client.stderr(), "warming up\n");
    let garbage = client.garbage();
    assert_eq!(garbage[0], "\u{1b}[32mINFO\u{1b}[0m ready");
    assert_eq!(garbage[2], "\u{fffd}\u{fffd}");
    assert_eq!(garbage[3], "{\"half");
}

#[tokio::test]
async fn a_start_may_fail_or_never_end() {
    let dead = fake("any").before([Step::stderr("no licence\n"), Step::Exit(3)]);
    let dead = alone(&dead.into_script());
    assert_eq!(dead.ended().await.code(), Some(3));
    assert_eq!(dead.stderr(), "no licence\n");

    let mute = fake("any")
        .era(Era::Legacy)
        .script(|it| it.on_initialize = Some(Vec::new()));
    let mute = alone(&mute.into_script());
    let (_, never) = mute.begin("initialize", json!({})).await;
    let alive = mute.request("ping", json!({})).await;
    assert_eq!(alive.result(), &json!({}));
    drop(never);
    mute.close().await;
}

#[tokio::test]
async fn a_crash_in_a_call_leaves_it_without_an_answer() {
    let client = greeted(fake("any").tool("act", [Step::stderr("oh"), Step::Exit(7)])).await;
    let (_, never) = client
        .begin("tools/call", json!({ "name": "act", "arguments": {} }))
        .await;
    assert_eq!(client.ended().await.code(), Some(7));
    drop(never);
}

#[tokio::test]
async fn lists_have_pages_odd_entries_and_failures() {
    let paged = fake("any")
        .tool("a", Step::Echo)
        .tool("b", Step::Echo)
        .listed(json!({ "name": 5 }));
    let paged = greeted(
        paged
            .listed(json!("no tool"))
            .script(|it| it.page_size = Some(3)),
    )
    .await;
    let tools = paged.tools_list().await;
    assert_eq!(tools[2..], [json!({ "name": 5 }), json!("no tool")]);
    assert_eq!(
        paged
            .request("tools/list", json!({ "cursor": "x" }))
            .await
            .error()["code"],
        -32602
    );

    let turning = fake("any")
        .tool("a", Step::Echo)
        .script(|it| it.paging = Paging::RepeatsCursor);
    let page = greeted(turning)
        .await
        .request("tools/list", json!({}))
        .await;
    assert_eq!(page.result()["nextCursor"], "0");

    let error = json!({ "code": -32603, "message": "vendor is down" });
    let failing = fake("any").script(|it| it.on_list = Some(vec![Step::Error(error.clone())]));
    assert_eq!(
        greeted(failing)
            .await
            .request("tools/list", json!({}))
            .await
            .error(),
        &error
    );
}

#[tokio::test]
async fn a_call_may_talk_before_it_answers() {
    let flood = Step::Flood {
        times: 500,
        method: "notifications/message".to_owned(),
        params: json!({ "level": "info", "data": 1 }),
    };
    let steps = [
        Step::progress(1, 2),
        Step::log("warning", "careful"),
        Step::ask_roots(),
        flood,
        Step::text("done"),
    ];
    let client = greeted(fake("any").tool("act", steps)).await;
    client.answers("roots/list", json!({ "roots": [] }));
    let params = json!({ "name": "act", "arguments": {}, "_meta": { "progressToken": "t-1" } });
    assert_eq!(client.request("tools/call", params).await.good(), "done");
    assert_eq!(
        client.next("notifications/progress").await["params"]["progressToken"],
        "t-1"
    );
    assert_eq!(
        client.next("notifications/message").await["params"]["data"],
        "careful"
    );
    client.next("roots/list").await;
    for _ in 0..500 {
        assert_eq!(
            client.next("notifications/message").await["params"]["data"],
            1
        );
    }
}

/// Starts a fake that writes its record into the house.
fn recorded(house: &House, script: &Script) -> Client {
    let mut command = Command::new(programs().fake_server);
    command
        .arg("--script")
        .arg(serde_json::to_string(script).unwrap());
    command.arg("--record").arg(house.path("solo.received"));
    Client::start(command)
}

#[tokio::test]
async fn a_cancelled_call_ends_and_the_record_has_every_byte() {
    let house = House::without_config(&programs());
    let script = fake("any")
        .tool("wait", [Step::UntilCancelled, Step::text("cancelled")])
        .into_script();
    let client = recorded(&house, &script);
    client.initialize(LEGACY_VERSION).await;
    let (id, reply) = client
        .begin("tools/call", json!({ "name": "wait", "arguments": {} }))
        .await;
    client.cancel(id).await;
    assert_eq!(
        client.within("the end of the call", reply).await.text(),
        "cancelled"
    );
    let odd = r#"{"jsonrpc":"2.0",  "method":"x/odd","params":{"n":1.50,"u":"\u00e9"}}"#;
    client.send_line(odd).await;
    client.close().await;

    let received = house.received("solo");
    assert_eq!(house.starts("solo"), 1);
    assert!(received.iter().any(|line| line == odd));
    assert_eq!(received.last().unwrap(), r#"{"fake":"stdin ended"}"#);
    let cancels: Vec<Value> = house.received_method("solo", "notifications/cancelled");
    assert_eq!(cancels[0]["params"]["requestId"], id);
}

#[tokio::test]
async fn a_deaf_server_stays_until_it_is_killed() {
    let house = House::without_config(&programs());
    let deaf = fake("any").script(|it| (it.ignores_stdin_end, it.ignores_sigterm) = (true, true));
    let client = recorded(&house, &deaf.into_script());
    client.initialize(LEGACY_VERSION).await;
    client.close_input().await;
    house
        .until_received("solo", |line| line == r#"{"fake":"stdin ended"}"#)
        .await;
    processes::terminate(client.pid());
    house
        .until_received("solo", |line| line == r#"{"fake":"sigterm"}"#)
        .await;
    client.kill().await;
    assert_eq!(client.ended().await.signal(), Some(9));
}

#[tokio::test]
async fn a_house_sees_the_grandchildren_that_were_left() {
    let house = House::without_config(&programs());
    let script = fake("any").before(Step::Spawn).into_script();
    let mut command = Command::new(programs().fake_server);
    command
        .arg("--script")
        .arg(serde_json::to_string(&script).unwrap());
    command.env(processes::HOUSE_VARIABLE, house.path(""));
    let client = Client::start(command);
    client.initialize(LEGACY_VERSION).await;
    client.close().await;
    // Between fork and exec the process still has its parent's command line.
    until("the grandchild", || house.processes().len() == 1).await;
    let left = house.processes();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].command_line.trim(), "sleep 3600");
    processes::kill(left[0].pid);
    assert_eq!(house.all_gone().await, Ok(()));
}

#[tokio::test]
async fn a_call_may_wait_for_the_test() {
    let house = House::without_config(&programs());
    let gate = house.path("gate");
    let server = fake("any").tool("held", [Step::UntilExists(gate), Step::text("through")]);
    let client = greeted(server.tool("free", Step::Echo)).await;
    let (_, held) = client
        .begin("tools/call", json!({ "name": "held", "arguments": {} }))
        .await;
    client.call("free", json!({})).await.good();
    house.write("gate", "");
    assert_eq!(client.within("the held call", held).await.text(), "through");
}
