//! Mistakes as a user sees them, and the settings of valid files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fleet::Launch;
use proptest::prelude::*;

use super::{
    Config, ConfigError, Environment, Overrides, docs,
    file::EXAMPLE,
    keys::{KEYS, ValueKind},
    load,
};

mod commands;
mod effective;
mod http;
mod limits;
mod mistakes;
mod places;
mod removed;
mod schema;

const HOME: &str = "/home/ada";

fn home() -> Environment {
    Environment::from_iter([("HOME", HOME)])
}

fn load_text(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let env = [("HOME", HOME)].iter().chain(variables).copied().collect();
    load_with(text, &Overrides::default(), &env)
}

fn printed(text: &str, overrides: &Overrides, env: &Environment) -> String {
    load_with(text, overrides, env)
        .expect_err("the case holds a mistake")
        .to_string()
}

/// Loads `text` from a file on disk, because there is no other interface.
fn load_with(text: &str, overrides: &Overrides, env: &Environment) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, text).unwrap();
    let config = Some(file);
    load(
        &Overrides {
            config,
            ..overrides.clone()
        },
        env,
    )
    .map_err(|error| ConfigError {
        file: "config.toml".into(),
        ..error
    })
}

fn overrides(file: &Path) -> Overrides {
    Overrides {
        config: Some(file.to_owned()),
        ..Overrides::default()
    }
}

fn in_tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

