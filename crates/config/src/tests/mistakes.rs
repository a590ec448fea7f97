//! Mistakes and their messages.

use insta::assert_snapshot;

use super::load_text;
use crate::Overrides;

/// `expected` is the printed text without the name of the file at the start of each mistake.
#[track_caller]
pub(super) fn check(toml: &str, expected: &str) {
    let error = load_text(toml, &[]).expect_err("the case holds a mistake");
    assert_eq!(error.to_string().replace("config.toml:", ""), expected);
}

#[test]
fn a_rule_for_calls_is_told_with_its_place() {
    check(
        r#"[[rules]]
decision = "allow"
[[rules]]
decision = "never"
[[rules]]
decision = "deny"
arguments = { "/sql" = { regex = "(" } , path = "x" }"#,
        r#"3:1: rules[1].decision: unknown decision
    hint: write `decision = "allow"`, `"ask"` or `"deny"`
5:1: rules[2].arguments."/sql": invalid regular expression: unclosed group
    hint: write a pattern, or one of `{ regex = "..." }`, `{ inside = "~/projects" }`, `{ outside = ["~/projects", "/tmp"] }`"#,
    );
}

#[test]
fn no_mistake_repeats_a_secret() {
    for (text, says) in [
        (
            "url = \"htps://ada:hunter2@x.dev/mcp?token=hunter2\"",
            "`htps://***@x.dev/mcp?***`",
        ),
        (
            "url = \"https:///mcp?api_key=hunter2\"",
            "`https:///mcp?***`",
        ),
        ("url = \"ada:hunter2@x.dev/mcp\"", "`***@x.dev/mcp`"),
        (
            "url = \"https://x.dev/a b?sig=hunter2\"",
            "`https://x.dev/a b?***`",
        ),
        (
            "command = \"npx -y x --api-key hunter2 --token=hunter2\"",
            "`args = [\"-y\", \"x\", \"--api-key\", \"***\", \"--token=***\"]`",
        ),
        (
            "command = \"x\"\nargs = \"--token hunter2 b\"",
            "--token *** b",
        ),
        (
            "command = \"x\"\nenv = { PIN = 27182818 }",
            "write it in quotes",
        ),
        ("command = \"x\"\nenv = \"TOKEN=hunter2\"", "found text"),
        (
            "command = \"x\"\n[servers.a.env]\nTOKEN = hunter2",
            "`\"***\"`",
        ),
        ("url = https://ada:hunter2@x.dev", "https://ada:***@x.dev"),
    ] {
        let error = load_text(&format!("[servers.a]\n{text}\n"), &[])
            .unwrap_err()
            .to_string();
        assert!(
            !error.contains("hunter2") && !error.contains("27182818"),
            "{error}"
        );
        assert!(error.contains(says), "{error}");
    }
    let listen = load_text("[http]\nlisten = \"http://ada:hunter2@127.0.0.1:80\"", &[]);
    assert!(!listen.unwrap_err().to_string().contains("hunter2"));
}

