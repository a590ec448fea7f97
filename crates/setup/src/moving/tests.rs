//! Servers of several clients, imported into a configuration with some servers.

use std::{fs, path::Path};

use clients::{Home, System, read_text};
use config::{Environment, Overrides, edit::Document};

use super::{Own, Receiving, receive, sort_out};

fn own() -> Own {
    Own {
        program: "/opt/bin/proxy".into(),
        args: vec!["serve".to_owned()],
        urls: vec!["http://127.0.0.1:7331/mcp".to_owned()],
    }
}

/// Imports a pasted text into a configuration; returns the new text and the result for each server.
fn take_in(folder: &Path, config: &str, pasted: &str) -> (String, Receiving) {
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
    let mut receiving = receive(
        &mut document,
        taken,
        &home,
        &overrides,
        &env,
        &["docs.Authorization".to_owned()].into(),
    );
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
    assert_eq!(receiving.received[0].taken.secrets.len(), 0);
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
    let left: usize = receiving
        .received
        .iter()
        .map(|it| it.taken.secrets.len())
        .sum();
    assert_eq!(left, 0);
    // On a second import each server is recognized.
    let (again, second) = take_in(folder.path(), &text, pasted);
    assert!(second.received.iter().all(|it| it.was_there) && second.secrets.is_empty());
    assert_eq!(again, text);
}
