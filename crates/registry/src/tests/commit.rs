use std::fs;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::tempdir;

use super::*;
use crate::disk::Disk;
use crate::{FindError, Options, Overlay, SurveyFailure};

#[test]
fn a_commit_says_what_it_changed() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes"]);
    registry
        .commit(
            vec![news("notes", &["add: a", "drop: b", "list: c"])],
            false,
            1,
        )
        .unwrap();
    let next = news("notes", &["add: a", "find: new", "list: other"]);
    let planned = registry.commit(vec![next], false, 2).unwrap();
    let plan = &planned[0].plan;
    assert_eq!(plan.added, ["find"]);
    assert_eq!(plan.changed, ["list"]);
    assert_eq!(plan.removed, ["drop"]);
    assert_eq!(plan.same, ["add"]);
    let generation = registry.generation().unwrap();
    let changed: Vec<bool> = generation
        .entries()
        .map(|entry| entry.changed.is_some())
        .collect();
    assert_eq!(changed, [false, false, true]);
}

#[test]
fn a_new_version_with_the_same_tools_is_in_the_history() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes"]);
    let of_version = |version: &str| {
        let mut news = news("notes", &["add: a"]);
        news.outcome.as_mut().unwrap().server_version = version.to_owned();
        news
    };
    for (at, version) in [(1, "1.4.0"), (2, "1.5.0"), (3, "1.5.0")] {
        registry
            .commit(vec![of_version(version)], false, at)
            .unwrap();
    }
    let history = registry.list_history(Some("notes"));
    let versions = history.iter().map(|it| (it.at, it.version.clone()));
    let bump = ("1.4.0".to_owned(), "1.5.0".to_owned());
    assert_eq!(versions.collect::<Vec<_>>(), [(1, None), (2, Some(bump))]);
    assert!(history[1].added.is_empty() && history[1].changed.is_empty());
}

#[test]
fn the_same_tools_in_another_order_keep_their_file() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes"]);
    registry
        .commit(vec![news("notes", &["b", "a"])], false, 1)
        .unwrap();
    let before = files(folder.path());
    registry
        .commit(vec![news("notes", &["a", "b", "a"])], false, 2)
        .unwrap();
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_definition_is_kept_byte_for_byte() {
    let folder = tempdir().unwrap();
    let json = "{ \"x-own\" : 1.50,\n \"name\":\"odd\", \"inputSchema\":{\"b\":1,\"a\":2} }";
    let mut odd = news("notes", &["odd"]);
    odd.outcome.as_mut().unwrap().tools = vec![Tool::parse(json).unwrap()];
    open(folder.path(), &["notes"])
        .commit(vec![odd], false, 1)
        .unwrap();
    let generation = open(folder.path(), &["notes"]).generation().unwrap();
    assert_eq!(generation.find("odd").unwrap().tool.json(), json);
    assert_eq!(generation.servers()[0].server_version, "1.4.0");
}

#[test]
fn a_damaged_file_is_told_once_until_it_is_damaged_again() {
    let folder = tempdir().unwrap();
    let disk = Disk::new(folder.path());
    for damage in ["{", "{ x"] {
        fs::write(folder.path().join("catalog.json"), damage).unwrap();
        assert!(disk.is_newly_damaged("catalog.json"));
        assert!(!disk.is_newly_damaged("catalog.json"));
        assert!(disk.is_newly_damaged("pins.json") == (damage == "{"));
    }
}

