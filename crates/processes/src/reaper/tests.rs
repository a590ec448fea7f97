use std::{
    io::{self, BufRead as _, BufReader},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{Reaper, reap};
use crate::{
    Pace, Spawner,
    clock::machine_time,
    group::{Group, end, wait_until},
    limits::TEST_WAIT,
    proc::read_process,
    proof::{Claim, ClaimedMarks, Ours, ProcessTable},
};

fn members(group: &Group) -> Vec<Ours> {
    let groups = std::slice::from_ref(group);
    let marks = ClaimedMarks::None;
    ProcessTable::near().find(&Claim { groups, marks })
}

fn lives(group: &Group) -> bool {
    !members(group).is_empty()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a reaper that was started here and not waited for"
)]
fn send(pid: Pid, signal: Signal) {
    kill_process(pid, signal).unwrap();
}

/// Starts a process that leads a group of its own and handles signals, and another process in the
/// group.
fn leader(script: &str) -> (Child, Group) {
    script_leader(&format!("{script}\nsleep 1000 & echo ready; wait; wait"))
}

fn script_leader(script: &str) -> (Child, Group) {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let group = Group::led_by(child.id()).unwrap();
    (child, group)
}

fn by(signal: Signal) -> ExitStatus {
    ExitStatus::from_raw(signal.as_raw())
}

#[test]
fn at_the_end_of_its_input_it_ends_who_it_still_knows() {
    let (mut polite, first) = leader("");
    let (mut stubborn, second) = leader("trap '' TERM");
    let (mut forgotten, third) = leader("");
    let notes = format!(
        "+{first}\n+{second}\nnoise\n+0\n+1\n+{third}\n-{}\n",
        third.id()
    );

    reap(notes.as_bytes());

    assert_eq!(polite.wait().unwrap(), by(Signal::TERM));
    assert_eq!(stubborn.wait().unwrap(), by(Signal::KILL));
    assert_eq!(forgotten.try_wait().unwrap(), None);
    assert_eq!(end(|| members(&third)), 1);
    forgotten.wait().unwrap();
    for group in [first, second, third] {
        assert!(wait_until(TEST_WAIT, || !lives(&group)));
    }
}

/// The owner lives, as one that stands still does: its input stays open.
#[test]
fn at_a_deadline_it_ends_the_groups_that_have_one() {
    let (mut late, first) = leader("");
    let (mut free, second) = leader("");
    let (mut later, third) = leader("");
    let (input, mut owner) = std::io::pipe().unwrap();
    let reaping = std::thread::spawn(move || reap(BufReader::new(input)));
    let mut tell = |notes: &str| io::Write::write_all(&mut owner, notes.as_bytes()).unwrap();
    let soon = machine_time() + Duration::from_hours(1);
    tell(&format!("!{}\n@- {first}\n+{second}\n", soon.as_millis()));
    assert_eq!(late.try_wait().unwrap(), None, "it is not due");
    tell(&format!("!{}\n", machine_time().as_millis()));
    assert_eq!(late.wait().unwrap(), by(Signal::TERM));
    // A child that is registered too late ends at once.
    tell(&format!("@7 {third}\n"));
    assert_eq!(later.wait().unwrap(), by(Signal::TERM));
    assert_eq!(free.try_wait().unwrap(), None, "it has no deadline");
    drop(owner);
    reaping.join().unwrap();
    assert_eq!(free.wait().unwrap(), by(Signal::TERM));
    for group in [first, second, third] {
        assert!(wait_until(TEST_WAIT, || !lives(&group)));
    }
}

/// Tests a group without marks, whose leader was reaped before the SIGKILL.
#[test]
fn who_was_found_in_a_group_stands_for_it_when_its_leader_is_gone() {
    let script = "(trap '' TERM; echo ready; sleep 1000; :) & wait";
    let (mut child, group) = script_leader(script);
    let id = group.id();
    let reaping = std::thread::spawn(move || reap(format!("+{group}\n").as_bytes()));
    assert_eq!(child.wait().unwrap(), by(Signal::TERM));
    reaping.join().unwrap();
    assert!(ProcessTable::near().led_by(id).is_empty());
}

/// Returns the arguments that run a test of this program as a separate process.
fn role(name: &str) -> Vec<std::ffi::OsString> {
    let test = format!("reaper::tests::{name}");
    let args = [test.as_str(), "--exact", "--ignored", "--nocapture"];
    args.iter().map(Into::into).collect()
}

fn our_reaper() -> Reaper {
    let program = std::env::current_exe().unwrap();
    Reaper::new(program, role("role_of_the_reaper"))
}

#[test]
#[ignore = "a child process of the tests of this file, which start it by name"]
fn role_of_the_reaper() {
    reap(BufReader::new(io::stdin()));
}

fn pid(reaper: &Reaper) -> Pid {
    let watch = reaper.watch.lock();
    Pid::from_child(&watch.process.as_ref().unwrap().child)
}

fn runs(pid: Pid) -> bool {
    let stat = read_process(pid.as_raw_nonzero().get());
    stat.is_some_and(|stat| !stat.is_dead)
}

