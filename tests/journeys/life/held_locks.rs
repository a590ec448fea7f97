//! Another process holds every lock of the state folder and does not release it.

use std::{
    fs::{self, File},
    path::Path,
};

use journeys::{
    client::Client,
    fake::Step,
    house::{House, fake},
};
use serde_json::json;

use crate::{house, until};

/// Locks every lock file of the state folder.
fn hold_all(folder: &Path) -> Vec<(String, File)> {
    let mut held = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with("lock") && name != "owner.lock" {
                // A running daemon holds `owner.lock` until it ends.
                let file = File::options().write(true).open(&path).unwrap();
                file.lock().unwrap();
                held.push((name, file));
            }
        }
    }
    held
}

/// Makes the usual requests of a client.
async fn uses_everything(client: &Client) {
    let found = client.search("do zither").await.good();
    assert!(found.contains("any/zither("), "{found}");
    client.describe("any/zither").await.good();
    let reply = client.execute("any/zither", json!({"a": 1})).await;
    assert_eq!(reply.good(), r#"{"a":1}"#);
    client.execute("any/zithr", json!({})).await.bad();
}

async fn ready() -> House {
    let house = house([fake("any").tool("zither", Step::Echo)]);
    house.indexed().await;
    // The first client causes every lock file to be created.
    let first = house.client().await;
    uses_everything(&first).await;
    first.close().await;
    let stats = house.state().join("stats/lock");
    until("figures", || stats.exists()).await;
    if house.has_daemon() {
        house.cli(["daemon", "stop"]).await.ended(0);
    }
    house
}

#[journey]
async fn clients_are_served_and_everything_ends_though_every_lock_is_held() {
    let house = ready().await;
    let client = house.client().await;
    let held = hold_all(&house.state());
    let names: Vec<&str> = held.iter().map(|(name, _)| name.as_str()).collect();
    for expected in ["lock", ".tantivy-meta.lock", ".tantivy-writer.lock"] {
        assert!(names.contains(&expected), "{names:?}");
    }
    uses_everything(&client).await;
    let second = house.client().await;
    uses_everything(&second).await;
    uses_everything(&client).await;
    second.close().await;
    client.close().await;
    if house.has_daemon() {
        house.cli(["daemon", "stop"]).await.ended(0);
    }
    assert!(house.all_gone().await.is_ok());
    drop(held);
    house.stops_clean().await;
}

/// Counts that could not be written while the lock was held are written afterwards.
#[journey]
async fn nothing_is_lost_where_the_lock_is_released_again() {
    let house = ready().await;
    let client = house.client().await;
    let held = hold_all(&house.state());
    uses_everything(&client).await;
    drop(held);
    client.close().await;
    if house.has_daemon() {
        house.cli(["daemon", "stop"]).await.ended(0);
    }
    let usage = fs::read_to_string(house.state().join("usage.json")).unwrap();
    let usage: serde_json::Value = serde_json::from_str(&usage).unwrap();
    assert_eq!(usage["any/zither"]["ok"], 2, "{usage}");
    house.stops_clean().await;
}