#[test]
fn a_survey_that_asked_earlier_does_not_replace_one_that_asked_later() {
    let folder = tempdir().unwrap();
    let (ours, theirs) = (
        open(folder.path(), &["notes", "other"]),
        open(folder.path(), &["notes", "other"]),
    );
    let asked_at = |seconds: u64, lines: &[&str]| {
        let mut news = news("notes", lines);
        news.asked_ms = seconds * 1_000;
        news
    };
    theirs
        .commit(vec![asked_at(5, &["new"])], false, 6)
        .unwrap();
    let both = vec![asked_at(4, &["old"]), news("other", &["add"])];
    let planned = ours.commit(both, false, 7).unwrap();
    assert_eq!(planned[0].plan.same, ["new"]);
    assert!(planned[0].plan.added.is_empty() && planned[0].plan.removed.is_empty());
    assert_eq!(held(&ours), ["notes/new", "other/add"]);
    assert_eq!(held(&theirs), ["notes/new", "other/add"]);
    ours.commit(vec![asked_at(8, &["newest"])], true, 9)
        .unwrap();
    assert_eq!(held(&theirs), ["notes/newest", "other/add"]);
    // The failure of a survey that began earlier does not affect the current list.
    let failed_at = |seconds: u64| News {
        asked_ms: seconds * 1_000,
        ..failed("notes", "no answer")
    };
    let stale = || theirs.catalog().servers[0].stale.clone();
    ours.commit(vec![failed_at(7)], true, 9).unwrap();
    assert_eq!(stale(), None);
    ours.commit(vec![failed_at(9)], true, 9).unwrap();
    assert_eq!(stale(), Some(SurveyFailure::new("no answer")));
    ours.commit(vec![asked_at(8, &["older"])], true, 9).unwrap();
    assert_eq!(held(&theirs), ["notes/newest", "other/add"]);
    // Of two surveys that asked in the same millisecond, the one that is stored later counts.
    ours.commit(vec![asked_at(9, &["same"])], true, 9).unwrap();
    assert_eq!(held(&theirs), ["notes/same", "other/add"]);
    // The clock was set back: the survey that was just made applies.
    ours.commit(vec![asked_at(2, &["now"])], true, 3).unwrap();
    assert_eq!(held(&theirs), ["notes/now", "other/add"]);
}

#[test]
fn a_failure_keeps_its_parts_over_a_restart_and_the_text_of_an_earlier_version_is_read() {
    let folder = tempdir().unwrap();
    let failure = SurveyFailure {
        why: "HTTP 401 Unauthorized".to_owned(),
        hint: Some("proxy login notes".to_owned()),
        needs_login: true,
    };
    let news = News {
        server: server("notes"),
        asked_ms: 0,
        outcome: Err(failure.clone()),
    };
    open(folder.path(), &["notes"])
        .commit(vec![news], false, 1)
        .unwrap();
    let stale = || {
        open(folder.path(), &["notes"]).catalog().servers[0]
            .stale
            .clone()
    };
    assert_eq!(stale(), Some(failure));
    let path = folder.path().join("catalog.json");
    let mut catalog: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    catalog["servers"]["notes"]["stale"] = "HTTP 401 (hint: proxy login notes)".into();
    fs::write(&path, catalog.to_string()).unwrap();
    let text = SurveyFailure::new("HTTP 401 (hint: proxy login notes)");
    assert_eq!(stale(), Some(text));
}

#[test]
fn a_failed_survey_keeps_the_last_snapshot_marked() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes", "new", "never"]);
    registry
        .commit(vec![news("notes", &["add", "list"])], false, 1)
        .unwrap();
    let failures = vec![failed("notes", "exit code 127"), failed("new", "no answer")];
    let planned = registry.commit(failures, true, 2).unwrap();
    assert_eq!(planned[0].stale, Some(SurveyFailure::new("exit code 127")));
    assert_eq!(planned[0].plan.same, ["add", "list"]);
    assert!(
        registry
            .generation()
            .unwrap()
            .entries()
            .all(|entry| entry.stale)
    );
    let catalog = registry.catalog();
    let said = |at: usize| {
        let server = &catalog.servers[at];
        let why = server.stale.as_ref().map(|it| it.why.as_str());
        (server.tools, why, server.surveyed_at)
    };
    assert_eq!(said(0), (2, Some("exit code 127"), Some(1_000)));
    assert_eq!(said(1), (0, Some("no answer"), None));
    assert_eq!(said(2), (0, None, None));
    registry
        .commit(vec![news("notes", &["add", "list"])], true, 3)
        .unwrap();
    assert!(
        registry
            .generation()
            .unwrap()
            .entries()
            .all(|entry| !entry.stale)
    );
}