#[test]
fn unknown_keys_are_told_with_the_nearest() {
    check(
        r#"lgo = "info"
result.max_tokens = 5
[servers.a]
comand = "npx""#,
        r"1:1: lgo: unknown key
    hint: did you mean `log`?
2:1: result: unknown key
    hint: did you mean `results`?
4:1: servers.a.comand: unknown key
    hint: did you mean `command`?",
    );
    check(
        r#"[servers.a]
ulr = "https://h"
[servers.a.overlay.t]
hiden = true"#,
        r"2:1: servers.a.ulr: unknown key
    hint: did you mean `url`?
4:1: servers.a.overlay.t.hiden: unknown key
    hint: did you mean `hidden`?",
    );
    check(
        r#"command = "npx"
"a\nb" = 1
"results.max_tokens" = 500"#,
        r#"1:1: command: unknown key
    hint: `command` belongs in `[servers.NAME]`
2:1: "a\nb": unknown key
    hint: known keys: `state_dir`, `log`, `policy`, `rules`, `quotas`, `approvals`, `pin`, `audit`, `stats`, `traces`, `redaction`, `secrets`, `results`, `search`, `http`, `clients`, `profiles`, `daemon`, `cluster`, `servers`, `commands`
3:1: "results.max_tokens": unknown key
    hint: write it without quotes: `results.max_tokens`"#,
    );
    check(
        r#"[results]
linger_s = 4
log = "warn""#,
        r"2:1: results.linger_s: unknown key
    hint: `linger_s` belongs in `[daemon]`
3:1: results.log: unknown key
    hint: `log` belongs at the top, before the first `[table]`",
    );
    check(
        r#"[mcpServers.a]
command = "x""#,
        r"1:2: mcpServers: unknown key
    hint: write `[servers.NAME]`, one table per server",
    );
    check(
        r#"[servers.a]
command = "x"
timeout = 5
type = "stdio"
allow = ["x"]
tools.dney = ["x"]
frobnicate = 1"#,
        r"3:1: servers.a.timeout: unknown key
    hint: did you mean `timeout_s`?
4:1: servers.a.type: unknown key
    hint: remove it: `command` or `url` implies it
5:1: servers.a.allow: unknown key
    hint: did you mean `tools.allow`?
6:7: servers.a.tools.dney: unknown key
    hint: did you mean `deny`?
7:1: servers.a.frobnicate: unknown key
    hint: known keys: `command`, `args`, `env`, `inherit_env`, `cwd`, `roots`, `sandbox`, `image`, `url`, `headers`, `login`, `oauth`, `enabled`, `description`, `category`, `tags`, `notes`, `timeout_s`, `timeout_max_s`, `start_timeout_s`, `start`, `scope`, `placement`, `on`, `idle_timeout_s`, `max_concurrent_calls`, `retry_safe_calls`, `max_tokens`, `pin`, `redact`, `tools`, `arguments`, `overlay`",
    );
}

#[test]
fn values_of_the_wrong_type_are_told() {
    check(
        r"log = 5
results = 3",
        r#"1:7: log: expected text, found the number 5
    hint: write it in quotes: `"5"`
2:11: results: expected a table, found the number 3
    hint: write `[results]` and below it `max_tokens`, `keep_hours`, `keep_mib`"#,
    );
    check(
        r#"[[servers]]
name = "a""#,
        r"1:1: servers: expected a table, found a list
    hint: write `[servers.NAME]`, one table per server",
    );
    check(
        r#"[servers]
a = "npx"
b.command = "x"
b.tools = ["x"]
b.overlay.t = 1
c.url = "https://h"
c.overlay = 3"#,
        r#"2:5: servers.a: expected a table, found text "npx"
    hint: write `[servers.a]` and below it `command` or `url`
4:11: servers.b.tools: expected a table, found a list
    hint: write `[servers.b.tools]` and below it `allow`, `deny`
5:15: servers.b.overlay.t: expected a table, found the number 1
    hint: write `[servers.b.overlay.t]` and below it `title`, `description`, `usage`, `tags`, `category`, `notes`, `example`, `min_version`, `deprecated`, `hidden`, `arguments`, `timeout_s`, `max_tokens`
7:13: servers.c.overlay: expected a table, found the number 3
    hint: write `[servers.c.overlay.TOOL]`, one table per tool"#,
    );
    check(
        r#"[servers.a]
command = "x"
args = "-y"
timeout_s = "60"
start_timeout_s = 1.5
enabled = "true"
category = ["x"]
tags = [1, 2026-01-02]
env = ["x"]"#,
        r#"3:8: servers.a.args: expected a list of texts, found text "-y"
    hint: write a list: `["-y"]`
4:13: servers.a.timeout_s: expected a whole number of seconds, found text "60"
    hint: write it without quotes: `60`
5:19: servers.a.start_timeout_s: expected a whole number of seconds, found a number with a fraction
6:11: servers.a.enabled: expected `true` or `false`, found text "true"
    hint: write it without quotes: `true`
7:12: servers.a.category: expected text, found a list
8:9: servers.a.tags[0]: expected text, found the number 1
    hint: write it in quotes: `"1"`
8:12: servers.a.tags[1]: expected text, found a date or time
9:7: servers.a.env: expected a table of variables, found a list"#,
    );
    check(
        r#"[servers.a]
url = "https://h"
headers = "Bearer secret""#,
        r"3:11: servers.a.headers: expected a table of headers, found text",
    );
}

