//! Clients with different environments: the servers that they share, and the isolation of their
//! values.

use std::fs;

use journeys::{
    client::Client,
    fake::{LEGACY_VERSION, Step},
    house::{Fake, House, fake},
    processes,
};
use serde_json::{Value, json};

use crate::{house_with_daemon, until};

const ONE: &str = "token-of-one-1f7a";
const TWO: &str = "token-of-two-9c3e";

/// Creates a server that gets a variable of its client as `TOKEN`.
fn bank(text: &str) -> Fake {
    fake("bank")
        .tool("environment", Step::Environment)
        .env("TOKEN", text)
}

/// Starts a session whose environment has this token; returns its instructions too.
async fn session(house: &House, token: Option<&str>) -> (Client, String) {
    let mut command = house.command(["serve"]);
    if let Some(token) = token {
        command.env("BANK_TOKEN", token).env("TERM", token);
    }
    let client = house.keep(Client::start(command));
    let began = client.initialize(LEGACY_VERSION).await;
    let says = began["instructions"].as_str().unwrap().to_owned();
    (client, says)
}

async fn token(client: &Client) -> String {
    let told = client.execute("bank/environment", json!({})).await.good();
    let told: Value = serde_json::from_str(&told).unwrap();
    told["TOKEN"].as_str().unwrap().to_owned()
}

async fn told(house: &House) -> String {
    house.cli(["status"]).await.ended(0).to_owned()
}

#[tokio::test]
async fn only_servers_whose_variables_differ_run_apart() {
    let plain = fake("plain")
        .tool("echo", Step::Echo)
        .env("PLACE", "${HOME}");
    let house = house_with_daemon([bank("${BANK_TOKEN:-none}"), plain]);
    house.indexed().await;
    let (indexed_bank, indexed_plain) = (house.starts("bank"), house.starts("plain"));
    let (one, says_one) = session(&house, Some(ONE)).await;
    let (two, says_two) = session(&house, Some(TWO)).await;
    let (same, _) = session(&house, Some(ONE)).await;
    let (none, _) = session(&house, None).await;
    for (client, has) in [(&one, ONE), (&two, TWO), (&same, ONE), (&none, "none")] {
        assert_eq!(token(client).await, has);
        client.execute("plain/echo", json!({})).await.good();
    }
    assert_eq!(house.starts("bank"), indexed_bank + 3);
    assert_eq!(house.starts("plain"), indexed_plain + 1);

    assert!(!says_one.contains("Not shared"), "{says_one}");
    let sentence = "Not shared with other clients, whose variables differ: bank. ";
    assert!(says_two.contains(sentence), "{says_two}");
    let daemons = house.cli(["status", "--json"]).await.json();
    assert_eq!(daemons["daemons"].as_array().unwrap().len(), 1);
    let told = told(&house).await;
    let apart = format!(
        "bank has its own process for journeys (pid {}): BANK_TOKEN differs",
        two.pid()
    );
    assert!(told.contains(&apart), "{told}");
    assert!(!told.contains(&format!("(pid {})", same.pid())), "{told}");

    // Processes that run for only one client exit with that client.
    let of_two = house.pids("bank")[indexed_bank + 1];
    assert!(processes::lives(of_two));
    two.close().await;
    until("the end of its own process", || !processes::lives(of_two)).await;
    assert_eq!(token(&one).await, ONE);
    assert_eq!(house.starts("bank"), indexed_bank + 3);
    no_token_is_anywhere(&house, &told);
    house.stops_clean().await;
}

#[tokio::test]
async fn a_client_that_lacks_a_variable_gets_that_of_no_other_and_is_told_its_name() {
    // The daemon lacks the variable too, and cannot survey the server.
    let house = house_with_daemon([bank("${BANK_TOKEN}")]);
    let (none, _) = session(&house, None).await;
    let found = none.search("environment").await.good();
    assert!(!found.contains("bank/environment"), "{found}");
    let (one, says_one) = session(&house, Some(ONE)).await;
    assert!(!says_one.contains("Not shared"), "{says_one}");
    none.until_search_finds("environment", "bank/environment")
        .await;
    let (two, says_two) = session(&house, Some(TWO)).await;
    assert!(says_two.contains("Not shared"), "{says_two}");
    for (client, has) in [(&one, ONE), (&two, TWO)] {
        assert_eq!(token(client).await, has);
    }
    is_refused(&none).await;
    let told = told(&house).await;
    let lacking = format!(
        "bank does not start for journeys (pid {}): it does not set BANK_TOKEN",
        none.pid()
    );
    assert!(told.contains(&lacking), "{told}");

    // The next daemon is started by a client that has a value.
    house.cli(["daemon", "stop"]).await.ended(0);
    assert_eq!(token(&two).await, TWO);
    is_refused(&none).await;
    assert_eq!(token(&one).await, ONE);
    no_token_is_anywhere(&house, &told);
    house.stops_clean().await;
}

async fn is_refused(client: &Client) {
    let why = client.execute("bank/environment", json!({})).await.bad();
    assert!(why.starts_with("error server_unavailable"), "{why}");
    assert!(why.contains("`BANK_TOKEN` is not set"), "{why}");
    assert!(why.ends_with("Available: no other server."), "{why}");
}

#[tokio::test]
async fn a_configuration_that_takes_another_variable_parts_its_clients() {
    let house = house_with_daemon([bank("fixed")]);
    house.indexed().await;
    let (one, _) = session(&house, Some(ONE)).await;
    let (two, _) = session(&house, Some(TWO)).await;
    let starts = house.starts("bank");
    for client in [&one, &two] {
        assert_eq!(token(client).await, "fixed");
    }
    assert_eq!(house.starts("bank"), starts + 1);
    let config = fs::read_to_string(house.config()).unwrap();
    house.configure(&config.replace("fixed", "${BANK_TOKEN}"));
    for (client, has) in [(&one, ONE), (&two, TWO)] {
        let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
        let other = async {
            while token(client).await != has {
                looks.tick().await;
            }
        };
        client.within("its own token", other).await;
    }
    house.stops_clean().await;
}

fn no_token_is_anywhere(house: &House, told: &str) {
    let state = house.state();
    let log = fs::read_to_string(state.join("daemon.log")).unwrap_or_default();
    let catalog = fs::read_to_string(state.join("catalog.json")).unwrap_or_default();
    for text in [told, &log, &catalog] {
        assert!(!text.contains(ONE) && !text.contains(TWO), "{text}");
    }
}
