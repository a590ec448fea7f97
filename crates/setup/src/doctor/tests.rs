//! Checks of typical configurations.

use std::collections::BTreeMap;

use super::*;

fn settings(toml: &str) -> gateway::Settings {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, toml).unwrap();
    let overrides = config::Overrides {
        config: Some(file),
        state_dir: Some(folder.path().join("state")),
        log: None,
    };
    let env: config::Environment = std::iter::empty::<(String, String)>().collect();
    config::load(&overrides, &env).unwrap().gateway
}

fn render(checks: &[Check]) -> String {
    let line = |check: &Check| {
        let next = check.next.as_deref().unwrap_or("-");
        format!(
            "{:?} {}: {} -> {next}",
            check.verdict, check.about, check.found
        )
    };
    checks.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_variable_that_is_not_set_says_where_its_value_is_had() {
    let settings = settings(
        r#"
[servers.tavily]
command = "npx"
args = ["-y", "tavily-mcp@latest"]
env = { TAVILY_API_KEY = "${TAVILY_API_KEY}", MODE = "${MODE:-fast}" }
[servers.off]
command = "x"
args = ["${NOT_SET}"]
enabled = false
"#,
    );
    assert_eq!(
        render(&check_variables(&settings, |_| None)),
        "Problem server tavily: variable `TAVILY_API_KEY` is not set -> export TAVILY_API_KEY=... \
         (from tavily.com dashboard) in the environment that starts the client"
    );
    assert!(check_variables(&settings, |_| Some("x".to_owned())).is_empty());
}

#[test]
fn an_argument_that_only_a_shell_would_read_is_told_with_what_to_write() {
    let settings = settings(
        r#"
[servers.files]
command = "npx"
args = ["-y", "files", "~/notes", "--root=~/x", "$HOME/y", "${HOME}/z", "a~b", "costs $5", "^a$"]
[servers.script]
command = "/bin/sh"
args = ["-c", "cd ~/x && exec $PROGRAM"]
"#,
    );
    let told = render(&check_arguments(&settings));
    let lines: Vec<&str> = told.lines().collect();
    let home = "Warning server files: `args` contains `~`, which is not expanded, because no shell starts the server -> write `${HOME}`";
    let name = "Warning server files: `args` contains `$HOME`, which is not expanded, because no shell starts the server -> write `${HOME}`";
    assert_eq!(lines, [home, home, name]);
}

#[test]
fn one_server_twice_is_told() {
    let settings = settings(
        r#"
[servers.one]
command = "npx"
args = ["-y", "mcp-mermaid"]
[servers.two]
command = "npx"
args = ["-y", "mcp-mermaid"]
[servers.three]
command = "npx"
args = ["-y", "mcp-mermaid", "--other"]
"#,
    );
    assert_eq!(
        render(&check_twins(&settings)),
        "Warning server two: has the same command or address as server one: each of its tools exists twice -> proxy remove two"
    );
}

#[test]
fn what_should_no_longer_be_used_names_what_should() {
    let settings = settings(
        r#"
[servers.jira]
url = "https://mcp.atlassian.com/v1/sse"
[servers.gh]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-github@2025.4.8"]
[servers.new]
url = "https://mcp.atlassian.com/v2/mcp"
"#,
    );
    let told = render(&check_addresses(&settings));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines[0],
        "Warning server jira: address https://mcp.atlassian.com/v1/sse is deprecated -> write `url = \"https://mcp.atlassian.com/v2/mcp\"`"
    );
    assert!(
        lines[1]
            .starts_with("Warning server gh: package @modelcontextprotocol/server-github@2025.4.8"),
        "{told}"
    );
    assert_eq!(lines.len(), 2, "{told}");
}

