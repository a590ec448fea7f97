//! What a server is given in confidence shows up nowhere.

use std::{fs, path::Path};

use journeys::{
    client::Client,
    fake::Step,
    house::{Fake, House, Output, fake, program},
};
use serde_json::json;

use crate::house;

const SECRET: &str = "sk-live-5f1e9c0b7a";

/// A server that blurts its token out and dies, beside one that works.
fn house_with_a_blabber() -> House {
    let house = house([fake("good").tool("echo", Step::Echo)]);
    let script = "echo \"token $TOKEN is refused\" >&2; echo \"$TOKEN\"; exit 3";
    house.add(program("blabber", "sh", ["-c", script]).env("TOKEN", "${BLABBER_TOKEN}"));
    house
}

async fn run(house: &House, args: &[&str]) -> Output {
    let mut command = house.command(args);
    command.env("BLABBER_TOKEN", SECRET);
    let output = command.output().await.unwrap();
    Output {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

#[tokio::test]
async fn a_token_is_in_no_message_and_in_no_file() {
    let house = house_with_a_blabber();
    let reindexed = run(&house, &["-vv", "reindex"]).await;
    let said = format!("{}{}", reindexed.stdout, reindexed.stderr);
    assert!(said.contains("is refused"), "{said}");
    assert!(!said.contains(SECRET), "{said}");

    let mut command = house.command(["-vv", "serve", "--standalone"]);
    command.env("BLABBER_TOKEN", SECRET);
    let client = Client::start(command);
    client.initialize("2025-11-25").await;
    client.execute("good/echo", json!({})).await.good();
    for query in ["token", "do echo", "*"] {
        let answer = client.search(query).await;
        assert!(!answer.raw().contains(SECRET), "{}", answer.raw());
    }
    client.close().await;
    assert!(!client.stderr().contains(SECRET), "{}", client.stderr());
    assert_eq!(
        files_with(SECRET, &house.path("xdg-state")),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn a_server_that_died_of_its_token_is_explained_without_it() {
    let house = house::<Fake>([]);
    let gate = house.path("gate");
    let fails = format!(
        "if test -e {}; then echo \"bad $TOKEN\" >&2; exit 3; fi; exec \"$0\" \"$@\"",
        gate.display()
    );
    let good = fake("frail").tool("act", Step::Echo);
    let table = house_table(&house, good);
    let (command, script) = table;
    let args = ["-c", &fails, &command, "--script-file", &script];
    house.add(program("frail", "sh", args).env("TOKEN", "${BLABBER_TOKEN}"));
    run(&house, &["reindex"]).await.ended(0);
    fs::write(gate, "").unwrap();

    let call = run(&house, &["call", "frail/act"]).await;
    assert_eq!(call.code, Some(1));
    assert!(
        call.stderr.contains("server_unavailable"),
        "{}",
        call.stderr
    );
    assert!(call.stderr.contains("bad ***"), "{}", call.stderr);
    let said = format!("{}{}", call.stdout, call.stderr);
    assert!(!said.contains(SECRET), "{said}");
    assert_eq!(
        files_with(SECRET, &house.path("xdg-state")),
        Vec::<String>::new()
    );
}

/// The command and the script file of a fake that is started by something else.
fn house_table(house: &House, server: Fake) -> (String, String) {
    let script = serde_json::to_string(&server.into_script()).unwrap();
    let file = house.write("frail.json", &script);
    let command = crate::programs().fake_server;
    (command.display().to_string(), file.display().to_string())
}

/// The files below that hold this text.
fn files_with(text: &str, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(text, &path));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let is_in = bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes());
        found.extend(is_in.then(|| path.display().to_string()));
    }
    found
}
