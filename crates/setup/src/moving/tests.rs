//! Servers of several clients, imported into a configuration with some servers.

use std::{collections::BTreeMap, fs, path::Path};

use clients::{Home, System, read_text};
use config::{Environment, Overrides, edit::Document};

use secrets::Secret;

use super::{ImportOptions, Own, Receiving, discover, receive, sort_out};

fn own() -> Own {
    Own {
        program: "/opt/bin/proxy".into(),
        args: vec!["serve".to_owned()],
        urls: vec!["http://127.0.0.1:7331/mcp".to_owned()],
    }
}

/// Imports a pasted text into a configuration; returns the new text and the result for each server.
fn take_in(folder: &Path, config: &str, pasted: &str) -> (String, Receiving) {
    let stored = [("docs.Authorization".to_owned(), None)].into();
    take_in_with(folder, config, pasted, &stored)
}

fn take_in_with(
    folder: &Path,
    config: &str,
    pasted: &str,
    stored: &BTreeMap<String, Option<Secret>>,
) -> (String, Receiving) {
    let path = folder.join("config.toml");
    fs::write(&path, config).unwrap();
    let home = Home::new(folder, []).with_system(System::Linux);
    let (taken, left) = sort_out(&read_text(pasted).unwrap(), &home, &own());
    let mut document = Document::read(&path).unwrap();
    let env: Environment = [("HOME".to_owned(), folder.to_string_lossy().into_owned())]
        .into_iter()
        .collect();
    let overrides = Overrides {
        config: Some(path),
        ..Overrides::default()
    };
    let options = ImportOptions {
        stored: Some(stored),
        ..ImportOptions::default()
    };
    let mut receiving = receive(&mut document, taken, &home, &overrides, &env, options);
    receiving.left.splice(0..0, left);
    (document.text(), receiving)
}

#[test]
fn each_server_comes_once_under_a_name_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let pasted = r#"{"mcpServers": {
        "Git Hub": {"command": "npx", "args": ["a"]},
        "git-hub": {"command": "npx", "args": ["b"]},
        "same": {"command": "npx", "args": ["-y", "kept@latest"]},
        "proxy": {"command": "/opt/bin/proxy", "args": ["serve"]},
        "by-npx": {"command": "npx", "args": ["-y", "tool-proxy@0.1.0", "serve"]},
        "by-uvx": {"command": "/usr/bin/uvx", "args": ["tool-proxy", "--config", "x", "serve"]},
        "packaged": {"command": "tool-proxy", "args": ["serve"]},
        "other-build": {"command": "/elsewhere/proxy", "args": ["--config", "x", "serve"]},
        "ourselves": {"url": "http://127.0.0.1:7331/mcp/"}}}"#;
    let config = "# mine\n[servers.kept]\ncommand = \"npx\"\nargs = [\"kept\"]\n";
    let (text, receiving) = take_in(folder.path(), config, pasted);
    let names: Vec<(&str, bool)> = receiving
        .received
        .iter()
        .map(|it| (it.name.as_str(), it.was_there))
        .collect();
    assert_eq!(
        names,
        [("git-hub", false), ("git-hub-2", false), ("kept", true)]
    );
    assert!(
        text.starts_with(config) && text.contains("args = [\"b\"]"),
        "{text}"
    );
    assert!(receiving.left.is_empty());
}

#[test]
fn one_that_would_be_a_mistake_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let pasted = r#"{"mcpServers": {
        "bad": {"url": "ftp://x.dev/mcp"},
        "odd": {"url": "unix:///run/x"},
        "good": {"command": "x", "env": {"TOKEN": "pa$${s}", "B": "$c"}}}}"#;
    let (text, receiving) = take_in(folder.path(), "", pasted);
    let left: Vec<&str> = receiving
        .left
        .iter()
        .map(|it| it.entry.name.as_str())
        .collect();
    assert_eq!(left, ["odd", "bad"]);
    assert!(
        receiving.left[1]
            .why
            .contains("not valid in the configuration"),
        "{:?}",
        receiving.left[1].why
    );
    assert!(
        !text.contains("ftp") && text.contains("[servers.good]"),
        "{text}"
    );
    assert_eq!(receiving.secrets.len(), 0);
}

