//! Values in effect, with their origins.

use std::fs;

use super::{HOME, Overrides};
use crate::{EffectiveValue, Environment, list_values};

const FILE: &str = r#"
log = "info"
[servers.any]
command = "npx"
args = ["-y", "any", "--token", "abcdefgh12345678"]
env = { API_KEY = "abcdefgh12345678", OTHER = "${API_KEY}", PLAIN = "x" }
timeout_s = 7
[servers.any.overlay."a.b"]
tags = ["t"]
[servers.far]
url = "https://far.dev/mcp"
headers = { X-Plan = "abcdefgh12345678", Authorization = "Bearer ${TOKEN}" }
[[rules]]
decision = "deny"
tool = "any/*"
[commands.find]
command = ["grep", "x"]
ok_codes = [0, 1]
"#;

fn list(overrides: &Overrides, variables: &[(&str, &str)]) -> Vec<EffectiveValue> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, FILE).unwrap();
    let env: Environment = [("HOME", HOME)].iter().chain(variables).copied().collect();
    let overrides = Overrides {
        config: Some(file),
        ..overrides.clone()
    };
    let mut values = list_values(&overrides, &env).unwrap();
    let prefix = folder.path().join("").display().to_string();
    for value in &mut values {
        value.origin = value.origin.replace(&prefix, "");
    }
    values
}

/// Checks the line of a value, and its origin.
#[track_caller]
fn check(values: &[EffectiveValue], key: &str, line: &str, origin: &str) {
    let value = values.iter().find(|it| it.key == key);
    let value = value.unwrap_or_else(|| panic!("{key} is missing: {values:?}"));
    assert_eq!(value.to_string(), format!("{key} = {line}"));
    assert_eq!(value.origin, origin, "{key}");
}

#[test]
fn each_value_names_the_layer_that_set_it() {
    let variables = [
        ("PROXY_RESULTS__MAX_TOKENS", "900"),
        ("PROXY_SERVERS__ANY__TIMEOUT_S", "9"),
    ];
    let values = list(&Overrides::default(), &variables);
    check(&values, "log", "\"info\"", "config.toml:2");
    check(&values, "pin", "\"warn\"", "default");
    check(&values, "results.keep_hours", "24", "default");
    let variable = "PROXY_RESULTS__MAX_TOKENS";
    check(&values, "results.max_tokens", "900", variable);
    let variable = "PROXY_SERVERS__ANY__TIMEOUT_S";
    check(&values, "servers.any.timeout_s", "9", variable);
    check(&values, "servers.far.enabled", "true", "default");
    let key = "servers.any.overlay.\"a.b\".tags";
    check(&values, key, "[\"t\"]", "config.toml:9");
    let rule = "[{ decision = \"deny\", tool = \"any/*\" }]";
    check(&values, "rules", rule, "config.toml:13");
    let flag = Overrides {
        log: Some("debug".to_owned()),
        ..Overrides::default()
    };
    let values = list(&flag, &[("PROXY_LOG", "error")]);
    check(&values, "log", "\"debug\"", "--log");
}

#[test]
fn secrets_are_masked_and_references_are_not() {
    let values = list(&Overrides::default(), &[]);
    let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
    let shown = shown.join("\n");
    assert!(!shown.contains("abcdefgh12345678"), "{shown}");
    for kept in ["${API_KEY}", "Bearer ${TOKEN}", "PLAIN = \"x\""] {
        assert!(shown.contains(kept), "{kept} is missing: {shown}");
    }
}

#[test]
fn numbers_of_a_list_are_shown() {
    let values = list(&Overrides::default(), &[]);
    let key = "commands.find.ok_codes";
    check(&values, key, "[0, 1]", "config.toml:18");
}
