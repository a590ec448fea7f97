//! A state folder has one daemon, which everything that uses the folder finds.

use std::{fs, net::TcpListener};

use journeys::{
    client::{Client, DEADLINE},
    fake::LEGACY_VERSION,
    house::House,
    port::ReservedPort,
    processes,
};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use super::{called, echoing};
use crate::{answered_in_the_end, futures_of, until};

/// Returns a command in an environment that differs in these folders; the state folder is the same.
fn command_with(house: &House, args: &[&str], folders: &[(&str, &str)]) -> Command {
    let mut command = house.command(args);
    for (variable, folder) in folders {
        let folder = house.path(folder);
        fs::create_dir_all(&folder).unwrap();
        command.env(variable, folder);
    }
    command
}

/// Lists the process ids of the daemons that `status` finds in such an environment.
async fn daemons_with(house: &House, folders: &[(&str, &str)]) -> Vec<Value> {
    let command = command_with(house, &["status", "--json"], folders);
    let status = House::run(command).await.json();
    let daemons = status["daemons"].as_array().unwrap().iter();
    daemons.map(|daemon| daemon["pid"].clone()).collect()
}

const ENVIRONMENTS: [&[(&str, &str)]; 4] = [
    &[],
    &[("HOME", "home-2")],
    &[("XDG_RUNTIME_DIR", "run-2")],
    &[("HOME", "home-3"), ("XDG_RUNTIME_DIR", "run-3")],
];

#[tokio::test]
async fn sessions_and_commands_find_the_daemon_whatever_their_home_and_runtime_folder() {
    let house = echoing().await;
    // All start at one time, and one of them starts the daemon.
    let serve = |folders| house.keep(Client::start(command_with(&house, &["serve"], folders)));
    let clients = ENVIRONMENTS.map(serve);
    let racing = clients.iter().map(|client| async move {
        client.initialize(LEGACY_VERSION).await;
        client.execute("any/echo", json!({})).await.good();
    });
    futures_of(racing).await;
    let daemon = house.daemon().await;
    for folders in ENVIRONMENTS {
        assert_eq!(
            daemons_with(&house, folders).await,
            [json!(daemon)],
            "{folders:?}"
        );
    }
    let status = house.status().await;
    assert_eq!(
        status["clients"].as_array().unwrap().len(),
        ENVIRONMENTS.len()
    );
    assert_eq!(house.starts("any"), 1);
    // The record and the socket of a killed daemon stay; the next daemon takes the folder.
    processes::kill(daemon);
    until("the end of the daemon", || !processes::lives(daemon)).await;
    for client in clients.iter().rev() {
        answered_in_the_end(client, "any/echo", &json!({})).await;
    }
    let next = daemons_with(&house, ENVIRONMENTS[0]).await;
    assert_eq!(next.len(), 1);
    assert_ne!(next, [json!(daemon)]);
    for folders in ENVIRONMENTS {
        assert_eq!(daemons_with(&house, folders).await, next, "{folders:?}");
    }
    // It is stopped from any of them.
    House::run(command_with(&house, &["daemon", "stop"], ENVIRONMENTS[1]))
        .await
        .ended(0);
    assert!(house.status().await.is_null());
    house.stops_clean().await;
}

#[tokio::test]
async fn a_second_daemon_in_the_foreground_names_the_first() {
    let (house, client, daemon) = called().await;
    let second = command_with(&house, &["daemon", "run"], ENVIRONMENTS[3]);
    let refused = House::run(second).await;
    refused.ended(1);
    let pid = format!("pid {daemon}");
    assert!(refused.stderr.contains(&pid), "{}", refused.stderr);
    client.execute("any/echo", json!({})).await.good();
    house.stops_clean().await;
}

#[tokio::test]
async fn a_session_with_other_variables_serves_alone_and_says_why() {
    let (house, _client, daemon) = called().await;
    let mut command = house.command(["serve"]);
    command.env("PROXY_RESULTS__MAX_TOKENS", "900");
    let other = house.keep(Client::start(command));
    other.initialize(LEGACY_VERSION).await;
    other.execute("any/echo", json!({})).await.good();
    let status = house.status().await;
    assert_eq!(
        (&status["pid"], status["clients"].as_array().unwrap().len()),
        (&json!(daemon), 1)
    );
    assert_eq!(house.starts("any"), 2);
    house.stops_clean().await;
}

