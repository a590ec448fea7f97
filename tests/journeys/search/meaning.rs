//! Queries that share no word with their tool.

use std::{fs, path::PathBuf};

use journeys::{
    fake::Step,
    house::{Fake, House, fake},
};
use serde_json::json;

use crate::house;

const REQUEST: &str = "make the music stronger";
const WANTED: &str = "player/louder(";

fn with(fake: Fake, name: &str, description: &str) -> Fake {
    let schema = json!({ "type": "object" });
    let definition = json!({"name": name, "description": description, "inputSchema": schema});
    fake.tool_as(definition, Step::Echo)
}

fn repo() -> Fake {
    let repo = with(
        fake("repo"),
        "status",
        "Show the working tree state of files",
    );
    with(repo, "push", "Upload commits to the remote")
}

fn player() -> Fake {
    let player = with(fake("player"), "next", "Skip to the following song");
    with(player, "louder", "Turn the volume up")
}

fn vectors(house: &House) -> Option<PathBuf> {
    let folders = fs::read_dir(house.path("xdg-state/proxy")).ok()?;
    let mut files = folders.flatten().map(|it| it.path().join("meaning.bin"));
    files.find(|file| file.exists())
}

#[journey]
async fn a_tool_is_found_by_what_it_means_and_not_where_that_is_off() {
    let house = house([repo(), player()]).understanding();
    house.indexed().await;
    let found = house.cli(["search", "--standalone", REQUEST]).await;
    let first = found.ended(0).lines().find(|line| line.contains('('));
    assert!(
        first.is_some_and(|line| line.starts_with(WANTED)),
        "{found:?}"
    );
    // A process reads this setting only at its start.
    house.configure_more("[search]\nsemantic = \"off\"");
    let off = house.cli(["search", "--standalone", REQUEST]).await;
    let unsure = "perhaps: no tool surely matches";
    assert!(off.ended(1).starts_with(unsure), "{off:?}");
    assert_eq!(house.all_gone().await, Ok(()));
}

#[journey]
async fn what_a_tool_means_is_found_out_once_and_again_when_it_is_lost() {
    let house = house([repo(), player()]).understanding();
    house.cli(["reindex"]).await.ended(0);
    let file = vectors(&house).expect("reindex computes vectors");
    let (made, bytes) = (
        fs::metadata(&file).unwrap().modified().unwrap(),
        fs::read(&file).unwrap(),
    );
    house.cli(["reindex"]).await.ended(0);
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), made);
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    house.cli(["search", "push commits"]).await.ended(0);
    house.cli(["reindex"]).await.ended(0);
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[journey]
async fn serve_comes_to_understand_servers_that_it_meets_while_it_runs() {
    let house = house([repo(), player()]).understanding();
    let client = house.client().await;
    client.until_search_finds(REQUEST, WANTED).await;
    house.stops_clean().await;
}
