use std::{
    fs,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use files::power_loss;
use serde_json::Value;

use super::{
    AuditLog, Broken, Filter, Hide, Verified, find_head, has_lines, list_segments, read, verify,
};
use crate::{
    outcome::Outcome,
    record::{AuditHead, CallRecord, Event, RecordedArguments},
};

const ROOM: u64 = 256 * 1024;

/// Opens a log in the folder `audit`; the secret `hunter2` is masked in arguments.
fn open(folder: &Path) -> AuditLog {
    let hide = |text: &str| Some(text.replace("hunter2", "***"));
    AuditLog::new(folder.join("audit"), Hide::new(hide))
}

fn call(client: &str, at_ms: u64, arguments: RecordedArguments) -> Box<CallRecord> {
    Box::new(CallRecord {
        at_ms,
        client: client.into(),
        session: Some(7),
        server: "notes".into(),
        kind: "tool",
        name: "write".to_owned(),
        decision: "allow",
        outcome: Outcome::OK,
        bytes: 400,
        bytes_sent: 80,
        micros: 12_345,
        arguments,
        ..CallRecord::default()
    })
}

fn append(log: &mut AuditLog, calls: impl IntoIterator<Item = Box<CallRecord>>, lost: u64) {
    let events: Vec<Event> = calls.into_iter().map(Event::Call).collect();
    log.append(&events, lost, ROOM).unwrap();
}

fn add(log: &mut AuditLog, count: u64) {
    let calls = (0..count).map(|at| call("test", at, RecordedArguments::None));
    append(log, calls, 0);
}

fn check_log(folder: &Path) -> std::io::Result<Result<Verified, Broken>> {
    verify(&folder.join("audit"))
}

fn lines(folder: &Path, filter: &Filter) -> Vec<Value> {
    let mut lines = Vec::new();
    read(folder, filter, |line| lines.push(line)).unwrap();
    lines
}

#[test]
fn a_line_says_who_called_what_and_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    let json = Bytes::from_static(
        br#"{"path":"/a","api_key":"sk-1","note":"with hunter2","deep":[{"Auth-Token":"t"}]}"#,
    );
    let calls = [
        call("cursor", 1_000, RecordedArguments::Full(json.clone())),
        call("claude-code", 9_000, RecordedArguments::Digest(json)),
    ];
    append(&mut log, calls, 2);
    let all = lines(&folder.path().join("audit"), &Filter::default());
    assert_eq!(all[0]["lost"], 2);
    assert_eq!(all[1]["at"], "1970-01-01T00:00:01.000Z");
    assert_eq!(
        (&all[1]["tool"], &all[1]["tokens"], &all[1]["ms"]),
        (&"write".into(), &20.into(), &12.into())
    );
    let masked: Value = serde_json::from_str(
        r#"{"api_key":"***","deep":[{"Auth-Token":"***"}],"note":"with ***","path":"/a"}"#,
    )
    .unwrap();
    assert_eq!(all[1]["arguments"], masked);
    assert!(all[2]["arguments"].as_str().unwrap().starts_with("sha256:"));
    let filter = Filter {
        since_ms: Some(2_000),
        client: Some("Claude-Code".into()),
        ..Filter::default()
    };
    assert_eq!(lines(&folder.path().join("audit"), &filter).len(), 1);
}