#[test]
fn others_are_kept_or_forgotten_as_asked() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["a", "b"]);
    registry
        .commit(vec![news("a", &["x"]), news("b", &["y"])], false, 1)
        .unwrap();
    registry
        .commit(vec![news("a", &["x", "z"])], true, 2)
        .unwrap();
    assert_eq!(held(&registry), ["a/x", "a/z", "b/y"]);
    registry.commit(vec![news("a", &["x"])], false, 3).unwrap();
    assert_eq!(held(&registry), ["a/x"]);
}

#[test]
fn allow_deny_and_hidden_decide_what_is_found() {
    let folder = tempdir().unwrap();
    let mut rules = rules(&["git", "db"]);
    rules.servers[0].deny = vec!["delete_*".to_owned()];
    rules.servers[1].allow = vec!["read*".to_owned()];
    let hidden = Overlay {
        hidden: true,
        ..Overlay::default()
    };
    rules.servers[0]
        .overlays
        .insert("secret".to_owned(), hidden);
    let registry = Registry::open(folder.path(), rules).unwrap();
    let git = news("git", &["delete_branch", "log", "secret"]);
    registry
        .commit(
            vec![git, news("db", &["read_rows", "write_rows"])],
            false,
            1,
        )
        .unwrap();
    assert_eq!(held(&registry), ["db/read_rows", "git/log"]);
    let counts: Vec<usize> = registry
        .catalog()
        .servers
        .iter()
        .map(|server| server.tools)
        .collect();
    assert_eq!(counts, [1, 1]);
    let generation = registry.generation().unwrap();
    assert_eq!(generation.find("git.secret").unwrap().at.tool, "secret");
    let refused = |asked: &str| match generation.find(asked) {
        Err(FindError::Denied { rule, .. }) => rule,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused("delete-branch"), r#"tools.deny "delete_*""#);
    assert_eq!(
        refused("db/write_rows"),
        "tools.allow, which does not name it"
    );
    let found = hits(&registry, &Query::words("secret"));
    assert!(found.iter().all(|it| !it.contains("secret")), "{found:?}");
    let mut bad = super::rules(&["git"]);
    bad.servers[0].deny = vec!["[".to_owned()];
    Registry::open(folder.path(), bad).unwrap_err();
}

#[test]
fn an_overlay_is_searched_and_wins() {
    let folder = tempdir().unwrap();
    open(folder.path(), &["ripgrep"])
        .commit(vec![news("ripgrep", &["rg: runs rg"])], false, 1)
        .unwrap();
    let mut rules = rules(&["ripgrep"]);
    let overlay = Overlay {
        description: Some("Looks through source text".to_owned()),
        tags: vec!["grep".to_owned()],
        category: Some("code".to_owned()),
        ..Overlay::default()
    };
    rules.servers[0].overlays.insert("rg".to_owned(), overlay);
    let registry = Registry::open(folder.path(), rules).unwrap();
    assert_eq!(
        hits(&registry, &Query::words("look through source")),
        ["ripgrep/rg"]
    );
    let generation = registry.generation().unwrap();
    let entry = generation.find("rg").unwrap();
    assert_eq!(entry.description(), "Looks through source text");
    assert_eq!(
        (entry.category.as_str(), entry.tags.as_slice()),
        (
            "code",
            ["search", "code", "grep"].map(str::to_owned).as_slice()
        )
    );
}

#[test]
fn the_catalog_is_answered_without_a_snapshot_or_an_index() {
    let folder = tempdir().unwrap();
    open(folder.path(), &["a"])
        .commit(vec![news("a", &["x", "y"])], false, 1)
        .unwrap();
    fs::remove_dir_all(folder.path().join("snapshots")).unwrap();
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    let catalog = open(folder.path(), &["a"]).catalog();
    assert_eq!((catalog.tools(), catalog.servers[0].tokens), (2, 20));
}

#[test]
fn another_handle_sees_a_commit_at_its_next_question() {
    let folder = tempdir().unwrap();
    let (one, other) = (open(folder.path(), &["a"]), open(folder.path(), &["a"]));
    assert_eq!(held(&other), Vec::<String>::new());
    one.commit(vec![news("a", &["send_email"])], false, 1)
        .unwrap();
    assert_eq!(other.catalog().tools(), 1);
    assert_eq!(hits(&other, &Query::words("emails")), ["a/send_email"]);
    other
        .commit(vec![news("a", &["list_files"])], false, 2)
        .unwrap();
    assert_eq!(hits(&one, &Query::words("files")), ["a/list_files"]);
    let same = one.generation().unwrap();
    assert!(std::sync::Arc::ptr_eq(&same, &one.generation().unwrap()));
}

#[test]
fn a_reader_that_may_not_write_searches_from_memory() {
    let folder = tempdir().unwrap();
    open(folder.path(), &["a"])
        .commit(vec![news("a", &["send_email"])], false, 1)
        .unwrap();
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    let _turn = Disk::new(folder.path()).take_turn().unwrap();
    assert_eq!(
        hits(&open(folder.path(), &["a"]), &Query::words("email")),
        ["a/send_email"]
    );
    assert!(!folder.path().join("index").exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_replaced_by_memory() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "no folder").unwrap();
    let registry = open(&file.join("state"), &["a"]);
    registry
        .commit(vec![news("a", &["send_email"])], false, 1)
        .unwrap();
    registry
        .commit(vec![news("a", &["send_email", "list_files"])], false, 2)
        .unwrap();
    assert_eq!(held(&registry), ["a/list_files", "a/send_email"]);
    assert_eq!(hits(&registry, &Query::words("email")), ["a/send_email"]);
}

#[test]
fn a_full_disk_is_replaced_by_memory_until_it_has_room() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["a", "b"]);
    registry.disk().faults.fill(true);
    registry
        .commit(vec![news("a", &["send_email"])], false, 1)
        .unwrap();
    assert_eq!(held(&registry), ["a/send_email"]);
    assert_eq!(hits(&registry, &Query::words("email")), ["a/send_email"]);
    assert_eq!(held(&open(folder.path(), &["a"])), Vec::<String>::new());

    registry.disk().faults.fill(false);
    registry
        .commit(vec![news("b", &["list_files"])], true, 2)
        .unwrap();
    let both = ["a/send_email", "b/list_files"];
    assert_eq!(held(&registry), both);
    assert_eq!(held(&open(folder.path(), &["a", "b"])), both);
}

