//! Ten clients, thirty servers, one daemon, and processes that are killed.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use journeys::{
    client::{Client, DEADLINE},
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
    processes,
    web::Web,
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};

use crate::{house_with_daemon, until};

const CLIENTS: usize = 10;
const SERVERS: usize = 30;

async fn crowd() -> House {
    let servers = (0..SERVERS).map(|it| fake(&format!("server-{it}")).tool("echo", Step::Echo));
    let house = house_with_daemon(servers.collect::<Vec<_>>());
    house.indexed().await;
    house
}

/// Returns the number of running servers of the house.
fn running(house: &House) -> usize {
    let is_server = |server: &usize| {
        let pids = house.pids(&format!("server-{server}"));
        pids.iter().any(|pid| processes::lives(*pid))
    };
    (0..SERVERS).filter(is_server).count()
}

fn living_children(house: &House) -> usize {
    let pids = (0..SERVERS).flat_map(|server| house.pids(&format!("server-{server}")));
    pids.filter(|pid| processes::lives(*pid)).count()
}

/// Every second client uses HTTP, with the same daemon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_over_stdio_and_http_share_the_children() {
    let house = Arc::new(crowd().await);
    house.configure_more("[http]\nlisten = \"127.0.0.1:0\"\n");
    let first = house.client().await;
    let url = url_of(&house).await;
    let mut tasks = JoinSet::new();
    for number in 0..CLIENTS {
        let (house, url) = (Arc::clone(&house), url.clone());
        tasks.spawn(async move {
            if number % 2 == 0 {
                let client = house.client().await;
                for (tool, input) in calls(number) {
                    let answer = client.execute(&tool, input.clone()).await.good();
                    assert_eq!(answer, input.to_string());
                }
                return;
            }
            let client = Web::new(address(&url))
                .initialize("web", LEGACY_VERSION)
                .await;
            for (tool, input) in calls(number) {
                let answer = client.execute(&tool, input.clone()).await.good();
                assert_eq!(answer, input.to_string());
            }
        });
    }
    share_the_children(&house, tasks).await;
    first.close().await;
    Arc::into_inner(house).unwrap().stops_clean().await;
}

/// Checks that every client is served, and every server has one process.
async fn share_the_children(house: &House, mut tasks: JoinSet<()>) {
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!((running(house), living_children(house)), (SERVERS, SERVERS));
}

fn calls(number: usize) -> impl Iterator<Item = (String, Value)> {
    (0..SERVERS).map(move |server| {
        let input = json!({ "client": number, "server": server });
        (format!("server-{server}/echo"), input)
    })
}

async fn url_of(house: &House) -> String {
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    let url = async {
        loop {
            looks.tick().await;
            if let Some(url) = house.status().await["http"]["url"].as_str() {
                return url.to_owned();
            }
        }
    };
    timeout(DEADLINE, url).await.expect("HTTP is served")
}

fn address(url: &str) -> SocketAddr {
    let (_, rest) = url.split_once("://").unwrap();
    rest.split_once('/').unwrap().0.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_clients_have_thirty_children_in_all() {
    let house = Arc::new(crowd().await);
    let mut tasks = JoinSet::new();
    for number in 0..CLIENTS {
        let house = Arc::clone(&house);
        tasks.spawn(async move {
            let client = house.client().await;
            for (tool, input) in calls(number) {
                let answer = client.execute(&tool, input.clone()).await.good();
                assert_eq!(answer, input.to_string());
            }
        });
    }
    share_the_children(&house, tasks).await;
    Arc::into_inner(house).unwrap().stops_clean().await;
}

/// Each result is the caller's own, or an error with a reason; and every client that was not killed
/// is served in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_calls_and_nothing_else() {
    let house = Arc::new(crowd().await);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for number in 0..CLIENTS {
        let (house, is_over) = (Arc::clone(&house), Arc::clone(&is_over));
        tasks.spawn(async move {
            // Clients with odd numbers are killed and start again, those with even numbers stay.
            let mut client = house.client().await;
            let mut right = 0;
            for round in 0.. {
                if is_over.load(Ordering::SeqCst) && right > 0 {
                    return (number, right, client);
                }
                if number % 2 == 1 && round % 20 == 19 {
                    client.kill().await;
                    client = house.client().await;
                }
                let input = json!({ "client": number, "round": round });
                right += usize::from(is_right(&client, round % SERVERS, &input).await);
            }
            unreachable!("the range of rounds is unbounded")
        });
    }
    for _ in 0..5 {
        let daemon = house.daemon().await;
        let before = running(&house);
        processes::kill(daemon);
        until("other servers", || {
            !processes::lives(daemon) && running(&house) > before.min(3)
        })
        .await;
    }
    is_over.store(true, Ordering::SeqCst);
    let mut clients: Vec<Client> = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (number, right, client) = done.unwrap();
        assert!(right > 0, "client {number} had no answer");
        clients.push(client);
    }
    for client in &clients {
        let answer = client.execute("server-0/echo", json!({ "end": 1 })).await;
        assert_eq!(answer.good(), r#"{"end":1}"#);
    }
    until("no more children than servers", || {
        living_children(&house) <= SERVERS
    })
    .await;
    drop(clients);
    let Ok(house) = Arc::try_unwrap(house) else {
        panic!("every client has dropped the house");
    };
    house.stops_clean().await;
}

async fn is_right(client: &Client, server: usize, input: &Value) -> bool {
    let tool = format!("server-{server}/echo");
    let calling = client.execute(&tool, input.clone());
    let reply = timeout(journeys::client::DEADLINE, calling).await.unwrap();
    if reply.is_error() {
        let why = reply.bad();
        assert!(why.starts_with("error server_unavailable: "), "{why}");
        return false;
    }
    assert_eq!(reply.good(), input.to_string());
    true
}
