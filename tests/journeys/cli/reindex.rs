//! A reindex surveys every server, reports the changes, and leaves the old or the new state, never
//! a mixture.

use journeys::{
    fake::Step,
    house::{Fake, House, fake},
};

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::house;

fn two_tools() -> Fake {
    fake("first")
        .tool("alpha", Step::Echo)
        .tool("beta", Step::Echo)
}

#[tokio::test]
async fn a_reindex_says_what_came_changed_and_went() {
    let house = house([two_tools()]);
    let first = house.cli(["reindex"]).await;
    assert!(first.ended(0).contains("first"), "{}", first.stdout);

    house.rewrite(
        fake("first")
            .tool("alpha", Step::Echo)
            .tool("gamma", Step::Echo),
    );
    house.cli(["reindex"]).await.ended(0);
    let listed = house.cli(["search", "*"]).await;
    let listed = listed.ended(0);
    assert!(
        listed.contains("first/gamma") && listed.contains("first/alpha"),
        "{listed}"
    );
    assert!(!listed.contains("first/beta"), "{listed}");
    house.stops_clean().await;
}

#[tokio::test]
async fn one_server_can_be_reindexed_alone() {
    let house = house([two_tools(), fake("second").tool("delta", Step::Echo)]);
    house.cli(["reindex"]).await.ended(0);
    house.cli(["reindex", "second"]).await.ended(0);
    assert_eq!([house.starts("first"), house.starts("second")], [1, 2]);
    house.stops_clean().await;
}

#[tokio::test]
async fn an_export_is_read_back_without_asking_a_server() {
    let house = house([two_tools(), fake("second").tool("Delta.x", Step::Echo)]);
    house.cli(["reindex"]).await.ended(0);
    let folder = house.path("tools").display().to_string();
    let ask = async || {
        let mut said = Vec::new();
        for words in [
            &["search", "alpha"][..],
            &["search", "delta", "--json"],
            &["describe", "first/beta", "--json"],
            &["describe", "second/Delta.x"],
        ] {
            let standalone = words.iter().chain(&["--standalone"]);
            said.push(house.cli(standalone).await.ended(0).to_owned());
        }
        said
    };
    let before = ask().await;
    let exported = house.cli(["reindex", "--export", &folder]).await;
    assert!(
        exported.ended(0).contains("3 tools of 2 servers"),
        "{}",
        exported.stdout
    );
    remove(&house.path("xdg-state"));
    let imported = house.cli(["reindex", "--import", &folder]).await;
    assert!(imported.ended(0).contains("second"), "{}", imported.stdout);
    assert_eq!(ask().await, before);
    assert_eq!([house.starts("first"), house.starts("second")], [1, 1]);
    // A second export replaces the first one; a folder of others is left alone.
    house.cli(["reindex", "--export", &folder]).await.ended(0);
    let other = house.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mine.txt"), "x").unwrap();
    let other = other.display().to_string();
    let refused = house.cli(["reindex", "--export", &other]).await;
    assert!(
        refused.stderr.contains("no earlier export"),
        "{}",
        refused.stderr
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn the_exit_code_tells_all_some_or_none() {
    let dead = || fake("dead").before([Step::stderr("no\n"), Step::Exit(1)]);
    let all = house([two_tools()]).cli(["reindex"]).await.code;
    let some = house([two_tools(), dead()]).cli(["reindex"]).await.code;
    let none = house([dead()]).cli(["reindex"]).await.code;
    assert_eq!(all, Some(0));
    assert!(
        some != all && none != all && some != none,
        "{all:?} {some:?} {none:?}"
    );
}

#[tokio::test]
async fn serve_without_snapshots_answers_at_once_and_finds_the_tools_soon() {
    let gate = |house: &House| house.path("gate");
    let house = house::<Fake>([]);
    let slow = two_tools().before(Step::UntilExists(gate(&house)));
    house.add(slow);
    let client = house.client().await;
    assert_eq!(client.tools_list().await.len(), 3);
    client.search("do alpha").await.good();
    house.write("gate", "");
    client.until_search_finds("do alpha", "first/alpha(").await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_lost_or_damaged_index_is_rebuilt_without_a_word() {
    let house = house([two_tools()]);
    house.cli(["reindex"]).await.ended(0);
    let before = house.cli(["search", "alpha"]).await.ended(0).to_owned();
    for damage in [remove, scribble] {
        damage(&index_folder(&house));
        assert_eq!(house.cli(["search", "alpha"]).await.ended(0), before);
    }
    assert_eq!(house.starts("first"), 1);
    house.stops_clean().await;
}

/// Finds the folder `index` below the state folder.
fn index_folder(house: &House) -> PathBuf {
    let mut folders = vec![house.path("xdg-state")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_some_and(|name| name == "index") {
                return path;
            }
            folders.extend(path.is_dir().then_some(path));
        }
    }
    panic!("there is no index");
}

fn remove(folder: &Path) {
    fs::remove_dir_all(folder).unwrap();
}

fn scribble(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::write(path, "scribble").unwrap();
        }
    }
}
