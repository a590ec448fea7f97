//! A server starts on demand, once, and stops when it is idle.

use journeys::{
    client::Client,
    fake::{LEGACY_VERSION, Step},
    house::{Fake, House, fake, program},
    processes,
};
use serde_json::{Value, json};

use crate::{answered_in_the_end, calling, house, real_servers, until};

const FIRST_CALLS: usize = 10;
/// The number of kills, each followed by a call.
const KILLS: usize = 10;
/// The number of calls in one burst to a server that never starts.
const BURST: usize = 30;

fn echoes() -> Fake {
    fake("any").tool("echo", Step::Echo)
}

/// Creates a house whose only server has run for the reindex and stopped.
async fn indexed(server: Fake) -> House {
    let house = house([server]);
    house.cli(["reindex"]).await.ended(0);
    assert_eq!(house.starts("any"), 1);
    house
}

#[tokio::test]
async fn many_first_calls_start_one_process() {
    let house = indexed(echoes()).await;
    let client = house.client().await;
    assert_eq!(house.starts("any"), 1);
    let mut calls = Vec::new();
    for number in 0..FIRST_CALLS {
        let input = json!({ "n": number });
        let (_, reply) = client
            .begin("tools/call", calling("any/echo", &input))
            .await;
        calls.push((input, reply));
    }
    for (input, reply) in calls {
        assert_eq!(reply.await.good(), input.to_string());
    }
    assert_eq!(house.starts("any"), 2);
    house.stops_clean().await;
}

