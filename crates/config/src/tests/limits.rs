//! Keys for the lifetime of a server and the limits of its calls: their defaults and mistakes.

use std::{num::NonZeroUsize, time::Duration};

use fleet::{ServerSpec, Start};

use super::{
    load_text,
    mistakes::{check, check_variable},
};
use gateway::{ServerSettings, ToolLimits};

fn server(keys: &str, variables: &[(&str, &str)]) -> ServerSettings {
    let text = format!("[servers.my-a]\ncommand = \"x\"\n{keys}");
    let config = load_text(&text, variables).unwrap_or_else(|error| panic!("{error}"));
    let name = "my-a".parse().unwrap();
    config.gateway.server(&name).unwrap().clone()
}

#[test]
fn what_is_left_out_is_the_default_of_the_fleet() {
    let server = server("", &[]);
    let default = ServerSpec::new(server.spec.name.clone(), server.spec.launch.clone());
    assert_eq!(format!("{:?}", server.spec), format!("{default:?}"));
    assert_eq!(server.max_tokens, None);
}

#[test]
fn each_key_lands_in_its_place() {
    let server = server(
        r#"start = "eager"
        timeout_s = 5
        timeout_max_s = 5
        idle_timeout_s = 604800
        max_concurrent_calls = 10000
        retry_safe_calls = true
        inherit_env = ["SSH_AUTH_SOCK", "AWS_*", "*"]
        sandbox = { write = ["/var/data", "notes"] }
        image = "node:24"
        pin = "hold"
        max_tokens = 200"#,
        &[],
    );
    let spec = &server.spec;
    assert_eq!(spec.start, Start::Eager);
    assert_eq!(spec.timeout_max, Some(Duration::from_secs(5)));
    assert_eq!(spec.idle_timeout, Some(Duration::from_hours(168)));
    assert_eq!(spec.calls_max, NonZeroUsize::new(10_000));
    assert!(spec.retries_safe_calls);
    assert_eq!(spec.inherit_env, ["SSH_AUTH_SOCK", "AWS_*", "*"]);
    assert_eq!(server.max_tokens, Some(200));
    assert_eq!(server.rules.pin, registry::Pin::Hold);
    assert_eq!(spec.image.as_ref().unwrap().plain().unwrap(), "node:24");
    let sandbox = spec.sandbox.as_ref().unwrap();
    let write: Vec<String> = sandbox
        .write
        .iter()
        .filter_map(fleet::Template::plain)
        .collect();
    assert!(
        !sandbox.network && write[0] == "/var/data" && write[1].ends_with("/notes"),
        "{write:?}"
    );
}

#[test]
fn an_empty_sandbox_gives_nothing() {
    let spec = server("sandbox = {}", &[]).spec;
    assert_eq!(spec.sandbox, Some(fleet::Sandbox::default()));
    let spec = server("sandbox.network = true", &[]).spec;
    assert!(spec.sandbox.unwrap().network);
}

#[test]
fn zero_means_never_and_any_number() {
    let spec = server("idle_timeout_s = 0\nmax_concurrent_calls = 0", &[]).spec;
    assert_eq!((spec.idle_timeout, spec.calls_max), (None, None));
}

/// The registry rebuilds its index when an overlay changes; it does not use limits.
#[test]
fn limits_of_a_tool_stay_out_of_the_registry() {
    let text = r#"
        [servers.a]
        command = "x"
        [servers.a.overlay.slow]
        timeout_s = 300
        [servers.a.overlay."odd/tool"]
        max_tokens = 500
        notes = "long"
        [servers.a.overlay.plain]
        hidden = true"#;
    let config = load_text(text, &[]).unwrap();
    let check = |tool: &str, timeout, max_tokens| {
        let limits = config.gateway.tool_limits(&tool.parse().unwrap()).copied();
        let expected = ToolLimits {
            timeout,
            max_tokens,
        };
        assert_eq!(limits.unwrap_or_default(), expected, "{tool}");
    };
    check("a/slow", Some(Duration::from_mins(5)), None);
    check("a/odd/tool", None, Some(500));
    check("a/plain", None, None);
    check("b/slow", None, None);
    let overlays = &config.gateway.servers[0].rules.overlays;
    assert_eq!(overlays.keys().collect::<Vec<_>>(), ["odd/tool", "plain"]);
}

