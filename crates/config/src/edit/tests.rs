use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use super::{AllowRule, Document, EditError, NewServer};

fn document(text: &str) -> Document {
    Document::parse(Path::new("config.toml"), Some(text.to_owned())).unwrap()
}

fn npx(package: &str) -> NewServer {
    NewServer {
        command: Some("npx".to_owned()),
        args: vec!["-y".to_owned(), package.to_owned()],
        ..NewServer::default()
    }
}

const WRITTEN: &str = r#"# What our team uses.
log = "warn" # quiet

# Notes of the whole company.

# The tracker.
[servers.issues] # ours
command = "issues" # on PATH
args = [
    "--project", # one a line
    "site",
]

[servers.issues.overlay.create]
hidden = true

# Time, for everybody.

# A clock.
[servers.time]
command = 'uvx'
enabled = true # for now
args = ["mcp-server-time"]

[http]
listen = "7331"

[clients.code]
allow = ["time", "issues"] # both
# The end.
"#;

#[test]
fn a_server_is_added_behind_the_last_and_nothing_else_is_touched() {
    let mut edited = document(WRITTEN);
    let server = NewServer {
        comment: vec!["Facts that last.".to_owned()],
        env: vec![("FILE".to_owned(), "~/facts".to_owned())],
        category: Some("notes".to_owned()),
        is_per_client: true,
        timeout_s: Some(90),
        deny: vec!["delete_*".to_owned()],
        examples: vec![(
            "a.b".to_owned(),
            json!({"n": 1, "deep": {"list": [1.5, "x", null]}}),
        )],
        ..npx("server-memory")
    };
    edited
        .add_server(&"memory".parse().unwrap(), &server)
        .unwrap();
    let added = "\n# Facts that last.\n[servers.memory]\ncommand = \"npx\"\nargs = [\"-y\", \"server-memory\"]\n\
                 env = { FILE = \"~/facts\" }\ncategory = \"notes\"\ntimeout_s = 90\nscope = \"client\"\n\
                 tools.deny = [\"delete_*\"]\n\
                 overlay.\"a.b\".example = { n = 1, deep = { list = [1.5, \"x\"] } }\n";
    let place = WRITTEN.find("\n[http]").unwrap();
    let (above, below) = WRITTEN.split_at(place);
    assert_eq!(edited.text(), format!("{above}{added}{below}"));
    assert_eq!(edited.servers(), ["issues", "time", "memory"]);
    edited.remove_server("memory").unwrap();
    assert_eq!(edited.text(), WRITTEN);
}

#[test]
fn a_server_goes_with_the_comment_right_above_it() {
    let mut edited = document(WRITTEN);
    edited.remove_server("issues").unwrap();
    assert_snapshot!(edited.text(), @r#"
    # What our team uses.
    log = "warn" # quiet

    # Notes of the whole company.

    # Time, for everybody.

    # A clock.
    [servers.time]
    command = 'uvx'
    enabled = true # for now
    args = ["mcp-server-time"]

    [http]
    listen = "7331"

    [clients.code]
    allow = ["time", "issues"] # both
    # The end.
    "#);
}

#[test]
fn a_new_name_keeps_place_and_comments_and_reaches_the_rules_of_clients() {
    let mut edited = document(WRITTEN);
    edited
        .rename_server("issues", &"tracker".parse().unwrap())
        .unwrap();
    let wanted = WRITTEN
        .replace("servers.issues", "servers.tracker")
        .replace("\"time\", \"issues\"", "\"time\", \"tracker\"");
    assert_eq!(edited.text(), wanted);
    let taken = edited.rename_server("tracker", &"time".parse().unwrap());
    assert!(matches!(taken, Err(EditError::Exists(_))));
    assert_eq!(edited.text(), wanted);
}

#[test]
fn a_server_is_switched_where_the_switch_stands() {
    let mut edited = document(WRITTEN);
    assert!(!edited.set_enabled("time", true).unwrap());
    assert!(edited.set_enabled("time", false).unwrap());
    assert!(edited.text().contains("enabled = false # for now\n"));
    assert!(edited.set_enabled("time", true).unwrap());
    assert_eq!(edited.text(), WRITTEN);
    assert!(!edited.set_enabled("issues", true).unwrap());
    assert!(edited.set_enabled("issues", false).unwrap());
    assert!(
        edited
            .text()
            .contains("    \"site\",\n]\nenabled = false\n")
    );
}

#[test]
fn servers_in_one_line_stay_in_one_line() {
    let mut edited = document("servers = { a = { command = \"x\" } } # short\n");
    edited.add_server(&"b".parse().unwrap(), &npx("p")).unwrap();
    assert!(edited.set_enabled("a", false).unwrap());
    edited.rename_server("a", &"c".parse().unwrap()).unwrap();
    assert_snapshot!(edited.text(), @r#"servers = { c = { command = "x" , enabled = false } , b = { command = "npx", args = ["-y", "p"] } } # short"#);
}

#[test]
fn an_unknown_name_is_told_with_those_there_are() {
    let mut edited = document(WRITTEN);
    let error = edited.remove_server("tme").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no server `tme` in the configuration; it has `issues`, `time`"
    );
    let error = document("").set_enabled("x", true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no server `x` in the configuration; it has none"
    );
}

#[test]
fn a_file_that_is_no_toml_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, "[servers.a\n").unwrap();
    let error = Document::read(&path).unwrap_err();
    assert!(error.to_string().contains("config.toml:1:11"), "{error}");
}

