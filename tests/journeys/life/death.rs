//! No process of a house is left, however the proxy ends, even by SIGKILL.

use std::process::ExitStatus;

use journeys::{
    client::{Client, ENDS_WITHIN},
    fake::Step,
    house::{Fake, House, fake},
    processes,
};
use serde_json::json;
use tokio::time::timeout;

use crate::{answered_in_the_end, calling, house, until};

const KILLS: usize = 20;
/// The number of houses that are tested concurrently.
const HOUSES: usize = 4;

const SERVERS: [&str; 6] = ["plain", "wrapped", "deaf", "family", "worst", "job"];

/// Returns all kinds of servers that are difficult to stop.
fn servers() -> [Fake; 6] {
    let server = |name| fake(name).tool("echo", Step::Echo);
    [
        server("plain"),
        server("wrapped").under_shell(),
        server("deaf").deaf(),
        server("family").before(Step::Spawn),
        server("worst").under_shell().deaf().before(Step::Spawn),
        server("job").with_job(),
    ]
}

async fn indexed() -> House {
    let house = house(servers());
    house.cli(["reindex"]).await.ended(0);
    house
}

/// Starts a session in which every server runs.
async fn all_running(house: &House) -> Client {
    let client = house.client().await;
    for name in SERVERS {
        let tool = format!("{name}/echo");
        client.execute(&tool, json!({})).await.good();
    }
    client
}

#[tokio::test]
async fn killed_twenty_times_it_leaves_nobody() {
    let houses = (0..HOUSES).map(|number| tokio::spawn(kill_often(number)));
    for house in houses.collect::<Vec<_>>() {
        house.await.unwrap();
    }
}

async fn kill_often(number: usize) {
    let house = indexed().await;
    for round in 0..KILLS / HOUSES {
        let helpers = kill_at(round * HOUSES + number, &house).await;
        if let Err(left) = house.all_gone().await {
            panic!("still running after kill {round} of house {number}: {left:#?}");
        }
        until("the end of our own helpers", || {
            !helpers.iter().any(|pid| processes::lives(*pid))
        })
        .await;
    }
    house.stops_clean().await;
}

/// Kills the proxy when this number of processes runs, from during the start of the servers to
/// after it. Returns its children.
async fn kill_at(moment: usize, house: &House) -> Vec<u32> {
    let client = house.client().await;
    let mut calls = Vec::new();
    for name in SERVERS {
        let call = calling(&format!("{name}/echo"), &json!({}));
        calls.push(client.begin("tools/call", call).await.1);
    }
    // With shells and sleeping children there are eleven processes, and the proxy itself.
    if moment < 12 {
        until("enough processes", || house.processes().len() >= moment).await;
    } else {
        for reply in calls.into_iter().take(moment - 12) {
            reply.await.good();
        }
    }
    let children = processes::children(client.pid());
    client.kill().await;
    children.into_iter().map(|(pid, _)| pid).collect()
}

async fn ends(client: &Client, house: &House) -> ExitStatus {
    let status = timeout(ENDS_WITHIN, client.ended()).await;
    let status = status.expect("the proxy exits in time");
    assert_eq!(house.all_gone().await, Ok(()));
    status
}

#[tokio::test]
async fn asked_to_end_it_is_gone_in_time_whatever_its_servers_do() {
    let house = indexed().await;
    for ask in [processes::terminate, processes::interrupt] {
        let client = all_running(&house).await;
        ask(client.pid());
        assert_eq!(ends(&client, &house).await.code(), Some(0));
    }
    let client = all_running(&house).await;
    client.close_input().await;
    assert_eq!(ends(&client, &house).await.code(), Some(0));
}

#[tokio::test]
async fn asked_to_end_while_servers_start_it_is_gone_in_time() {
    let house = indexed().await;
    for fake in servers() {
        house.rewrite(fake.script(|it| {
            it.on_initialize = Some(Vec::new());
            it.on_discover = Some(Vec::new());
        }));
    }
    let client = house.client().await;
    for name in SERVERS {
        let call = calling(&format!("{name}/echo"), &json!({}));
        drop(client.begin("tools/call", call).await);
    }
    for name in SERVERS {
        until("its start", || house.starts(name) == 2).await;
    }
    processes::terminate(client.pid());
    ends(&client, &house).await;
}

#[tokio::test]
async fn servers_that_die_are_reaped() {
    let house = indexed().await;
    let client = all_running(&house).await;
    let before: Vec<u32> = house.processes().iter().map(|it| it.pid).collect();
    for name in SERVERS {
        processes::kill(*house.pids(name).last().unwrap());
    }
    until("no zombie", || {
        let children = processes::children(client.pid());
        !children.iter().any(|(_, is_dead)| *is_dead)
    })
    .await;
    // The processes that they left behind have ended too.
    until("the proxy to be alone", || {
        let is_left = |pid: &u32| *pid != client.pid() && processes::lives(*pid);
        !before.iter().any(is_left)
    })
    .await;
    house.stops_clean().await;
}

/// The shell is killed; the server itself runs on and holds the pipes.
#[tokio::test]
async fn a_shell_that_is_killed_is_reaped() {
    let house = indexed().await;
    let client = all_running(&house).await;
    let of_wrapped = house.path("wrapped.script.json").display().to_string();
    let family = processes::marked(&of_wrapped);
    let [shell] = processes::children(client.pid())
        .into_iter()
        .map(|(pid, _)| pid)
        .filter(|pid| family.iter().any(|it| it.pid == *pid))
        .collect::<Vec<_>>()[..]
    else {
        panic!("{family:?}");
    };
    processes::kill(shell);
    until("the child to be reaped", || {
        let children = processes::children(client.pid());
        !children.iter().any(|(pid, _)| *pid == shell)
    })
    .await;
    answered_in_the_end(&client, "wrapped/echo", &json!({})).await;
    house.stops_clean().await;
}

/// The reaper is killed too, as by `killall`: the next start sweeps the processes left behind.
#[tokio::test]
async fn what_a_killed_proxy_and_reaper_left_is_swept_by_the_next() {
    let house = indexed().await;
    let client = all_running(&house).await;
    let servers: Vec<u32> = house.processes().iter().map(|it| it.pid).collect();
    let reapers = processes::children(client.pid())
        .into_iter()
        .map(|(pid, _)| pid)
        .filter(|pid| !servers.contains(pid))
        .collect::<Vec<_>>();
    assert!(!reapers.is_empty(), "the reaper runs");
    for reaper in reapers {
        processes::kill(reaper);
    }
    client.kill().await;
    let next = house.client().await;
    until("the servers of the killed proxy to end", || {
        !servers.iter().any(|pid| processes::lives(*pid))
    })
    .await;
    next.execute("plain/echo", json!({})).await.good();
    house.stops_clean().await;
}
