use std::fs;
use std::path::Path;

use files::power_loss;
use tempfile::tempdir;

use super::*;
use crate::limits::INDEX_WRITER_BYTES;
use crate::snapshot::SnapshotContent;

#[test]
fn a_commit_killed_anywhere_leaves_the_old_state_or_the_new() {
    let old = ["a/list_files", "b/send_email"];
    let new = ["a/list_files", "a/read_file", "b/send_sms"];
    let mut finished = false;
    let (mut olds, mut news_seen) = (0, 0);
    for steps in 0..100 {
        let folder = tempdir().unwrap();
        let registry = open(folder.path(), &["a", "b"]);
        // All surveys are of the same second.
        registry.commit(asked(before(), 1_000), false, 1).unwrap();
        registry.disk().faults.die_after(steps);
        let outcome = registry.commit(asked(after(), 1_001), false, 1);
        let reopened = open(folder.path(), &["a", "b"]);
        let held = held(&reopened);
        let sent = hits(&reopened, &Query::words("send"));
        if held == old {
            assert_eq!(sent, ["b/send_email"]);
            assert!(outcome.is_err());
            olds += 1;
        } else {
            assert_eq!(
                (held.as_slice(), sent.as_slice()),
                (
                    new.map(str::to_owned).as_slice(),
                    ["b/send_sms".to_owned()].as_slice()
                )
            );
            news_seen += 1;
        }
        // The next commit succeeds, whatever was interrupted, and the next reader sees it.
        reopened.commit(asked(after(), 1_002), false, 1).unwrap();
        assert_eq!(super::held(&reopened), new);
        assert_eq!(super::held(&open(folder.path(), &["a", "b"])), new);
        if registry.disk().faults.step().is_ok() {
            finished = true;
            break;
        }
    }
    assert!(finished && olds > 3 && news_seen > 3, "{olds} {news_seen}");
}

#[test]
fn a_loss_of_power_leaves_the_old_tools_and_pins_or_the_new_ones() {
    let open = |folder: &Path| {
        let mut rules = rules(&["a", "b"]);
        for server in &mut rules.servers {
            server.pin = crate::Pin::Hold;
        }
        Registry::open(folder, rules).unwrap()
    };
    let folder = tempdir().unwrap();
    let registry = open(folder.path());
    registry.commit(before(), false, 1).unwrap();
    let changed = vec![news("a", &["list_files: Another tool."])];
    let act = || {
        registry.commit(changed, true, 2).unwrap();
    };
    let (mut olds, mut news_seen) = (0, 0);
    power_loss::check(folder.path(), act, |state| {
        let reopened = open(state.folder);
        let (held, reviews) = (held(&reopened), reopened.list_reviews(None).list.len());
        if held == ["a/list_files", "b/send_email"] {
            assert!(reviews == 0 && !state.is_after_all);
            olds += 1;
        } else {
            assert_eq!((held, reviews), (vec!["b/send_email".to_owned()], 1));
            news_seen += 1;
        }
    });
    assert!(olds > 1 && news_seen > 1, "{olds} {news_seen}");
}

fn before() -> Vec<News> {
    vec![news("a", &["list_files"]), news("b", &["send_email"])]
}

fn after() -> Vec<News> {
    vec![
        news("a", &["list_files", "read_file"]),
        news("b", &["send_sms"]),
    ]
}

/// Returns the news of surveys that asked at this time.
fn asked(news: Vec<News>, asked_ms: u64) -> Vec<News> {
    let asked = news.into_iter().map(|it| News { asked_ms, ..it });
    asked.collect()
}

#[track_caller]
fn check_heals(harm: impl Fn(&Path)) {
    let folder = tempdir().unwrap();
    open(folder.path(), &["a", "b"])
        .commit(before(), false, 1)
        .unwrap();
    harm(&folder.path().join("index"));
    let registry = open(folder.path(), &["a", "b"]);
    assert_eq!(
        hits(&registry, &Query::words("send email")),
        ["b/send_email"]
    );
    registry.commit(after(), false, 2).unwrap();
    assert_eq!(hits(&registry, &Query::words("send")), ["b/send_sms"]);
}

