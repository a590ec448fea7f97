use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::tempdir;

use super::*;
use crate::disk::Disk;
use crate::{FindError, Options, Overlay};

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
    let changed: Vec<bool> = generation.entries().map(|entry| entry.changed).collect();
    assert_eq!(changed, [false, false, true]);
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
fn a_failed_survey_keeps_the_last_snapshot_marked() {
    let folder = tempdir().unwrap();
    let registry = open(folder.path(), &["notes", "new", "never"]);
    registry
        .commit(vec![news("notes", &["add", "list"])], false, 1)
        .unwrap();
    let failures = vec![failed("notes", "exit code 127"), failed("new", "no answer")];
    let planned = registry.commit(failures, true, 2).unwrap();
    assert_eq!(planned[0].stale.as_deref(), Some("exit code 127"));
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
        (server.tools, server.stale.as_deref(), server.surveyed_at)
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
    let mut shelf = shelf(&["git", "db"]);
    shelf.servers[0].deny = vec!["delete_*".to_owned()];
    shelf.servers[1].allow = vec!["read*".to_owned()];
    let hidden = Overlay {
        hidden: true,
        ..Overlay::default()
    };
    shelf.servers[0]
        .overlays
        .insert("secret".to_owned(), hidden);
    let registry = Registry::open(folder.path(), shelf).unwrap();
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
    assert_eq!(refused("db/write_rows"), "not in tools.allow");
    assert_eq!(
        hits(&registry, &Query::words("secret")),
        Vec::<String>::new()
    );
    let mut bad = super::shelf(&["git"]);
    bad.servers[0].deny = vec!["[".to_owned()];
    Registry::open(folder.path(), bad).unwrap_err();
}

#[test]
fn an_overlay_is_searched_and_wins() {
    let folder = tempdir().unwrap();
    open(folder.path(), &["ripgrep"])
        .commit(vec![news("ripgrep", &["rg: runs rg"])], false, 1)
        .unwrap();
    let mut shelf = shelf(&["ripgrep"]);
    let overlay = Overlay {
        description: Some("Looks through source text".to_owned()),
        tags: vec!["grep".to_owned()],
        category: Some("code".to_owned()),
        ..Overlay::default()
    };
    shelf.servers[0].overlays.insert("rg".to_owned(), overlay);
    let registry = Registry::open(folder.path(), shelf).unwrap();
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
fn files_are_private_and_old_snapshots_are_swept() {
    let folder = tempdir().unwrap();
    let state = folder.path().join("deep/state");
    let registry = open(&state, &["a"]);
    for names in [["one"], ["two"], ["three"], ["four"]] {
        registry.commit(vec![news("a", &names)], false, 1).unwrap();
    }
    assert_eq!(files(&state).len(), 2, "the named one and the one before");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&state.join("index")), 0o700);
    assert_eq!(mode(&state.join("catalog.json")), 0o600);
    assert_eq!(
        mode(&state.join("snapshots").join(&files(&state)[0])),
        0o600
    );
}

#[test]
fn tools_built_in_are_found_after_real_ones() {
    let folder = tempdir().unwrap();
    let built_in = Tool::parse(r#"{"name":"read_result","description":"Read a result"}"#).unwrap();
    let registry = Registry::open_with(
        folder.path(),
        shelf(&["a"]),
        Options {
            built_in: vec![built_in],
            ..Options::default()
        },
    )
    .unwrap();
    registry
        .commit(vec![news("a", &["read_result: Read a result"])], false, 1)
        .unwrap();
    assert_eq!(
        hits(&registry, &Query::words("read result")),
        ["a/read_result", "proxy/read_result"]
    );
    assert_eq!(registry.catalog().tools(), 1);
}

fn files(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("snapshots")).unwrap();
    files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect()
}
