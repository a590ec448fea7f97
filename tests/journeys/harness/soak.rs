//! A short soak as a regression test of the soak program.

use std::time::Duration;

use tokio::{process::Command, time::timeout};

/// The timeout of such a run on a busy machine; a hanging client is killed only after a minute.
const ENDS_WITHIN: Duration = Duration::from_mins(4);

async fn soak(args: &str) -> (Option<i32>, String) {
    let mut soak = Command::new(env!("CARGO_BIN_EXE_soak"));
    soak.args(args.split_whitespace()).kill_on_drop(true);
    let output = timeout(ENDS_WITHIN, soak.output()).await;
    let output = output.expect("the soak ends in time").unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), table + &said)
}

#[tokio::test]
async fn calls_alone_are_all_answered_right() {
    let args = "--seconds 30 --calls 300 --fronts 2 --web 1 --servers 6 --no-faults";
    let (code, table) = soak(args).await;
    assert_eq!(code, Some(0), "{table}");
    assert!(table.contains("all well"), "{table}");
}

/// The fault of a full disk needs a file system of its own, which a test may not mount.
#[tokio::test]
async fn faults_lose_no_answer_and_leave_nothing() {
    let args = "--seconds 8 --seed 7 --fault-every-ms 400 --fronts 2 --web 1 --servers 6 \
                --without full-disk";
    let (code, table) = soak(args).await;
    assert_eq!(code, Some(0), "{table}");
}

#[tokio::test]
async fn nodes_that_fail_lose_no_answer_and_run_nothing_twice() {
    let args = "--nodes 3 --nats 3 --seconds 40 --seed 3 --fronts 2 --fault-every-ms 1000";
    let (code, table) = soak(args).await;
    assert_eq!(code, Some(0), "{table}");
    assert!(table.contains("two owners 0"), "{table}");
}

#[tokio::test]
async fn a_crowd_of_nodes_hears_of_a_change_and_is_quiet() {
    let (code, told) = soak("--crowd 20").await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("all well"), "{told}");
}

#[tokio::test]
async fn a_flag_that_is_none_is_told() {
    let (code, said) = soak("--hour 1").await;
    assert_eq!(code, Some(2));
    assert!(said.contains("unknown flag --hour"), "{said}");
}
