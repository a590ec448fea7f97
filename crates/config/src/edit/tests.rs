use std::{collections::BTreeSet, fs, path::Path};

use insta::assert_snapshot;
use policy::{Allowance, Effects, RequestKind, Subject};
use proptest::prelude::*;
use serde_json::json;

use super::{Document, EditError, NewServer};
use crate::{Environment, Overrides};

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
        .add_server(&"memory".parse().unwrap(), &server, BTreeSet::new)
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
    edited
        .add_server(&"b".parse().unwrap(), &npx("p"), BTreeSet::new)
        .unwrap();
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

/// Returns the text in another form: line endings follow the repeated pattern `is_crlf`.
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
        edited.add_server(&"new".parse().unwrap(), &npx("p"), BTreeSet::new).unwrap();
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
        let template = fleet::Template::parse(&printable::escape_template(&text)).unwrap();
        let expanded = template.expand(|_| None);
        prop_assert_eq!(expanded.unwrap(), text);
    }
}

#[test]
fn a_file_of_comments_alone_keeps_them_at_its_head() {
    let mut edited = document("# Ours.");
    edited
        .add_server(&"time".parse().unwrap(), &npx("x"), BTreeSet::new)
        .unwrap();
    let text = edited.text();
    assert!(text.starts_with("# Ours.\n"), "{text}");
    assert!(text.contains("[servers.time]"), "{text}");
}

/// Returns the permanent allowance of a tool for a client, under the rules of a text.
fn allowance(text: &str, name: &str, client: Option<&str>) -> Allowance {
    let read = document(text).read_policy(&Overrides::default(), &home());
    let call = Subject {
        client: client.unwrap_or_default(),
        profiles: &[],
        server: "fs",
        kind: RequestKind::Tool,
        name,
        category: "",
        effects: Effects::default(),
        arguments: "{}",
    };
    Allowance::new(&read.unwrap(), &call, client.is_none()).unwrap()
}

fn home() -> Environment {
    [("HOME", "/home/me")].into_iter().collect()
}

fn allow(document: &mut Document, allowance: &Allowance) -> Result<Option<usize>, EditError> {
    document.allow(allowance, &Overrides::default(), &home())
}

const FS: &str = "[servers.fs]\ncommand = \"x\"\n";

/// Checks a new rule. `NEW` stands for it in the expected text.
#[track_caller]
fn check_rule(before: &str, expected: &str, number: usize) {
    let ours = "decision = \"allow\"\nserver = \"fs\"\ntool = \"write[[]1[]]\"\n";
    let inline = "{ decision = \"allow\", server = \"fs\", tool = \"write[[]1[]]\" }";
    let expected = expected
        .replace("[[NEW]]\n", &format!("[[rules]]\n{ours}"))
        .replace("{NEW}", inline);
    let allowance = allowance(before, "write[1]", None);
    let mut edited = document(before);
    assert_eq!(allow(&mut edited, &allowance).unwrap(), Some(number));
    assert_eq!(edited.text(), expected);
    let mut again = document(&expected);
    assert_eq!(
        allow(&mut again, &allowance).unwrap(),
        None,
        "the rule exists already"
    );
    assert_eq!(again.text(), expected);
}

#[test]
fn a_tool_is_forbidden_by_its_name_before_all_rules_of_the_file() {
    let ask = "[[rules]]\ndecision = \"ask\"\n";
    let deny = "[[rules]]\ndecision = \"deny\"\n";
    let names = "server = \"fs\"\ntool = \"write[[]1[]]\"\n";
    let mut edited = document(&format!("{FS}{ask}"));
    edited.forbid("fs", "write[1]", None);
    assert_eq!(edited.text(), format!("{FS}\n{deny}{names}\n{ask}"));
    let mut first = document(FS);
    first.forbid("fs", "write[1]", Some("a*"));
    let client = "client = \"a[*]\"\n";
    assert_eq!(first.text(), format!("{FS}\n{deny}{client}{names}"));
}

