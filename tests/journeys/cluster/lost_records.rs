//! Records and streams that NATS loses, and a backup of them that is restored.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use async_nats::jetstream;
use futures::TryStreamExt as _;
use journeys::{
    client::Client,
    fake::Step,
    house::{Fake, House, fake},
    nats::Nats,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{interval, timeout};

use super::{TAKE_OVER, connected, nats, node, owner, until_found, until_owned, until_state};
use crate::answered_in_the_end;

const BUCKET: &str = "px-home";

const STREAMS: [&str; 4] = [
    "KV_px-home",
    "OBJ_px-home-lists",
    "OBJ_px-home-parcels",
    "OBJ_px-home-results",
];

/// Two nodes with a server that says so when it has two owners.
struct Pair {
    nats: Nats,
    one: House,
    two: House,
    clients: [Client; 2],
    jetstream: jetstream::Context,
    _lock: TempDir,
}

fn servers(lock: &Path) -> [Fake; 2] {
    let sole = fake("sole")
        .before(vec![Step::HoldLock(lock.to_owned())])
        .tool("echo", Step::Echo)
        .tool("lines", Step::Lines(300_000));
    let far = fake("far").tool("echo", Step::Echo).setting("on = \"two\"");
    [sole, far]
}

impl Pair {
    async fn new() -> Self {
        let lock = tempfile::tempdir().unwrap();
        let file = lock.path().join("owner");
        let nats = nats(1);
        let one = node(&nats, "one", servers(&file));
        let two = node(&nats, "two", servers(&file));
        connected(&[&one, &two]).await;
        let clients = [one.client().await, two.client().await];
        for client in &clients {
            until_found(client, "sole/echo").await;
            until_found(client, "far/echo").await;
        }
        let client = async_nats::connect(&nats.urls()[0]).await.unwrap();
        let pair = Self {
            nats,
            one,
            two,
            clients,
            jetstream: jetstream::new(client),
            _lock: lock,
        };
        pair.one.cli(["cluster", "push"]).await.ended(0);
        pair.serves().await;
        // A cut result is copied into its bucket.
        pair.clients[0]
            .execute("sole/lines", json!({}))
            .await
            .good();
        pair
    }

    /// Calls each server at each node, also with a message over the limit of NATS.
    async fn serves(&self) {
        for client in &self.clients {
            answered_in_the_end(client, "sole/echo", &json!({"n": 1})).await;
            let long = json!({"long": "x".repeat(1_200_000)});
            answered_in_the_end(client, "far/echo", &long).await;
        }
    }

    /// The keys of the records that nodes have written.
    async fn keys(&self) -> BTreeSet<String> {
        let keys = async {
            let book = self.jetstream.get_key_value(BUCKET).await.ok()?;
            book.keys().await.ok()?.try_collect().await.ok()
        };
        keys.await.unwrap_or_default()
    }

    /// Waits until the bucket has these keys again, and no node has a trouble.
    async fn until_whole(&self, keys: &BTreeSet<String>, after: &str) {
        let mut ticks = interval(Duration::from_millis(100));
        let waiting = async {
            while !keys.is_subset(&self.keys().await) {
                ticks.tick().await;
            }
        };
        let waited = timeout(TAKE_OVER, waiting).await;
        assert!(
            waited.is_ok(),
            "{after}: {:?} of {keys:?}",
            self.keys().await
        );
        for node in [&self.one, &self.two] {
            until_state(node, after, |state| state["trouble"].is_null()).await;
        }
    }

    /// The number of processes of the server with one owner, which never ran beside each other.
    fn starts(&self) -> usize {
        let houses = [&self.one, &self.two];
        for line in houses.iter().flat_map(|house| house.received("sole")) {
            assert!(!line.contains("two owners"), "{line}");
        }
        houses.iter().map(|house| house.starts("sole")).sum()
    }

    async fn ends(self) {
        drop(self.clients);
        self.one.stops_clean().await;
        self.two.stops_clean().await;
    }
}

#[tokio::test]
async fn each_stream_may_be_purged_or_deleted_and_no_server_is_started_again() {
    let pair = Pair::new().await;
    let keys = pair.keys().await;
    assert!(
        keys.contains("shared") && keys.contains("list.sole"),
        "{keys:?}"
    );
    for name in STREAMS {
        pair.jetstream
            .get_stream(name)
            .await
            .unwrap()
            .purge()
            .await
            .unwrap();
        pair.serves().await;
        pair.until_whole(&keys, &format!("{name} was purged")).await;
        pair.jetstream.delete_stream(name).await.unwrap();
        pair.serves().await;
        pair.until_whole(&keys, &format!("{name} was deleted"))
            .await;
    }
    assert_eq!(pair.starts(), 1);
    pair.ends().await;
}

#[tokio::test]
async fn each_record_may_be_deleted_with_and_without_a_trace() {
    let pair = Pair::new().await;
    let keys = pair.keys().await;
    let book = pair.jetstream.get_key_value(BUCKET).await.unwrap();
    for key in &keys {
        book.delete(key).await.unwrap();
        pair.until_whole(&keys, &format!("{key} was deleted")).await;
        book.purge(key).await.unwrap();
        pair.until_whole(&keys, &format!("{key} was purged")).await;
    }
    for key in &keys {
        let subject = format!("$KV.{BUCKET}.{key}");
        book.stream.purge().filter(subject).await.unwrap();
        pair.until_whole(&keys, &format!("{key} was removed")).await;
    }
    pair.serves().await;
    assert_eq!(pair.starts(), 1);
    pair.ends().await;
}

#[tokio::test]
async fn a_node_that_starts_after_a_loss_leaves_servers_to_their_owners() {
    let pair = Pair::new().await;
    let keys = pair.keys().await;
    let owned_by = until_owned(&pair.one, "sole").await;
    let [owns, starts] = match owned_by.as_str() {
        "one" => [&pair.one, &pair.two],
        _ => [&pair.two, &pair.one],
    };
    let lease = format!("lease.{owned_by}");
    for lost in ["all", "the stream", "owner.sole", lease.as_str()] {
        starts.cli(["daemon", "stop"]).await.ended(0);
        let stream = pair.jetstream.get_stream(STREAMS[0]).await.unwrap();
        if lost == "the stream" {
            pair.jetstream.delete_stream(STREAMS[0]).await.unwrap();
        } else if lost == "all" {
            stream.purge().await.unwrap();
        } else {
            let subject = format!("$KV.{BUCKET}.{lost}");
            stream.purge().filter(subject).await.unwrap();
        }
        starts.cli(["daemon", "start"]).await.ended(0);
        pair.serves().await;
        pair.until_whole(&keys, lost).await;
        for node in [owns, starts] {
            assert_eq!(until_owned(node, "sole").await, owned_by, "{lost}");
        }
    }
    assert_eq!(pair.starts(), 1);
    pair.ends().await;
}

#[tokio::test]
async fn a_restored_backup_makes_no_second_owner() {
    let pair = Pair::new().await;
    let keys = pair.keys().await;
    let (data, backup) = (pair.nats.data(0), pair.nats.data(0).with_extension("old"));
    pair.nats.kill(0);
    copy(&data, &backup);
    pair.nats.begin(0);
    pair.serves().await;
    // Both processes and the owner are others than those of the backup.
    let owned_by = until_owned(&pair.one, "sole").await;
    let (owns, other) = match owned_by.as_str() {
        "one" => (&pair.one, &pair.two),
        _ => (&pair.two, &pair.one),
    };
    owns.cli(["cluster", "drain"]).await.ended(0);
    until_state(other, "it was handed over", |state| {
        owner(state, "sole").is_some_and(|it| it != owned_by)
    })
    .await;
    owns.cli(["daemon", "restart"]).await.ended(0);
    pair.serves().await;
    let before = pair.starts();
    let owned_by = until_owned(&pair.one, "sole").await;

    pair.nats.kill(0);
    fs::remove_dir_all(&data).unwrap();
    copy(&backup, &data);
    pair.nats.begin(0);
    pair.serves().await;
    pair.until_whole(&keys, "a backup was restored").await;
    for node in [owns, other] {
        assert_eq!(until_owned(node, "sole").await, owned_by);
    }
    assert_eq!(pair.starts(), before);
    pair.ends().await;
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (
            entry.as_ref().unwrap().path(),
            to.join(entry.unwrap().file_name()),
        );
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}
