//! Checks of calls against one table of rules.

use serde_json::{Map, Value, json};

use crate::{Decision, Effects, Policy, PolicyVerdict, Preset, RequestKind, Rule, Subject};

const HOME: &str = "/home/me";

fn rules() -> Vec<Rule> {
    let written = json!([
        /* 1 */ {"decision": "deny", "client": "guest*", "tool": "*", "reason": "guests only read"},
        /* 2 */ {"decision": "deny", "server": "bank", "reason": "by hand only"},
        /* 3 */ {"decision": "deny", "resource": "file:///home/me/.ssh/*"},
        /* 4 */ {"decision": "deny", "arguments": {"/**": {"inside": "~/.ssh"}}, "tool": "*"},
        /* 5 */ {"decision": "deny", "tool": "db/*", "arguments": {"/sql": {"regex": "(?i)drop\\s+table"}}},
        /* 6 */ {"decision": "allow", "server": "fs", "tool": "write_file", "arguments": {"/path": {"inside": ["~/jobs", "/tmp"]}}},
        /* 7 */ {"decision": "ask", "tool": "fs/{write,move}_*", "arguments": {"/path": {"outside": "~/jobs"}}, "reason": "outside the project"},
        /* 8 */ {"decision": "allow", "tool": "git/commit"},
        /* 9 */ {"decision": "ask", "server": "git", "annotation": "destructive"},
        /* 10 */ {"decision": "deny", "category": "finance", "annotation": "open-world"},
        /* 11 */ {"decision": "deny", "prompt": "steer*"},
        /* 12 */ {"decision": "allow", "tool": "web/get", "arguments": {"/url": "https://docs.example/*"}},
        /* 13 */ {"decision": "ask", "tool": "web/get"},
        /* 14 */ {"decision": "deny", "tool": "mail/send", "arguments": {"/to/*": "*@rival.example", "/urgent": "true"}},
        /* 15 */ {"decision": "deny", "tool": ["admin_*", "shell/run"]},
        /* 16 */ {"decision": "deny", "tool": "disk/*", "arguments": {"/path": "~/keys/*"}},
        /* 17 */ {"decision": "deny", "tool": "net/*", "arguments": {"/url": "https://inner.example/admin*"}},
        /* 18 */ {"decision": "deny", "resource": "vault://secret/*"},
        /* 19 */ {"decision": "deny", "resource": "file:///srv/keys"},
        /* 20 */ {"decision": "allow", "resource": "docs://open/*"},
        /* 21 */ {"decision": "ask", "resource": "docs://*"},
        /* 22 */ {"decision": "allow", "tool": "log/read", "arguments": {"/path": "~/logs/*"}},
        /* 23 */ {"decision": "ask", "tool": "log/read"},
        /* 24 */ {"decision": "deny", "tool": "sql/*", "arguments": {"/**": {"regex": "drop.*table"}}},
        /* 25 */ {"decision": "deny", "tool": "etc/*", "arguments": {"/path": "/etc/*"}},
        /* 26 */ {"decision": "deny", "tool": "rel/*", "arguments": {"/path": "secrets/*"}},
    ]);
    let read = |rule: &Value| {
        let rule = rule.as_object().expect("a table");
        Rule::read(rule, Some(HOME)).expect("a rule")
    };
    written
        .as_array()
        .expect("a list")
        .iter()
        .map(read)
        .collect()
}

fn decide(preset: Preset, who: &str, what: &str, arguments: &str) -> Decision {
    let (kind, at) = match what.split_once(' ') {
        Some(("prompt", at)) => (RequestKind::Prompt, at),
        Some(("resource", at)) => (RequestKind::Resource, at),
        _ => (RequestKind::Tool, what),
    };
    let (server, name) = at.split_once('/').expect("a server and a name");
    let is_destructive = name.contains("delete") || name.contains("reset");
    Policy::new(preset, rules()).decide(&Subject {
        client: who,
        profiles: &[],
        server,
        kind,
        name,
        category: if server == "pay" {
            "finance"
        } else {
            "utility"
        },
        effects: Effects {
            is_destructive,
            is_read_only: kind != RequestKind::Tool
                || name.starts_with("read")
                || name.starts_with("list"),
            is_open_world: !name.ends_with("_here"),
        },
        arguments,
    })
}

/// The client, the call and its arguments; the verdict, and the number of the rule that decided (0: the
/// preset).
type Case = (
    &'static str,
    &'static str,
    &'static str,
    PolicyVerdict,
    usize,
);

const ALLOW: PolicyVerdict = PolicyVerdict::Allow;
const ASK: PolicyVerdict = PolicyVerdict::Ask;
const DENY: PolicyVerdict = PolicyVerdict::Deny;