#[test]
fn what_another_process_wrote_counts_more_than_what_a_full_disk_did_not_take() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["a"]);
    registry.disk().faults.fill(true);
    registry
        .commit(vec![news("a", &["send_email"])], false, 1)
        .unwrap();
    open(folder.path(), &["a"])
        .commit(vec![news("a", &["send_sms"])], false, 2)
        .unwrap();
    assert_eq!(held(&registry), ["a/send_sms"]);
}

#[cfg(unix)]
#[test]
fn files_are_private_and_old_snapshots_are_swept() {
    let folder = tempdir().unwrap();
    let state = folder.path().join("deep/state");
    let registry = open(&state, &["a"]);
    for names in [["one"], ["two"], ["three"], ["four"]] {
        registry.commit(vec![news("a", &names)], false, 1).unwrap();
        // Permissions of files that an older version created.
        let index = state.join("index/meta.json");
        fs::set_permissions(index, fs::Permissions::from_mode(0o644)).unwrap();
    }
    registry
        .commit(vec![news("a", &["five"])], false, 1)
        .unwrap();
    assert_eq!(
        files(&state).len(),
        2,
        "not the current and the previous snapshot"
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("index")), 0o700);
    assert_eq!(mode(&state.join("catalog.json")), 0o600);
    let index: Vec<_> = fs::read_dir(state.join("index"))
        .unwrap()
        .flatten()
        .collect();
    assert!(index.len() > 3, "the index has no segments: {index:?}");
    for file in index {
        assert_eq!(mode(&file.path()), 0o600, "{file:?}");
    }
    assert_eq!(
        mode(&state.join("snapshots").join(&files(&state)[0])),
        0o600
    );
}

