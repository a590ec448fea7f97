//! Children on Windows, and all that they start.

use std::{process::Stdio, sync::Arc, time::Duration};

use tokio::{
    process::Command,
    time::{sleep, timeout},
};
use win32job::Job;

use super::{job::list, *};
use crate::{HelperLimits, Pace};

/// Starts a shell that starts another one; both wait for input.
fn start() -> (Tree, Arc<Job>) {
    let mut command = Command::new("cmd.exe");
    command.args(["/d", "/c", "cmd.exe /d /q"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let tree = Spawner::default().spawn(command).unwrap();
    let job = Arc::clone(&tree.job);
    (tree, job)
}

async fn until(mut is_true: impl FnMut() -> bool) {
    let waiting = async {
        while !is_true() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), waiting).await.unwrap();
}

#[tokio::test]
async fn a_child_and_what_it_started_are_one_tree_and_end_with_it() {
    let (tree, job) = start();
    let child = tree.id().unwrap();
    until(|| list(&job).unwrap().len() >= 2).await;
    assert!(list(&job).unwrap().contains(&child) && is_same_user(child));
    assert!(group_memory()[&child.cast_signed()] > 0);
    drop(tree);
    until(|| list(&job).unwrap().is_empty()).await;
}

#[tokio::test]
async fn a_stop_waits_for_the_end_of_input_and_then_ends_the_job() {
    for is_told in [true, false] {
        let (mut tree, job) = start();
        until(|| list(&job).unwrap().len() >= 2).await;
        let kept = tree.take_stdin().filter(|_| !is_told);
        assert!(!tree.has_left());
        tree.stop(Pace::Hurried).await;
        assert!(list(&job).unwrap().is_empty() && tree.has_left());
        drop(kept);
    }
}

#[test]
fn a_helper_whose_parent_has_ended_is_refused() {
    let limits = HelperLimits {
        // Pids are multiples of four.
        parent: Some(u32::MAX),
        memory_bytes: u64::MAX,
        processor_s: 1_000,
        file_bytes: None,
    };
    let refused = limits.apply().unwrap_err().to_string();
    assert_eq!(refused, "the parent process has ended");
}

#[test]
fn our_user_time_and_memory_are_known() {
    assert!(own_user().unwrap().starts_with("S-1-"));
    assert!(own_memory().unwrap() > 0);
    let before = processor_time();
    while processor_time() == before {}
}

/// Wine does not tell it, so `.ci/ports` leaves this test out.
#[test]
fn our_committed_memory_is_known() {
    assert!(memory::committed_memory().unwrap() > 0);
}
