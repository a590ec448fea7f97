use std::{fs, path::Path};

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

/// The text in another form: each line ended as the next of `is_crlf` says, over and over.
fn in_form(text: &str, is_crlf: &[bool], has_mark: bool, has_end: bool) -> String {
    let mut ends = is_crlf.iter().cycle();
    let line = |line: &str| {
        let end = if *ends.next().unwrap() { "\r\n" } else { "\n" };
        line.to_owned() + end
    };
    let mut formed: String = text.lines().map(line).collect();
    if !has_end {
        formed.truncate(formed.trim_end().len());
    }
    if has_mark {
        formed.insert(0, '\u{feff}');
    }
    formed
}

#[test]
fn a_comment_that_belongs_to_no_server_stays_whatever_ends_its_lines() {
    for (is_crlf, has_mark) in [(false, false), (true, false), (true, true), (false, true)] {
        let mut lf = document(WRITTEN);
        lf.remove_server("issues").unwrap();
        let mut edited = document(&in_form(WRITTEN, &[is_crlf], has_mark, true));
        edited.remove_server("issues").unwrap();
        let expected = in_form(&lf.text(), &[is_crlf], has_mark, true);
        assert_eq!(edited.text(), expected);
    }
    let mut edited = document("# Of nobody.\n \t\n# Of a.\n[servers.a]\ncommand = \"x\"\n");
    edited.remove_server("a").unwrap();
    assert_eq!(edited.text(), "# Of nobody.\n");
}

#[test]
fn lines_that_stay_keep_their_ends_in_a_file_of_both() {
    let mut edited =
        document("log = 'warn'\r\n# why\n[servers.a]\ncommand = 'x'\r\nenabled = true");
    edited.set_enabled("a", false).unwrap();
    assert_eq!(
        edited.text(),
        "log = 'warn'\r\n# why\n[servers.a]\ncommand = 'x'\r\nenabled = false"
    );
    edited.rename_server("a", &"b".parse().unwrap()).unwrap();
    assert!(
        edited
            .text()
            .starts_with("log = 'warn'\r\n# why\n[servers.b]\ncommand = 'x'\r\n")
    );
}

proptest! {
    #[test]
    fn an_edit_and_its_inverse_give_the_same_bytes(
        is_crlf in prop::collection::vec(any::<bool>(), 1..9),
        has_mark in any::<bool>(),
        has_end in any::<bool>(),
    ) {
        let before = in_form(WRITTEN, &is_crlf, has_mark, has_end);
        let again = |text: &str| document(text);
        let mut edited = again(&before);
        prop_assert_eq!(edited.text(), before.as_str());
        edited.add_server(&"new".parse().unwrap(), &npx("p")).unwrap();
        let mut edited = again(&edited.text());
        prop_assert_eq!(edited.servers().len(), 3);
        edited.remove_server("new").unwrap();
        prop_assert_eq!(edited.text(), before.as_str());

        edited.rename_server("issues", &"new".parse().unwrap()).unwrap();
        let mut edited = again(&edited.text());
        edited.rename_server("new", &"issues".parse().unwrap()).unwrap();
        prop_assert_eq!(edited.text(), before.as_str());

        edited.set_enabled("time", false).unwrap();
        let mut edited = again(&edited.text());
        edited.set_enabled("time", true).unwrap();
        prop_assert_eq!(edited.text(), before.as_str());
    }

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