#[tokio::test]
async fn an_eager_server_needs_no_call() {
    let house = indexed(echoes().setting("start = \"eager\"")).await;
    let client = house.client().await;
    until("the start of an eager server", || house.starts("any") == 2).await;
    client.execute("any/echo", json!({})).await.good();
    assert_eq!(house.starts("any"), 2);
    house.stops_clean().await;
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_the_next_call_starts_it() {
    let house = indexed(echoes().under_shell().setting("idle_timeout_s = 1")).await;
    let client = house.client().await;
    for start in 2..=3 {
        client.execute("any/echo", json!({})).await.good();
        assert_eq!(house.starts("any"), start);
        until("the stop of an idle server", || {
            processes::marked(&house.path("any.script.json").display().to_string()).is_empty()
        })
        .await;
    }
    assert!(!house.remarks("any").contains(&"sigterm".to_owned()));
    house.stops_clean().await;
}

#[tokio::test]
async fn a_server_in_use_is_not_idle() {
    let house = house::<Fake>([]);
    let steps = [Step::UntilExists(house.path("gate")), Step::Echo];
    let server = fake("any").tool("wait", steps).tool("echo", Step::Echo);
    house.add(server.setting("idle_timeout_s = 1"));
    let quick = fake("quick").tool("echo", Step::Echo);
    house.add(quick.setting("idle_timeout_s = 1"));
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    let (_, waits) = client
        .begin("tools/call", calling("any/wait", &json!({})))
        .await;
    house.until_calls("any", 1).await;
    // A server that was used later stops before it.
    client.execute("quick/echo", json!({})).await.good();
    until("the idle stop of the other server", || {
        house
            .pids("quick")
            .last()
            .is_some_and(|pid| !processes::lives(*pid))
    })
    .await;
    house.write("gate", "");
    assert_eq!(waits.await.good(), "{}");
    house.stops_clean().await;
}

#[tokio::test]
async fn a_server_that_was_killed_is_started_by_the_next_call() {
    let house = indexed(echoes()).await;
    let client = house.client().await;
    for _ in 0..3 {
        answered_in_the_end(&client, "any/echo", &json!({})).await;
        let pid = *house.pids("any").last().unwrap();
        processes::kill(pid);
        until("its end", || !processes::lives(pid)).await;
        until("the child to be reaped", || {
            let children = processes::children(client.pid());
            !children.iter().any(|(_, is_dead)| *is_dead)
        })
        .await;
    }
    let answer = answered_in_the_end(&client, "any/echo", &json!({ "a": 1 })).await;
    assert_eq!(answer, r#"{"a":1}"#);
    assert_eq!(house.starts("any"), 5);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_call_to_a_server_that_was_just_killed_is_answered_by_the_next() {
    let house = indexed(echoes()).await;
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    for number in 0..KILLS {
        let pid = *house.pids("any").last().unwrap();
        processes::kill(pid);
        processes::died(pid).await;
        let input = json!({ "n": number });
        let answer = client.execute("any/echo", input.clone()).await.good();
        assert_eq!(answer, input.to_string());
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_call_that_a_killed_server_had_not_read_is_answered_by_the_next() {
    let house = indexed(echoes().under_shell()).await;
    house.add(fake("other").tool("echo", Step::Echo));
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    for tool in ["any/echo", "other/echo"] {
        client.execute(tool, json!({})).await.good();
    }
    let pid = *house.pids("any").last().unwrap();
    processes::pause(pid);
    processes::stopped(pid).await;
    let call = calling("any/echo", &json!({ "n": 1 }));
    let (_, reply) = client.begin("tools/call", call).await;
    // Usually the call is in the pipe by then; otherwise the process is already dead.
    client.execute("other/echo", json!({})).await.good();
    processes::kill(pid);
    assert_eq!(reply.await.good(), r#"{"n":1}"#);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_server_in_use_that_dies_is_started_without_a_call_and_only_once() {
    let house = indexed(echoes()).await;
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    let starts = house.starts("any");
    house.rewrite(echoes().before([Step::stderr("broken\n"), Step::Exit(9)]));
    processes::kill(*house.pids("any").last().unwrap());
    until("its start", || house.starts("any") > starts).await;
    let why = client.execute("any/echo", json!({})).await.bad();
    assert!(
        why.contains("broken") && why.contains("did not run"),
        "{why}"
    );
    // One start, which may try both eras, and another by the call.
    assert!(house.starts("any") <= starts + 4, "{}", house.starts("any"));
    house.stops_clean().await;
}

#[tokio::test]
async fn a_server_that_always_fails_is_not_hammered() {
    let house = indexed(echoes()).await;
    house.rewrite(echoes().before([Step::stderr("no licence\n"), Step::Exit(9)]));
    let client = house.client().await;
    let mut answers = Vec::new();
    for _ in 0..BURST {
        let call = calling("any/echo", &json!({}));
        let (_, reply) = client.begin("tools/call", call).await;
        answers.push(reply);
    }
    let mut last = String::new();
    for reply in answers {
        last = reply.await.bad();
        assert!(
            last.starts_with("error server_unavailable: any: "),
            "{last}"
        );
        for word in ["9", "no licence", "did not run", "Tried "] {
            assert!(last.contains(word), "`{word}` is missing: {last}");
        }
    }
    // The reindex was one start; each start may try both eras.
    assert!(house.starts("any") <= 1 + 3, "{}", house.starts("any"));

    // Sequential calls, as fast as an eager model makes them: they wait for the pause to end, or
    // fail during it.
    for _ in 0..BURST {
        last = client.execute("any/echo", json!({})).await.bad();
    }
    assert!(last.contains("times in a row"), "{last}");
    let starts = house.starts("any");
    assert!(starts <= 10, "{starts} starts for {} calls", 2 * BURST);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_server_that_recovers_is_there_again() {
    let house = indexed(echoes()).await;
    house.rewrite(echoes().before([Step::ExitOnce(house.path("failed-once"))]));
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.bad();
    assert_eq!(client.execute("any/echo", json!({})).await.good(), "{}");
    house.stops_clean().await;
}

/// Returns the environment of a server whose proxy has these secrets.
async fn environment(server: Fake) -> Value {
    let house = house([server.tool("environment", Step::Environment)]);
    let with_secrets = |verb: &[&str]| {
        let mut command = house.command(verb);
        command
            .env("BANK_TOKEN", "of the bank")
            .env("AWS_REGION", "moon-1")
            .env("AWS_SECRET", "of the cloud");
        command
    };
    let reindexed = with_secrets(&["reindex"]).output().await.unwrap();
    assert!(reindexed.status.success());
    let client = Client::start(with_secrets(&["serve", "--standalone"]));
    client.initialize(LEGACY_VERSION).await;
    let mut call = calling("any/environment", &json!({}));
    call["arguments"]["raw"] = json!(true);
    let answer = client.request("tools/call", call).await.good();
    client.close().await;
    house.stops_clean().await;
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn a_server_sees_the_environment_it_was_given_and_no_more() {
    let minimal = environment(fake("any")).await;
    assert!(minimal["PATH"].is_string() && minimal["HOME"].is_string());
    for secret in ["BANK_TOKEN", "AWS_REGION", "AWS_SECRET", "PROXY_CONFIG"] {
        assert_eq!(minimal[secret], Value::Null, "{secret}");
    }
    let configured = environment(fake("any").env("MY_TOKEN", "${BANK_TOKEN}")).await;
    assert_eq!(configured["MY_TOKEN"], "of the bank");
    assert_eq!(configured["BANK_TOKEN"], Value::Null);
    let wider = environment(fake("any").setting("inherit_env = [\"AWS_*\"]")).await;
    assert_eq!(wider["AWS_REGION"], "moon-1");
    assert_eq!(wider["AWS_SECRET"], "of the cloud");
    assert_eq!(wider["BANK_TOKEN"], Value::Null);
}

#[tokio::test]
async fn a_command_that_is_nowhere_is_told_with_what_to_do() {
    let house = house([program("lost", "no-such-program-anywhere", ["x"])]);
    let said = house.cli(["reindex"]).await;
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(said.contains("no-such-program-anywhere"), "{said}");
    assert!(said.contains("not found on its `PATH`"), "{said}");
    assert!(said.contains("hint: "), "{said}");
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn a_real_server_rests_and_comes_back_and_dies_with_us() {
    let real = real_servers();
    let house = house([
        real.everything_by_npx().setting("idle_timeout_s = 3"),
        real.time(),
    ]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    for _ in 0..2 {
        let zone = json!({ "timezone": "Asia/Tokyo" });
        client.execute("time/get_current_time", zone).await.good();
        let sum = json!({ "a": 2, "b": 40 });
        let answer = client.execute("npx/get-sum", sum).await.good();
        assert_eq!(answer, "The sum of 2 and 40 is 42.");
        let of_npx = |process: &processes::Process| process.command_line.contains("everything");
        assert!(house.processes().iter().any(of_npx));
        until("the idle stop of npx and its node", || {
            !house.processes().iter().any(of_npx)
        })
        .await;
    }
    let sum = json!({ "a": 1, "b": 1 });
    client.execute("npx/get-sum", sum).await.good();
    client.kill().await;
    assert_eq!(house.all_gone().await, Ok(()));
}