#[test]
fn secrets_in_clear_are_named_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let pasted = r#"{"mcpServers": {
        "git": {"command": "x", "env": {"GIT_TOKEN": "ghp_0123456789abcdef", "MODE": "fast"}},
        "docs": {"url": "https://x.dev/mcp", "headers": {"Authorization": "Bearer abcdef0123456789"}},
        "old": {"command": "y", "args": ["--api-key", "abcdef0123456789", "--key=k3y-0123", "--name", "k3y-0123", "--header=Authorization: Bearer abcd0123", "-e", "TOKEN=efgh0123"]},
        "far": {"url": "https://ada:pa$${s@far.dev/mcp?a=b&api_key=qwerty0123&sig=asdfgh0123"},
        "base": {"command": "z", "args": ["postgres://ada:lovelace@db/lovelace", "ghp_0123456789abcdef"]}}}"#;
    let (text, receiving) = take_in(folder.path(), "", pasted);
    assert!(text.contains("${secret:git.GIT_TOKEN}"), "{text}");
    assert!(
        text.contains("Bearer ${secret:docs.Authorization-2}"),
        "{text}"
    );
    assert!(!text.contains("ghp_"), "{text}");
    let mut kept: Vec<_> = receiving
        .secrets
        .iter()
        .map(|(name, secret)| (name.as_str(), secret.expose()))
        .collect();
    kept.sort_unstable();
    assert_eq!(
        kept,
        [
            ("base.argument-2", "ghp_0123456789abcdef"),
            ("base.password", "lovelace"),
            ("docs.Authorization-2", "abcdef0123456789"),
            ("far.api_key", "qwerty0123"),
            ("far.password", "pa$${s"),
            ("far.sig", "asdfgh0123"),
            ("git.GIT_TOKEN", "ghp_0123456789abcdef"),
            ("old.Authorization", "abcd0123"),
            ("old.TOKEN", "efgh0123"),
            ("old.api-key", "abcdef0123456789"),
            ("old.key", "k3y-0123"),
        ]
    );
    for written in [
        r#"args = ["--api-key", "${secret:old.api-key}", "--key=${secret:old.key}", "--name", "k3y-0123", "--header=Authorization: Bearer ${secret:old.Authorization}", "-e", "TOKEN=${secret:old.TOKEN}"]"#,
        r#"url = "https://ada:${secret:far.password}@far.dev/mcp?a=b&api_key=${secret:far.api_key}&sig=${secret:far.sig}""#,
        r#"args = ["postgres://ada:${secret:base.password}@db/lovelace", "${secret:base.argument-2}"]"#,
    ] {
        assert!(text.contains(written), "{text}");
    }
    // On a second import each server is recognized, with the values of the store and without them.
    let values = receiving.secrets.iter();
    let values = values.map(|(name, value)| (name.to_string(), Some(value.clone())));
    for stored in [values.collect(), BTreeMap::new()] {
        let (again, second) = take_in_with(folder.path(), &text, pasted, &stored);
        assert!(second.received.iter().all(|it| it.was_there) && second.secrets.is_empty());
        assert_eq!(again, text);
    }
}

/// Returns the names of the servers, each with its remarks.
fn names_and_remarks(receiving: &Receiving) -> Vec<String> {
    let line = |it: &super::Received| format!("{}: {}", it.name, it.taken.remarks.join("; "));
    receiving.received.iter().map(line).collect()
}

#[test]
fn servers_that_differ_in_any_part_are_all_kept_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let pasted = r#"{"mcpServers": {
        "github": {"command": "gh-mcp", "args": ["stdio"]},
        "github-readonly": {"command": "gh-mcp", "args": ["stdio"], "env": {"READ_ONLY": "1"}},
        "Github": {"command": "gh-mcp", "args": ["http"], "cwd": "/srv"},
        "remote": {"url": "https://x.dev/mcp", "headers": {"X-Team": "a"}},
        "remote-b": {"url": "https://x.dev/mcp", "headers": {"X-Team": "b"}},
        "again": {"url": "https://x.dev/mcp", "headers": {"x-team": "b"}}}}"#;
    let (text, receiving) = take_in(folder.path(), "", pasted);
    assert_eq!(
        names_and_remarks(&receiving),
        [
            "github: ",
            "github-readonly: differs from `github` in its environment: both are kept",
            "github-2: `github` is another server, which differs in its arguments, folder: both are kept, \
             this one as `github-2`",
            "remote: ",
            "remote-b: differs from `remote` in its headers: both are kept",
        ]
    );
    let first = text.split("[servers.github-readonly]").next().unwrap();
    assert!(!first.contains("READ_ONLY"), "{text}");
    let (again, second) = take_in(folder.path(), &text, pasted);
    assert!(second.received.iter().all(|it| it.was_there));
    assert_eq!(again, text);
}

#[test]
fn a_server_that_another_spelling_of_its_address_joins_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let pasted = r#"{"mcpServers": {"a": {"url": "https://x.dev/mcp"}, "b": {"url": "https://x.dev/mcp/"}}}"#;
    let (text, both) = take_in(folder.path(), "", pasted);
    let remark = "a: an entry whose address differs only in the last `/` counts as the same server; to have both, \
                  write the other into the configuration";
    assert_eq!(names_and_remarks(&both), [remark]);
    let one = r#"{"mcpServers": {"c": {"url": "https://x.dev/mcp/"}}}"#;
    let (again, known) = take_in(folder.path(), &text, one);
    assert_eq!(names_and_remarks(&known), [remark]);
    assert_eq!(again, text);
    let same = r#"{"mcpServers": {"c": {"url": "https://x.dev/mcp"}}}"#;
    let (_, unchanged) = take_in(folder.path(), &text, same);
    assert_eq!(names_and_remarks(&unchanged), ["a: "]);
}

