use std::{fs, path::Path};

use bytes::Bytes;
use files::power_loss;
use serde_json::Value;

use super::{AuditLog, Filter, list_segments, read, verify};
use crate::record::{Arguments, CallRecord};

const ROOM: u64 = 256 * 1024;

fn call(client: &str, at_ms: u64, arguments: Arguments) -> Box<CallRecord> {
    Box::new(CallRecord {
        at_ms,
        client: client.to_owned(),
        session: Some(7),
        server: "notes".to_owned(),
        kind: "tool",
        name: "write".to_owned(),
        decision: "allow",
        outcome: "ok".into(),
        bytes: 400,
        bytes_sent: 80,
        micros: 12_345,
        arguments,
        ..CallRecord::default()
    })
}

fn add(log: &mut AuditLog, count: u64) {
    let calls: Vec<_> = (0..count)
        .map(|at| call("test", at, Arguments::None))
        .collect();
    log.append(&calls, 0, ROOM).unwrap();
}

fn lines(folder: &Path, filter: &Filter) -> Vec<Value> {
    let mut lines = Vec::new();
    read(folder, filter, |line| lines.push(line)).unwrap();
    lines
}

#[test]
fn a_line_says_who_called_what_and_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = AuditLog::new(folder.path().join("audit"));
    let json = Bytes::from_static(br#"{"path":"/a","api_key":"sk-1","deep":[{"Auth-Token":"t"}]}"#);
    let calls = [
        call("cursor", 1_000, Arguments::Full(json.clone())),
        call("claude-code", 9_000, Arguments::Digest(json)),
    ];
    log.append(&calls, 2, ROOM).unwrap();
    let all = lines(&folder.path().join("audit"), &Filter::default());
    assert_eq!(all[0]["lost"], 2);
    assert_eq!(all[1]["at"], "1970-01-01T00:00:01.000Z");
    assert_eq!(
        (&all[1]["tool"], &all[1]["tokens"], &all[1]["ms"]),
        (&"write".into(), &20.into(), &12.into())
    );
    let masked: Value =
        serde_json::from_str(r#"{"api_key":"***","deep":[{"Auth-Token":"***"}],"path":"/a"}"#)
            .unwrap();
    assert_eq!(all[1]["arguments"], masked);
    assert!(all[2]["arguments"].as_str().unwrap().starts_with("sha256:"));
    let filter = Filter {
        since_ms: Some(2_000),
        client: Some("Claude-Code".to_owned()),
        ..Filter::default()
    };
    assert_eq!(lines(&folder.path().join("audit"), &filter).len(), 1);
}

#[test]
fn several_processes_write_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (mut ours, mut theirs) = (
        AuditLog::new(folder.path().into()),
        AuditLog::new(folder.path().into()),
    );
    for _ in 0..3 {
        add(&mut ours, 2);
        add(&mut theirs, 3);
    }
    let found = verify(folder.path()).unwrap().unwrap();
    assert_eq!((found.lines, found.first, found.last), (15, 1, 15));
}

#[test]
fn the_room_is_kept_and_what_is_left_is_proved() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = AuditLog::new(folder.path().into());
    for _ in 0..40 {
        add(&mut log, 100);
    }
    let files = list_segments(folder.path()).unwrap();
    let bytes: u64 = files.iter().map(|it| fs::metadata(it).unwrap().len()).sum();
    assert!(bytes <= ROOM, "{bytes}");
    assert!(bytes > ROOM / 2, "{bytes}");
    let found = verify(folder.path()).unwrap().unwrap();
    assert!(found.first > 1);
    assert_eq!(found.last, 4_000);
}