#[test]
fn the_file_keeps_its_mode_and_its_link_and_a_new_one_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let [path, real] = ["new/of/ours/config.toml", "real.toml"].map(|it| folder.path().join(it));
    let mut new = Document::read(&path).unwrap();
    new.add_server(&"a".parse().unwrap(), &npx("p")).unwrap();
    assert!(new.is_changed());
    new.write().unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "[servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"p\"]\n"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );

    fs::write(&real, "\r\n[servers.a]\r\ncommand = 'x'\r\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&real, &path).unwrap();
    let mut linked = Document::read(&path).unwrap();
    linked.set_enabled("a", false).unwrap();
    linked.write().unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(
        fs::read_to_string(&real).unwrap(),
        "\r\n[servers.a]\r\ncommand = 'x'\r\nenabled = false\r\n"
    );
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );

    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    linked.set_enabled("a", true).unwrap();
    assert!(matches!(linked.write(), Err(EditError::Io { .. })));
}

proptest! {
    #[test]
    fn a_literal_is_read_back_as_it_was(text in "[${}a:-]{0,12}") {
        let template = fleet::Template::parse(&NewServer::literal(&text)).unwrap();
        let expanded = template.expand(|_| None);
        prop_assert_eq!(expanded.unwrap(), text);
    }
}

#[test]
fn a_file_of_comments_alone_keeps_them_at_its_head() {
    let mut edited = document("# Ours.");
    edited
        .add_server(&"time".parse().unwrap(), &npx("x"))
        .unwrap();
    let text = edited.text();
    assert!(text.starts_with("# Ours.\n"), "{text}");
    assert!(text.contains("[servers.time]"), "{text}");
}

#[test]
fn a_rule_is_put_before_the_others() {
    let rule = AllowRule {
        key: "tool",
        server: "fs",
        name: "write[1]",
        client: None,
    };
    let ours = "[[rules]]\ndecision = \"allow\"\nserver = \"fs\"\ntool = \"write[[]1[]]\"\n";
    let check = |before: &str, expected: &str| {
        let mut document = document(before);
        assert!(document.allow(&rule));
        assert_eq!(document.text(), expected);
        assert!(!document.allow(&rule), "it is there");
    };
    check("", &format!("\n{ours}"));
    check(
        "[servers.a]\ncommand = \"x\"\n",
        &format!("[servers.a]\ncommand = \"x\"\n\n{ours}"),
    );
    check(
        "log = \"warn\"\n\n# why\n[[rules]]\ndecision = \"ask\"\n",
        &format!("log = \"warn\"\n\n{ours}\n# why\n[[rules]]\ndecision = \"ask\"\n"),
    );
    check(
        "rules = [{ decision = \"ask\" }]\n",
        "rules = [{ decision = \"allow\", server = \"fs\", tool = \"write[[]1[]]\" }, { decision = \"ask\" }]\n",
    );
}