#[test]
fn a_line_says_whether_the_result_was_cut_and_filters_find_slow_and_failed_calls() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    let plain = call("cursor", 1_000, RecordedArguments::None);
    let cut = CallRecord {
        transport: "http",
        bytes_in: 17,
        is_cut: true,
        handle: Some("r7f3e9c1b5a8d2f46".to_owned()),
        micros: 2_000_000,
        ..*call("cursor", 2_000, RecordedArguments::None)
    };
    let failed = CallRecord {
        outcome: Outcome::of_code("timeout"),
        redacted: 2,
        rule: Some(3),
        session: Some(4),
        client: "".into(),
        ..*call("cursor", 3_000, RecordedArguments::None)
    };
    append(&mut log, [plain, Box::new(cut), Box::new(failed)], 1);
    let audit = folder.path().join("audit");
    let all = lines(&audit, &Filter::default());
    let of =
        |at: usize| ["transport", "bytes_in", "cut", "handle"].map(|key| all[at][key].to_string());
    assert_eq!(of(1), ["null", "null", "null", "null"]);
    assert_eq!(of(2), ["\"http\"", "17", "true", "\"r7f3e9c1b5a8d2f46\""]);
    let numbers = |filter| {
        let found = lines(&audit, &filter);
        let numbers = found.iter().map(|it| it["n"].as_u64().unwrap());
        numbers.collect::<Vec<_>>()
    };
    let slow = Filter {
        slow_ms: Some(2_000),
        ..Filter::default()
    };
    let failures = Filter {
        failures: true,
        ..Filter::default()
    };
    assert_eq!((numbers(slow), numbers(failures)), (vec![3], vec![4]));
    let of_person = Filter {
        client: Some(crate::COMMAND_LINE.into()),
        session: Some(4),
        rule: Some(3),
        outcome: Some("timeout".to_owned()),
        redacted: true,
        ..Filter::default()
    };
    let earlier = Filter {
        until_ms: Some(2_000),
        ..Filter::default()
    };
    assert_eq!((numbers(of_person), numbers(earlier)), (vec![4], vec![2]));
    check_log(folder.path()).unwrap().unwrap();
}

#[test]
fn a_line_of_an_earlier_version_is_read_and_verified() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    let today = CallRecord {
        transport: "stdio",
        ..*call("test", 1_000, RecordedArguments::None)
    };
    append(&mut log, [Box::new(today)], 0);
    let audit = folder.path().join("audit");
    let path = list_segments(&audit).unwrap().remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let (head, line) = text.trim_end().split_once('\n').unwrap();
    let (_, before) = super::line::split_line(head).unwrap();
    let (body, _) = super::line::split_line(line).unwrap();
    let old = body.replace(",\"transport\":\"stdio\"", "");
    assert_ne!(old, body);
    let mut rewritten = format!("{head}\n");
    super::line::append_chained(before, &old, &mut rewritten);
    fs::write(&path, rewritten).unwrap();
    let digest = super::line::digest_of(before, &old);
    let anchor = audit.with_extension("anchor");
    let (_, written) = super::line::split_line(line).unwrap();
    let anchored = fs::read_to_string(&anchor).unwrap();
    fs::write(&anchor, anchored.replace(written, &digest)).unwrap();
    add(&mut open(folder.path()), 1);
    let found = check_log(folder.path()).unwrap().unwrap();
    assert_eq!(
        (found.lines, lines(&audit, &Filter::default()).len()),
        (2, 2)
    );
}

#[test]
fn several_processes_write_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (mut ours, mut theirs) = (open(folder.path()), open(folder.path()));
    for _ in 0..3 {
        add(&mut ours, 2);
        add(&mut theirs, 3);
    }
    let found = check_log(folder.path()).unwrap().unwrap();
    assert_eq!((found.lines, found.first, found.last), (15, 1, 15));
}

#[test]
fn the_room_is_kept_and_what_is_left_is_proved() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    for _ in 0..40 {
        add(&mut log, 100);
    }
    let files = list_segments(&folder.path().join("audit")).unwrap();
    let bytes: u64 = files.iter().map(|it| fs::metadata(it).unwrap().len()).sum();
    assert!(bytes <= ROOM, "{bytes}");
    assert!(bytes > ROOM / 2, "{bytes}");
    let found = check_log(folder.path()).unwrap().unwrap();
    assert!(found.first > 1);
    assert_eq!(found.last, 4_000);
}

#[test]
fn every_flipped_byte_is_found() {
    let folder = tempfile::tempdir().unwrap();
    add(&mut open(folder.path()), 3);
    let path = list_segments(&folder.path().join("audit"))
        .unwrap()
        .remove(0);
    let good = fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, &bad).unwrap();
        assert!(
            check_log(folder.path()).unwrap().is_err(),
            "the change of byte {at} is not detected"
        );
    }
    let (first, rest) = good.split_at(good.iter().position(|it| *it == b'\n').unwrap() + 1);
    let second = rest.iter().position(|it| *it == b'\n').unwrap() + 1;
    fs::write(&path, [first, &rest[second..]].concat()).unwrap();
    assert!(
        check_log(folder.path()).unwrap().is_err(),
        "the missing line is not detected"
    );
}

