//! The id of a process that has ended is soon reused. The new process must not be killed.

use std::fs;

use journeys::{
    client::Client,
    fake::Step,
    house::{Fake, House, fake},
    processes::{self, Bystander},
};
use serde_json::json;

use crate::{house, until};

/// Creates a server that moves to a session of its own, as daemons do, and writes its former
/// process id to a file.
fn leaver(leader: &str) -> Fake {
    // `$$` in the configuration is a literal `$`.
    let script = format!("echo $$$$ >{leader}; exec setsid --fork \"$0\" \"$@\"");
    let server = fake("leaver").tool("echo", Step::Echo);
    server.under(["sh", "-c", &script])
}

/// Starts a session with the server, and a process that reuses the id of its leader.
async fn begin(setting: &str) -> (House, Client, Bystander) {
    let house = house::<Fake>([]);
    let note = house.path("leader");
    house.add(leaver(&note.display().to_string()).setting(setting));
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    client.execute("leaver/echo", json!({})).await.good();
    let leader: u32 = fs::read_to_string(note).unwrap().trim().parse().unwrap();
    until("the end of the leader", || {
        let children = processes::children(client.pid());
        !children.iter().any(|(pid, _)| *pid == leader)
    })
    .await;
    (house, client, Bystander::with_number(leader))
}

#[tokio::test]
async fn an_orderly_end_ends_no_bystander() {
    let (house, _, mut bystander) = begin("").await;
    house.stops_clean().await;
    assert!(bystander.lives());
}

#[tokio::test]
async fn an_idle_stop_ends_no_bystander() {
    let (house, _, mut bystander) = begin("idle_timeout_s = 1").await;
    let server = *house.pids("leaver").last().unwrap();
    until("the stop of an idle server", || !processes::lives(server)).await;
    house.stops_clean().await;
    assert!(bystander.lives());
}

#[tokio::test]
async fn the_end_after_a_kill_ends_no_bystander() {
    let (house, client, mut bystander) = begin("").await;
    let helpers = processes::children(client.pid());
    client.kill().await;
    assert_eq!(house.all_gone().await, Ok(()));
    until("the end of our own helpers", || {
        !helpers.iter().any(|(pid, _)| processes::lives(*pid))
    })
    .await;
    assert!(bystander.lives());
}
