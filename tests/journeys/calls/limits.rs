//! Limits of the duration and the number of calls.

use std::path::Path;

use journeys::{
    client::Reply,
    fake::Step,
    house::{Fake, fake},
    processes,
};
use serde_json::{Value, json};

use crate::{calling, house, opened, until};

/// Creates a server with a tool that runs until this file exists and records its begin and end.
fn works(gate: &Path) -> Fake {
    let steps = [
        Step::remark("began"),
        Step::UntilExists(gate.to_owned()),
        Step::remark("ended"),
        Step::Echo,
    ];
    fake("any").tool("work", steps)
}

/// Makes two concurrent calls and returns the remarks of the server. The gate opens after
/// `side_by_side` of them began.
async fn two_at_once(setting: &str, side_by_side: usize) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let server = works(&gate).setting(setting);
    let (house, client) = opened([server, fake("other").tool("echo", Step::Echo)]).await;
    let inputs = [json!({ "n": 1 }), json!({ "n": 2 })];
    let mut replies = Vec::new();
    for input in &inputs {
        let call = calling("any/work", input);
        replies.push(client.begin("tools/call", call).await.1);
    }
    until("the calls to start", || {
        let remarks = house.remarks("any");
        remarks.iter().filter(|it| *it == "began").count() == side_by_side
    })
    .await;
    // Both calls have now reached the server, if both are allowed.
    client.execute("other/echo", json!({})).await.good();
    std::fs::write(&gate, "").unwrap();
    for (reply, input) in replies.into_iter().zip(&inputs) {
        assert_eq!(reply.await.good(), input.to_string());
    }
    let mut remarks = house.remarks("any");
    remarks.retain(|remark| ["began", "ended"].contains(&remark.as_str()));
    house.stops_clean().await;
    remarks
}

#[journey]
async fn two_calls_run_side_by_side() {
    let remarks = two_at_once("max_concurrent_calls = 2", 2).await;
    assert_eq!(remarks, ["began", "began", "ended", "ended"]);
}

#[journey]
async fn a_server_that_takes_one_call_at_a_time_gets_one() {
    let remarks = two_at_once("max_concurrent_calls = 1", 1).await;
    assert_eq!(remarks, ["began", "ended", "began", "ended"]);
}

#[journey]
async fn a_call_in_the_queue_keeps_its_limit_and_never_reaches_the_server() {
    let server = fake("any").tool("stuck", Step::UntilCancelled);
    let (house, client) = opened([server.setting("max_concurrent_calls = 1")]).await;
    let (first, _never) = client
        .begin("tools/call", calling("any/stuck", &json!({})))
        .await;
    house.until_calls("any", 1).await;
    let mut second = calling("any/stuck", &json!({}));
    second["arguments"]["timeout_ms"] = json!(300);
    let answer = client.request("tools/call", second).await.bad();
    assert!(answer.starts_with("error timeout: "), "{answer}");
    assert_eq!(house.received_method("any", "tools/call").len(), 1);
    client.cancel(first).await;
    house
        .until_received("any", |line| line.contains("notifications/cancelled"))
        .await;
    house.stops_clean().await;
}

/// Calls a stuck tool; the call must fail at its limit, and the server must be notified. Returns
/// the error.
async fn runs_out(server: Fake, options: Value) -> String {
    let tool = |server: Fake| server.tool("stuck", Step::UntilCancelled);
    let (house, client) = opened([tool(server)]).await;
    let mut call = calling("any/stuck", &json!({}));
    for (name, value) in options.as_object().unwrap() {
        call["arguments"][name] = value.clone();
    }
    // On a busy machine the timeout may expire before the server has read the call.
    let mut answer = String::new();
    while house.received_method("any", "tools/call").is_empty() {
        answer = client.request("tools/call", call.clone()).await.bad();
        assert!(answer.starts_with("error timeout: "), "{answer}");
    }
    house
        .until_received("any", |line| line.contains("notifications/cancelled"))
        .await;
    let call = &house.received_method("any", "tools/call")[0];
    let cancelled = &house.received_method("any", "notifications/cancelled")[0];
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    house.stops_clean().await;
    answer
}

#[journey]
async fn a_limit_of_the_tool_of_the_server_and_of_the_call() {
    let server = || fake("any").setting("timeout_s = 1");
    let answer = runs_out(server(), json!({})).await;
    assert!(answer.contains("1000 ms"), "{answer}");
    let patient = || fake("any").setting("timeout_s = 3600");
    let of_tool = patient().setting("[servers.any.overlay.stuck]\ntimeout_s = 1");
    let answer = runs_out(of_tool, json!({})).await;
    assert!(answer.contains("1000 ms"), "{answer}");
    let answer = runs_out(patient(), json!({ "timeout_ms": 200 })).await;
    assert!(answer.contains("200 ms"), "{answer}");
}