/// The messages for each kind of change to a log of several files.
#[test]
fn what_was_done_to_a_log_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    for _ in 0..40 {
        add(&mut log, 100);
    }
    let files = list_segments(&folder.path().join("audit")).unwrap();
    assert!(files.len() > 3, "{files:?}");
    let check = |file: usize, change: &dyn Fn(&mut Vec<Vec<u8>>), expected: &str| {
        let good = fs::read(&files[file]).unwrap();
        let lines = good.split_inclusive(|it| *it == b'\n');
        let mut lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
        change(&mut lines);
        fs::write(&files[file], lines.concat()).unwrap();
        let broken = check_log(folder.path()).unwrap().expect_err(expected);
        let found = format!("{} {}: {}", broken.file, broken.line, broken.why);
        let name = files[file].file_name().unwrap().to_string_lossy();
        assert_eq!(found, format!("{name} {expected}"));
        fs::write(&files[file], good).unwrap();
    };
    let changed = "it or the line before it was changed, or a line between them was removed";
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
        &format!("{}: it is incomplete", count_lines(&files[last])),
    );
    let one = fs::read(&files[1]).unwrap();
    fs::remove_file(&files[1]).unwrap();
    let broken = check_log(folder.path()).unwrap().unwrap_err();
    assert_eq!(
        (broken.line, broken.why.as_str()),
        (1, "lines before it are missing")
    );
    fs::write(&files[1], one).unwrap();
    fs::remove_file(&files[0]).unwrap();
    let broken = check_log(folder.path()).unwrap().unwrap_err();
    assert!(broken.why.ends_with("before it are missing"), "{broken:?}");
}

fn count_lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap().lines().count()
}

