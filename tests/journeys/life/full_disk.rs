//! On a full disk, lines of a log are lost and nothing else.

use std::{ffi::OsString, fs, process::Stdio};

use journeys::{
    client::Client,
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
};
use serde_json::json;
use tokio::process::Command;

use crate::{house, house_with_daemon};

/// Returns the same command with a stderr that rejects every write, as on a full disk.
fn with_full_stderr(command: &Command) -> Command {
    let command = command.as_std();
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"exec "$0" "$@" 2>/dev/full"#]);
    shell.arg(command.get_program()).args(command.get_args());
    let set = command.get_envs().filter_map(|(name, value)| {
        let value: OsString = value?.to_owned();
        Some((name.to_owned(), value))
    });
    shell.env_clear().envs(set);
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}

fn two_servers() -> [journeys::house::Fake; 2] {
    ["one", "two"].map(|name| fake(name).tool("echo", Step::Echo))
}

/// Creates a folder in place of the log, so that no line can be written.
async fn without_log(house: &House) {
    let state = house.path("state");
    fs::create_dir_all(state.join("daemon.log")).unwrap();
    let config = fs::read_to_string(house.config()).unwrap();
    house.configure(&format!("state_dir = \"{}\"\n{config}", state.display()));
    house.cli(["reindex"]).await.ended(0);
}

#[tokio::test]
async fn a_stderr_that_takes_nothing_costs_no_server() {
    let house = house(two_servers());
    house.cli(["reindex"]).await.ended(0);
    let alone = house.command(["--log", "trace", "serve", "--standalone"]);
    let client = house.keep(Client::start(with_full_stderr(&alone)));
    client.initialize(LEGACY_VERSION).await;
    for tool in ["one/echo", "two/echo", "one/echo"] {
        let answer = client.execute(tool, json!({"on": true})).await;
        assert_eq!(answer.good(), r#"{"on":true}"#);
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_whose_log_cannot_be_written_serves_on() {
    let house = house_with_daemon(two_servers());
    without_log(&house).await;
    let mut daemon = with_full_stderr(&house.command(["daemon", "run"]));
    let mut daemon = daemon
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    house.daemon().await;
    for _ in 0..2 {
        let client = house.client().await;
        for tool in ["one/echo", "two/echo"] {
            client.execute(tool, json!({})).await.good();
        }
        // The next call restarts the server, which is logged.
        let pid = *house.pids("one").last().unwrap();
        journeys::processes::kill(pid);
        let answer = crate::answered_in_the_end(&client, "one/echo", &json!({"on": 1})).await;
        assert_eq!(answer, r#"{"on":1}"#);
    }
    house.cli(["daemon", "stop"]).await.ended(0);
    assert_eq!(daemon.wait().await.unwrap().code(), Some(0));
    house.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_in_the_foreground_logs_to_stderr_and_to_its_file() {
    let house = house_with_daemon(two_servers());
    let mut daemon = house.command(["--log", "info", "daemon", "run"]);
    let daemon = daemon
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    house.daemon().await;
    house.cli(["call", "one/echo"]).await.ended(0);
    house.cli(["daemon", "stop"]).await.ended(0);
    let ended = daemon.wait_with_output().await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    let log = fs::read_to_string(house.state().join("daemon.log")).unwrap();
    assert!(said.contains("INFO") && said == log, "{said}\n{log}");
    house.stops_clean().await;
}

#[tokio::test]
async fn a_daemon_without_a_log_is_started_all_the_same() {
    let house = house_with_daemon(two_servers());
    without_log(&house).await;
    let client = house.client().await;
    client.execute("one/echo", json!({})).await.good();
    house.daemon().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_word_that_nobody_can_hear_is_no_failure() {
    let house = house_with_daemon(two_servers());
    let nobody = house.command(["daemon", "stop"]);
    let status = with_full_stderr(&nobody).status().await.unwrap();
    assert_eq!(status.code(), Some(1), "the daemon can be stopped");
    let mistaken = house.command(["--config", "/nowhere.toml", "list"]);
    let status = with_full_stderr(&mistaken).status().await.unwrap();
    assert_eq!(status.code(), Some(2), "the log file does not exist");

    house.cli(["reindex"]).await.ended(0);
    let mut list = house.command(["search", "*"]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    list.stdout(full).stderr(Stdio::null());
    assert_eq!(list.status().await.unwrap().code(), Some(0));
    house.stops_clean().await;
}
