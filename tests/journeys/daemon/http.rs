//! `serve --http` together with other clients: one daemon and one set of servers for every transport.

use journeys::{
    client::{Client, DEADLINE},
    fake::LEGACY_VERSION,
    house::House,
    port::ReservedPort,
    processes,
    site::Site,
    web::Web,
};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use super::echoing;
use crate::{calling, until};

/// Returns the id of the process for which the daemon listens on this address; 0: none.
async fn holder(house: &House, url: &str) -> u64 {
    let status = house.status().await;
    let held = status["http_held"].as_array();
    let mut held = held.into_iter().flatten().filter(|it| it["url"] == url);
    held.next().map_or(0, |it| it["pid"].as_u64().unwrap())
}

async fn until_held_by(house: &House, url: &str, pid: u32) {
    let mut looks = interval(std::time::Duration::from_millis(20));
    let waiting = async {
        while holder(house, url).await != u64::from(pid) {
            looks.tick().await;
        }
    };
    let waited = timeout(DEADLINE, waiting).await;
    assert!(
        waited.is_ok(),
        "wrong holder of {url}: {}",
        house.status().await
    );
}

/// Calls the tool once a server listens; the call must succeed.
async fn echoes_in_the_end(client: &Web, input: &Value) {
    let mut looks = interval(std::time::Duration::from_millis(20));
    let listening = async {
        while client.try_ask("GET", "/healthz", "".into()).await.is_err() {
            looks.tick().await;
        }
    };
    timeout(DEADLINE, listening)
        .await
        .expect("HTTP is served again");
    let answer = client.execute("any/echo", input.clone()).await;
    assert_eq!(answer.good(), input.to_string());
}