/// Changes the lines of the last segment of the log in this folder.
fn change(folder: &Path, change: impl Fn(&mut Vec<Vec<u8>>)) {
    let path = segment(folder);
    let text = fs::read(&path).unwrap();
    let mut lines: Vec<_> = text
        .split_inclusive(|it| *it == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    change(&mut lines);
    fs::write(path, lines.concat()).unwrap();
}

fn segment(folder: &Path) -> PathBuf {
    list_segments(&folder.join("audit")).unwrap().pop().unwrap()
}

#[test]
fn a_write_that_was_not_finished_is_told_and_nothing_is_joined_to_it() {
    // The log is cut at several places in the last of three batches, and again in the batch after
    // the first cut.
    let folder = tempfile::tempdir().unwrap();
    add(&mut open(folder.path()), 1);
    add(&mut open(folder.path()), 1);
    let anchor = folder.path().join("audit.anchor");
    let anchored = fs::read(&anchor).unwrap();
    let before = fs::read(segment(folder.path())).unwrap();
    add(&mut open(folder.path()), 2);
    let after = fs::read(segment(folder.path())).unwrap();
    for cut in [
        before.len() + 1,
        before.len() + 40,
        after.len() - 40,
        after.len() - 2,
    ] {
        fs::write(segment(folder.path()), &after[..cut]).unwrap();
        fs::write(&anchor, &anchored).unwrap();
        let found = check_log(folder.path()).unwrap().unwrap();
        assert_eq!(found.unfinished, 1, "{cut}");
        add(&mut open(folder.path()), 1);
        let text = fs::read(segment(folder.path())).unwrap();
        assert_eq!(
            text[..cut],
            after[..cut],
            "{cut}: the unfinished line has changed"
        );
        let again = text.len() - 30;
        fs::write(segment(folder.path()), &text[..again]).unwrap();
        fs::write(&anchor, &anchored).unwrap();
        add(&mut open(folder.path()), 3);
        add(&mut open(folder.path()), 3);
        let found = check_log(folder.path()).unwrap().unwrap();
        assert_eq!(found.unfinished, 2, "{cut}");
        assert_eq!(found.lines, found.last, "{cut}");
    }
}

#[test]
fn a_first_write_that_was_not_finished_is_continued() {
    for cut in [3, 60, 200] {
        let folder = tempfile::tempdir().unwrap();
        add(&mut open(folder.path()), 1);
        let text = fs::read(segment(folder.path())).unwrap();
        fs::write(segment(folder.path()), &text[..cut]).unwrap();
        fs::remove_file(folder.path().join("audit.anchor")).unwrap();
        add(&mut open(folder.path()), 2);
        let found = check_log(folder.path()).unwrap().unwrap();
        assert_eq!((found.unfinished, found.last), (1, 2), "{cut}");
    }
}

/// The messages after each kind of change to a log of three calls, at once and after the next call.
#[test]
fn a_log_that_was_emptied_cut_or_replaced_is_found_before_and_after_the_next_call() {
    let other = tempfile::tempdir().unwrap();
    let calls = (0..3).map(|at| call("other", at, RecordedArguments::None));
    append(&mut open(other.path()), calls, 0);
    let other = fs::read(segment(other.path())).unwrap();
    let audit = |folder: &Path| folder.join("audit");
    let check = |damage: &dyn Fn(&Path), now: &str, later: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path());
        add(&mut log, 3);
        damage(folder.path());
        let told = |folder: &Path| match check_log(folder).unwrap() {
            Err(broken) => format!("{} {}: {}", broken.file, broken.line, broken.why),
            Ok(found) => format!("whole: {found:?}"),
        };
        assert_eq!(told(folder.path()), now);
        // Calls are added by the process that wrote the log, and by another one.
        add(&mut log, 1);
        add(&mut open(folder.path()), 1);
        assert_eq!(told(folder.path()), later);
    };
    let one = "000000000001.jsonl";
    let four = "000000000004.jsonl";
    let missing = |line| format!("{one} {line}: the log ends before it: lines");
    let joined = "it or the line before it was changed, or a line between them was removed";
    let gone = format!("{four} 2: lines 1 to 3 before it are missing");
    let all = format!("{} 1 to 3 are missing", missing(1));
    check(&|it| fs::remove_dir_all(audit(it)).unwrap(), &all, &gone);
    check(&|it| fs::remove_file(segment(it)).unwrap(), &all, &gone);
    let emptied = format!("{one} 2: lines 1 to 3 before it are missing");
    check(&|it| fs::write(segment(it), "").unwrap(), &all, &emptied);
    let cut = format!("{} 3 to 3 are missing", missing(4));
    let later = format!("{one} 4: {joined}");
    check(&|it| change(it, |lines| lines.truncate(3)), &cut, &later);
    let torn = format!("{one} 4: it is incomplete");
    let later = format!("{one} 4: it has no digest");
    check(
        &|it| change(it, |lines| lines[3].truncate(50)),
        &torn,
        &later,
    );
    let replaced = format!("{one} 4: it is not the line that was written: the log was replaced");
    let later = format!("{one} 5: {joined}");
    check(
        &|it| fs::write(segment(it), &other).unwrap(),
        &replaced,
        &later,
    );
    let overwritten = format!("{one} 1: it has no digest");
    check(
        &|it| fs::write(segment(it), "x\n").unwrap(),
        &overwritten,
        &overwritten,
    );
}

#[test]
fn a_line_that_lacks_its_end_is_told_and_the_next_one_stands_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    add(&mut log, 3);
    let whole = fs::read(segment(folder.path())).unwrap();
    change(folder.path(), |lines| {
        lines[3].pop();
    });
    let broken = check_log(folder.path()).unwrap().unwrap_err();
    assert_eq!((broken.line, broken.why.as_str()), (4, "it is incomplete"));
    add(&mut log, 1);
    let text = fs::read(segment(folder.path())).unwrap();
    assert_eq!(text[..whole.len()], whole);
    assert_eq!(check_log(folder.path()).unwrap().unwrap().last, 4);
}

#[test]
fn a_log_without_its_anchor_is_told_until_the_next_call_and_noted_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    add(&mut log, 3);
    assert_eq!(check_log(folder.path()).unwrap().unwrap().anchored_since, 1);
    fs::remove_file(folder.path().join("audit.anchor")).unwrap();
    let broken = check_log(folder.path()).unwrap().unwrap_err();
    assert!(broken.why.contains("`audit.anchor`"), "{broken:?}");
    add(&mut log, 1);
    assert_eq!(check_log(folder.path()).unwrap().unwrap().anchored_since, 4);
}