#[test]
fn numbers_keep_to_their_limits() {
    check(
        r"[results]
max_tokens = 0
keep_hours = -1
keep_mib = 99999999999999999999999999999999999999999999999
[http]
max_sessions = 65537",
        r"2:14: results.max_tokens: expected 200 to 1000000 tokens, found 0
3:14: results.keep_hours: expected 1 to 8760 hours, found -1
4:12: results.keep_mib: expected 1 to 102400 MiB, found 99999999999999999999999999999999999999999999999
6:16: http.max_sessions: expected 1 to 65536 sessions, found 65537",
    );
}

#[test]
fn a_server_is_a_child_or_remote() {
    check(
        r#"[servers.both]
command = "x"
url = "https://h"
[servers.neither]
[servers.child]
command = "x"
headers = { A = "b" }
[servers.remote]
url = "https://h"
args = ["x"]
cwd = "/""#,
        r#"1:1: servers.both: both `command` and `url`
    hint: keep `command` to start a program, or `url` to connect to a running server
4:1: servers.neither: neither `command` nor `url`
    hint: add `command = "npx"` to start a program, or `url = "https://..."` to connect to a running server
7:1: servers.child.headers: has no effect with `command`
    hint: remove it
10:1: servers.remote.args: has no effect with `url`
    hint: remove it
11:1: servers.remote.cwd: has no effect with `url`
    hint: remove it"#,
    );
}

#[test]
fn server_names_are_strict() {
    check(
        r#"[servers.My_Notes]
command = "x"
[servers.proxy]
command = "x"
[servers.scripts]
command = "x"
[servers."a b"]
command = "x"
[servers.""]
command = "x"
[servers.-a]
command = "x"
[servers.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]
comand = "x""#,
        r#"1:10: servers.My_Notes: a server name cannot contain 'M'
    hint: write `[servers.my-notes]`
3:10: servers.proxy: server name `proxy` is reserved for the built-in server
    hint: choose another name: lower-case letters, digits and `-`
5:10: servers.scripts: server name `scripts` is reserved for saved scripts, the files of `scripts/` beside this file
    hint: choose another name
7:10: servers."a b": a server name cannot contain ' '
    hint: write `[servers.a-b]`
9:10: servers."": a server name cannot be empty
    hint: choose another name: lower-case letters, digits and `-`
11:10: servers.-a: server name `-a` starts with `-`
    hint: write `[servers.a]`
13:10: servers.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: a server name has at most 32 characters
    hint: choose another name: lower-case letters, digits and `-`
14:1: servers.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.comand: unknown key
    hint: did you mean `command`?"#,
    );
}