#[tokio::test]
async fn two_configurations_on_one_state_folder_are_refused_with_both_names() {
    let (house, client, _) = called().await;
    let state = house.status().await["state_dir"]
        .as_str()
        .unwrap()
        .to_owned();
    let config = fs::read_to_string(house.config()).unwrap();
    let second = house.write("second.toml", &config);
    let second = second.to_str().unwrap();
    for args in [
        ["search", "*"],
        ["daemon", "start"],
        ["reindex", "-q"],
        ["serve", "-q"],
    ] {
        let options = ["--config", second, "--state-dir", &state];
        let refused = house.cli(options.into_iter().chain(args)).await;
        refused.ended(2);
        let first = house.config();
        for name in [first.to_str().unwrap(), second, &state, "`state_dir`"] {
            assert!(
                refused.stderr.contains(name),
                "{args:?}: {}",
                refused.stderr
            );
        }
    }
    // The first is not affected, and its file may be moved.
    client.execute("any/echo", json!({})).await.good();
    house.cli(["daemon", "stop"]).await.ended(0);
    let moved = house.path("moved.toml");
    fs::rename(house.config(), &moved).unwrap();
    let options = ["--config", moved.to_str().unwrap(), "--state-dir", &state];
    house
        .cli(options.into_iter().chain(["search", "*", "--standalone"]))
        .await
        .ended(0);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_that_does_not_answer_is_named_with_a_next_step() {
    let (house, client, daemon) = called().await;
    processes::pause(daemon);
    processes::stopped(daemon).await;
    let [status, stop, doctor] = [&["status"][..], &["daemon", "stop"], &["doctor"]];
    let (status, stop) = (house.cli(status).await, house.cli(stop).await);
    let doctor = house.cli(doctor).await;
    status.ended(1);
    stop.ended(1);
    for told in [&status.stderr, &stop.stderr, &doctor.stdout] {
        assert!(told.contains(&format!("pid {daemon}")), "{told}");
        assert!(told.contains(&format!("kill -CONT {daemon}")), "{told}");
    }
    // The command that stopped it is carried out then.
    processes::resume(daemon);
    until("the end of the daemon", || !processes::lives(daemon)).await;
    client.execute("any/echo", json!({})).await.good();
    house.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_beside_the_owner_is_shown_and_owns_the_folder_after_it() {
    let house = echoing().await;
    let newer = house.keep(Client::start(house.newer_command(["serve"])));
    newer.initialize(LEGACY_VERSION).await;
    newer.execute("any/echo", json!({})).await.good();
    let owner = house.daemon().await;
    // An older client gets a daemon of its own build.
    let older = house.client().await;
    older.execute("any/echo", json!({})).await.good();
    newer.close().await;
    processes::pause(owner);
    processes::stopped(owner).await;
    let status = house.cli(["status", "--json"]).await;
    status.ended(3);
    let owner_pid = format!("pid {owner}");
    assert!(status.stderr.contains(&owner_pid), "{}", status.stderr);
    let beside = status.json()["daemons"][0]["pid"].clone();
    assert!(beside.is_u64(), "{}", status.stdout);
    processes::kill(owner);
    let record = house.state().join("owner.json");
    until("the next owner", || {
        let record = fs::read(&record).unwrap();
        serde_json::from_slice::<Value>(&record).unwrap()["daemon"]["pid"] == beside
    })
    .await;
    for folders in ENVIRONMENTS {
        assert_eq!(
            daemons_with(&house, folders).await,
            std::slice::from_ref(&beside)
        );
    }
    older.execute("any/echo", json!({})).await.good();
    house.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_of_an_older_program_file_is_named() {
    let (house, _client, _) = called().await;
    for verb in ["status", "doctor"] {
        let as_usual = house.cli([verb]).await;
        assert!(
            !as_usual.stdout.contains("older build"),
            "{}",
            as_usual.stdout
        );
        let told = House::run(house.newer_command([verb])).await.stdout;
        assert!(told.contains("an older build"), "{told}");
        assert!(told.contains("proxy daemon restart"), "{told}");
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_port_in_use_is_reported_with_its_holder_and_the_key_and_served_once_it_is_free() {
    // No other test gets the port when its listener has ended.
    let port = ReservedPort::new();
    let address = port.address();
    let listener = TcpListener::bind(address).unwrap();
    let house = echoing().await;
    house.configure_more(&format!("[http]\nlisten = \"{address}\"\n"));
    let refused = house.cli(["serve", "--http"]).await;
    refused.ended(1);
    let error = house.status().await["http"]["error"].clone();
    for told in [refused.stderr.as_str(), error.as_str().unwrap()] {
        assert!(told.contains(&address.to_string()), "{told}");
        assert!(told.contains("`http.listen`"), "{told}");
        if cfg!(target_os = "linux") {
            assert!(
                told.contains(&format!("pid {}", std::process::id())),
                "{told}"
            );
        }
    }
    drop(listener);
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(50));
    let served = async {
        while house.status().await["http"]["url"].is_null() {
            looks.tick().await;
        }
    };
    timeout(DEADLINE, served)
        .await
        .expect("the address is served once it is free");
    house.stops_clean().await;
}
