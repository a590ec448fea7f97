use std::path::Path;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::{Doubtful, fits, rename_full, rename_name};
use crate::edit::{Document, EditError};

fn document(text: &str) -> Document {
    Document::parse(Path::new("config.toml"), Some(text.to_owned())).unwrap()
}

const RULES: &str = r#"# Ours.

[servers.fs]
command = "x"

[servers.git]
command = "y"

# Not to be written.
[[rules]] # first
decision = "deny"
server = "fs" # all of it
tool = "write_*"

# Of everybody.

# Of two.
[[rules]]
decision = "ask"
tool = ["fs/*", "git/push"]

[[rules]]
decision = "deny"
server = "f*"

[clients.code]
allow = ["fs"]
deny = ["git", "fs"]
"#;

const QUOTAS: &str = r#"
[servers.fs]
command = "x"

[[quotas]]
calls = 5
per = "day"
tool = "fs/write_*"

[[quotas]]
calls = 9
per = "day"
server = ["fs", "git"]

[profiles.work]
allow = ["fs", "git"]
"#;

#[test]
fn quotas_and_profiles_follow_a_new_name_and_go_with_their_server() {
    let mut edited = document(QUOTAS);
    let changed = edited.rename_server("fs", &"disk".parse().unwrap());
    assert_eq!(
        changed.unwrap(),
        [
            "quota 1: tool = \"fs/write_*\" is now \"disk/write_*\"",
            "quota 2: server = [\"fs\", \"git\"] is now [\"disk\", \"git\"]",
            "profiles.work.allow = [\"fs\", \"git\"] is now [\"disk\", \"git\"]",
        ]
    );
    let mut edited = document(QUOTAS);
    let removed = edited.remove_rules_of("fs");
    assert_eq!(removed.removed.len(), 3, "{removed:?}");
    let text = edited.text();
    assert!(!text.contains("write_*"), "{text}");
    assert!(text.contains("server = [\"git\"]"), "{text}");
    assert!(text.contains("allow = [\"git\"]"), "{text}");
}

#[test]
fn a_new_name_keeps_every_rule_in_force() {
    let mut edited = document(RULES);
    let to = "disk".parse().unwrap();
    let changed = edited.rename_server("fs", &to).unwrap();
    assert_eq!(
        changed,
        [
            "rule 1: server = \"fs\" is now \"disk\"",
            "rule 2: tool = [\"fs/*\", \"git/push\"] is now [\"disk/*\", \"git/push\"]",
            "rule 3: server = \"f*\" is now [\"f*\", \"disk\"]",
            "clients.code.allow = [\"fs\"] is now [\"disk\"]",
            "clients.code.deny = [\"git\", \"fs\"] is now [\"git\", \"disk\"]",
        ]
    );
    let expected = RULES
        .replace("\"f*\"", "[\"f*\", \"disk\"]")
        .replace("servers.fs", "servers.disk")
        .replace("\"fs\"", "\"disk\"")
        .replace("fs/", "disk/");
    assert_eq!(edited.text(), expected);

    let mut inline = document(
        "servers = { fs = { command = 'x' } }\nrules = [{ decision = 'deny', tool = '{fs,git}/*' }]\n",
    );
    inline.rename_server("fs", &to).unwrap();
    assert!(
        inline
            .text()
            .contains("tool = [\"{fs,git}/*\", \"disk/*\"]"),
        "{}",
        inline.text()
    );

    let mut named = document(&format!("{RULES}\n[servers.disk-2]\ncommand = 'z'\n"));
    let refused = named.rename_server("git", &"fs".parse().unwrap());
    assert!(matches!(refused, Err(EditError::Exists(_))));
    named.remove_server("fs").unwrap();
    let refused = named
        .rename_server("git", &"fs".parse().unwrap())
        .unwrap_err();
    assert!(refused.to_string().contains("rule 1: server"), "{refused}");
}

#[test]
fn a_rule_by_category_holds_for_the_new_name_where_the_name_is_the_category() {
    let check = |server: &str, expected: &str| {
        let rule = "[[rules]]\ndecision = \"deny\"\ncategory = \"fs\"\n";
        let mut edited = document(&format!("[servers.fs]\n{server}command = 'x'\n{rule}"));
        edited
            .rename_server("fs", &"disk".parse().unwrap())
            .unwrap();
        assert!(edited.text().ends_with(expected), "{}", edited.text());
    };
    check("", "category = \"disk\"\n");
    check("category = \"files\"\n", "category = \"fs\"\n");
    check(
        "overlay.a.category = \"fs\"\n",
        "category = [\"fs\", \"disk\"]\n",
    );
}

