mod reuse;

use std::{fs, process::Stdio, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{ChildStderr, Command},
};

use super::Tree;
use crate::{
    Pace, Spawner,
    group::{Group, wait_until},
    limits::TEST_WAIT,
    mark::Mark,
    proc::read_process,
    proof::{Claim, ClaimedMarks, ProcessTable},
};

/// Starts a script with `sh`. Its children may keep its stderr open.
fn spawn(script: &str, spawner: &Arc<Spawner>) -> Tree {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    spawner.spawn(command).unwrap()
}

/// Waits for the line `ready` on stderr, which stays open.
async fn ready(tree: &mut Tree) -> Lines<BufReader<ChildStderr>> {
    let mut lines = BufReader::new(tree.take_stderr().unwrap()).lines();
    let line = lines.next_line().await.unwrap();
    assert_eq!(line.as_deref(), Some("ready"));
    lines
}

/// A child and all of its descendants.
struct All {
    group: Group,
    mark: Mark,
}

impl All {
    fn of(tree: &Tree) -> Self {
        Self {
            group: tree.group.clone().unwrap(),
            mark: tree.mark.clone().unwrap(),
        }
    }

    fn living(&self) -> usize {
        let claim = Claim {
            groups: std::slice::from_ref(&self.group),
            marks: ClaimedMarks::Child(&self.mark),
        };
        ProcessTable::near().find(&claim).len()
    }
}

async fn check_stop(script: &str) {
    let mut tree = spawn(script, &Arc::default());
    let _stderr = ready(&mut tree).await;
    let (all, leader) = (All::of(&tree), tree.id().unwrap());
    assert!(all.living() > 0);
    drop(tree.take_stdin());
    tree.stop(Pace::Hurried).await;
    // On a busy system, processes may still exist shortly after SIGKILL.
    assert!(wait_until(TEST_WAIT, || all.living() == 0), "{script}");
    assert!(read_process(leader.cast_signed()).is_none(), "{script}");
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
        // These processes move to groups of their own.
        "bash -c 'set -m; sleep 1000 & echo ready >&2'",
        r#"bash -c 'set -m; (trap "" TERM; echo ready >&2; sleep 1000; :) & wait'; :"#,
        "bash -c 'set -m; sleep 1000 | env -i sleep 1000 & echo ready >&2; exec sleep 1000'",
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
async fn a_stop_that_can_wait_lets_a_child_write_what_it_has() {
    let check = async |script: &str| {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note");
        let script = script.replace("WRITES", &format!("sleep 2; echo bye > {}", note.display()));
        let mut tree = spawn(&script, &Arc::default());
        let _stderr = ready(&mut tree).await;
        drop(tree.take_stdin());
        tree.stop(Pace::Unhurried).await;
        assert_eq!(fs::read_to_string(note).unwrap(), "bye\n", "{script}");
    };
    tokio::join!(
        check("echo ready >&2; cat >/dev/null; WRITES"),
        // Ignores the end of input, as servers with a timer do.
        check("trap 'WRITES; exit' TERM; echo ready >&2; while :; do sleep 0.01; done"),
    );
}

#[tokio::test]
async fn a_child_that_is_dropped_is_killed_with_all_it_started() {
    let scripts = [
        "sleep 1000 & echo ready >&2; wait",
        "bash -c 'set -m; sleep 1000 & echo ready >&2; wait'",
    ];
    for script in scripts {
        let mut tree = spawn(script, &Arc::default());
        let _stderr = ready(&mut tree).await;
        let all = All::of(&tree);
        drop(tree);
        assert!(wait_until(TEST_WAIT, || all.living() == 0), "{script}");
    }
}
