//! Nodes, NATS servers and links that fail.

use std::{fs, time::Duration};

use journeys::{
    fake::Step,
    house::{Fake, House, fake},
    processes::{children, kill, lives, pause, resume},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    TAKE_OVER, connected, nats, node, owner, state_of, until_found, until_owned, until_state,
};
use crate::{answered_in_the_end, calling};

fn server() -> Fake {
    fake("sole")
        .tool("echo", Step::Echo)
        .tool("slow", vec![Step::WaitMs(20_000), Step::text("slow")])
}

/// Returns the names of two nodes with their houses, the owner of a server first.
async fn by_owner<'a>(
    server: &str,
    one: &'a House,
    two: &'a House,
) -> [(&'static str, &'a House); 2] {
    match until_owned(one, server).await.as_str() {
        "one" => [("one", one), ("two", two)],
        _ => [("two", two), ("one", one)],
    }
}

#[tokio::test]
async fn a_machine_that_is_lost_is_replaced_and_no_call_is_without_an_answer() {
    let nats = nats(1);
    let (one, two) = (
        node(&nats, "one", [server()]),
        node(&nats, "two", [server()]),
    );
    connected(&[&one, &two]).await;
    let [(lost, gone), (left, stays)] = by_owner("sole", &one, &two).await;
    let client = stays.client().await;
    until_found(&client, "sole/echo").await;
    let (_, running) = client
        .begin("tools/call", calling("sole/slow", &json!({})))
        .await;
    gone.until_received("sole", |line| line.contains("slow"))
        .await;

    // The machine is lost: its daemon and its servers end at one moment.
    kill(gone.daemon().await);
    let began = Instant::now();
    let why = running.await.bad();
    assert!(
        why.contains(&format!(
            "node `{lost}` does not answer. The call may have run"
        )),
        "{why}"
    );
    let why = client.execute("sole/echo", json!({})).await.bad();
    assert!(why.contains("another node takes it over in"), "{why}");
    assert!(why.contains("The call did not run"), "{why}");
    let told = answered_in_the_end(&client, "sole/echo", &json!({"n": 1})).await;
    assert_eq!(told, "{\"n\":1}");
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(14),
        "the owner may have run it until then: {took:?}"
    );
    let state = state_of(stays).await;
    assert_eq!(owner(&state, "sole").as_deref(), Some(left));
    assert_eq!(stays.starts("sole"), 1);

    // The node comes back, and does not take the server from its new owner.
    crate::until_started(gone).await;
    let state = until_state(gone, "the owner is known", |state| {
        owner(state, "sole").is_some()
    })
    .await;
    assert_eq!(owner(&state, "sole").as_deref(), Some(left));
    assert_eq!(
        gone.cli(["call", "sole/echo", "n=2"]).await.ended(0).trim(),
        "{\"n\":2}"
    );
    one.stops_clean().await;
    two.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_that_stands_still_has_no_server_beside_that_of_the_next_owner() {
    let lock = tempfile::tempdir().unwrap();
    let held = Step::HoldLock(lock.path().join("owner"));
    let server = || server().before(vec![held.clone()]);
    let nats = nats(1);
    let (one, two) = (
        node(&nats, "one", [server()]),
        node(&nats, "two", [server()]),
    );
    connected(&[&one, &two]).await;
    let [(_, stands), (left, goes_on)] = by_owner("sole", &one, &two).await;
    let client = goes_on.client().await;
    until_found(&client, "sole/echo").await;
    client.execute("sole/echo", json!({})).await.good();
    let process = *stands.pids("sole").last().unwrap();

    let daemon = stands.daemon().await;
    pause(daemon);
    // A call that the owner may have read is answered so.
    let deadline = Instant::now() + TAKE_OVER;
    while client.execute("sole/echo", json!({})).await.is_error() {
        assert!(Instant::now() < deadline, "another node takes over");
    }
    assert!(!lives(process), "the reaper of the owner has ended it");
    assert_eq!(
        owner(&state_of(goes_on).await, "sole").as_deref(),
        Some(left)
    );
    assert_eq!((stands.starts("sole"), goes_on.starts("sole")), (1, 1));

    resume(daemon);
    until_state(stands, "the new owner is known", |state| {
        owner(state, "sole").as_deref() == Some(left) && state["trouble"].is_null()
    })
    .await;
    stands.cli(["call", "sole/echo"]).await.ended(0);
    assert_eq!(stands.starts("sole"), 1);
    for house in [&one, &two] {
        let remarks = house.remarks("sole");
        assert!(!remarks.contains(&"two owners".to_owned()), "{remarks:?}");
    }
    one.stops_clean().await;
    two.stops_clean().await;
}

