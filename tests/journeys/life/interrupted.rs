//! SIGKILL during a reindex leaves the old or the new state, never a mixture.

use std::{collections::BTreeMap, fs, path::Path, process::Stdio, time::Duration};

use journeys::{
    client::DEADLINE,
    fake::Step,
    house::{Fake, House, fake},
};
use tokio::{
    process::Child,
    time::{interval, timeout},
};

use crate::house;

const SERVERS: [&str; 3] = ["first", "second", "third"];
/// The number of interruptions per house, and of houses that are tested concurrently.
const KILLS: usize = 5;
const HOUSES: usize = 4;
/// Some reindexes are killed before they write anything.
const EARLY_MS: u64 = 40;

/// Creates a server whose tools all contain the version.
fn server(name: &str, version: usize) -> Fake {
    let tool = |kind| format!("{kind}_of_version_{version}");
    fake(name)
        .tool(&tool("sleep"), Step::Echo)
        .tool(&tool("wake"), Step::Echo)
}

fn listed(version: usize) -> Vec<String> {
    let tools =
        |server| ["sleep", "wake"].map(|kind| format!("{server}/{kind}_of_version_{version}"));
    SERVERS.iter().flat_map(tools).collect()
}

#[tokio::test]
async fn a_killed_reindex_leaves_old_or_new() {
    let houses = (0..HOUSES).map(|number| tokio::spawn(kill_often(number)));
    for house in houses.collect::<Vec<_>>() {
        house.await.unwrap();
    }
}

async fn kill_often(number: usize) {
    let house = house(SERVERS.map(|name| server(name, 0)));
    house.cli(["reindex"]).await.ended(0);
    let mut old = 0;
    for kill in 1..=KILLS {
        for name in SERVERS {
            house.rewrite(server(name, kill));
        }
        let mut reindex = house.command(["reindex"]);
        reindex.stdout(Stdio::null()).kill_on_drop(true);
        kill_at(number * KILLS + kill, reindex.spawn().unwrap(), &house).await;
        house.all_gone().await.unwrap();
        old = old_or_new(&house, old, kill).await;
    }
    house.cli(["reindex"]).await.ended(0);
    assert_eq!(old_or_new(&house, KILLS, KILLS).await, KILLS);
    let left = stamps(&house.path("xdg-state"));
    let left: Vec<_> = left.keys().filter(|it| it.contains("unfinished")).collect();
    assert!(left.is_empty(), "{left:?}");
    house.stops_clean().await;
}

/// Kills the reindex at one of many points: some are before the first write, the others after a
/// number of changes of the state folder.
async fn kill_at(point: usize, mut reindex: Child, house: &House) {
    if point.is_multiple_of(4) {
        let until = Duration::from_millis(EARLY_MS * point as u64);
        drop(timeout(until, reindex.wait()).await);
    } else {
        drop(timeout(DEADLINE, changes(point, &mut reindex, house)).await);
    }
    drop(reindex.kill().await);
}

/// Waits until the state folder has changed this number of times, or the reindex has ended.
async fn changes(count: usize, reindex: &mut Child, house: &House) {
    let mut looks = interval(Duration::from_millis(1));
    let mut seen = stamps(&house.path("xdg-state"));
    let mut changed = 0;
    while changed < count && reindex.try_wait().unwrap().is_none() {
        looks.tick().await;
        let now = stamps(&house.path("xdg-state"));
        changed += usize::from(now != seen);
        seen = now;
    }
}

/// Returns every file below the folder with its size and modification time.
fn stamps(folder: &Path) -> BTreeMap<String, (u64, Option<std::time::SystemTime>)> {
    let mut stamps = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            stamps.extend(self::stamps(&path));
        } else if let Ok(found) = entry.metadata() {
            stamps.insert(
                path.display().to_string(),
                (found.len(), found.modified().ok()),
            );
        }
    }
    stamps
}

/// Returns the version of the whole index; list and search must agree.
async fn old_or_new(house: &House, old: usize, new: usize) -> usize {
    let list = house.cli(["search", "*"]).await;
    let names = |text: &str| -> Vec<String> {
        let names = text
            .lines()
            .filter_map(|line| line.split([' ', '(']).next());
        let mut names: Vec<_> = names.map(str::to_owned).collect();
        names.sort();
        names
    };
    let tools = names(list.ended(0));
    let version = if tools == listed(new) { new } else { old };
    assert_eq!(tools, listed(version), "neither version {old} nor {new}");
    let search = house
        .cli(["search", "-n", "20", "--json", "sleep", "wake", "version"])
        .await
        .json();
    let tools = search["tools"].as_array().unwrap().iter();
    // The same tool on three servers is one hit.
    let found = tools.flat_map(|hit| {
        let also = hit["also_on"].as_array().cloned().unwrap_or_default();
        std::iter::once(hit["name"].clone()).chain(also)
    });
    let mut found: Vec<String> = found.map(|it| it.as_str().unwrap().to_owned()).collect();
    found.sort();
    assert_eq!(found, listed(version));
    version
}