#[test]
fn tools_built_in_are_found_after_real_ones() {
    let folder = tempdir().unwrap();
    let registry = registry_with_ours(folder.path(), "a");
    registry
        .commit(vec![news("a", &["read_result: Read a result"])], false, 1)
        .unwrap();
    assert_eq!(
        hits(&registry, &Query::words("read result")),
        ["a/read_result", "proxy/read_result"]
    );
    assert_eq!(registry.catalog().tools(), 1);
    // Built-in tools do not take the place of a server's tool; they are returned alone only for
    // queries about them.
    let one = Query {
        limit: 1,
        ..Query::words("read result")
    };
    assert_eq!(
        hits(&registry, &one),
        ["a/read_result", "proxy/read_result"]
    );
    let registry = registry_with_ours(folder.path(), "b");
    registry
        .commit(vec![news("b", &["play: Play chess"])], false, 1)
        .unwrap();
    assert_eq!(
        hits(&registry, &Query::words("read result")),
        ["proxy/read_result"]
    );
    let found = hits(&registry, &Query::words("result of the match"));
    assert_eq!(found, ["b/play"], "not the nearest tool of a server");
    let ours = Query {
        server: Some("proxy".to_owned()),
        ..Query::words("read result")
    };
    assert_eq!(hits(&registry, &ours), ["proxy/read_result"]);
}

#[test]
fn a_server_goes_by_several_names() {
    let folder = tempdir().unwrap();
    let mut rules = rules(&["rg", "two", "three"]);
    rules.servers[0].program = "mcp-ripgrep".to_owned();
    rules.servers[1].program = "@acme/server-two".to_owned();
    let registry = Registry::open(folder.path(), rules).unwrap();
    let named = |asked: &str| -> Vec<String> {
        let generation = registry.generation().unwrap();
        let named = generation.servers_named(asked).into_iter();
        named.map(|server| server.name.to_string()).collect()
    };
    assert_eq!(named("ripgrep"), ["rg"]);
    assert_eq!(named("RG"), ["rg"]);
    assert_eq!(named("mcp-server-two"), ["two"]);
    assert_eq!(named("acme two"), ["two"]);
    assert_eq!(named("server"), [""; 0]);
    assert_eq!(named("four"), [""; 0]);
}

fn registry_with_ours(folder: &Path, server: &str) -> Registry {
    let built_in = Tool::parse(r#"{"name":"read_result","description":"Read a result"}"#).unwrap();
    let options = Options {
        built_in: vec![built_in.into()],
        ..Options::default()
    };
    Registry::open_with(folder, rules(&[server]), options).unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("snapshots")).unwrap();
    files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Returns the tools that are marked as changed.
fn marked(registry: &Registry) -> Vec<String> {
    let generation = registry.generation().unwrap();
    let marked = generation.entries().filter(|entry| entry.changed.is_some());
    marked.map(|entry| entry.at.to_string()).collect()
}

fn news_at(name: &str, lines: &[&str], now: u64) -> News {
    let mut news = news(name, lines);
    news.outcome.as_mut().unwrap().surveyed_at = now;
    news
}

#[test]
fn a_change_is_marked_until_somebody_has_read_it() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes", "git"]);
    let commit = |news: News| registry.commit(vec![news], true, 0).unwrap();
    commit(news("notes", &["add: a", "list: c"]));
    commit(news("notes", &["add: other", "list: other"]));
    assert_eq!(marked(&registry), ["notes/add", "notes/list"]);
    // Surveys without changes, with failures, and of another server.
    commit(news("notes", &["add: other", "list: other"]));
    commit(failed("notes", "no answer"));
    commit(news("git", &["log"]));
    commit(news("notes", &["add: other", "list: other", "find"]));
    assert_eq!(marked(&registry), ["notes/add", "notes/list"]);

    let generation = registry.generation().unwrap();
    let add = generation.find("notes/add").unwrap();
    let read = [(add.at.clone(), add.changed.unwrap())];
    registry.note_read(&read).unwrap();
    assert_eq!(marked(&registry), ["notes/list"]);
    assert_eq!(marked(&open(folder.path(), &["notes"])), ["notes/list"]);
    // The removed tool loses its mark.
    commit(news("notes", &["add: other"]));
    assert_eq!(marked(&registry), Vec::<String>::new());
}

