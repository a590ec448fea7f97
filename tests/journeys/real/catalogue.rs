//! Every available list of tools of a real server, behind fake servers: hundreds of third-party
//! tools.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use journeys::{
    client::Client,
    house::{Fake, House, fake},
};
use serde_json::Value;

use crate::{house, tokens};

const SAMPLE: usize = 300;
const QUERIES: usize = 200;
/// The maximum average tokens of a response with five hits: about 5 of them are members of
/// structured results.
const TOKENS_MAX: usize = 210;

/// Returns the snapshots of the repository, or of a larger collection beside it.
fn snapshots() -> Vec<PathBuf> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let larger = ours.join("../../shared/servers/snapshots");
    let folder = if larger.exists() {
        larger
    } else {
        ours.join("catalogues")
    };
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == "json"));
    files.sort();
    files
}

fn server(file: &PathBuf) -> Fake {
    let name = file.file_stem().unwrap().to_str().unwrap();
    fake(name).catalog(file)
}

#[tokio::test]
async fn every_tool_is_found_described_and_called() {
    let files = snapshots();
    let house = house(files.iter().map(server));
    house.cli(["reindex", "--quiet"]).await.ended(0);
    let names = names(&house).await;
    assert!(names.len() > SAMPLE, "{} tools", names.len());
    // `eprintln!` is not shown while the test passes.
    let mut stderr = std::io::stderr();
    writeln!(
        stderr,
        "catalogue: {} tools of {} servers",
        names.len(),
        files.len()
    )
    .unwrap();
    let client = house.client().await;
    let step = names.len().div_ceil(SAMPLE);
    let mut wrong = Vec::new();
    for name in names.iter().step_by(step) {
        wrong.extend(call_the_example(&client, name).await.err());
    }
    assert!(
        wrong.is_empty(),
        "{} examples fail:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    five_hits_are_short(&client, &names).await;
    house.stops_clean().await;
}

async fn names(house: &House) -> Vec<String> {
    let list = house.cli(["search", "*", "--json"]).await.json();
    let names = list.as_array().unwrap().iter();
    names
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Searches for the words of tool names. A query that is an exact name returns its schema and does
/// not count.
async fn five_hits_are_short(client: &Client, names: &[String]) {
    let (mut counted, mut sum) = (0, 0);
    for name in names.iter().step_by(names.len().div_ceil(QUERIES)) {
        let (_, tool) = name.split_once('/').unwrap();
        let words: Vec<&str> = tool.split(|c: char| !c.is_alphanumeric()).collect();
        let answer = client.search(&words.join(" ")).await.good();
        if answer.trim_start_matches("perhaps: ").starts_with("5 of ") {
            counted += 1;
            sum += tokens(&answer);
        }
    }
    assert!(
        counted > QUERIES / 4,
        "only {counted} answers have five hits"
    );
    assert!(
        sum <= counted * TOKENS_MAX,
        "{} tokens on average",
        sum / counted
    );
}

/// Calls the tool with the example of its description. The error is the reason of the failure.
async fn call_the_example(client: &Client, name: &str) -> Result<(), String> {
    let described = client.describe(name).await.good();
    let part = |part: &str| {
        described
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix(part))
    };
    let example = part("example ").ok_or_else(|| format!("{name}: no example"))?;
    let example: Value =
        serde_json::from_str(example).map_err(|error| format!("{name}: {error}"))?;
    part("input {").ok_or_else(|| format!("{name}: no schema"))?;
    let reply = client.call("execute_dynamic_tool", example.clone()).await;
    let expected = example["tool_input"].to_string();
    if !reply.is_error() && reply.text() == expected {
        return Ok(());
    }
    Err(format!("{name}: sent {expected}, got {}", reply.text()))
}