#[test]
fn a_rule_goes_directly_before_the_one_that_decided_and_comments_stay_with_theirs() {
    let ask = "[[rules]]\ndecision = \"ask\"\n";
    let other = "[[rules]]\ndecision = \"deny\"\ntool = \"other\"\n";
    let server_b = "[servers.b]\ncommand = \"y\"\n";
    // Rules and servers may alternate, and a rule may have a table of its own.
    let with_table = "[[rules]]\ndecision = \"deny\"\nserver = \"db\"\n\
                      [rules.arguments]\n\"/sql\" = \"drop*\"\n";
    check_rule(
        &format!("policy = \"read-only\"\n{FS}"),
        &format!("policy = \"read-only\"\n{FS}\n[[NEW]]\n"),
        1,
    );
    check_rule(
        &format!("{FS}\n# why\n{ask}"),
        &format!("{FS}\n[[NEW]]\n\n# why\n{ask}"),
        1,
    );
    check_rule(
        &format!("# Ours.\n\n# why\n{ask}\n{FS}"),
        &format!("# Ours.\n\n[[NEW]]\n\n# why\n{ask}\n{FS}"),
        1,
    );
    check_rule(&format!("{ask}{FS}"), &format!("\n[[NEW]]\n\n{ask}{FS}"), 1);
    check_rule(
        &format!("{FS}{other}{with_table}# why\n{ask}# B\n{server_b}{other}"),
        &format!("{FS}{other}{with_table}\n[[NEW]]\n# why\n{ask}# B\n{server_b}{other}"),
        3,
    );
    check_rule(
        &format!("policy = \"read-only\"\n{other}{FS}{server_b}"),
        &format!("policy = \"read-only\"\n{other}\n[[NEW]]\n{FS}{server_b}"),
        2,
    );
}

#[test]
fn a_rule_goes_into_a_list_in_one_line_and_in_several() {
    let check = |before: &str, expected: &str, number| {
        let text = |list: &str| {
            let list = list
                .replace("ASK", "{ decision = \"ask\" }")
                .replace("OTHER", "{ decision = \"deny\", tool = \"other\" }");
            format!("policy = \"read-only\"\nrules = {list}\n{FS}")
        };
        check_rule(&text(before), &text(expected), number);
    };
    check("[]", "[{NEW}]", 1);
    check("[ASK]", "[{NEW}, ASK]", 1);
    check("[OTHER, ASK, OTHER]", "[OTHER, {NEW}, ASK, OTHER]", 2);
    check("[OTHER]", "[OTHER, {NEW}]", 2);
    check(
        "[\n  OTHER, # first\n  # why\n  ASK, # second\n]",
        "[\n  OTHER, # first\n  {NEW},\n  # why\n  ASK, # second\n]",
        2,
    );
    check(
        "[\n  OTHER, # first\n  # end\n]",
        "[\n  OTHER, # first\n  {NEW},\n  # end\n]",
        2,
    );
    check(
        "[\n  # why\n  ASK,\n]",
        "[\n  {NEW},\n  # why\n  ASK,\n]",
        1,
    );
}

#[test]
fn no_name_makes_a_rule_that_cannot_be_read() {
    let text = format!("{FS}[[rules]]\ndecision = \"ask\"\n");
    for name in [
        "wipe\\",
        "[",
        "{a",
        "it's \"x\"",
        "a\nb",
        "!no",
        "*",
        "Ü\u{202e}",
        "'''",
        "\u{7f}",
    ] {
        let mut edited = document(&text);
        let allowance = allowance(&text, name, Some(name));
        let number = allow(&mut edited, &allowance).unwrap();
        assert_eq!(number, Some(1), "{name:?}");
        let after = document(&edited.text());
        let checked = after.check(&Overrides::default(), &home());
        assert!(checked.is_ok(), "{name:?}");
    }
    let mut edited = document(&text);
    let nameless = allowance(&text, "", None);
    let refused = allow(&mut edited, &nameless).unwrap_err().to_string();
    assert!(refused.contains("expected a pattern"), "{refused}");
    assert_eq!(edited.text(), text);
}

#[test]
fn rules_that_are_others_by_now_are_not_changed() {
    let ask = "[[rules]]\ndecision = \"ask\"\ntool = \"fs/*\"\n";
    let text = format!("{FS}{ask}");
    let asked = allowance(&text, "write", Some("cursor"));
    let deny = "[[rules]]\ndecision = \"deny\"\ntool = \"fs/write\"\n";
    let reads = "[[rules]]\ndecision = \"deny\"\n\
                 arguments = { \"/path\" = { inside = \"/secret\" } }\n";
    for (now, why) in [
        (format!("{FS}{deny}{ask}"), "changed since the question"),
        (FS.to_owned(), "allowed already"),
        (
            text.replace("\"ask\"", "\"deny\""),
            "changed since the question",
        ),
        (
            format!("{FS}{reads}{ask}"),
            "rule 1 decides by its arguments",
        ),
        (
            text.replace("servers.fs", "servers.files"),
            "no server `fs`",
        ),
        (format!("no_such_key = 1\n{text}"), "no_such_key"),
    ] {
        let mut edited = document(&now);
        let said = match allow(&mut edited, &asked) {
            Ok(number) => number.map_or("allowed already".to_owned(), |it| it.to_string()),
            Err(why) => why.to_string(),
        };
        assert!(said.contains(why), "{now}: {said}");
        assert_eq!(edited.text(), now);
    }
    // A rule that does not match the call may have been added.
    let other = "[[rules]]\ndecision = \"deny\"\ntool = \"other\"\n";
    let mut edited = document(&format!("{FS}{other}{ask}"));
    assert_eq!(allow(&mut edited, &asked).unwrap(), Some(2));
}

