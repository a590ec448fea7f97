//! `proxy doctor` reports problems and the commands that solve them.

use journeys::{
    fake::Step,
    house::{Fake, House, Output, fake},
};
use serde_json::Value;

use crate::house;

/// Returns the checks about a subject: verdict, and finding with advice.
fn told(output: &Output, about: &str) -> Vec<(String, String)> {
    let checks = output.json()["checks"].as_array().cloned().unwrap();
    let of = checks.into_iter().filter(|check| check["about"] == about);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of.map(|check| {
        let found = format!("{}; {}", text(&check["found"]), text(&check["next"]));
        (text(&check["verdict"]), found)
    })
    .collect()
}

#[track_caller]
fn check(output: &Output, about: &str, verdict: &str, words: &[&str]) {
    let told = told(output, about);
    let says = |found: &str| words.iter().all(|word| found.contains(word));
    let is_told = told.iter().any(|(is, found)| is == verdict && says(found));
    assert!(is_told, "{about}, {words:?}: {told:#?}");
}

fn quick() -> Fake {
    fake("quick").tool("status", Step::Echo)
}

#[tokio::test]
async fn a_house_in_order_has_no_problem() {
    let house = house([quick()]);
    house.indexed().await;
    let output = house.cli(["doctor", "--json"]).await;
    output.ended(0);
    check(
        &output,
        "server quick",
        "fine",
        &["1 tool in ", "revision 20"],
    );
    check(&output, "state folder", "fine", &["state"]);
    check(&output, "daemon", "fine", &["not running"]);
    let shown = house.cli(["doctor"]).await;
    assert!(
        shown.ended(0).contains("✓ server quick"),
        "{}",
        shown.stdout
    );
    house.stops_clean().await;
}

const MUCH_WRONG: &str = r#"
[servers.quick.tools]
deny = ["statsu"]
[servers.needy]
command = "sh"
args = ["-c", "exit 0", "${NO_SUCH_VARIABLE}"]
[servers.gone]
command = "no-such-program"
[servers.broken]
command = "sh"
args = ["-c", "echo 'docker: Cannot connect to the Docker daemon at unix:///x.' >&2; exit 125"]
env = { API_TOKEN = "hunter2hunter2" }
[servers.talker]
command = "sh"
args = ["-c", "echo Listening on port 3000"]
[servers.dead]
url = "http://127.0.0.1:9/mcp"
"#;

#[tokio::test]
async fn each_thing_that_is_wrong_says_what_to_type() {
    let house = house([quick()]);
    house.indexed().await;
    house.configure_more(MUCH_WRONG);
    let output = house.cli(["doctor", "--json"]).await;
    output.ended(1);
    let wrong: [(&str, &str, &[&str]); 7] = [
        (
            "server needy",
            "problem",
            &["`NO_SUCH_VARIABLE` is not set", "export NO_SUCH_VARIABLE="],
        ),
        (
            "server gone",
            "problem",
            &["not found", "install `no-such-program`"],
        ),
        (
            "server broken",
            "problem",
            &["Cannot connect to the Docker daemon", "start Docker"],
        ),
        (
            "server broken",
            "warning",
            &[
                "`env.API_TOKEN` contains a secret in clear text",
                "proxy secret set API_TOKEN",
            ],
        ),
        (
            "server talker",
            "problem",
            &["`Listening on port 3000`", "is it an MCP server"],
        ),
        (
            "server dead",
            "problem",
            &["nothing listens at 127.0.0.1:", "port of `url`"],
        ),
        (
            "server quick",
            "problem",
            &[
                "`tools.deny \"statsu\"` matches no known tool of this server",
                "did you mean status?",
            ],
        ),
    ];
    for (about, verdict, words) in wrong {
        check(&output, about, verdict, words);
    }
    assert!(!output.stdout.contains("hunter2"), "{}", output.stdout);
    // A server that is known to be broken is not started.
    assert_eq!(told(&output, "server gone").len(), 1);

    let offline = house.cli(["doctor", "--offline", "--json"]).await;
    offline.ended(1);
    assert!(told(&offline, "server dead").is_empty());

    let checked = house.cli(["config", "check"]).await;
    let checked = checked.ended(1);
    assert!(checked.contains("rules that match nothing: 1"), "{checked}");
    assert!(checked.contains("did you mean status?"), "{checked}");
    house.stops_clean().await;
}

#[tokio::test]
async fn a_file_with_mistakes_and_no_file_are_problems_with_a_next_step() {
    let house = house::<Fake>([]);
    house.configure("[servers.x]\ncomand = \"y\"\n");
    let output = house.cli(["doctor", "--json"]).await;
    output.ended(1);
    check(
        &output,
        "configuration",
        "problem",
        &["comand", "proxy config check"],
    );

    let nowhere = House::without_config(&crate::programs());
    let output = nowhere.cli(["doctor", "--json"]).await;
    output.ended(1);
    check(
        &output,
        "configuration",
        "problem",
        &["config.toml", "proxy add NAME"],
    );
}

#[tokio::test]
async fn clients_that_list_what_we_have_and_entries_of_other_builds_are_told() {
    let house = house::<Fake>([]);
    house.configure("[servers.memory]\ncommand = \"npx\"\nargs = [\"-y\", \"no-such-memory\"]\n");
    house.write(
        ".claude.json",
        r#"{"mcpServers": {
            "memory": {"command": "npx", "args": ["-y", "no-such-memory"]},
            "proxy": {"command": "/nowhere/proxy", "args": ["serve"]}
        }}"#,
    );
    let output = house.cli(["doctor", "--offline", "--json"]).await;
    output.ended(1);
    check(
        &output,
        "client Claude Code",
        "warning",
        &[
            "still lists `memory`",
            "server memory here",
            "proxy init --client",
        ],
    );
    check(
        &output,
        "client Claude Code",
        "problem",
        &["/nowhere/proxy", "does not exist"],
    );
}