#[test]
fn what_changed_again_while_it_was_read_stays_marked() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes"]);
    for (now, line) in [(1, "add: a"), (2, "add: b")] {
        let news = news_at("notes", &[line], now);
        registry.commit(vec![news], true, 0).unwrap();
    }
    let generation = registry.generation().unwrap();
    let add = generation.find("notes/add").unwrap();
    let read = [(add.at.clone(), add.changed.unwrap())];
    let again = news_at("notes", &["add: c"], 3);
    registry.commit(vec![again], true, 0).unwrap();
    registry.note_read(&read).unwrap();
    assert_eq!(marked(&registry), ["notes/add"]);
}

#[test]
fn a_change_that_nobody_reads_is_marked_for_a_week() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes"]);
    let day = 86_400;
    let after = |days: u64, line: &str| {
        let news = news_at("notes", &[line, "find"], days * day);
        registry.commit(vec![news], true, 0).unwrap();
        marked(&registry)
    };
    assert_eq!(after(1, "add: a"), Vec::<String>::new());
    assert_eq!(after(2, "add: b"), ["notes/add"]);
    assert_eq!(after(8, "add: b"), ["notes/add"]);
    assert_eq!(after(9, "add: b"), Vec::<String>::new());
}

#[test]
fn marks_of_an_older_catalog_are_kept() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes"]);
    for line in ["add: a", "add: b"] {
        registry
            .commit(vec![news("notes", &[line])], true, 0)
            .unwrap();
    }
    let path = folder.path().join("catalog.json");
    let mut catalog: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let record = catalog["servers"]["notes"].as_object_mut().unwrap();
    assert!(record.remove("changed_at").is_some());
    fs::write(&path, catalog.to_string()).unwrap();
    let registry = open(folder.path(), &["notes"]);
    assert_eq!(marked(&registry), ["notes/add"]);
    let generation = registry.generation().unwrap();
    let add = generation.find("add").unwrap();
    registry
        .note_read(&[(add.at.clone(), add.changed.unwrap())])
        .unwrap();
    assert_eq!(marked(&registry), Vec::<String>::new());
}

#[test]
fn what_surveys_changed_is_remembered() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes"]);
    for (at, lines) in [
        (1, ["add: a", "drop: b"]),
        (2, ["add: a", "drop: b"]),
        (3, ["add: c", "find: d"]),
    ] {
        registry
            .commit(vec![news("notes", &lines)], false, at)
            .unwrap();
    }
    let history = registry.list_history(Some("notes"));
    assert_eq!(history.iter().map(|it| it.at).collect::<Vec<_>>(), [1, 3]);
    let last = &history[1];
    assert_eq!(
        (&last.added[..], &last.changed[..], &last.removed[..]),
        (
            &["find".to_owned()][..],
            &["add".to_owned()][..],
            &["drop".to_owned()][..]
        )
    );
    assert!(
        last.definitions["add"].0.contains("\"a\"") && last.definitions["add"].1.contains("\"c\"")
    );
    assert!(registry.list_history(Some("mail")).is_empty());
}