#[test]
fn rules_of_a_server_alone_go_with_it_and_others_lose_its_name() {
    let mut edited = document(RULES);
    edited.remove_server("fs").unwrap();
    assert_eq!(edited.list_rules_of("fs").len(), 4);
    let outcome = edited.remove_rules_of("fs");
    let numbers = |lines: &[String]| {
        lines
            .iter()
            .map(|it| it[..9].to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        numbers(&outcome.removed),
        ["rule 1: d", "rule 2: d", "clients.c"]
    );
    assert_eq!(numbers(&outcome.stay), ["rule 3: d", "clients.c"]);
    assert_snapshot!(edited.text(), @r#"
    # Ours.

    [servers.git]
    command = "y"

    # Of everybody.

    # Of two.
    [[rules]]
    decision = "ask"
    tool = ["git/push"]

    [[rules]]
    decision = "deny"
    server = "f*"

    [clients.code]
    allow = ["fs"]
    deny = ["git"]
    "#);
}

#[test]
fn a_rule_never_holds_for_more_once_a_server_is_removed() {
    let check = |rule: &str, expected: &str| {
        let mut edited = document(&format!("rules = [{{ decision = 'deny', {rule} }}]\n"));
        edited.remove_rules_of("fs");
        assert_eq!(edited.text(), format!("rules = [{expected}]\n"));
    };
    check("tool = 'fs/x'", "");
    check("tool = ['fs/x', 'fs/y'], prompt = 'fs/z'", "");
    check(
        "tool = ['fs/x'], resource = 'r*'",
        "{ decision = 'deny', resource = 'r*' }",
    );
    check(
        "server = ['fs', 'git']",
        "{ decision = 'deny', server = ['git'] }",
    );
    check(
        "server = '{fs,git}'",
        "{ decision = 'deny', server = '{fs,git}' }",
    );
    check("server = '*'", "{ decision = 'deny', server = '*' }");
}

#[test]
fn a_pattern_of_servers_matches_the_new_name_and_the_others_as_before() {
    let check = |pattern: &str, expected: Option<&[&str]>| {
        let renamed = rename_name(pattern, "fs", "disk");
        let expected = expected.map(|names| names.iter().map(ToString::to_string).collect());
        assert_eq!(renamed, expected, "{pattern}");
    };
    check("fs", Some(&["disk"]));
    check("FS", Some(&["disk"]));
    check("f*", Some(&["f*", "disk"]));
    check("*s*", None);
    check("*", None);
    check("git", None);
    check("{fs,git}", Some(&["{fs,git}", "disk"]));
}

#[test]
fn a_pattern_of_tools_matches_the_tools_of_the_new_name_or_is_listed() {
    let check = |pattern: &str, expected: Result<Option<&[&str]>, Doubtful>| {
        let renamed = rename_full(pattern, "fs", "disk");
        let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        assert_eq!(renamed, expected.map(|names| names.map(texts)), "{pattern}");
    };
    check("fs/write_file", Ok(Some(&["disk/write_file"])));
    check("Fs/**", Ok(Some(&["disk/**"])));
    check("fs/{read,write}_*", Ok(Some(&["disk/{read,write}_*"])));
    check("{fs,git}/*", Ok(Some(&["{fs,git}/*", "disk/*"])));
    check("[a-f]?/x", Ok(Some(&["[a-f]?/x", "disk/x"])));
    for doubtful in ["{fs/a,b}", "f*/write_*", "f*_file", "{fs,git}*"] {
        check(doubtful, Err(Doubtful));
    }
    for other in [
        "write_file",
        "*_file",
        "*/write_*",
        "gfs/x",
        "{get,list}_*",
        "**/x",
    ] {
        check(other, Ok(None));
    }
}

const PARTS: [&str; 12] = [
    "f", "s", "fs", "/", "*", "?", "[ef]", "{fs,git}", "{a,f}", "x", "fs/", "d",
];

proptest! {
    #[test]
    fn a_rule_never_loses_a_tool_by_a_new_name(
        parts in prop::collection::vec(prop::sample::select(&PARTS[..]), 1..5),
        tool in "[fsxd/]{0,3}",
    ) {
        let pattern = parts.concat();
        // A pattern that begins with `*` names tools of every server.
        prop_assume!(!pattern.starts_with('*'));
        let Ok(renamed) = rename_full(&pattern, "fs", "disk") else {
            return Ok(());
        };
        let new = renamed.unwrap_or_else(|| vec![pattern.clone()]);
        let [former_name, new_name, other] = ["fs", "disk", "git"].map(|server| format!("{server}/{tool}"));
        if fits(&pattern, &former_name) {
            prop_assert!(new.iter().any(|text| fits(text, &new_name)), "{:?}", new);
        }
        prop_assert_eq!(new.iter().any(|text| fits(text, &other)), fits(&pattern, &other));
    }
}
