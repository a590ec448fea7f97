//! The command line and a client share the servers of one daemon.

use std::fs;

use journeys::{
    fake::Step,
    house::{Fake, House, fake},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{calling, house_with_daemon, until, until_executed};

#[tokio::test]
async fn a_call_from_the_shell_is_made_by_the_daemons_server() {
    let server = fake("any")
        .tool("echo", Step::Echo)
        .tool("long", Step::TextOfBytes(5_000_000));
    let house = house_with_daemon([server]);
    house.indexed().await;
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    let starts = house.starts("any");
    let called = house.cli(["call", "any/echo", "a=1"]).await;
    assert_eq!(called.ended(0).trim_end(), r#"{"a":1}"#);
    assert_eq!(house.starts("any"), starts, "both use one process");
    let restarted = house.cli(["servers", "restart", "any"]).await;
    restarted.ended(0);
    assert!(
        restarted.stderr.starts_with("any: ready in "),
        "{restarted:?}"
    );
    assert_eq!(house.starts("any"), starts + 1, "the server was restarted");
    client.execute("any/echo", json!({})).await.good();
    assert_eq!(house.starts("any"), starts + 1, "the call started nothing");
    let both = house.cli(["servers", "restart", "any", "none", "--wait", "--json"]);
    let both: Value = serde_json::from_str(both.await.ended(1)).unwrap();
    assert!(
        both[0]["ready_ms"].is_u64() && both[1]["error"] == "no server `none`",
        "{both}"
    );
    client.execute("any/echo", json!({})).await.good();
    let starts = house.starts("any");
    let long = house.cli(["call", "any/long", "--raw"]).await;
    assert!(long.ended(0).len() >= 5_000_000);
    let found = house.cli(["search", "do", "echo"]).await;
    assert!(found.ended(0).contains("any/echo("), "{}", found.stdout);
    house.cli(["describe", "any/echo"]).await.ended(0);
    let listed = house.cli(["search", "*"]).await;
    assert_eq!(listed.ended(0).lines().count(), 2);
    let wrong = house.cli(["call", "any/nothing"]).await;
    wrong.ended(1);
    assert!(wrong.stderr.starts_with("error "), "{}", wrong.stderr);
    assert_eq!(house.starts("any"), starts);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_restart_ends_a_call_that_hangs_and_says_that_it_may_have_run() {
    let server = fake("any")
        .tool("echo", Step::Echo)
        .tool("hang", Step::UntilCancelled);
    let house = house_with_daemon([server]);
    house.indexed().await;
    let client = house.client().await;
    let (_, hung) = client
        .begin("tools/call", calling("any/hang", &json!({})))
        .await;
    until("the call runs", || {
        !house.received_method("any", "tools/call").is_empty()
    })
    .await;
    let restarted = house.cli(["servers", "restart", "any"]).await;
    restarted.ended(0);
    let error = hung.await.bad();
    assert!(
        error.starts_with("error server_restarted: ") && error.contains("may have run"),
        "{error}"
    );
    client.execute("any/echo", json!({})).await.good();
    house.stops_clean().await;
}

/// A call that begins after the command has returned is refused or answered as the change says. The fake
/// server is asked for each change anew, so that a change that comes late is seen.
#[tokio::test]
async fn a_change_of_the_configuration_is_in_effect_when_its_command_returns() {
    let house = house_with_daemon::<Fake>([]);
    let slow = [Step::UntilExists(house.path("gate")), Step::Echo];
    let any = fake("any").tool("echo", Step::Echo).tool("slow", slow);
    house.add(any.setting("max_concurrent_calls = 1"));
    house.add(fake("other").tool("echo", Step::Echo));
    house.indexed().await;
    let client = house.client().await;
    for _ in 0..3 {
        client.execute("any/echo", json!({})).await.good();
        house.cli(["servers", "disable", "any"]).await.ended(0);
        client.execute("any/echo", json!({})).await.bad();
        house.cli(["servers", "enable", "any"]).await.ended(0);
        client.execute("any/echo", json!({})).await.good();
    }
    let before = fs::read_to_string(house.config()).unwrap();
    check_waiting_calls(&house, async || {
        house.configure_more("[[rules]]\ndecision = \"deny\"\ntool = \"echo\"\n");
        until_executed(&client, "other/echo", false).await;
    })
    .await;
    house.configure(&before);
    until_executed(&client, "any/echo", true).await;
    check_waiting_calls(&house, async || {
        house.cli(["servers", "disable", "any"]).await.ended(0);
    })
    .await;
    house.cli(["servers", "enable", "any"]).await.ended(0);
    check_waiting_calls(&house, async || {
        house.cli(["remove", "any"]).await.ended(0);
    })
    .await;
    client.execute("any/echo", json!({})).await.bad();
    house.stops_clean().await;
}

/// Calls in a loop over three sessions while a slow call takes the only place of the server, and makes a
/// change that denies the calls. Those that wait for the place do not start when it is free.
async fn check_waiting_calls(house: &House, change: impl AsyncFnOnce()) {
    let count = || house.received_method("any", "tools/call").len();
    let mut loops = JoinSet::new();
    for _ in 0..3 {
        let client = house.client().await;
        loops.spawn(async move {
            loop {
                let reply = client.execute("any/echo", json!({})).await;
                if reply.is_error() {
                    return (
                        reply.bad(),
                        client.execute("any/echo", json!({})).await.bad(),
                    );
                }
            }
        });
    }
    house.until_calls("any", count() + 10).await;
    let client = house.client().await;
    let slow = calling("any/slow", &json!({}));
    let slow_calls = || {
        house
            .received("any")
            .concat()
            .matches(r#""name":"slow""#)
            .count()
    };
    let expected = slow_calls() + 1;
    let (_, slow) = client.begin("tools/call", slow).await;
    until("the slow call runs", || slow_calls() == expected).await;
    change().await;
    let started = count();
    let gate = house.write("gate", "");
    slow.await.good();
    for (ended, later) in loops.join_all().await {
        assert_eq!(ended, later, "it has the error of a later call");
    }
    assert_eq!(count(), started, "a call started after the change");
    fs::remove_file(gate).unwrap();
}

#[tokio::test]
async fn the_json_of_a_call_measures_it_and_the_audit_log_names_its_whole() {
    let server = fake("any")
        .tool("echo", Step::Echo)
        .tool("lines", Step::Lines(3_000))
        .tool("no", Step::ToolError("quota used up".to_owned()));
    let house = house_with_daemon([server]);
    house.indexed().await;
    let meta = async |arguments: &[&str]| {
        // A process without the daemon has written its records when it ends.
        let all = ["call", "--json", "--standalone"].iter().chain(arguments);
        let called = house.cli(all).await;
        serde_json::from_str::<Value>(&called.stdout).unwrap()["meta"].take()
    };
    let echo = meta(&["echo", "a=1"]).await;
    assert_eq!(
        [&echo["tool"], &echo["error"], &echo["content_type"]],
        [&json!("any/echo"), &json!(null), &json!("application/json")]
    );
    let lines = meta(&["any/lines"]).await;
    let handle = lines["handle"].as_str().unwrap();
    assert_eq!(
        (&lines["total_items"], &lines["part"]),
        (&json!(3_000), &json!(1))
    );
    assert_eq!(lines["content_type"], "text/plain");
    assert!(
        lines["truncated"] == true && lines["items"].as_u64() < Some(1_000),
        "{lines}"
    );
    assert!(
        lines["total_tokens"].as_u64() > lines["tokens"].as_u64(),
        "{lines}"
    );
    let chunk = format!("chunk={}", lines["parts"]);
    let read = meta(&["proxy/read_result", &format!("handle={handle}"), &chunk]).await;
    for key in ["total_tokens", "total_items", "parts", "handle"] {
        assert_eq!(read[key], lines[key], "{key}");
    }
    assert_eq!(
        (&read["part"], &read["tool"]),
        (&lines["parts"], &json!("proxy/read_result"))
    );
    assert_eq!(meta(&["any/no"]).await["error"], "tool_error");
    assert_eq!(meta(&["any/nothing"]).await["error"], "unknown_tool");

    let audit = async |option: &[&str]| {
        let all = ["audit", "--json"].iter().chain(option);
        let text = house.cli(all).await.ended(0).to_owned();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let told = audit(&["--tool", "lines"]).await.remove(0);
    assert_eq!(
        (&told["cut"], &told["handle"]),
        (&json!(true), &json!(handle))
    );
    assert_eq!(
        (&told["transport"], &told["bytes_in"]),
        (&json!("shell"), &json!(2))
    );
    let failed = audit(&["--failures"]).await;
    let failed: Vec<&Value> = failed.iter().map(|it| &it["outcome"]).collect();
    assert_eq!(failed, ["tool_error", "unknown_tool"]);
    assert_eq!(audit(&["--slow", "0"]).await.len(), 5);
    house.cli(["audit", "--slow", "3600000"]).await.ended(1);
    house.stops_clean().await;
}

#[tokio::test]
async fn without_a_daemon_the_shell_starts_one_and_standalone_does_not() {
    let house = house_with_daemon([fake("any").tool("echo", Step::Echo)]);
    house.indexed().await;
    house
        .cli(["call", "--standalone", "any/echo"])
        .await
        .ended(0);
    house.cli(["status"]).await.ended(1);
    house.cli(["call", "any/echo"]).await.ended(0);
    let (daemon, starts) = (house.daemon().await, house.starts("any"));
    house.cli(["call", "any/echo"]).await.ended(0);
    assert_eq!(house.daemon().await, daemon);
    assert_eq!(house.starts("any"), starts);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_call_whose_person_gave_up_is_cancelled() {
    let house = house_with_daemon([fake("any").tool("slow", Step::UntilCancelled)]);
    house.indexed().await;
    let mut shell = house.command(["call", "any/slow"]).spawn().unwrap();
    house.until_calls("any", 1).await;
    shell.kill().await.unwrap();
    house
        .until_received("any", |line| line.contains("notifications/cancelled"))
        .await;
    house.stops_clean().await;
}