#[test]
fn every_example_loads() {
    let mut names = Vec::new();
    for entry in fs::read_dir(in_tree("config")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let config = load(&overrides(&path), &home()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.notes(), Vec::<String>::new(), "{}", path.display());
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    let all = [
        "commands.toml",
        "developer.toml",
        "every-key.toml",
        "minimal.toml",
    ];
    assert_eq!(names, all);
}

#[test]
fn the_hint_for_a_beginner_loads() {
    let config = load_text(EXAMPLE, &[]).unwrap();
    assert_eq!(config.gateway.servers[0].spec.name.as_str(), "time");
}

#[test]
fn the_example_of_every_key_has_every_key() {
    let text = fs::read_to_string(in_tree("config/every-key.toml")).unwrap();
    let table: toml::Value = toml::from_str::<toml::Table>(&text).unwrap().into();
    for key in KEYS {
        let parts: Vec<&str> = key.path.split('.').collect();
        assert!(holds(&table, &parts), "`{}` is missing", key.path);
    }
}

#[test]
fn servers_are_the_same_whether_a_variable_sets_a_key_of_one_or_not() {
    let text = fs::read_to_string(in_tree("config/every-key.toml")).unwrap();
    let load = |variables: &[(&str, &str)]| load_text(&text, variables).unwrap().gateway.servers;
    let merged = load(&[("PROXY_SERVERS__ISSUES__TIMEOUT_S", "60")]);
    let laid_over = load(&[]);
    assert_eq!(merged.len(), 5, "four servers and `commands`");
    assert_eq!(format!("{laid_over:#?}"), format!("{merged:#?}"));
}

fn holds(value: &toml::Value, path: &[&str]) -> bool {
    match path {
        [] => true,
        ["NAME" | "TOOL", rest @ ..] => {
            let table = value.as_table();
            table.is_some_and(|table| table.values().any(|value| holds(value, rest)))
        }
        [name, rest @ ..] => value.get(name).is_some_and(|value| holds(value, rest)),
    }
}

#[test]
fn a_server_runs_once_if_its_scope_is_written() {
    for (scope, has_spares) in [
        ("", true),
        ("scope = 'shared'", false),
        ("scope = 'client'", false),
    ] {
        let text = format!("[servers.a]\ncommand = 'x'\n{scope}");
        let servers = load_text(&text, &[]).unwrap().gateway.servers;
        assert_eq!(servers[0].spec.has_spares, has_spares, "{scope}");
    }
}

#[test]
fn every_word_of_a_choice_is_a_value_of_its_type() {
    for key in KEYS {
        let ValueKind::Choice(words) = &key.kind else {
            continue;
        };
        let path = key.path.replace("NAME", "x");
        let launch = if path.contains(".oauth.") {
            "servers.x.url = \"https://x.dev/mcp\""
        } else {
            "servers.x.command = \"x\""
        };
        for word in *words {
            let loaded = load_text(&format!("{path} = \"{word}\"\n{launch}\n"), &[]);
            let told = loaded.err().map(|it| it.to_string()).unwrap_or_default();
            assert!(!told.contains("unknown variant"), "{told}");
        }
    }
}

#[test]
fn the_page_is_made_from_the_keys() {
    let page = docs();
    check_committed("docs/configuration.md", &page);
    assert!(
        !page.contains("{{"),
        "a placeholder of docs.md was not replaced"
    );
}

/// Checks that a file of the repository has this text; with `PROXY_WRITE_DOCS`, writes it.
fn check_committed(path: &str, text: &str) {
    let file = in_tree(path);
    if std::env::var_os("PROXY_WRITE_DOCS").is_some() {
        fs::write(&file, text).unwrap();
    }
    let committed = fs::read_to_string(file).unwrap_or_default();
    assert!(
        committed == text,
        "{path} is outdated: `PROXY_WRITE_DOCS=1 cargo test -p config --lib made_from_the_keys`"
    );
}

#[test]
fn a_file_means_what_it_says() {
    let config = load_text(
        r#"
        [servers.zeta]
        command = "npx"
        args = ["-y", "${PACKAGE}"]
        env = { TOKEN = "${TOKEN:-none}" }
        timeout_s = 5
        tools.allow = ["get_*"]
        tools.deny = ["get_all"]
        [servers.alpha]
        url = "https://mcp.example.com/mcp"
        headers = { Authorization = "Bearer ${TOKEN}" }
        enabled = false
        [servers.zeta.overlay."odd.tool"]
        notes = "slow"
        title = "Odd"
        min_version = "1.4"
        deprecated = "use other"
        example = { z = 1, a = [1.5, true], when = 2026-01-02 }
        "#,
        &[],
    )
    .unwrap();
    let servers = &config.gateway.servers;
    let [zeta, alpha] = servers.as_slice() else {
        panic!("expected two servers in the order of the file: {servers:?}");
    };
    assert_eq!(zeta.spec.name.as_str(), "zeta");
    assert_eq!(
        (
            zeta.spec.timeout.as_secs(),
            zeta.spec.start_timeout.as_secs()
        ),
        (5, 50)
    );
    assert_eq!(
        (zeta.rules.allow.as_slice(), zeta.rules.deny.as_slice()),
        (
            ["get_*".to_owned()].as_slice(),
            ["get_all".to_owned()].as_slice()
        )
    );
    let overlay = &zeta.rules.overlays["odd.tool"];
    assert_eq!(overlay.notes.as_deref(), Some("slow"));
    assert_eq!(overlay.title.as_deref(), Some("Odd"));
    assert_eq!(overlay.min_version.as_deref(), Some("1.4"));
    assert_eq!(overlay.deprecated.as_deref(), Some("use other"));
    let example = overlay.example.as_ref().unwrap().to_string();
    assert_eq!(example, r#"{"z":1,"a":[1.5,true],"when":"2026-01-02"}"#);
    assert!(matches!(&alpha.spec.launch, Launch::Remote { headers, .. } if headers.len() == 1));
    assert_eq!(config.gateway.results.max_tokens, 4000);
    assert_eq!(config.log, "warn");

    let enabled = |names: Vec<String>| assert_eq!(names, ["zeta"]);
    enabled(
        config
            .gateway
            .specs()
            .iter()
            .map(|spec| spec.name.to_string())
            .collect(),
    );
    enabled(
        config
            .gateway
            .rules()
            .servers
            .iter()
            .map(|shelved| shelved.name.to_string())
            .collect(),
    );
}

#[test]
fn what_is_no_mistake_may_be_worth_a_note() {
    let notes = |text| load_text(text, &[]).unwrap().notes().join("; ");
    assert_eq!(notes(""), "no servers: add a `[servers.NAME]` table");
    assert_eq!(
        notes("[servers.a]\ncommand = \"a\"\nenabled = false"),
        "every server has `enabled = false`"
    );
}

#[test]
fn a_variable_goes_before_the_file() {
    let text = "[results]\nmax_tokens = 500\nkeep_mib = 9\n[servers.my-notes]\ncommand = \"n\"\ntimeout_s = 7";
    let variables = [
        ("PROXY_RESULTS__MAX_TOKENS", "700"),
        ("PROXY_SERVERS__MY_NOTES__TIMEOUT_S", "8"),
        ("PROXY_SERVERS__MY_NOTES__ENABLED", "false"),
        ("PROXY_LOG", "info"),
        ("PROXY_RESULTS__KEEP_HOURS", ""),
        ("PROXY_OF_SOMEBODY_ELSE", "x"),
        ("PROXY_OTHER__THING", "x"),
    ];
    let config = load_text(text, &variables).unwrap();
    let server = &config.gateway.servers[0];
    assert_eq!(
        (
            config.gateway.results.max_tokens,
            config.gateway.results.keep_mib
        ),
        (700, 9)
    );
    assert_eq!((server.spec.timeout.as_secs(), server.enabled), (8, false));
    assert_eq!(
        (config.log.as_str(), config.gateway.results.keep_hours),
        ("info", 24)
    );
}

#[test]
fn a_megabyte_of_servers_loads() {
    let server =
        |i| format!("[servers.server-{i}]\ncommand = \"run\"\nargs = [\"--number\", \"{i}\"]\n");
    let text: String = (0..20_000).map(server).collect();
    assert!(text.len() > 1 << 20);
    assert_eq!(load_text(&text, &[]).unwrap().gateway.servers.len(), 20_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_variable_makes_it_panic(name in "(RESULTS|SERVERS|LOG|A)(__[A-Z_.]{0,8}){0,3}", value in "\\PC{0,12}") {
        let name = format!("PROXY_{name}");
        let loaded = load_text("[servers.a]\ncommand = \"a\"", &[(&name, &value)]);
        if let Err(error) = loaded {
            prop_assert!(error.to_string().starts_with(&name));
        }
    }
}