#[test]
fn commands_and_addresses_are_checked() {
    check(
        r#"[servers.a]
command = "npx -y foo"
[servers.b]
command = ""
[servers.c]
url = "ftp://h"
[servers.d]
url = "https:///x"
[servers.e]
url = "https://a b"
[servers.f]
url = " ""#,
        r#"2:11: servers.a.command: contains arguments
    hint: write `command = "npx"` and `args = ["-y", "foo"]`
4:11: servers.b.command: empty text
    hint: name the program, such as `npx`
6:7: servers.c.url: expected an address with `https://` or `http://`, found `ftp://h`
    hint: write an address such as `https://mcp.example.com/mcp`; for a program use `command`
8:7: servers.d.url: the address has no host, found `https:///x`
    hint: write an address such as `https://mcp.example.com/mcp`; for a program use `command`
10:7: servers.e.url: the address contains whitespace, found `https://a b`
    hint: write an address such as `https://mcp.example.com/mcp`; for a program use `command`
12:7: servers.f.url: empty text
    hint: write an address such as `https://mcp.example.com/mcp`; for a program use `command`"#,
    );
    check(
        r#"[servers.a]
command = "${"
args = ["${1}", 5]
env = { A = 1, "B=C" = "x" }
cwd = "$HOME/x"
[servers.b]
url = "https://h"
headers = { "X Y" = "${" }
[servers.c]
command = "x"
env = { DIR = "${VAR:-${HOME}/x}" }"#,
        r#"2:11: servers.a.command: `${` without a closing `}`
    hint: write `${VAR}`, `${VAR:-default}` or `${secret:NAME}`; a literal `${` is written `$${`
3:9: servers.a.args[0]: `1` is no name of a variable
    hint: write `${VAR}`, `${VAR:-default}` or `${secret:NAME}`; a literal `${` is written `$${`
3:17: servers.a.args[1]: expected text, found a number
    hint: write it in quotes
4:13: servers.a.env.A: expected text, found a number
    hint: write it in quotes
4:16: servers.a.env."B=C": not a variable name
    hint: use letters, digits and `_`
5:7: servers.a.cwd: a variable needs braces
    hint: write `${HOME}/...`, with braces, or `~/...`
8:13: servers.b.headers."X Y": not a header name
    hint: write one such as `Authorization` or `X-Api-Key`
8:21: servers.b.headers."X Y": `${` without a closing `}`
    hint: write `${VAR}`, `${VAR:-default}` or `${secret:NAME}`; a literal `${` is written `$${`
11:15: servers.c.env.DIR: the default of `VAR` contains `${`
    hint: write `${VAR}`, `${VAR:-default}` or `${secret:NAME}`; a literal `${` is written `$${`"#,
    );
}

#[test]
fn words_and_patterns_are_checked() {
    check(
        r#"[servers.a]
command = "x"
args = []
category = "Source Control"
tags = ["a,b", "", "0123456789012345678901234567890123"]
tools = { allow = ["["], deny = [] }
[servers.b]
command = "x"
tools = { allow = [] }"#,
        r#"4:12: servers.a.category: a category cannot contain 'S'
    hint: write `source-control`
5:9: servers.a.tags[0]: a tag cannot contain ','
    hint: write a list of short words: `["issues", "pull requests"]`
5:16: servers.a.tags[1]: empty text
    hint: write a value, or remove the key
5:20: servers.a.tags[2]: a tag has at most 32 characters
    hint: write a list of short words: `["issues", "pull requests"]`
6:20: servers.a.tools.allow[0]: not a pattern: unclosed character class; missing ']'
    hint: `*` matches any text, `?` one character, `{a,b}` either
9:19: servers.b.tools.allow: an empty list
    hint: remove the key to allow all, or write `deny = ["*"]` to allow none"#,
    );
    check(
        r#"[servers.a]
command = "x"
[servers.a.overlay.t]
description = ""
tags = []
example = { a = nan, b = [1] }
category = "überall"
min_version = "new""#,
        r"4:15: servers.a.overlay.t.description: empty text
    hint: write a value, or remove the key
6:17: servers.a.overlay.t.example.a: a number that JSON cannot represent
    hint: write it as text
7:12: servers.a.overlay.t.category: a category cannot contain 'ü'
    hint: use lower-case letters, digits and `-`
8:15: servers.a.overlay.t.min_version: not a version number
    hint: write a number such as `1.4.0`",
    );
    check(
        r#"log = "wran"
state_dir = "${HOME}/x""#,
        r"1:7: log: unknown level `wran`
    hint: did you mean `warn`?
2:13: state_dir: variables are replaced only in keys of servers
    hint: write `~/...` or an absolute path, or set the variable `PROXY_STATE_DIR`",
    );
    check(
        r#"log = "a=b=c"
state_dir = "~bob/x""#,
        r"1:7: log: not a filter: `a=b=c`
    hint: write a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), or `warn,fleet=debug`
2:13: state_dir: only your own home folder is known
    hint: write `~/...`",
    );
    check(
        "log = \" 0𞸻[\"",
        r"1:7: log: not a filter: ` 0𞸻[`
    hint: write a level (`error`, `warn`, `info`, `debug`, `trace`, `off`), or `warn,fleet=debug`",
    );
}