const CASES: &[Case] = &[
    ("guest", "git/commit", "{}", DENY, 1),
    ("guest-7", "git/commit", "{}", DENY, 1),
    ("Guest-7", "git/commit", "{}", DENY, 1),
    ("guest", "resource notes/a:1", "{}", ALLOW, 0),
    ("guest", "prompt notes/greet", "{}", ALLOW, 0),
    ("", "git/commit", "{}", ALLOW, 8),
    ("cursor", "git/commit", "{}", ALLOW, 8),
    ("cursor", "bank/list_accounts", "{}", DENY, 2),
    ("cursor", "prompt bank/steer", "{}", DENY, 2),
    ("cursor", "resource bank/bank://accounts", "{}", DENY, 2),
    ("cursor", "banking/list_accounts", "{}", ALLOW, 0),
    (
        "cursor",
        "resource fs/file:///home/me/.ssh/id",
        "{}",
        DENY,
        3,
    ),
    (
        "cursor",
        "resource fs/file:///home/me/x/../.ssh/id",
        "{}",
        DENY,
        3,
    ),
    (
        "cursor",
        "resource fs/FILE:///home/me/.ssh/id",
        "{}",
        DENY,
        3,
    ),
    (
        "cursor",
        "resource fs/file:///home/me/%2essh/id",
        "{}",
        DENY,
        3,
    ),
    (
        "cursor",
        "resource fs/file://localhost/home//me/.ssh/id",
        "{}",
        DENY,
        3,
    ),
    (
        "cursor",
        "resource fs/file:///home/me/.sshd/id",
        "{}",
        ALLOW,
        0,
    ),
    (
        "cursor",
        "notes/read",
        r#"{"path":"/home/me/.ssh/id"}"#,
        DENY,
        4,
    ),
    ("cursor", "notes/read", r#"{"path":"~/.ssh/id"}"#, DENY, 4),
    (
        "cursor",
        "notes/read",
        r#"{"deep":[{"p":"/home/me/./.ssh"}]}"#,
        DENY,
        4,
    ),
    (
        "cursor",
        "notes/read",
        r#"{"path":"/ok","path":"~/.ssh/id"}"#,
        DENY,
        4,
    ),
    (
        "cursor",
        "notes/read",
        r#"{"path":"\u007e/.ssh/id"}"#,
        DENY,
        4,
    ),
    (
        "cursor",
        "notes/read",
        r#"{"path":"/home/me/.sshd"}"#,
        ALLOW,
        0,
    ),
    ("cursor", "notes/read", r#"{"count":5}"#, ALLOW, 0),
    ("cursor", "notes/read", r#"{"path":"../.ssh/id"}"#, DENY, 4),
    (
        "cursor",
        "db/query",
        r#"{"sql":"select 1; DROP   TABLE users"}"#,
        DENY,
        5,
    ),
    (
        "cursor",
        "db/query",
        r#"{"sql":"select 1","n":5}"#,
        ALLOW,
        0,
    ),
    (
        "cursor",
        "db/query",
        r#"{"sql":["select 1","drop table t"]}"#,
        DENY,
        5,
    ),
    (
        "cursor",
        "db/query",
        r#"{"sql":"x; drop\ntable t"}"#,
        DENY,
        5,
    ),
    ("cursor", "DB/query", r#"{"sql":"drop table t"}"#, DENY, 5),
    ("cursor", "dbx/query", r#"{"sql":"drop table t"}"#, ALLOW, 0),
    (
        "cursor",
        "fs/write_file",
        r#"{"path":"/home/me/jobs/a"}"#,
        ALLOW,
        6,
    ),
    ("cursor", "fs/write_file", r#"{"path":"/tmp/a"}"#, ALLOW, 6),
    (
        "cursor",
        "fs/write_file",
        r#"{"path":"/tmp/../etc/passwd"}"#,
        ASK,
        7,
    ),
    (
        "cursor",
        "fs/write_file",
        r#"{"path":"/etc/passwd"}"#,
        ASK,
        7,
    ),
    (
        "cursor",
        "fs/write_file",
        r#"{"path":"/tmp/a","path":"/etc/passwd"}"#,
        ASK,
        7,
    ),
    (
        "cursor",
        "fs/write_file",
        r#"{"path":"/home/me/jobshop"}"#,
        ASK,
        7,
    ),
    (
        "cursor",
        "fs/write_file",
        r#"{"path":"/home/me/jobs"}"#,
        ALLOW,
        6,
    ),
    (
        "cursor",
        "fs/move_file",
        r#"{"path":"/home/me/jobs/a"}"#,
        ALLOW,
        0,
    ),
    ("cursor", "fs/move_file", r#"{"path":"/tmp/a"}"#, ASK, 7),
    ("cursor", "fs/Move_file", r#"{"path":"/tmp/a"}"#, ASK, 7),
    ("cursor", "git/reset_hard", "{}", ASK, 9),
    ("cursor", "GIT/reset_hard", "{}", ASK, 9),
    ("cursor", "git/Commit", "{}", ALLOW, 0),
    ("cursor", "git/delete_branch", "{}", ASK, 9),
    ("cursor", "pay/send", "{}", DENY, 10),
    ("cursor", "pay/count_here", "{}", ALLOW, 0),
    ("cursor", "prompt notes/steer_it", "{}", DENY, 11),
    ("cursor", "prompt notes/STEER_it", "{}", DENY, 11),
    ("cursor", "notes/steer_it", "{}", ALLOW, 0),
    (
        "cursor",
        "web/get",
        r#"{"url":"https://docs.example/a"}"#,
        ALLOW,
        12,
    ),
    (
        "cursor",
        "web/get",
        r#"{"url":"https://docs.example.evil/a"}"#,
        ASK,
        13,
    ),
    (
        "cursor",
        "web/get",
        r#"{"url":["https://docs.example/a","https://evil/"]}"#,
        ASK,
        13,
    ),
    (
        "cursor",
        "web/get",
        r#"{"url":"HTTPS://DOCS.EXAMPLE/a"}"#,
        ASK,
        13,
    ),
    (
        "cursor",
        "web/get",
        r#"{"url":"https://docs.example/../x"}"#,
        DENY,
        4,
    ),
    ("cursor", "web/get", "{}", ASK, 13),
    (
        "cursor",
        "mail/send",
        r#"{"to":["a@b","x@rival.example"],"urgent":true}"#,
        DENY,
        14,
    ),
    (
        "cursor",
        "mail/send",
        r#"{"to":["x@RIVAL.example"],"urgent":true}"#,
        DENY,
        14,
    ),
    (
        "cursor",
        "mail/send",
        r#"{"to":["x@rival.example"],"urgent":false}"#,
        ALLOW,
        0,
    ),
    ("cursor", "any/admin_users", "{}", DENY, 15),
    ("cursor", "shell/run", "{}", DENY, 15),
    ("cursor", "shell/run_tests", "{}", ALLOW, 0),
    // Servers that match member names in any case, or parse objects from strings.
    (
        "",
        "notes/read",
        r#"{"x":"{\"p\":\"~/.ssh/id\"}"}"#,
        DENY,
        4,
    ),
    ("", "notes/read", r#"{"x":"[[\"~/.ssh/id\"]]"}"#, DENY, 4),
    ("", "notes/read", r#"{"path":"/Home/Me/.SSH/id"}"#, DENY, 4),
    ("", "db/query", r#"{"SQL":"drop table t"}"#, DENY, 5),
    ("", "db/query", r#"{"\u017fql":"drop table t"}"#, DENY, 5),
    (
        "",
        "fs/write_file",
        r#"{"path":"/tmp/a","Path":"/etc/passwd"}"#,
        ASK,
        7,
    ),
    ("", "fs/write_file", r#"{"PATH":"/tmp/a"}"#, ASK, 7),
    // Paths and addresses in other spellings.
    ("", "disk/read", r#"{"path":"/home/me/keys/a"}"#, DENY, 16),
    ("", "disk/read", r#"{"path":"~/x/../keys/a"}"#, DENY, 16),
    ("", "etc/read", r#"{"path":"/etc//passwd"}"#, DENY, 25),
    ("", "etc/read", r#"{"path":"/x/../etc/passwd"}"#, DENY, 25),
    ("", "etc/read", r#"{"path":"etc/passwd"}"#, ALLOW, 0),
    ("", "rel/read", r#"{"path":"./secrets/a"}"#, DENY, 26),
    ("", "rel/read", r#"{"path":"././secrets//a"}"#, DENY, 26),
    ("", "rel/read", r#"{"path":".\\secrets\\a"}"#, DENY, 26),
    ("", "rel/read", r#"{"path":"open/secrets/a"}"#, ALLOW, 0),
    (
        "",
        "net/get",
        r#"{"url":"https://inner.example/.//admin"}"#,
        DENY,
        17,
    ),
    (
        "",
        "net/get",
        r#"{"url":"https://inner.example/%61dmin"}"#,
        DENY,
        17,
    ),
    (
        "",
        "net/get",
        r#"{"url":"https://in\tner.example//admin"}"#,
        DENY,
        17,
    ),
    (
        "",
        "net/get",
        r#"{"url":"https://inner.example/open"}"#,
        ALLOW,
        0,
    ),
    ("", "resource v/vault://secret/a", "{}", DENY, 18),
    ("", "resource v/VAULT://%73ecret/a", "{}", DENY, 18),
    ("", "resource v/vault://secret//./a", "{}", DENY, 18),
    ("", "resource v/vault://open/../secret/a", "{}", DENY, 18),
    ("", "resource v/file:///srv/keys#x", "{}", DENY, 19),
    ("", "resource v/file:///srv/keys?x", "{}", DENY, 19),
    ("", "resource v/docs://open/a%20b", "{}", ALLOW, 20),
    ("", "resource v/docs://open/../../shut/a", "{}", ASK, 21),
    ("", "resource v/docs://open%2f..%2fshut", "{}", ASK, 21),
    ("", "log/read", r#"{"path":"~/logs/a"}"#, ALLOW, 22),
    ("", "log/read", r#"{"path":"/home/me/logs/a"}"#, ALLOW, 22),
    ("", "log/read", r#"{"path":"~/logs/../a"}"#, ASK, 23),
    ("", "sql/run", r#"{"q":"DROP\nTABLE t"}"#, DENY, 24),
    ("", "sql/run", r#"{"q":"select 1"}"#, ALLOW, 0),
];

#[test]
fn the_first_rule_that_fits_decides() {
    assert!(CASES.len() >= 60, "{} cases", CASES.len());
    for (who, what, arguments, verdict, rule) in CASES {
        let decision = decide(Preset::Open, who, what, arguments);
        let found = (decision.verdict, decision.rule.unwrap_or(0));
        assert_eq!(found, (*verdict, *rule), "{who} {what} {arguments}");
    }
}

#[test]
fn arguments_that_cannot_be_read_allow_nothing() {
    let deep = format!(
        "{}{}",
        r#"{"path":"#.repeat(200),
        "1".to_owned() + &"}".repeat(200)
    );
    assert_eq!(
        decide(Preset::Open, "", "fs/write_file", &deep).rule,
        Some(4)
    );
}

#[test]
fn a_preset_decides_the_rest() {
    let check = |preset, what, verdict, by: &str| {
        let decision = decide(preset, "", what, "{}");
        assert_eq!(
            (decision.verdict, decision.by().to_string().as_str()),
            (verdict, by),
            "{what}"
        );
    };
    check(
        Preset::Careful,
        "any/delete_all",
        ASK,
        "policy = \"careful\"",
    );
    check(Preset::Careful, "any/write", ALLOW, "policy = \"careful\"");
    check(
        Preset::ReadOnly,
        "any/write",
        DENY,
        "policy = \"read-only\"",
    );
    check(
        Preset::ReadOnly,
        "any/read",
        ALLOW,
        "policy = \"read-only\"",
    );
    check(Preset::ReadOnly, "git/commit", ALLOW, "rule 8");
}

#[test]
fn a_rule_that_means_nothing_is_refused() {
    let check = |rule: Value, key: &str, what: &str| {
        let rule: Map<String, Value> = rule.as_object().expect("a table").clone();
        let fault = Rule::read(&rule, Some(HOME)).expect_err("it is wrong");
        assert_eq!(fault.key, key);
        assert!(fault.what.contains(what), "{fault}");
    };
    check(json!({}), "", "has no decision");
    check(
        json!({"decision": "perhaps"}),
        "decision",
        "unknown decision",
    );
    check(
        json!({"decision": "deny", "tools": "x"}),
        "tools",
        "unknown key",
    );
    check(
        json!({"decision": "deny", "tool": []}),
        "tool",
        "expected a pattern",
    );
    check(
        json!({"decision": "deny", "tool": "["}),
        "tool",
        "not a pattern",
    );
    check(
        json!({"decision": "deny", "annotation": "bad"}),
        "annotation",
        "unknown annotation",
    );
    check(
        json!({"decision": "deny", "arguments": {"path": "x"}}),
        "arguments.\"path\"",
        "not a JSON pointer",
    );
    check(
        json!({"decision": "deny", "arguments": {"/p": {"regex": "("}}}),
        "arguments.\"/p\"",
        "invalid regular expression: unclosed group",
    );
    check(
        json!({"decision": "deny", "arguments": {"/p": {"inside": "work"}}}),
        "arguments.\"/p\"",
        "neither absolute",
    );
    check(
        json!({"decision": "deny", "arguments": {"/p": 5}}),
        "arguments.\"/p\"",
        "expected a pattern",
    );
}
