//! The command line and a client share the servers of one daemon.

use journeys::{fake::Step, house::fake};
use serde_json::json;

use crate::house_with_daemon;

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
    house.cli(["servers", "restart", "any"]).await.ended(0);
    client.execute("any/echo", json!({})).await.good();
    assert_eq!(house.starts("any"), starts + 1, "the server was restarted");
    house
        .cli(["servers", "restart", "any", "none"])
        .await
        .ended(1);
    client.execute("any/echo", json!({})).await.good();
    let starts = house.starts("any");
    let long = house.cli(["call", "any/long", "--raw"]).await;
    assert!(long.ended(0).len() >= 5_000_000);
    let found = house.cli(["search", "do", "echo"]).await;
    assert!(found.ended(0).contains("any/echo("), "{}", found.stdout);
    house.cli(["describe", "any/echo"]).await.ended(0);
    let listed = house.cli(["list"]).await;
    assert_eq!(listed.ended(0).lines().count(), 2);
    let wrong = house.cli(["call", "any/nothing"]).await;
    wrong.ended(1);
    assert!(wrong.stderr.starts_with("error "), "{}", wrong.stderr);
    assert_eq!(house.starts("any"), starts);
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
