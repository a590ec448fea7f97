use std::{fs, path::Path, sync::Arc};

use super::{Running, Surroundings};
use crate::{
    Launch, ServerSpec, Template, error::Failure, group::Group, limits::LOG_BYTES_MAX,
    log::log_path,
};

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

/// Starts a script, and waits until the last thing it wrote to stderr is `last`. Its stdin is
/// closed, as a stop begins.
async fn started(script: &str, last: &str, surroundings: &Arc<Surroundings>) -> Running {
    let (running, pipes) = Running::spawn(&shell(script), surroundings).unwrap();
    drop(pipes);
    while running.blame(Failure::new("")).stderr.as_deref() != Some(last) {
        tokio::task::yield_now().await;
    }
    running
}

fn group(running: &Running) -> Group {
    running.group.unwrap()
}

async fn check_stop(script: &str) {
    let running = started(script, "ready", &surroundings(None)).await;
    let (group, leader) = (group(&running), running.id().unwrap());
    assert!(group.lives());
    running.stop().await;
    assert!(!group.lives(), "{script}");
    let zombie = Path::new("/proc").join(leader.to_string());
    assert!(!zombie.exists(), "{script}");
}

#[tokio::test]
async fn a_stop_leaves_nobody_whatever_the_children_do() {
    let scripts = [
        "echo ready >&2; read line",
        "echo ready >&2; sleep 1000",
        "sleep 1000 & echo ready >&2",
        r#"trap "" TERM; echo ready >&2; sleep 1000 & wait"#,
        r#"trap "" TERM; sleep 1000 & echo ready >&2; exit 1"#,
        r#"sh -c 'trap "" TERM; sh -c "echo ready >&2; sleep 1000; :"; :'; :"#,
        "echo ready >&2; kill -STOP $$",
    ];
    futures::future::join_all(scripts.map(check_stop)).await;
}

#[tokio::test]
async fn after_term_the_whole_group_has_time_to_end_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note");
    let script = format!(
        "(trap 'sleep 0.2; echo bye > {}; exit' TERM; echo ready >&2; while :; do sleep 0.01; done) &",
        note.display()
    );
    check_stop(&script).await;
    assert_eq!(fs::read_to_string(note).unwrap(), "bye\n");
}

#[tokio::test]
async fn a_child_that_is_dropped_is_killed_with_its_group() {
    let running = started(
        "sleep 1000 & echo ready >&2; wait",
        "ready",
        &surroundings(None),
    )
    .await;
    let group = group(&running);
    drop(running);
    while group.lives() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn stderr_is_logged_line_by_line_without_secrets_and_colours() {
    let folder = tempfile::tempdir().unwrap();
    let script = "printf '\\033[31mred\\033[0m \\377 token %s\\n\\nhalf' $API_TOKEN >&2; echo >&2
        printf '%02045d%s%03000d\\n' 0 $API_TOKEN 0 >&2; printf 'no end' >&2";
    let surroundings = surroundings(Some(folder.path()));
    let (running, pipes) = Running::spawn(&shell(script), &surroundings).unwrap();
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
    let failure = running.autopsy().await;
    assert_eq!(failure.why, "it exited with code 0");
    running.stop().await;

    let log = log_path(folder.path(), &"shell".parse().unwrap());
    assert!(fs::read_to_string(&log).unwrap().ends_with("Z done\n"));
    for file in fs::read_dir(folder.path()).unwrap() {
        assert!(file.unwrap().metadata().unwrap().len() <= LOG_BYTES_MAX);
    }
}

#[test]
fn a_command_that_is_not_found_says_where_it_was_looked_for() {
    let launch = Launch::Child {
        command: template("no-such-program"),
        args: Vec::new(),
        env: vec![("PATH".to_owned(), template("/nowhere:/bin"))],
        cwd: None,
    };
    let spec = ServerSpec::new("shell".parse().unwrap(), launch);
    let failure = Running::spawn(&spec, &surroundings(None)).unwrap_err();
    assert_eq!(
        failure.why,
        "command `no-such-program` not found; searched /nowhere:/bin"
    );
}
