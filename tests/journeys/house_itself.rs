//! The house writes a configuration that says what the test said.

use std::fs;

use journeys::{
    fake::Script,
    house::{Server, fake, program},
};

use crate::{house, programs};

#[tokio::test]
async fn a_server_becomes_a_table_and_a_script() {
    let files = fake("files")
        .tool("read", journeys::fake::Step::Echo)
        .setting("timeout_s = 1");
    let other = program("other", "some \"thing\"", ["--flag"]).env("KEY", "a b");
    let house = house([Server::from(files.clone()), other.into()]);

    let config = fs::read_to_string(house.config()).unwrap();
    let marker = house.path("");
    let marker = marker.display().to_string();
    let marker = marker.trim_end_matches('/');
    let fake_server = programs().fake_server;
    let expected = format!(
        r#"[servers."files"]
command = "{}"
args = ["--script-file", "{marker}/files.script.json"]
env = {{ "PROXY_TEST_HOUSE" = "{marker}" }}
timeout_s = 1

[servers."other"]
command = "some \"thing\""
args = ["--flag"]
env = {{ "KEY" = "a b", "PROXY_TEST_HOUSE" = "{marker}" }}
"#,
        fake_server.display()
    );
    assert_eq!(config, expected);

    let written = fs::read_to_string(house.path("files.script.json")).unwrap();
    let mut script: Script = serde_json::from_str(&written).unwrap();
    assert_eq!(script.record.take(), Some(house.path("files.received")));
    assert_eq!(script, files.into_script());
    house.stops_clean().await;
}