#[test]
fn a_variable_sets_them_too() {
    let spec = server(
        "start = \"on-call\"\ntimeout_s = 90",
        &[
            ("PROXY_SERVERS__MY_A__START", "eager"),
            ("PROXY_SERVERS__MY_A__TIMEOUT_MAX_S", "90"),
            ("PROXY_SERVERS__MY_A__IDLE_TIMEOUT_S", "0"),
            ("PROXY_SERVERS__MY_A__RETRY_SAFE_CALLS", "true"),
        ],
    )
    .spec;
    assert_eq!((spec.start, spec.idle_timeout), (Start::Eager, None));
    assert_eq!(spec.timeout_max, Some(Duration::from_secs(90)));
    assert!(spec.retries_safe_calls);
}

#[test]
fn their_slips_are_told() {
    check(
        r#"[servers.a]
command = "x"
strat = "eager"
idle_timeout = 5
max_concurent_calls = 1
retry_safe = true
inherit = ["A"]
timeout_max = 90
concurrency = 3
lazy = true
[servers.a.overlay.t]
timeout = 5
max_token = 500"#,
        r#"3:1: servers.a.strat: unknown key
    hint: did you mean `start`?
4:1: servers.a.idle_timeout: unknown key
    hint: did you mean `idle_timeout_s`?
5:1: servers.a.max_concurent_calls: unknown key
    hint: did you mean `max_concurrent_calls`?
6:1: servers.a.retry_safe: unknown key
    hint: did you mean `retry_safe_calls`?
7:1: servers.a.inherit: unknown key
    hint: did you mean `inherit_env`?
8:1: servers.a.timeout_max: unknown key
    hint: did you mean `timeout_max_s`?
9:1: servers.a.concurrency: unknown key
    hint: did you mean `max_concurrent_calls`?
10:1: servers.a.lazy: unknown key
    hint: remove it, or write `start = "eager"`
12:1: servers.a.overlay.t.timeout: unknown key
    hint: did you mean `timeout_s`?
13:1: servers.a.overlay.t.max_token: unknown key
    hint: did you mean `max_tokens`?"#,
    );
}

#[test]
fn their_values_are_checked() {
    check(
        r#"[servers.a]
command = "x"
start = "on_call"
idle_timeout_s = -1
max_concurrent_calls = 10001
retry_safe_calls = "true"
inherit_env = "HOME"
max_tokens = 99
timeout_max_s = "600"
[servers.b]
command = "x"
start = true
idle_timeout_s = 604801
inherit_env = []
[servers.c]
command = "x"
start = "lazy"
inherit_env = ["A*B", "$A", "A=b", "A B", "", 1, "**"]
[servers.c.overlay.t]
timeout_s = 0
max_tokens = 1e3"#,
        r#"3:9: servers.a.start: expected `"on-call"` or `"eager"`, found text "on_call"
    hint: did you mean `on-call`?
4:18: servers.a.idle_timeout_s: expected 0 to 604800 seconds, found -1
5:24: servers.a.max_concurrent_calls: expected 0 to 10000 calls, found 10001
6:20: servers.a.retry_safe_calls: expected `true` or `false`, found text "true"
    hint: write it without quotes: `true`
7:15: servers.a.inherit_env: expected a list of texts, found text "HOME"
    hint: write a list: `["HOME"]`
8:14: servers.a.max_tokens: expected 200 to 1000000 tokens, found 99
9:17: servers.a.timeout_max_s: expected a whole number of seconds, found text "600"
    hint: write it without quotes: `600`
12:9: servers.b.start: expected `"on-call"` or `"eager"`, found `true`
13:18: servers.b.idle_timeout_s: expected 0 to 604800 seconds, found 604801
17:9: servers.c.start: expected `"on-call"` or `"eager"`, found text "lazy"
18:16: servers.c.inherit_env[0]: the name of a variable cannot contain '*'
    hint: `*` is allowed only at the end: `AWS_*`
18:23: servers.c.inherit_env[1]: the name of a variable cannot contain '$'
    hint: write only the name, such as `SSH_AUTH_SOCK`
18:29: servers.c.inherit_env[2]: the name of a variable cannot contain '='
    hint: write only the name; a variable with its own value belongs in `env`
18:36: servers.c.inherit_env[3]: the name of a variable cannot contain ' '
    hint: write one text per name: `["SSH_AUTH_SOCK", "AWS_*"]`
18:43: servers.c.inherit_env[4]: empty text
    hint: write a value, or remove the key
18:47: servers.c.inherit_env[5]: expected text, found the number 1
    hint: write it in quotes: `"1"`
18:50: servers.c.inherit_env[6]: the name of a variable cannot contain '*'
    hint: `*` is allowed only at the end: `AWS_*`
20:13: servers.c.overlay.t.timeout_s: expected 1 to 86400 seconds, found 0
21:14: servers.c.overlay.t.max_tokens: expected a whole number of tokens, found a number with a fraction"#,
    );
}