/// Its reaper is killed with it, or is slow, and the server ignores the end of its input.
#[tokio::test]
async fn a_restarted_daemon_owns_no_server_beside_the_process_of_the_killed_one() {
    let lock = tempfile::tempdir().unwrap();
    let held = Step::HoldLock(lock.path().join("owner"));
    let server = server().deaf().before(vec![held]);
    let nats = nats(1);
    let one = node(&nats, "one", [server]);
    connected(&[&one]).await;
    let client = one.client().await;
    until_found(&client, "sole/echo").await;
    client.execute("sole/echo", json!({})).await.good();
    for starts in 2..5 {
        let daemon = one.daemon().await;
        for (child, _) in children(daemon) {
            let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
            if name.trim() == "child-reaper" {
                kill(child);
            }
        }
        kill(daemon);
        crate::until_started(&one).await;
        answered_in_the_end(&client, "sole/echo", &json!({})).await;
        assert_eq!(one.starts("sole"), starts);
    }
    let remarks = one.remarks("sole");
    assert!(!remarks.contains(&"two owners".to_owned()), "{remarks:?}");
    one.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_that_is_restarted_takes_its_server_back_at_once() {
    let nats = nats(1);
    let (one, two) = (
        node(&nats, "one", [server()]),
        node(&nats, "two", [server()]),
    );
    connected(&[&one, &two]).await;
    let [(name, owns), (_, other)] = by_owner("sole", &one, &two).await;
    let client = other.client().await;
    until_found(&client, "sole/echo").await;
    kill(owns.daemon().await);
    // The next daemon leaves at once as long as the killed one has the lock.
    crate::until_started(owns).await;
    answered_in_the_end(&client, "sole/echo", &json!({})).await;
    assert_eq!(until_owned(other, "sole").await, name);
    assert_eq!(other.starts("sole"), 0);

    // A daemon that is stopped, and one that is drained, hand it over.
    owns.cli(["cluster", "drain"]).await.ended(0);
    until_state(other, "it was handed over", |state| {
        owner(state, "sole").is_some_and(|it| it != name)
    })
    .await;
    client.execute("sole/echo", json!({})).await.good();
    assert_eq!(other.starts("sole"), 1);
    owns.cli(["daemon", "restart"]).await.ended(0);
    other.cli(["daemon", "stop"]).await.ended(0);
    until_state(owns, "it is back", |state| {
        owner(state, "sole").as_deref() == Some(name)
    })
    .await;
    one.stops_clean().await;
    two.stops_clean().await;
}

#[tokio::test]
async fn without_nats_each_node_serves_what_is_its_own() {
    let nats = nats(1);
    let own = || fake("own").tool("echo", Step::Echo).setting("on = \"one\"");
    let servers = || [server(), own()];
    let (one, two) = (node(&nats, "one", servers()), node(&nats, "two", servers()));
    connected(&[&one, &two]).await;
    let [(_, owns), (_, other)] = by_owner("sole", &one, &two).await;
    let client = one.client().await;
    until_found(&client, "own/echo").await;
    let there = two.client().await;
    until_found(&there, "own/echo").await;
    until_found(&there, "sole/echo").await;
    owns.cli(["call", "sole/echo"]).await.ended(0);
    nats.kill(0);
    assert_eq!(
        client.execute("own/echo", json!({"n": 1})).await.good(),
        "{\"n\":1}"
    );
    let why = there.execute("own/echo", json!({})).await.bad();
    assert!(why.starts_with("error server_unavailable: own"), "{why}");
    let hits = json!({"name": "search_tools", "arguments": {"query": "echo"}});
    let hits = there.request("tools/call", hits).await.good();
    assert!(
        hits.contains("also on sole"),
        "a search needs no NATS: {hits}"
    );

    // The owner gives its server up before another node may take it, and its process ends.
    let deadline = Instant::now() + Duration::from_secs(40);
    while owns
        .pids("sole")
        .iter()
        .any(|pid| fs::exists(format!("/proc/{pid}")).unwrap())
    {
        assert!(Instant::now() < deadline, "the process of the server ends");
        sleep(Duration::from_millis(200)).await;
    }
    let why = other.cli(["call", "sole/echo"]).await;
    assert!(why.stderr.contains("NATS"), "{why:?}");
    let told = other.cli(["cluster", "status"]).await;
    assert!(
        told.stdout.contains("the connection to NATS is lost"),
        "{told:?}"
    );

    nats.begin(0);
    answered_in_the_end(&there, "own/echo", &json!({})).await;
    answered_in_the_end(&there, "sole/echo", &json!({})).await;
    until_owned(other, "sole").await;
    one.stops_clean().await;
    two.stops_clean().await;
}

#[tokio::test]
async fn a_node_that_starts_without_nats_says_so_and_joins_later() {
    let nats = nats(1);
    nats.kill(0);
    let own = fake("own").tool("echo", Step::Echo).setting("on = \"one\"");
    let one = node(&nats, "one", [own]);
    one.cli(["daemon", "start"]).await.ended(0);
    assert_eq!(
        one.cli(["call", "own/echo", "n=1"]).await.ended(0).trim(),
        "{\"n\":1}"
    );
    let told = one.cli(["cluster", "status"]).await;
    assert!(
        told.stdout.contains("there is no connection to NATS yet"),
        "{told:?}"
    );
    assert_eq!(told.code, Some(1));
    nats.begin(0);
    until_state(&one, "it is connected", |state| {
        state["link"] == "connected" && state["trouble"].is_null()
    })
    .await;
    one.stops_clean().await;
}

#[tokio::test]
async fn a_server_of_three_nats_servers_may_die_and_no_call_fails_for_long() {
    let nats = nats(3);
    let far = || fake("far").tool("echo", Step::Echo).setting("on = \"two\"");
    let (one, two) = (
        node(&nats, "one", [far(), server()]),
        node(&nats, "two", [far(), server()]),
    );
    connected(&[&one, &two]).await;
    let client = one.client().await;
    until_found(&client, "far/echo").await;
    until_found(&client, "sole/echo").await;
    let owned_by = until_owned(&one, "sole").await;
    for nth in 0..3 {
        nats.kill(nth);
        for n in 0..20 {
            answered_in_the_end(&client, "far/echo", &json!({ "n": n })).await;
            answered_in_the_end(&client, "sole/echo", &json!({ "n": n })).await;
        }
        nats.begin(nth);
        // The data of two servers is whole before the next one dies.
        sleep(Duration::from_secs(3)).await;
    }
    assert_eq!(
        until_owned(&one, "sole").await,
        owned_by,
        "no lease has ended"
    );
    assert_eq!(one.starts("sole") + two.starts("sole"), 1);
    one.stops_clean().await;
    two.stops_clean().await;
}