#[test]
fn no_toml_is_told_line_by_line() {
    check(
        r"Dear diary, this is prose.
It has two lines.",
        r"1:6: not TOML: key with no value, expected `=`
    hint: write `key = value`
2:4: not TOML: key with no value, expected `=`
    hint: write `key = value`",
    );
    check(
        r#"{"mcpServers": {
"a": {"command": "x"}}}"#,
        r#"1:1: JSON, not TOML
    hint: write each server as a table: `[servers.NAME]`, below it `command = "npx"` and `args = ["-y", "PACKAGE"]`; `proxy add FILE` imports the servers of another program's file"#,
    );
    check(
        r"servers:
  a:
    command: x",
        r#"1:1: YAML, not TOML
    hint: write each server as a table: `[servers.NAME]`, below it `command = "npx"` and `args = ["-y", "PACKAGE"]`; `proxy add FILE` imports the servers of another program's file"#,
    );
    check(
        r"[servers.a]
command = ~/bin/x
args = [-y, foo]
enabled = yes",
        r#"2:11: not TOML: text without quotes
    hint: write it in quotes: `"~/bin/x"`
3:9: not TOML: string values must be quoted, expected literal string
    hint: write every text in quotes
4:11: not TOML: text without quotes
    hint: write `true`"#,
    );
    check(
        r#"x = "\q"
y = "open
z"#,
        r#"1:7: not TOML: missing escaped value, expected `b`, `e`, `f`, `n`, `r`, `\`, `"`, `x`, `u`, `U`
    hint: write `\\` for a `\`, or put the text in single quotes
2:10: not TOML: invalid basic string, expected `"`
    hint: close the text with `"`
3:2: not TOML: key with no value, expected `=`
    hint: write `key = value`"#,
    );
    check(
        r#"log = "warn"
log = "info"
[results]
[results]"#,
        r"2:1: `log` is a duplicate
    hint: it is also set above; keep one of the two
4:2: `results` is a duplicate
    hint: it is also set above; keep one of the two",
    );
    check(
        "\x00\x01\x02",
        r"1:1: not TOML: invalid unquoted key, expected letters, numbers, `-`, `_`",
    );
}