#[test]
fn an_index_that_is_missing_or_damaged_is_made_again() {
    check_heals(|index| fs::remove_dir_all(index).unwrap());
    check_heals(|index| each_file(index, |path| fs::write(path, "garbage").unwrap()));
    check_heals(|index| each_file(index, |path| fs::write(path, "").unwrap()));
    check_heals(|index| {
        each_file(index, |path| {
            if path
                .extension()
                .is_some_and(|kind| kind != "json" && kind != "lock")
            {
                let mut bytes = fs::read(path).unwrap();
                bytes.iter_mut().take(40).for_each(|byte| *byte ^= 0x5a);
                fs::write(path, bytes).unwrap();
            }
        });
    });
    check_heals(|index| fs::remove_file(index.join("meta.json")).unwrap());
    check_heals(|index| {
        fs::remove_dir_all(index).unwrap();
        fs::write(index, "a file where a folder was").unwrap();
    });
}

#[test]
fn an_index_of_another_schema_is_made_again() {
    check_heals(|index| {
        fs::remove_dir_all(index).unwrap();
        fs::create_dir(index).unwrap();
        let mut schema = tantivy::schema::Schema::builder();
        schema.add_text_field("other", tantivy::schema::TEXT);
        tantivy::Index::create_in_dir(index, schema.build()).unwrap();
    });
}