#[test]
fn secrets_in_clear_are_told_without_being_shown() {
    let settings = settings(
        r#"
[servers.a]
command = "npx"
args = ["--api-key=hunter2hunter2", "--token", "hunter2hunter2", "--key-file", "/a/b/c/d/e"]
env = { GITHUB_TOKEN = "hunter2hunter2", KEY_FILE = "/home/ada/key", OTHER = "${FROM_OUTSIDE}", X = "ghp_hunter2hunter2", MY_PASS = "${MY_PASS}" }
[servers.b]
url = "https://ada:hunter2hunter2@example.com/mcp"
headers = { Authorization = "Bearer hunter2hunter2", X-Team = "webbwebbweb" }
[servers.c]
url = "https://example.com/mcp?token=hunter2hunter2"
[servers.d]
url = "https://example.com/mcp?team=hunter2hunter2"
headers = { Authorization = "Bearer ${TOKEN}" }
"#,
    );
    let checks = check_secrets(&settings);
    let told = render(&checks);
    assert!(!told.contains("hunter2"), "{told}");
    let keys: Vec<&str> = told
        .lines()
        .map(|line| line.split('`').nth(1).unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "args",
            "env.GITHUB_TOKEN",
            "env.X",
            "url",
            "headers.Authorization",
            "url"
        ]
    );
}

#[test]
fn an_old_runtime_is_told_where_it_takes_an_old_release() {
    let settings = settings(
        r#"
[servers.db]
command = "npx"
args = ["-y", "@bytebase/dbhub@latest", "--transport", "stdio"]
env = { DSN = "sqlite:///x" }
[servers.home]
command = "/usr/bin/uvx"
args = ["ha-mcp"]
[servers.mine]
command = "python3"
args = ["server.py"]
"#,
    );
    assert_eq!(
        programs(&settings).into_iter().collect::<Vec<_>>(),
        ["node", "python3", "uv"]
    );
    let versions = |node: &str, python: &str| {
        BTreeMap::from([("node", node.to_owned()), ("python3", python.to_owned())])
    };
    assert!(check_runtimes(&settings, &versions("24.1.0", "3.13.2")).is_empty());
    let told = check_runtimes(&settings, &versions("20.20.2", "3.12.1"));
    let about: Vec<&str> = told.iter().map(|check| check.about.as_str()).collect();
    assert_eq!(about, ["server db", "server home"]);
    assert!(told[0].found.contains("with 20.20.2"), "{}", told[0].found);
}

#[test]
fn a_server_of_one_client_should_not_be_shared() {
    let settings = settings(
        r#"
[servers.browser]
command = "npx"
args = ["-y", "@playwright/mcp@latest"]
[servers.mine]
command = "npx"
args = ["-y", "chrome-devtools-mcp@latest"]
scope = "client"
[servers.alone]
command = "uvx"
[servers.other]
command = "npx"
"#,
    );
    let missing = |spec: &fleet::ServerSpec| match spec.name.as_str() {
        "mine" | "other" => Err(fleet::Failure::new("command `npx` not found")),
        "alone" => Err(fleet::Failure::new("command `uvx` not found")),
        _ => Ok(()),
    };
    assert_eq!(
        render(&check_commands(&settings, |_| None, missing)),
        "Warning server browser: keeps the state of one client (a browser, a folder), but is shared by all \
         -> write `scope = \"client\"` below [servers.browser]\n\
         Problem servers: command `npx` not found: it starts mine, other -> -\n\
         Problem server alone: command `uvx` not found -> -"
    );
}

#[test]
fn a_failure_is_told_with_what_the_recipe_of_its_server_knows() {
    let settings = settings(
        r#"
[servers.db]
command = "uvx"
args = ["mcp-server-sqlite", "--db-path", "${DB:-hunter2}"]
[servers.ci]
command = "npx"
args = ["-y", "@circleci/mcp-server-circleci@latest"]
[servers.time]
command = "uvx"
args = ["mcp-server-time"]
"#,
    );
    let mut checks: Vec<Check> = ["db", "ci", "time"]
        .map(|name| Check::problem(format!("server {name}"), "it ended").then("proxy logs"))
        .into();
    advise(&settings, &mut checks, true);
    let told = render(&checks);
    assert!(
        told.contains("write \"--with\", \"mcp<2\" before \"mcp-server-sqlite\" in `args` of [servers.db]; else: proxy logs"),
        "{told}"
    );
    assert!(told.contains("it needs CIRCLECI_TOKEN"), "{told}");
    assert!(
        told.ends_with("server time: it ended -> proxy logs"),
        "{told}"
    );
    assert!(!told.contains("hunter2"), "{told}");

    let mut unasked = Vec::new();
    advise(&settings, &mut unasked, false);
    assert_eq!(unasked.len(), 1, "{}", render(&unasked));
    advise(&settings, &mut unasked, true);
    assert_eq!(unasked.len(), 1);
}