#[test]
fn commands_are_added() {
    let mut edited = document("# Ours.\n[servers.a]\ncommand = \"a\"\n");
    let values = json!({"command": ["rg", "{a}"], "args": {"a": {"type": "string"}}});
    for name in ["rg", "fd"] {
        edited.add_command(name, values.as_object().unwrap());
    }
    assert_eq!(edited.commands(), ["rg", "fd"]);
    assert_snapshot!(edited.text(), @r#"
    # Ours.
    [servers.a]
    command = "a"

    [commands.rg]
    command = ["rg", "{a}"]
    args = { a = { type = "string" } }

    [commands.fd]
    command = ["rg", "{a}"]
    args = { a = { type = "string" } }
    "#);
    let env = Environment::from_iter([("HOME", "/home/ada")]);
    edited.check(&Overrides::default(), &env).unwrap();
}

/// Adds a server named `x`; returns the text and the stored secrets.
fn store(server: &NewServer, kept: &[&str]) -> (String, Vec<(String, String)>) {
    let mut edited = document("");
    let kept = || kept.iter().map(ToString::to_string).collect();
    let stored = edited.add_server(&"x".parse().unwrap(), server, kept);
    let stored = stored.unwrap().into_iter();
    let stored = stored.map(|(name, value)| (name.to_string(), value.expose().to_owned()));
    (edited.text(), stored.collect())
}

fn own_pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

fn local(env: &[(&str, &str)], args: &[&str]) -> NewServer {
    NewServer {
        command: Some("npx".to_owned()),
        args: args.iter().map(ToString::to_string).collect(),
        env: own_pairs(env),
        ..NewServer::default()
    }
}

fn remote(url: &str, headers: &[(&str, &str)]) -> NewServer {
    NewServer {
        url: Some(url.to_owned()),
        headers: own_pairs(headers),
        ..NewServer::default()
    }
}

#[test]
fn secrets_of_a_new_server_are_stored_and_not_written() {
    let check = |server: &NewServer, stored: &[(&str, &str)], line: &str| {
        let (text, found) = store(server, &[]);
        let found: Vec<_> = found
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(found, stored, "{text}");
        assert!(text.contains(line), "{text}");
    };
    let token = "ghp_0123456789abcdef";
    let is = |name| vec![(name, token)];
    check(
        &local(&[], &["--token", token]),
        &is("x.token"),
        r#"["--token", "${secret:x.token}"]"#,
    );
    check(
        &local(&[], &["--api-key=opensesame"]),
        &[("x.api-key", "opensesame")],
        r#"["--api-key=${secret:x.api-key}"]"#,
    );
    check(
        &local(
            &[],
            &["-e", "API_KEY=opensesame", "https://ada:lovelace@x.dev/"],
        ),
        &[("x.API_KEY", "opensesame"), ("x.password", "lovelace")],
        r#"["-e", "API_KEY=${secret:x.API_KEY}", "https://ada:${secret:x.password}@x.dev/"]"#,
    );
    check(
        &local(&[], &["serve", token]),
        &is("x.argument-2"),
        r#"["serve", "${secret:x.argument-2}"]"#,
    );
    check(
        &local(
            &[("A_TOKEN", "pa$${s"), ("MODE", "fast"), ("OTHER", token)],
            &[],
        ),
        &[("x.A_TOKEN", "pa${s"), ("x.OTHER", token)],
        r#"A_TOKEN = "${secret:x.A_TOKEN}", MODE = "fast", OTHER = "${secret:x.OTHER}""#,
    );
    check(
        &remote(
            "https://x.dev/mcp?key=opensesame",
            &[("Authorization", "Bearer abc123")],
        ),
        &[("x.Authorization", "abc123"), ("x.key", "opensesame")],
        "Bearer ${secret:x.Authorization}",
    );
    for plain in [
        local(
            &[("TOKEN", "${TOKEN}"), ("KEY_FILE", "/a/b")],
            &["--token", "${T}"],
        ),
        remote(
            "https://x.dev/mcp",
            &[("Authorization", "Bearer ${secret:other}")],
        ),
    ] {
        check(&plain, &[], "");
    }
}

#[test]
fn a_stored_secret_gets_a_name_of_its_own_and_known_values_are_secret_in_any_form() {
    let mut server = npx("p");
    server.args = [
        "--token",
        "opensesame",
        "--token",
        "hunter22",
        "plain",
        "at=plain",
    ]
    .map(str::to_owned)
    .to_vec();
    server.secret_values = vec![("VALUE".to_owned(), "plain".to_owned())];
    let (text, stored) = store(&server, &["x.token"]);
    let expected = [
        ("x.token-2", "opensesame"),
        ("x.token-3", "hunter22"),
        ("x.VALUE", "plain"),
        ("x.VALUE-2", "plain"),
    ];
    assert_eq!(stored, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert!(text.contains(r#""at=${secret:x.VALUE-2}""#), "{text}");
    assert!(!text.contains("secret_values"), "{text}");

    // One value is the beginning of another.
    server.args = vec!["at=plainer".to_owned()];
    server
        .secret_values
        .push(("LONG".to_owned(), "plainer".to_owned()));
    let (text, stored) = store(&server, &[]);
    assert!(text.contains(r#""at=${secret:x.LONG}""#), "{text}");
    assert_eq!(stored, [("x.LONG".to_owned(), "plainer".to_owned())]);
}

/// The known values overlap each other, and values that look secret.
#[test]
fn no_part_of_a_secret_stays_in_clear_where_secrets_overlap() {
    let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let known = [
        ("SHORT", "xxabcd"),
        ("LONG", "abcdefghij"),
        ("PART", &token[8..20]),
    ];
    for (argument, label, secret) in [
        ("at=xxabcdefghij", "x.LONG", "xxabcdefghij"),
        (token, "x.argument-1", token),
    ] {
        let mut server = local(&[], &[argument]);
        server.secret_values = known
            .map(|(label, value)| (label.to_owned(), value.to_owned()))
            .to_vec();
        let (text, stored) = store(&server, &[]);
        assert_eq!(stored, [(label.to_owned(), secret.to_owned())], "{text}");
    }
}

#[test]
fn a_server_is_limited_to_folders_by_a_profile_and_widened_again() {
    let text = "[servers.notes]\ncommand = \"x\"\n[profiles.notes-elsewhere]\nallow = [\"a\"]\n";
    let mut edited = document(text);
    let notes = "notes".parse().unwrap();
    let folders = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(edited.widen_folders(&notes, &folders(&["/a"])), None);
    let name = edited.limit_to_folders(&notes, &folders(&["/a"]));
    assert_eq!(name, "notes-elsewhere-2");
    let limit = "\n[profiles.notes-elsewhere-2]\noutside_folders = [\"/a\"]\ndeny = [\"notes\"]\n";
    assert_eq!(edited.text(), format!("{text}{limit}"));
    assert_eq!(edited.widen_folders(&notes, &folders(&["/a"])), None);
    let wider = edited.widen_folders(&notes, &folders(&["/b", "/a"]));
    assert_eq!(wider.as_deref(), Some("notes-elsewhere-2"));
    assert!(
        edited.text().contains("[\"/a\", \"/b\"]"),
        "{}",
        edited.text()
    );
    assert!(edited.widen_folders(&notes, &[]).is_some());
    assert_eq!(edited.text(), text);
    let own = format!("{text}{limit}max_tokens = 900\n");
    let mut kept = document(&own);
    assert_eq!(kept.widen_folders(&notes, &[]), None);
    assert_eq!(kept.text(), own, "a person has made it a profile of more");
    edited.limit_to_folders(&notes, &folders(&["/a"]));
    edited
        .rename_server("notes", &"facts".parse().unwrap())
        .unwrap();
    assert!(edited.text().contains("deny = [\"facts\"]"));
    edited.remove_rules_of("facts");
    assert!(!edited.text().contains("facts\"]"), "{}", edited.text());
}

#[test]
fn a_removed_server_takes_the_profile_that_only_limited_it_to_folders() {
    let others = "[servers.mail]\ncommand = \"y\"\n[profiles.mine]\ndeny = [\"mail\"]\n";
    let mut edited = document(&format!("[servers.notes]\ncommand = \"x\"\n{others}"));
    edited.limit_to_folders(&"notes".parse().unwrap(), &["/a".to_owned()]);
    let profile = edited.remove_server("notes").unwrap();
    assert_eq!(profile.as_deref(), Some("notes-elsewhere"));
    assert_eq!(edited.text(), others);
    assert_eq!(edited.remove_server("mail").unwrap(), None);
    assert!(edited.text().contains("[profiles.mine]"), "a person's own");
}