#[test]
fn a_reaper_that_died_is_replaced_and_told_everything_and_goes_with_us() {
    let ours = our_reaper();
    let (mut child, group) = leader("");
    ours.ensure_running();
    ours.watch(&group);
    let first = pid(&ours);
    send(first, Signal::KILL);
    let died = || !ours.watch.lock().is_running();
    assert!(wait_until(TEST_WAIT, died));

    ours.ensure_running();
    let second = pid(&ours);
    assert_ne!(second, first);
    let mut watch = ours.watch.lock();
    let mut process = watch.process.take().unwrap();
    drop(watch);
    // Closes the reaper's input, as the exit of our process would.
    drop(std::mem::replace(&mut process.notes, silent_pipe()));
    assert_eq!(child.wait().unwrap(), by(Signal::TERM));
    let others = || ProcessTable::near().led_by(group.id());
    assert!(wait_until(TEST_WAIT, || others().is_empty()));

    ours.forget(&group);
    ours.ensure_running();
    let third = pid(&ours);
    drop(ours);
    assert!(!runs(third));
}

fn silent_pipe() -> std::process::ChildStdin {
    let mut child = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let pipe = child.stdin.take().unwrap();
    child.wait().unwrap();
    pipe
}

#[test]
fn a_reaper_that_does_not_read_holds_nobody_up() {
    let ours = our_reaper();
    ours.ensure_running();
    let first = pid(&ours);
    send(first, Signal::STOP);
    let (mut child, group) = leader("");
    while pid(&ours) == first {
        ours.watch(&group);
    }
    ours.forget(&group);
    end(|| members(&group));
    child.wait().unwrap();
}

#[tokio::test]
async fn a_child_that_was_stopped_is_forgotten() {
    let spawner = Arc::new(Spawner::new(Some(our_reaper()), "test".to_owned()));
    let mut command = tokio::process::Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut tree = spawner.spawn(command).unwrap();
    assert_eq!(spawner.watched(), 1);
    drop(tree.take_stdin());
    tree.stop(Pace::Hurried).await;
    assert_eq!(spawner.watched(), 0);
}

#[tokio::test]
async fn a_replaced_reaper_is_told_the_deadline_and_ends_also_who_left_the_group() {
    let plain = Spawner::new(Some(our_reaper()), "test".to_owned());
    let spawner = plain.with_deadline();
    let cat = |spawner: &Spawner| {
        let mut command = tokio::process::Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        spawner.spawn(command).unwrap()
    };
    let mut free = cat(&plain);
    let script = "bash -c 'set -m; sleep 1000 & echo $!; wait'; :";
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut tree = spawner.spawn(command).unwrap();
    let mut output = tokio::io::BufReader::new(tree.take_stdout().unwrap());
    let mut line = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut output, &mut line)
        .await
        .unwrap();
    let stray = Group::led_by(line.trim().parse().unwrap()).unwrap();
    assert!(lives(&stray));
    spawner.move_deadline(machine_time() + Duration::from_millis(500));
    send(pid(spawner.reaper()), Signal::KILL);
    let died = || !spawner.reaper().watch.lock().is_running();
    assert!(wait_until(TEST_WAIT, died));
    let mut next = cat(&spawner);
    let has_left = |tree: &mut crate::Tree| wait_until(TEST_WAIT, || tree.has_left());
    assert!(has_left(&mut tree) && has_left(&mut next));
    assert!(wait_until(TEST_WAIT, || !lives(&stray)));
    assert!(!free.has_left());
    for tree in [&mut tree, &mut next, &mut free] {
        drop(tree.take_stdin());
        tree.stop(Pace::Hurried).await;
    }
    assert_eq!(spawner.watched(), 0);
}

/// Runs a proxy with a server under `sh -c`, and a process that moved to a group of its own before
/// we could record it. Prints their groups and waits to be killed.
#[tokio::test]
#[ignore = "a child process of the tests of this file, which start it by name"]
async fn role_of_a_proxy() {
    let spawner = Arc::new(Spawner::new(Some(our_reaper()), "test".to_owned()));
    let script =
        "trap '' TERM; sleep 1000 & bash -c 'set -m; sleep 1000 & echo started $PPID $!; wait'; :";
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut tree = spawner.spawn(command).unwrap();
    let mut output = tokio::io::BufReader::new(tree.take_stdout().unwrap());
    let mut line = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut output, &mut line)
        .await
        .unwrap();
    let reaper = pid(spawner.reaper());
    let line = format!("{} {reaper}\n", line.trim());
    io::Write::write_all(&mut io::stderr(), line.as_bytes()).unwrap();
    std::future::pending::<()>().await;
}

/// A process that is killed at the end of the test, even if it fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).unwrap();
    }
}

#[test]
fn nobody_outlives_a_proxy_that_is_killed() {
    let mut proxy = Ended(
        Command::new(std::env::current_exe().unwrap())
            .args(role("role_of_a_proxy"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap(),
    );
    let output = BufReader::new(proxy.0.stderr.take().unwrap());
    let mut lines = output.lines().map(Result::unwrap);
    let line = lines.find(|line| line.starts_with("started")).unwrap();
    let numbers: Vec<i32> = line
        .split(' ')
        .skip(1)
        .map(|id| id.parse().unwrap())
        .collect();
    let [server, stray, reaper] = numbers[..] else {
        panic!("{line}");
    };
    let groups = [server, stray].map(|id| Group::led_by(id.cast_unsigned()).unwrap());
    assert!(groups.iter().all(lives));
    #[cfg(target_os = "linux")]
    {
        let name = std::fs::read_to_string(format!("/proc/{reaper}/comm")).unwrap();
        assert_eq!(name.trim(), super::NAME);
    }

    drop(proxy);

    assert!(wait_until(TEST_WAIT, || !groups.iter().any(lives)));
    assert!(wait_until(TEST_WAIT, || !runs(
        Pid::from_raw(reaper).unwrap()
    )));
}