#[tokio::test]
async fn clients_over_stdio_and_at_a_held_address_share_one_child() {
    let house = echoing().await;
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    let site = house.site().await;
    let web = site.web().initialize("web", LEGACY_VERSION).await;
    web.execute("any/echo", json!({})).await.good();
    assert_eq!(house.starts("any"), 1);

    let status = house.status().await;
    let over = |client: &Value| client["transport"].as_str().unwrap().to_owned();
    let clients = status["clients"].as_array().unwrap();
    let over: Vec<String> = clients.iter().map(over).collect();
    assert_eq!(over, ["stdio", "http"]);
    assert_eq!(holder(&house, site.url()).await, u64::from(site.pid()));
    let told = house.cli(["status"]).await;
    assert!(told.ended(0).contains(site.url()), "{}", told.stdout);

    // When the process exits, its address is closed, and a call in progress on that address is
    // answered.
    let caller = web.clone();
    let stuck = tokio::spawn(async move {
        let call = calling("any/stuck", &json!({}));
        caller.request("tools/call", call).await
    });
    house.until_calls("any", 3).await;
    let (url, pid) = (site.url().to_owned(), site.pid());
    site.stop().await;
    assert_eq!(stuck.await.unwrap().error()["code"], -32_603);
    assert!(web.try_ask("GET", "/healthz", "".into()).await.is_err());
    assert_eq!(holder(&house, &url).await, 0);
    assert!(!processes::lives(pid));
    let status = house.status().await;
    assert_eq!(status["clients"].as_array().unwrap().len(), 1, "{status}");
    client.execute("any/echo", json!({})).await.good();
    assert_eq!(house.starts("any"), 1);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_stays_while_an_address_is_held_and_no_longer() {
    let house = echoing().await;
    house.configure_more("[daemon]\nlinger_s = 1\n");
    let site = house.site().await;
    let daemon = house.daemon().await;
    // Calls for longer than the daemon stays without clients.
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_millis(1_500) {
        site.web().execute("any/echo", json!({})).await.good();
    }
    assert_eq!(house.daemon().await, daemon);
    site.kill().await;
    assert_eq!(house.all_gone().await, Ok(()));
}

#[tokio::test]
async fn an_address_is_held_once() {
    let house = echoing().await;
    let port = ReservedPort::new();
    let site = house.site_at(port.address()).await;
    let address = port.address().to_string();
    let second = house.cli(["serve", "--http", &address]).await;
    second.ended(1);
    let pid = format!("pid {}", site.pid());
    assert!(second.stderr.contains(&pid), "{}", second.stderr);
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let refused = house.cli(["serve", "--http", &taken]).await;
    refused.ended(1);
    assert!(
        refused.stderr.contains("cannot listen on"),
        "{}",
        refused.stderr
    );
    // Once a killed process has exited, the next can use the address.
    let (url, pid) = (site.url().to_owned(), site.pid());
    site.kill().await;
    until_held_by(&house, &url, 0).await;
    let next = house.site_at(port.address()).await;
    assert_ne!(next.pid(), pid);
    next.web().execute("any/echo", json!({})).await.good();
    next.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_held_address_comes_back_when_its_daemon_is_killed() {
    let house = echoing().await;
    let site = house.site().await;
    let web = site.web().initialize("web", LEGACY_VERSION).await;
    for round in 0..2 {
        let daemon = house.daemon().await;
        processes::kill(daemon);
        until("the end of the daemon", || !processes::lives(daemon)).await;
        // The address and the session are the same as before.
        echoes_in_the_end(&web, &json!({ "round": round })).await;
        assert_ne!(house.daemon().await, daemon);
    }
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_that_a_person_stops_ends_who_holds_an_address_and_a_restart_does_not() {
    let house = echoing().await;
    let site = house.site().await;
    let daemon = house.daemon().await;
    let told = house.cli(["daemon", "restart"]).await;
    let pid = format!("restarted: pid {}\n", house.daemon().await);
    assert_eq!(told.ended(0), pid);
    until_held_by(&house, site.url(), site.pid()).await;
    assert_ne!(house.daemon().await, daemon);
    echoes_in_the_end(&site.web(), &json!({})).await;
    house.cli(["daemon", "stop"]).await.ended(0);
    site.ends().await;
    assert_eq!(house.all_gone().await, Ok(()));
}

/// Another build of the same program: a copy with a different modification time.
#[tokio::test]
async fn a_held_address_goes_over_to_a_newer_build() {
    let house = echoing().await;
    let site = house.site().await;
    let web = site.web().initialize("web", LEGACY_VERSION).await;
    let old = house.daemon().await;
    let newer = house.keep(Client::start(house.newer_command(["serve"])));
    newer.initialize(LEGACY_VERSION).await;
    until_held_by(&house, site.url(), site.pid()).await;
    until("the end of the older daemon", || !processes::lives(old)).await;
    echoes_in_the_end(&web, &json!({})).await;
    newer.execute("any/echo", json!({})).await.good();
    assert_eq!(house.starts("any"), 1);
    site.stop().await;
    house.stops_clean().await;
}

/// Clients over HTTP cannot start a daemon: the next other client starts it.
#[tokio::test]
async fn an_address_of_the_configuration_comes_back_by_whoever_is_left() {
    let house = echoing().await;
    let port = ReservedPort::new();
    let address = port.address();
    house.configure_more(&format!("[http]\nlisten = \"{address}\""));
    let client = house.client().await;
    let web = Web::new(address);
    echoes_in_the_end(&web, &json!({})).await;

    // This client sends nothing in the meantime.
    let first = house.daemon().await;
    processes::kill(first);
    until("the end of the daemon", || !processes::lives(first)).await;
    echoes_in_the_end(&web, &json!({})).await;
    let second = house.daemon().await;
    assert_ne!(second, first);
    client.execute("any/echo", json!({})).await.good();
    assert_eq!(house.daemon().await, second);
    client.close().await;

    // `serve --http` for an address that is served already.
    let site = Site::start(house.command(["serve", "--http"])).await;
    assert_eq!(site.address(), address);
    assert_eq!(house.status().await["http_held"], json!([]));
    processes::kill(second);
    until("the end of the daemon", || !processes::lives(second)).await;
    echoes_in_the_end(&web, &json!({})).await;
    site.stop().await;

    // The address was served before this process and remains so.
    echoes_in_the_end(&web, &json!({})).await;
    house.stops_clean().await;
}
