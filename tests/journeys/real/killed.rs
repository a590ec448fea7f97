//! The daemon is killed during calls over HTTP of third-party clients.

use std::time::Duration;

use journeys::{
    client::DEADLINE,
    fake::Step,
    house::{Fake, fake},
    processes,
};
use serde_json::json;
use tokio::time::{interval, timeout};

use crate::{house_with_daemon, real_clients, until};

/// Plays the scene of a program of `tests/clients` with this SDK.
async fn check(program: &str, sdk: &str) {
    let clients = real_clients();
    let house = house_with_daemon::<Fake>([]);
    let slow = [Step::progress(1, 2), Step::UntilExists(house.path("never"))];
    let server = fake("any").tool("slow", slow);
    house.add(server.tool("quick", Step::Echo));
    house.indexed().await;
    let site = house.site().await;
    let (gate, killed) = (house.path("gate"), house.path("gate.killed"));
    let kill = async {
        until("progress of the call", || gate.exists()).await;
        let daemon = house.daemon().await;
        processes::kill(daemon);
        until("the end of the daemon", || !processes::lives(daemon)).await;
        let web = site.web();
        let mut looks = interval(Duration::from_millis(20));
        let back = async {
            while web.try_ask("GET", "/healthz", "".into()).await.is_err() {
                looks.tick().await;
            }
        };
        timeout(DEADLINE, back).await.expect("HTTP is served again");
        std::fs::write(&killed, "").unwrap();
    };
    let (seen, ()) = tokio::join!(clients.killed(program, sdk, &gate, site.url()), kill);
    let quick = [1, 2, 3].map(|number| json!([false, json!({ "number": number }).to_string()]));
    assert_eq!(seen["quick"], json!(quick), "{seen}");
    let long = seen["long"][1].as_str().unwrap();
    assert_eq!(seen["long"][0], true, "{seen}");
    assert!(
        long.contains("daemon ended") && long.contains("may have run"),
        "{seen}"
    );
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn python_clients_hear_that_their_call_may_have_run() {
    check("killed.py", "mcp").await;
    check("killed.py", "fastmcp").await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn typescript_clients_hear_that_their_call_may_have_run() {
    check("killed.mjs", "v1").await;
    check("killed.mjs", "v2").await;
}