#[test]
fn a_process_that_dies_while_the_oldest_segment_goes_leaves_a_whole_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path());
    let mut kept = Vec::new();
    for _ in 0..40 {
        let before = list_segments(&folder.path().join("audit")).unwrap_or_default();
        kept = before
            .iter()
            .map(|it| (it.clone(), fs::read(it).unwrap()))
            .collect();
        add(&mut log, 100);
        if kept.first().is_some_and(|(path, _)| !path.exists()) {
            break;
        }
    }
    // The anchor no longer counts the segment, but its file still exists.
    let (path, text) = &kept[0];
    fs::write(path, text).unwrap();
    assert!(check_log(folder.path()).unwrap().unwrap().first > 0);
    // A missing segment that the anchor counts is detected.
    fs::remove_file(path).unwrap();
    fs::remove_file(&kept[1].0).unwrap();
    let broken = check_log(folder.path()).unwrap().unwrap_err();
    assert!(broken.why.ends_with("before it are missing"), "{broken:?}");
}

#[test]
fn a_log_is_read_by_who_was_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let calls = ["token ci", "oauth ada", ""].map(|caller| {
        let mut call = call("test", 1, RecordedArguments::None);
        call.caller = caller.into();
        call
    });
    append(&mut open(folder.path()), calls, 0);
    for (wanted, expected) in [
        ("ci", 1),
        ("token ci", 1),
        ("oauth ci", 0),
        ("ada", 1),
        ("", 0),
    ] {
        let filter = Filter {
            caller: Some(wanted.into()),
            ..Filter::default()
        };
        let found = lines(&folder.path().join("audit"), &filter);
        assert_eq!(found.len(), expected, "{wanted}");
    }
}

#[test]
fn a_loss_of_power_leaves_a_log_that_goes_on_with_every_call_that_was_synced() {
    let folder = tempfile::tempdir().unwrap();
    let audit = |folder: &Path| folder.join("audit");
    let mut log = open(folder.path());
    let mut before = 0;
    for count in [3, 4] {
        let count_all = before + count;
        power_loss::check(
            folder.path(),
            || add(&mut log, count),
            |state| {
                let audit = audit(state.folder);
                add(&mut open(state.folder), 1);
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

#[test]
fn the_log_of_another_node_proves_that_a_line_was_there() {
    let (ours, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let audit = |folder: &tempfile::TempDir| folder.path().join("audit");
    let note = |head: &AuditHead| {
        let event = Event::Head {
            at_ms: 5,
            node: "mac".to_owned(),
            head: head.clone(),
        };
        let written = open(other.path()).append(&[event], 0, ROOM);
        assert_eq!(written.unwrap(), None, "it is no call");
    };
    let make = |client: &str| {
        let call = Event::Call(call(client, 1, RecordedArguments::None));
        let written = open(ours.path()).append(&[call], 0, ROOM);
        written.unwrap().unwrap()
    };
    assert_eq!(find_head(&audit(&other), "mac").unwrap(), None);
    let heads: Vec<AuditHead> = ["a", "b", "c"].map(make).into();
    heads.iter().for_each(note);
    assert!(check_log(other.path()).unwrap().is_ok());
    assert!(lines(&audit(&other), &Filter::default()).is_empty());
    assert_eq!(find_head(&audit(&other), "pc").unwrap(), None);
    let newest = find_head(&audit(&other), "mac").unwrap().unwrap();
    assert_eq!(newest, heads[2]);
    let has = |heads: &[AuditHead]| has_lines(&audit(&ours), heads).unwrap();
    assert_eq!(has(&heads), [Some(true); 3]);
    let before = AuditHead {
        number: 0,
        ..newest.clone()
    };
    assert_eq!(has(&[before]), [None], "it is older than the log");

    // The end is cut off, with the anchor, and the log goes on.
    let path = list_segments(&audit(&ours)).unwrap().remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let cut = text.find("{\"n\":3").unwrap();
    fs::write(&path, &text[..cut]).unwrap();
    fs::remove_file(audit(&ours).with_extension("anchor")).unwrap();
    assert_eq!(has(&heads), [Some(true), Some(true), Some(false)]);
    make("d");
    assert!(check_log(ours.path()).unwrap().is_ok(), "alone it is whole");
    assert_eq!(has(&[newest]), [Some(false)]);
}