#[test]
fn every_flipped_byte_is_found() {
    let folder = tempfile::tempdir().unwrap();
    add(&mut AuditLog::new(folder.path().into()), 3);
    let path = list_segments(folder.path()).unwrap().remove(0);
    let good = fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, &bad).unwrap();
        assert!(verify(folder.path()).unwrap().is_err(), "byte {at}");
    }
    let (first, rest) = good.split_at(good.iter().position(|it| *it == b'\n').unwrap() + 1);
    let second = rest.iter().position(|it| *it == b'\n').unwrap() + 1;
    fs::write(&path, [first, &rest[second..]].concat()).unwrap();
    assert!(verify(folder.path()).unwrap().is_err(), "a line is gone");
}

/// What a person reads of it, by what was done to a log of several files.
#[test]
fn what_was_done_to_a_log_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = AuditLog::new(folder.path().into());
    for _ in 0..40 {
        add(&mut log, 100);
    }
    let files = list_segments(folder.path()).unwrap();
    assert!(files.len() > 3, "{files:?}");
    let check = |file: usize, change: &dyn Fn(&mut Vec<Vec<u8>>), expected: &str| {
        let good = fs::read(&files[file]).unwrap();
        let lines = good.split_inclusive(|it| *it == b'\n');
        let mut lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
        change(&mut lines);
        fs::write(&files[file], lines.concat()).unwrap();
        let broken = verify(folder.path()).unwrap().expect_err(expected);
        let found = format!("{} {}: {}", broken.file, broken.line, broken.why);
        let name = files[file].file_name().unwrap().to_string_lossy();
        assert_eq!(found, format!("{name} {expected}"));
        fs::write(&files[file], good).unwrap();
    };
    let changed = "it or the line before it was changed, or a line between them was taken out";
    let last = files.len() - 1;
    for file in [0, 1, last] {
        check(file, &|lines| lines[1][20] ^= 1, &format!("2: {changed}"));
        check(
            file,
            &|lines| drop(lines.remove(2)),
            &format!("3: {changed}"),
        );
        check(file, &|lines| lines.swap(2, 3), &format!("3: {changed}"));
    }
    check(
        last,
        &|lines| {
            lines.last_mut().unwrap().pop();
        },
        &format!("{}: it breaks off", count_lines(&files[last])),
    );
    let one = fs::read(&files[1]).unwrap();
    fs::remove_file(&files[1]).unwrap();
    let broken = verify(folder.path()).unwrap().unwrap_err();
    assert_eq!(
        (broken.line, broken.why),
        (1, "lines before it are missing")
    );
    fs::write(&files[1], one).unwrap();
    // The oldest makes room by itself, so only the first number tells.
    let first = verify(folder.path()).unwrap().unwrap().first;
    fs::remove_file(&files[0]).unwrap();
    assert!(verify(folder.path()).unwrap().unwrap().first > first);
}

fn count_lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap().lines().count()
}

#[test]
fn a_line_that_was_not_finished_is_gone_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    add(&mut AuditLog::new(folder.path().into()), 2);
    let path = list_segments(folder.path()).unwrap().remove(0);
    let mut text = fs::read(&path).unwrap();
    text.extend_from_slice(b"{\"n\":3,\"at\":\"20");
    fs::write(&path, text).unwrap();
    add(&mut AuditLog::new(folder.path().into()), 2);
    assert_eq!(verify(folder.path()).unwrap().unwrap().last, 4);
}

#[test]
fn a_loss_of_power_leaves_a_log_that_goes_on_with_every_call_that_was_synced() {
    let folder = tempfile::tempdir().unwrap();
    let audit = |folder: &Path| folder.join("audit");
    let mut log = AuditLog::new(audit(folder.path()));
    let mut before = 0;
    for count in [3, 4] {
        let count_all = before + count;
        power_loss::check(
            folder.path(),
            || add(&mut log, count),
            |state| {
                let audit = audit(state.folder);
                add(&mut AuditLog::new(audit.clone()), 1);
                let found = verify(&audit).unwrap();
                let kept = lines(&audit, &Filter::default()).len() as u64 - 1;
                assert!(
                    found.is_ok() && kept >= before && kept <= count_all,
                    "{found:?}"
                );
                assert!(kept == count_all || !state.is_after_all);
            },
        );
        before = count_all;
    }
}