#[test]
fn only_a_child_inherits() {
    check(
        r#"[servers.a]
url = "https://h"
inherit_env = ["A"]"#,
        r"3:1: servers.a.inherit_env: has no effect with `url`
    hint: remove it",
    );
}

#[test]
fn progress_can_only_lengthen_a_call() {
    check(
        r#"[servers.a]
command = "x"
timeout_max_s = 59
[servers.b]
timeout_max_s = 100
url = "https://h"
timeout_s = 101
[servers.c]
command = "x"
timeout_s = "5"
timeout_max_s = 4"#,
        r#"3:17: servers.a.timeout_max_s: `timeout_max_s` is 59, less than `timeout_s`, which is 60
    hint: make `timeout_max_s` at least 60, or remove it
5:17: servers.b.timeout_max_s: `timeout_max_s` is 100, less than `timeout_s`, which is 101
    hint: make `timeout_max_s` at least 101, or remove it
10:13: servers.c.timeout_s: expected a whole number of seconds, found text "5"
    hint: write it without quotes: `5`"#,
    );
    check_variable(
        "PROXY_SERVERS__MY_A__TIMEOUT_MAX_S",
        "59",
        r"PROXY_SERVERS__MY_A__TIMEOUT_MAX_S: servers.my-a.timeout_max_s: `timeout_max_s` is 59, less than `timeout_s`, which is 60
    hint: make `timeout_max_s` at least 60, or remove it",
    );
}

#[test]
fn a_variable_may_break_the_rule_of_the_file() {
    let printed = |variables: &[(&str, &str)]| {
        let text = "[servers.my-a]\ncommand = \"x\"\ntimeout_max_s = 90";
        load_text(text, variables)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let longer = ("PROXY_SERVERS__MY_A__TIMEOUT_S", "91");
    let told = r"PROXY_SERVERS__MY_A__TIMEOUT_S: servers.my-a.timeout_s: `timeout_max_s` is 90, less than `timeout_s`, which is 91
    hint: make `timeout_max_s` at least 91, or remove it";
    assert_eq!(printed(&[longer]), Err(told.to_owned()));
    let both = [longer, ("PROXY_SERVERS__MY_A__TIMEOUT_MAX_S", "91")];
    assert_eq!(printed(&both), Ok(()));
}

#[test]
fn variables_of_a_life_are_checked() {
    check_variable(
        "PROXY_SERVERS__MY_A__START",
        "eagre",
        r#"PROXY_SERVERS__MY_A__START: servers.my-a.start: expected `"on-call"` or `"eager"`, found text "eagre"
    hint: did you mean `eager`?"#,
    );
    check_variable(
        "PROXY_SERVERS__MY_A__INHERIT_ENV",
        "A",
        r"PROXY_SERVERS__MY_A__INHERIT_ENV: no variable sets this key
    hint: set `servers.my-a.inherit_env` in the file",
    );
}