#[test]
fn another_account_of_a_known_server_is_another_server() {
    let folder = tempfile::tempdir().unwrap();
    let one = |token: &str| {
        format!(
            r#"{{"mcpServers": {{"git": {{"command": "x", "env": {{"GIT_TOKEN": "{token}"}}}}}}}}"#
        )
    };
    let (text, first) = take_in(folder.path(), "", &one("ghp_0123456789abcdef"));
    let values = first.secrets.iter();
    let stored = values.map(|(name, value)| (name.to_string(), Some(value.clone())));
    let stored = stored.collect();
    let other = one("ghp_fedcba9876543210");
    let (text, second) = take_in_with(folder.path(), &text, &other, &stored);
    assert_eq!(
        second.received[0].name.as_str(),
        "git-2",
        "{:?}",
        names_and_remarks(&second)
    );
    assert!(text.contains("${secret:git-2.GIT_TOKEN}"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_server_of_a_project_is_limited_to_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, shop) = (root.join("site"), root.join("shop"));
    fs::create_dir_all(&shop).unwrap();
    fs::create_dir_all(&site).unwrap();
    let (one, two) = (site.display(), shop.display());
    let memory =
        |file: &str| format!(r#"{{"memory": {{"command": "mem", "env": {{"FILE": "{file}"}}}}}}"#);
    let list = |of_site: &str, of_shop: &str| {
        let user = memory("/all");
        let text = format!(
            r#"{{"mcpServers": {user}, "projects": {{
                "{one}": {{"mcpServers": {of_site}}}, "{two}": {{"mcpServers": {of_shop}}}}}}}"#
        );
        fs::write(root.join(".claude.json"), text).unwrap();
    };
    let home = Home::new(root, []).with_system(System::Linux);
    let path = root.join("config.toml");
    let env: Environment = [("HOME".to_owned(), root.to_string_lossy().into_owned())]
        .into_iter()
        .collect();
    let overrides = Overrides {
        config: Some(path.clone()),
        ..Overrides::default()
    };
    let import = |is_everywhere: bool| {
        let mut document = Document::read(&path).unwrap();
        let found = discover(&home, &[], &own(), true);
        let options = ImportOptions {
            is_everywhere,
            ..ImportOptions::default()
        };
        let receiving = receive(&mut document, found.taken, &home, &overrides, &env, options);
        assert!(receiving.left.is_empty(), "{:?}", receiving.left);
        fs::write(&path, document.text()).unwrap();
        let text = document.text().replace(&*root.to_string_lossy(), "~");
        (text, receiving)
    };
    list(&memory("/site"), "{}");
    let (text, receiving) = import(false);
    let names: Vec<&str> = receiving
        .received
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["memory", "memory-site"]);
    let limit = "[profiles.memory-site-elsewhere]\noutside_folders = [\"~/site\"]\ndeny = [\"memory-site\"]\n";
    assert!(text.ends_with(limit), "{text}");
    let remark = receiving.received[1].folder_remark.as_ref().unwrap();
    assert!(
        remark.contains("profiles.memory-site-elsewhere"),
        "{remark}"
    );
    list(&memory("/site"), &memory("/site"));
    let (text, _) = import(false);
    assert!(
        text.contains("outside_folders = [\"~/site\", \"~/shop\"]"),
        "{text}"
    );
    assert_eq!(import(false).0, text);
    // The person says that it is for all folders.
    let (text, receiving) = import(true);
    assert!(
        !text.contains("profiles") && text.contains("[servers.memory-site]"),
        "{text}"
    );
    assert!(receiving.received.iter().all(|it| it.was_there));
}

#[test]
fn an_entry_that_cannot_be_read_is_told_and_a_nested_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let pasted = r#"{"mcpServers": {
        "nested": {"transport": {"type": "http", "url": "https://x.dev/mcp", "headers": {"X-A": "b"}}},
        "inner": {"enabled": true, "transport": {"type": "stdio", "command": "x", "args": ["1"]}},
        "twice": {"command": "x", "transport": {"type": "http", "url": "https://x.dev/mcp"}},
        "plain": {"command": "y", "transport": {"type": "stdio"}},
        "odd": {"launch": {"program": "x"}},
        "text": "x"}}"#;
    let (text, receiving) = take_in(folder.path(), "", pasted);
    let names: Vec<&str> = receiving
        .received
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["nested", "inner", "plain"]);
    assert!(
        text.contains("headers = { X-A = \"b\" }") && text.contains("args = [\"1\"]"),
        "{text}"
    );
    let left = receiving
        .left
        .iter()
        .map(|it| format!("{}: {}", it.entry.name, it.why));
    let left: Vec<String> = left.collect();
    assert_eq!(
        left,
        [
            "twice: it names a server twice, beside and in `transport`",
            "odd: it names neither `command` nor `url`",
            "text: its entry is not a table",
        ]
    );
}