/// Reports progress ten times a second.
fn progresses(times: u64) -> Vec<Step> {
    (1..=times)
        .flat_map(|step| [Step::WaitMs(100), Step::progress(step, times)])
        .chain([Step::text("done")])
        .collect()
}

/// The unit tests of `fleet` (`patience.rs`) check with paused time that progress extends the limit
/// of a call.
#[journey]
async fn progress_extends_no_call_beyond_the_hard_limit() {
    let server = || fake("any").tool("endless", progresses(6_000));
    for (setting, limit) in [
        ("timeout_s = 2\ntimeout_max_s = 3", "3000 ms"),
        ("timeout_s = 1", "1000 ms"),
    ] {
        let (house, client) = opened([server().setting(setting)]).await;
        let mut answer = String::new();
        // On a busy machine the server may report nothing before the first timeout.
        while !answer.contains(limit) {
            answer = client.execute("any/endless", json!({})).await.bad();
            assert!(answer.starts_with("error timeout: "), "{answer}");
        }
        house.stops_clean().await;
    }
}

#[journey]
async fn a_late_answer_makes_no_noise() {
    let late = [Step::UntilCancelled, Step::text("too late")];
    let server = fake("any").tool("late", late).tool("echo", Step::Echo);
    let (house, client) = opened([server]).await;
    client.execute("any/echo", json!({})).await.good();
    let mut call = calling("any/late", &json!({}));
    call["arguments"]["timeout_ms"] = json!(100);
    // On a busy machine the timeout may expire before the server has read the call.
    while house.received_method("any", "tools/call").len() < 2 {
        client.request("tools/call", call.clone()).await.bad();
    }
    let received = house.received_method("any", "tools/call").len();
    let (id, _never) = client
        .begin("tools/call", calling("any/late", &json!({})))
        .await;
    house.until_calls("any", received + 1).await;
    client.cancel(id).await;
    for number in 0..20 {
        let input = json!({ "n": number });
        let answer = client.execute("any/echo", input.clone()).await.good();
        assert_eq!(answer, input.to_string());
    }
    assert_eq!(client.stderr(), "");
    // This also fails if the client got a response to the cancelled call.
    house.stops_clean().await;
}

#[journey]
async fn calls_in_flight_fail_when_their_server_dies() {
    let server = fake("any")
        .tool("stuck", Step::UntilCancelled)
        .setting("timeout_s = 3600");
    let (house, client) = opened([server]).await;
    let mut replies = Vec::new();
    for _ in 0..5 {
        let call = calling("any/stuck", &json!({}));
        replies.push(client.begin("tools/call", call).await.1);
    }
    house.until_calls("any", 5).await;
    processes::kill(*house.pids("any").last().unwrap());
    for reply in replies {
        let answer = reply.await.bad();
        assert!(answer.starts_with("error server_unavailable: "), "{answer}");
        assert!(answer.contains("may have run"), "{answer}");
    }
    house.stops_clean().await;
}

/// Calls a tool whose server exits during the call, once or always; returns the reply and the
/// number of calls.
async fn dies_under(annotations: Value, setting: &str, dies_always: bool) -> (Reply, usize) {
    let house = house::<Fake>([]);
    let tool = json!({
        "name": "frail",
        "description": "Die under the call.",
        "inputSchema": { "type": "object" },
        "annotations": annotations
    });
    let dies = if dies_always {
        Step::Exit(1)
    } else {
        Step::ExitOnce(house.path("died"))
    };
    house.add(
        fake("any")
            .tool_as(tool, [dies, Step::text("alive")])
            .setting(setting),
    );
    house.indexed().await;
    let client = house.client().await;
    let reply = client.execute("any/frail", json!({})).await;
    let calls = house.received_method("any", "tools/call").len();
    house.stops_clean().await;
    (reply, calls)
}

#[journey]
async fn only_a_safe_call_is_made_once_more_and_only_where_it_may() {
    const MAY: &str = "retry_safe_calls = true";
    let safe = || json!({ "readOnlyHint": true });
    for annotations in [safe(), json!({ "idempotentHint": true })] {
        let (reply, calls) = dies_under(annotations, MAY, false).await;
        assert_eq!((reply.good().as_str(), calls), ("alive", 2));
    }
    for (annotations, setting, dies_always, expected) in [
        (safe(), MAY, true, 2),
        (safe(), "", false, 1),
        (json!({ "readOnlyHint": false }), MAY, false, 1),
        (json!({}), MAY, false, 1),
    ] {
        let what = format!("{annotations} {setting}");
        let (reply, calls) = dies_under(annotations, setting, dies_always).await;
        let answer = reply.bad();
        assert!(answer.contains("may have run"), "{what}: {answer}");
        assert_eq!(calls, expected, "{what}");
    }
}
