use std::{fs, path::Path, sync::Arc};

use super::{Running, Surroundings, find_command};
use files::LOG_BYTES_MAX;

use crate::{Launch, ServerSpec, Template, Variables, error::Failure, log::log_path};

fn template(text: &str) -> Template {
    Template::parse(&text.replace('$', "$$")).unwrap()
}

/// A server that is a script for `sh`.
fn shell(script: &str) -> ServerSpec {
    let launch = Launch::Child {
        command: template("sh"),
        args: vec![template("-c"), template(script)],
        env: vec![("API_TOKEN".to_owned(), template("hunter2hunter2"))],
        cwd: None,
    };
    ServerSpec::new("shell".parse().unwrap(), launch)
}

fn surroundings(log_folder: Option<&Path>) -> Arc<Surroundings> {
    Arc::new(Surroundings {
        log_folder: log_folder.map(Path::to_owned),
        ..Surroundings::default()
    })
}

fn spawn(
    spec: &ServerSpec,
    surroundings: &Arc<Surroundings>,
) -> Result<(Running, super::Pipes), Failure> {
    Running::spawn(spec, &Variables::default(), surroundings)
}

/// Starts a script, and waits until the last thing it wrote to stderr is `last`. Its stdin is
/// closed, as a stop begins.
async fn started(script: &str, last: &str, surroundings: &Arc<Surroundings>) -> Running {
    let (running, pipes) = spawn(&shell(script), surroundings).unwrap();
    drop(pipes);
    while running.with_stderr(Failure::new("")).stderr.as_deref() != Some(last) {
        tokio::task::yield_now().await;
    }
    running
}

#[tokio::test]
async fn stderr_is_logged_line_by_line_without_secrets_and_colours() {
    let folder = tempfile::tempdir().unwrap();
    let script = "printf '\\033[31mred\\033[0m \\377 token %s\\n\\nhalf' $API_TOKEN >&2; echo >&2
        printf '%02045d%s%03000d\\n' 0 $API_TOKEN 0 >&2; printf 'no end' >&2";
    let surroundings = surroundings(Some(folder.path()));
    let (running, pipes) = spawn(&shell(script), &surroundings).unwrap();
    drop(pipes);
    running.stop().await;

    let log = fs::read_to_string(log_path(folder.path(), &"shell".parse().unwrap())).unwrap();
    let lines: Vec<&str> = log
        .lines()
        .map(|line| line.split_once("Z ").unwrap().1)
        .collect();
    let cut = format!("{}***", "0".repeat(2045));
    let expected = ["red \u{fffd} token ***", "", "half", &cut, "no end"];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_flood_on_stderr_does_not_stop_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = surroundings(Some(folder.path()));
    let script = "yes 'a line of some length' | head -c 8000000 >&2; head -c 8000000 /dev/zero >&2; echo >&2; echo done >&2";
    let mut running = started(script, "done", &surroundings).await;
    let failure = running.exit_reason().await;
    assert_eq!(failure.why, "it exited with code 0");
    running.stop().await;

    let log = log_path(folder.path(), &"shell".parse().unwrap());
    assert!(fs::read_to_string(&log).unwrap().ends_with("Z done\n"));
    for file in fs::read_dir(folder.path()).unwrap() {
        assert!(file.unwrap().metadata().unwrap().len() <= LOG_BYTES_MAX);
    }
}

#[test]
fn a_command_that_is_not_found_says_how_it_is_had() {
    let check = |command: &str, why: &str, hint: &str| {
        let launch = Launch::Child {
            command: template(command),
            args: Vec::new(),
            env: vec![("PATH".to_owned(), template("/nowhere:/nowhere/bin"))],
            cwd: None,
        };
        let spec = ServerSpec::new("shell".parse().unwrap(), launch);
        let failure = spawn(&spec, &surroundings(None)).unwrap_err();
        assert_eq!(failure.why, why);
        let told = failure.hint.unwrap();
        assert!(told.contains(hint), "{told}");
        assert!(find_command(&spec).is_err());
    };
    let missing = "command `no-such-program` not found on its `PATH`";
    check("no-such-program", missing, "install `no-such-program`");
    let (npx, uvx) = (
        "command `npx` not found on its `PATH`",
        "command `uvx` not found on its `PATH`",
    );
    check("npx", npx, "https://nodejs.org");
    check("uvx", uvx, "https://astral.sh/uv");
    let path = "/nowhere/server.py";
    check(
        path,
        "there is no program /nowhere/server.py",
        "look at `command`",
    );
}