#[test]
fn a_broken_line_hides_no_other_mistake() {
    check(
        r#"[servers.a]
command = npx
args = ["x" "y"]
foo = 1"#,
        r#"2:11: not TOML: text without quotes
    hint: write it in quotes: `"npx"`
3:13: not TOML: missing comma between array elements, expected `,`
4:1: servers.a.foo: unknown key
    hint: known keys: `command`, `args`, `env`, `inherit_env`, `cwd`, `roots`, `sandbox`, `image`, `url`, `headers`, `login`, `oauth`, `enabled`, `description`, `category`, `tags`, `notes`, `timeout_s`, `timeout_max_s`, `start_timeout_s`, `start`, `scope`, `placement`, `on`, `idle_timeout_s`, `max_concurrent_calls`, `retry_safe_calls`, `max_tokens`, `pin`, `redact`, `tools`, `arguments`, `overlay`"#,
    );
    check(
        r#"[servers.a
command = "x"
lost = 1
[servers.b]
nonsense = 1"#,
        r"1:11: not TOML: unclosed table, expected `]`
    hint: close the name of the table with `]`
5:1: servers.b.nonsense: unknown key
    hint: known keys: `command`, `args`, `env`, `inherit_env`, `cwd`, `roots`, `sandbox`, `image`, `url`, `headers`, `login`, `oauth`, `enabled`, `description`, `category`, `tags`, `notes`, `timeout_s`, `timeout_max_s`, `start_timeout_s`, `start`, `scope`, `placement`, `on`, `idle_timeout_s`, `max_concurrent_calls`, `retry_safe_calls`, `max_tokens`, `pin`, `redact`, `tools`, `arguments`, `overlay`",
    );
    check(
        r#"foo = 1
[servers.b]
args = ["x",
[results]
nonsense = 1"#,
        r"1:1: foo: unknown key
    hint: known keys: `state_dir`, `log`, `policy`, `rules`, `quotas`, `approvals`, `pin`, `audit`, `stats`, `traces`, `redaction`, `secrets`, `results`, `search`, `http`, `clients`, `profiles`, `daemon`, `cluster`, `servers`, `commands`
4:2: not TOML: string values must be quoted, expected literal string
    hint: write every text in quotes
5:1: not TOML: missing comma between array elements, expected `,`",
    );
}

#[track_caller]
pub(super) fn check_variable(name: &str, value: &str, expected: &str) {
    let loaded = load_text("[servers.my-a]\ncommand = \"x\"", &[(name, value)]);
    let error = loaded.expect_err("the case holds a mistake");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn variables_are_checked_as_the_file_is() {
    check_variable(
        "PROXY_RESULTS__MAX_TOKENS",
        "lots",
        r#"PROXY_RESULTS__MAX_TOKENS: results.max_tokens: expected a whole number of tokens, found text "lots""#,
    );
    check_variable(
        "PROXY_RESULTS__MAX_TOKENS",
        "-5",
        r"PROXY_RESULTS__MAX_TOKENS: results.max_tokens: expected 200 to 1000000 tokens, found -5",
    );
    check_variable(
        "PROXY_RESULTS__MAX_TOKEN",
        "500",
        r"PROXY_RESULTS__MAX_TOKEN: does not set a known key
    hint: did you mean `PROXY_RESULTS__MAX_TOKENS`?",
    );
    check_variable(
        "PROXY_RESULTS__FOO",
        "5",
        r"PROXY_RESULTS__FOO: does not set a known key
    hint: known: `PROXY_RESULTS__MAX_TOKENS`, `PROXY_RESULTS__KEEP_HOURS`, `PROXY_RESULTS__KEEP_MIB`",
    );
    check_variable(
        "PROXY_DAEMON__LINGER_S__X",
        "1",
        r"PROXY_DAEMON__LINGER_S__X: does not set a known key
    hint: unset it",
    );
}

#[test]
fn variables_of_a_server_are_checked_likewise() {
    check_variable(
        "PROXY_SERVERS__MYA__TIMEOUT_S",
        "5",
        r"PROXY_SERVERS__MYA__TIMEOUT_S: no server `mya`
    hint: did you mean `PROXY_SERVERS__MY_A__...`?",
    );
    check_variable(
        "PROXY_SERVERS__OTHER__TIMEOUT_S",
        "5",
        r"PROXY_SERVERS__OTHER__TIMEOUT_S: no server `other`
    hint: servers of the file: `my-a`",
    );
    check_variable(
        "PROXY_SERVERS__MY_A__COMMAND",
        "x",
        r"PROXY_SERVERS__MY_A__COMMAND: no variable sets this key
    hint: set `servers.my-a.command` in the file",
    );
    check_variable(
        "PROXY_SERVERS__MY_A__ENABLED",
        "no",
        r#"PROXY_SERVERS__MY_A__ENABLED: servers.my-a.enabled: expected `true` or `false`, found text "no""#,
    );
    check_variable(
        "PROXY_SERVERS__MY_A__TIMEOUT",
        "9",
        r"PROXY_SERVERS__MY_A__TIMEOUT: does not set a known key
    hint: did you mean `PROXY_SERVERS__MY_A__TIMEOUT_S`?",
    );
    check_variable(
        "PROXY_LOG",
        "wran",
        r"PROXY_LOG: log: unknown level `wran`
    hint: did you mean `warn`?",
    );
    check_variable(
        "PROXY_STATE_DIR",
        "~bob",
        r"PROXY_STATE_DIR: state_dir: only your own home folder is known
    hint: write `~/...`",
    );
}

#[test]
fn every_place_is_checked_at_once() {
    let file = "[servers.a]\ncommand = 1";
    let overrides = Overrides {
        log: Some("wran".to_owned()),
        ..Overrides::default()
    };
    let env = [("HOME", "/home/ada"), ("PROXY_DAEMON__LINGER_S", "-1")]
        .into_iter()
        .collect();
    assert_snapshot!(super::printed(file, &overrides, &env), @r#"
    config.toml:2:11: servers.a.command: expected text, found the number 1
        hint: write it in quotes: `"1"`
    PROXY_DAEMON__LINGER_S: daemon.linger_s: expected 0 to 604800 seconds, found -1
    --log: log: unknown level `wran`
        hint: did you mean `warn`?
    "#);
}

#[test]
fn a_file_with_many_mistakes_is_told_all_of_them() {
    let file = r#"
log = "loud"
[result]
max_tokens = 500
[servers.Git]
command = "uvx mcp-server-git"
timeout_s = 0
[servers.docs]
url = "mcp.example.com"
headers = { Authorization = 5 }
args = ["-y"]
tools.allow = "get_*"
[servers.files]
args = ["."]
overlay.read.hiden = true
[servers.broken
command = npx
"#;
    let printed = super::printed(file, &Overrides::default(), &super::home());
    assert_snapshot!(printed, @r#"
    config.toml:3:2: result: unknown key
        hint: did you mean `results`?
    config.toml:5:10: servers.Git: a server name cannot contain 'G'
        hint: write `[servers.git]`
    config.toml:6:11: servers.Git.command: contains arguments
        hint: write `command = "uvx"` and `args = ["mcp-server-git"]`
    config.toml:7:13: servers.Git.timeout_s: expected 1 to 86400 seconds, found 0
    config.toml:9:7: servers.docs.url: expected an address with `https://` or `http://`, found `mcp.example.com`
        hint: write an address such as `https://mcp.example.com/mcp`; for a program use `command`
    config.toml:10:29: servers.docs.headers.Authorization: expected text, found a number
        hint: write it in quotes
    config.toml:11:1: servers.docs.args: has no effect with `url`
        hint: remove it
    config.toml:12:15: servers.docs.tools.allow: expected a list of texts, found text "get_*"
        hint: write a list: `["get_*"]`
    config.toml:15:14: servers.files.overlay.read.hiden: unknown key
        hint: did you mean `hidden`?
    config.toml:16:16: not TOML: unclosed table, expected `]`
        hint: close the name of the table with `]`
    "#);
}

/// Long files and long lines are reported as fast as they are read, and the message stays short.
#[test]
fn a_megabyte_of_mistakes_is_cut() {
    let broken_tables = "[a\nb = 1\n".repeat(120_000);
    let unknown_keys: Vec<String> = (0..80_000).map(|i| format!("key{i} = 1")).collect();
    let long_line = format!("servers.a.args = [{}]", "1,".repeat(500_000));
    for text in [
        broken_tables,
        unknown_keys.join("\n"),
        long_line,
        "x ".repeat(500_000),
    ] {
        let printed = load_text(&text, &[])
            .expect_err("nothing in it is right")
            .to_string();
        assert!(
            printed.lines().count() <= 101,
            "{} lines",
            printed.lines().count()
        );
        assert!(printed.len() < 20_000, "{} bytes", printed.len());
    }
}
