//! The configuration changes while sessions are open.

use std::fs;

use journeys::{
    client::Client,
    fake::Step,
    house::{Fake, House, fake},
    processes,
};
use serde_json::json;

use crate::{answered_in_the_end, calling, house, house_with_daemon, until};

fn echoing(name: &str) -> Fake {
    fake(name).tool("echo", Step::Echo)
}

/// Calls the tool until the proxy finds it.
async fn called_in_the_end(client: &Client, tool: &str) {
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    let called = async {
        while client.execute(tool, json!({})).await.is_error() {
            looks.tick().await;
        }
    };
    client.within(tool, called).await;
}

async fn until_unknown(client: &Client, tool: &str) {
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    let unknown = async {
        loop {
            let reply = client.execute(tool, json!({})).await;
            if reply.is_error() && reply.bad().starts_with("error unknown_tool") {
                return;
            }
            looks.tick().await;
        }
    };
    client.within("unknown tool", unknown).await;
}

#[journey]
async fn a_server_that_is_added_is_callable_and_one_that_is_removed_is_gone() {
    let house = house([echoing("first")]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    client.execute("first/echo", json!({})).await.good();
    let before = fs::read_to_string(house.config()).unwrap();
    house.add(echoing("second"));
    called_in_the_end(&client, "second/echo").await;
    client.until_search_finds("echo", "second").await;
    let second = *house.pids("second").last().unwrap();
    assert_eq!(
        house.starts("first"),
        2,
        "the other server was not restarted"
    );

    // Replaces the file by a new one, as an editor does.
    let beside = house.write("config.toml.new", &before);
    fs::rename(beside, house.config()).unwrap();
    until_unknown(&client, "second/echo").await;
    until("its end", || !processes::lives(second)).await;
    client.execute("first/echo", json!({})).await.good();
    assert_eq!(house.starts("first"), 2);
    house.stops_clean().await;
}

#[journey]
async fn a_server_that_changes_finishes_its_calls_before_it_is_started_anew() {
    let house = house::<Fake>([]);
    let wait = [Step::UntilExists(house.path("gate")), Step::Echo];
    let table = |setting: &str| {
        fake("any")
            .tool("wait", wait.clone())
            .tool("pid", Step::Environment)
            .env("ROUND", setting)
    };
    house.add(table("one"));
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    let (_, waiting) = client
        .begin("tools/call", calling("any/wait", &json!({ "old": 1 })))
        .await;
    house.until_calls("any", 1).await;
    house.configure("");
    house.add(table("two"));
    let (_, next) = client
        .begin("tools/call", calling("any/pid", &json!({})))
        .await;
    house.write("gate", "");
    assert_eq!(waiting.await.good(), r#"{"old":1}"#);
    next.await;
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    let renewed = async {
        loop {
            let reply = client.execute("any/pid", json!({})).await;
            if !reply.is_error() && reply.good().contains(r#""ROUND":"two""#) {
                return;
            }
            looks.tick().await;
        }
    };
    client.within("server of the second round", renewed).await;
    until("one process", || {
        let pids = house.pids("any");
        pids.iter().filter(|pid| processes::lives(**pid)).count() == 1
    })
    .await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_file_with_mistakes_keeps_what_was_and_is_told() {
    let house = house_with_daemon([echoing("any")]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    let good = fs::read_to_string(house.config()).unwrap();
    house.configure("[servers.any]\ncomand = \"x\"\n");
    told(&house, true).await;
    client.execute("any/echo", json!({})).await.good();
    let text = house.cli(["status"]).await.ended(0).to_owned();
    assert!(text.contains("did you mean `command`?"), "{text}");
    let log = house.cli(["logs"]).await.ended(0).to_owned();
    assert!(log.contains("mistakes"), "{log}");

    house.configure(&good);
    told(&house, false).await;
    client.execute("any/echo", json!({})).await.good();
    assert_eq!(house.starts("any"), 2, "the server was not restarted");
    house.stops_clean().await;
}

#[tokio::test]
async fn a_former_key_has_a_note_in_the_check_and_in_the_log() {
    let house = house_with_daemon([echoing("any")]);
    house.configure_more("[http]\nmax_requests = 7");
    house.indexed().await;
    let note = "http.max_requests: this key was removed: the limit is 256 requests";
    let checked = house.cli(["config", "check"]).await.ended(0).to_owned();
    let words: Vec<&str> = checked.split_whitespace().collect();
    assert!(words.join(" ").contains(note), "{checked}");
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    let log = house.cli(["logs"]).await.ended(0).to_owned();
    assert!(log.contains(note), "{log}");
    house.stops_clean().await;
}

async fn told(house: &House, has_mistakes: bool) {
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(50));
    let told = async {
        while house.status().await["config_mistakes"].is_string() != has_mistakes {
            looks.tick().await;
        }
    };
    let waited = tokio::time::timeout(journeys::client::DEADLINE, told).await;
    assert!(waited.is_ok(), "mistakes are reported: {has_mistakes}");
}

#[tokio::test]
async fn other_limits_hold_without_a_restart_of_the_session() {
    let house = house_with_daemon([fake("any").tool("lines", Step::Lines(2_000))]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    let lines = async || client.execute("any/lines", json!({})).await.good().len();
    let before = lines().await;
    house.configure_more("[results]\nmax_tokens = 200\n");
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    let shorter = async {
        while lines().await >= before {
            looks.tick().await;
        }
    };
    client.within("shorter answer", shorter).await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_hangup_has_the_file_read_anew() {
    let house = house_with_daemon([echoing("any")]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    processes::hang_up(house.daemon().await);
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(50));
    let logged = async {
        loop {
            let log = house.cli(["logs"]).await.stdout;
            if log.contains("the configuration was reloaded") {
                return;
            }
            looks.tick().await;
        }
    };
    client.within("line in the log", logged).await;
    answered_in_the_end(&client, "any/echo", &json!({})).await;
    house.stops_clean().await;
}