#[test]
fn an_index_of_another_version_of_ours_is_made_again() {
    check_heals(|index| {
        let index = tantivy::Index::open_in_dir(index).unwrap();
        let mut writer: tantivy::IndexWriter = index
            .writer_with_num_threads(1, INDEX_WRITER_BYTES)
            .unwrap();
        let mut commit = writer.prepare_commit().unwrap();
        commit.set_payload(r#"{"a":"0123456789abcdef","b":"another version"}"#);
        commit.commit().unwrap();
    });
}

#[test]
fn documents_that_do_not_match_the_snapshots_are_never_trusted() {
    check_heals(|index| {
        let index = tantivy::Index::open_in_dir(index).unwrap();
        let payload = index.load_metas().unwrap().payload.unwrap();
        let mut writer: tantivy::IndexWriter = index
            .writer_with_num_threads(1, INDEX_WRITER_BYTES)
            .unwrap();
        writer.delete_all_documents().unwrap();
        let mut commit = writer.prepare_commit().unwrap();
        commit.set_payload(&payload);
        commit.commit().unwrap();
    });
}

#[test]
fn a_damaged_catalog_is_put_together_from_the_snapshots() {
    for garbage in ["", "{", "[]", r#"{"format":99,"servers":{}}"#] {
        let folder = tempdir().unwrap();
        open(folder.path(), &["a", "b"])
            .commit(before(), false, 1)
            .unwrap();
        fs::write(folder.path().join("catalog.json"), garbage).unwrap();
        let registry = open(folder.path(), &["a", "b"]);
        assert_eq!(held(&registry), ["a/list_files", "b/send_email"]);
        assert!(
            registry
                .catalog()
                .servers
                .iter()
                .all(|server| server.stale.is_some())
        );
        registry.commit(after(), false, 2).unwrap();
        assert!(
            registry
                .catalog()
                .servers
                .iter()
                .all(|server| server.stale.is_none())
        );
    }
}

#[test]
fn a_transport_that_was_kept_inside_the_revision_is_still_read() {
    let folder = tempdir().unwrap();
    open(folder.path(), &["a", "b"])
        .commit(before(), false, 1)
        .unwrap();
    let path = folder.path().join("catalog.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("2025-11-25", "2024-11-05+sse", 1)).unwrap();
    let servers = open(folder.path(), &["a", "b"]).catalog().servers.clone();
    let read = |at: usize| {
        (
            servers[at].protocol.as_str(),
            servers[at].transport.as_deref(),
        )
    };
    assert_eq!(read(0), ("2024-11-05", Some("sse")));
    assert_eq!(read(1), ("2025-11-25", None));
    let Ok(mut snapshot) = before().remove(0).outcome else {
        panic!("a snapshot");
    };
    snapshot.protocol = "2024-11-05+sse".to_owned();
    let text = snapshot.to_text();
    let kept =
        SnapshotContent::read(&Snapshot::file_name(&server("a"), &text), text.as_bytes()).unwrap();
    assert_eq!(kept.head.protocol, "2024-11-05");
    assert_eq!(kept.head.transport.as_deref(), Some("sse"));
}

#[test]
fn the_mark_of_a_server_that_asks_which_an_earlier_version_wrote_is_left_out() {
    let folder = tempdir().unwrap();
    open(folder.path(), &["a", "b"])
        .commit(before(), false, 1)
        .unwrap();
    let mark = |text: &str| {
        let marked = text.replace(r#""protocol":"#, r#""asks_clients":true,"protocol":"#);
        assert_ne!(marked, text);
        marked
    };
    let path = folder.path().join("catalog.json");
    fs::write(&path, mark(&fs::read_to_string(&path).unwrap())).unwrap();
    let servers = open(folder.path(), &["a", "b"]).catalog().servers.clone();
    assert_eq!(servers.len(), 2);
    assert!(
        servers
            .iter()
            .all(|it| it.asking_calls.is_empty() && it.tools > 0)
    );
    let Ok(snapshot) = before().remove(0).outcome else {
        panic!("a snapshot");
    };
    let text = mark(&snapshot.to_text());
    let kept =
        SnapshotContent::read(&Snapshot::file_name(&server("a"), &text), text.as_bytes()).unwrap();
    assert!(kept.head.asking_calls.is_empty());
    assert_eq!(kept.tools.len(), snapshot.tools.len());
}

#[test]
fn a_damaged_snapshot_costs_its_own_server_only() {
    let folder = tempdir().unwrap();
    open(folder.path(), &["a", "b"])
        .commit(before(), false, 1)
        .unwrap();
    each_file(&folder.path().join("snapshots"), |path| {
        if path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("a-")
        {
            fs::write(path, "{}").unwrap();
        }
    });
    let registry = open(folder.path(), &["a", "b"]);
    assert_eq!(held(&registry), ["b/send_email"]);
    let generation = registry.generation().unwrap();
    let damaged: Vec<bool> = generation
        .servers()
        .iter()
        .map(|s| s.damaged.is_some())
        .collect();
    assert_eq!(damaged, [true, false]);
    registry.commit(before(), false, 2).unwrap();
    assert_eq!(held(&registry), ["a/list_files", "b/send_email"]);
}

fn each_file(folder: &Path, harm: impl Fn(&Path)) {
    for file in fs::read_dir(folder).unwrap() {
        harm(&file.unwrap().path());
    }
}

/// Checks that a refused tool and a changed one are withheld under `name`.
fn check_pins(folder: &Path, name: &str) {
    let mut rules = rules(&[name]);
    rules.servers[0].pin = crate::Pin::Hold;
    let registry = Registry::open(folder, rules).unwrap();
    assert_eq!(super::held(&registry), Vec::<String>::new());
    assert_eq!(registry.pin_trouble(), None);
}

/// One thing that a process does; false where it was killed.
type CrashStep<'s> = &'s dyn Fn(&Registry) -> bool;

#[test]
fn pins_outlive_a_process_that_is_killed_anywhere() {
    let begun = |folder: &Path| {
        let registry = open(folder, &["a", "b"]);
        for line in ["send: one", "send: two"] {
            let news = news("a", &[line, &format!("read: {line}")]);
            registry.commit(vec![news], true, 1).unwrap();
        }
        let shown = registry.list_reviews(None).list.remove(0).shown;
        registry.decide(&[shown], false).unwrap();
        registry
    };
    let (from, to) = (server("a"), server("b"));
    let three = || vec![news("a", &["send: three", "read: three"])];
    let steps: [CrashStep<'_>; 3] = [
        &|registry| registry.commit(three(), true, 2).is_ok(),
        &|registry| registry.adopt_server(&from, &to).is_ok(),
        &|registry| {
            registry.adopt_server(&from, &to).is_ok() && registry.finish_rename(&from, &to).is_ok()
        },
    ];
    for (nth, step) in steps.iter().enumerate() {
        let mut finished = false;
        for operations in 0..200 {
            let folder = tempdir().unwrap();
            let registry = begun(folder.path());
            registry.disk().faults.die_after(operations);
            let is_done = step(&registry);
            // Under each name a tool is withheld or absent.
            check_pins(folder.path(), "a");
            check_pins(folder.path(), "b");
            let reopened = open(folder.path(), &["a", "b"]);
            let names = reopened.list_reviews(None).list;
            assert!(
                !names.is_empty(),
                "step {nth}, {operations}: the pins are gone"
            );
            // Interrupted work is repeated.
            assert!(step(&reopened), "step {nth}, {operations}");
            if is_done && registry.disk().faults.step().is_ok() {
                finished = true;
                break;
            }
        }
        assert!(finished, "step {nth}");
    }
}
