//! Clients in a home folder that is created for the test.

use std::{fs, path::Path};

use crate::{Home, System, find};

fn write(home: &Path, name: &str, text: &str) {
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Lists the entries found, one per line: client, name, and "(off)" for disabled ones.
#[cfg(unix)]
fn tell(home: &Home) -> Vec<String> {
    let mut lines = Vec::new();
    for installed in find(home) {
        let reading = installed.read(home);
        let line = |entry: &crate::ServerEntry| {
            let off = if entry.is_off { " (off)" } else { "" };
            format!("{}: {}{off}", entry.origin(), entry.name)
        };
        lines.extend(reading.entries.iter().map(line));
        let shown =
            |why: &String| format!("! {}", why.replace(&*home.folder().to_string_lossy(), "~"));
        lines.extend(reading.mistakes.iter().map(shown));
    }
    lines
}

#[cfg(unix)]
#[test]
fn entries_of_all_scopes_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (root, site) = (folder.path(), folder.path().join("site"));
    let place = site.to_string_lossy();
    write(
        root,
        ".claude.json",
        &format!(
            r#"{{"numStartups": 3, "mcpServers": {{"user": {{"command": "x"}}}}, "projects": {{
            "{place}": {{"mcpServers": {{"local": {{"command": "y"}}, "not-now": {{"command": "z"}}}}, "disabledMcpServers": ["not-now"], "disabledMcpjsonServers": ["shy"]}},
            "/gone": {{"mcpServers": {{"old": {{"command": "x"}}}}}}}}}}"#
        ),
    );
    write(
        root,
        "site/.mcp.json",
        r#"{"mcpServers": {"team": {"command": "x"}, "shy": {"command": "x"}}}"#,
    );
    let home = Home::new(root, []).with_system(System::Linux);
    let expected = [
        "Claude Code: user",
        "Claude Code (local): local",
        "Claude Code (local): not-now (off)",
    ];
    assert_eq!(tell(&home), expected);
    let told = tell(&home.with_project(&site));
    assert_eq!(
        told[3..],
        [
            "Claude Code (project): team",
            "Claude Code (project): shy (off)"
        ]
    );
}

#[cfg(unix)]
#[test]
fn each_client_is_read_in_its_own_form() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(
        root,
        ".copilot/mcp-config.json",
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
    );
    write(
        root,
        ".copilot/settings.json",
        r#"{"disabledMcpServers": ["a"]}"#,
    );
    write(
        root,
        ".config/opencode/opencode.json",
        r#"{"mcp": {"v1": {"type": "local", "command": ["x"], "enabled": false}, "servers": {"v2": {"type": "local", "command": ["x"]}, "config": {"type": "local", "command": ["x"]}}}}"#,
    );
    write(
        root,
        ".continue/config.yaml",
        "mcpServers:\n- name: list\n  command: x\n",
    );
    write(
        root,
        "site/.continue/mcpServers/one.yaml",
        "mcpServers:\n- name: dropped\n  command: x\n",
    );
    write(root, ".cursor/mcp.json", "{ broken");
    write(
        root,
        ".config/Code/User/settings.json",
        r#"{"mcp": {"servers": {"older": {"command": "x"}}}}"#,
    );
    write(
        root,
        ".config/amp/settings.json",
        r#"{"amp.mcpServers": {"flat": {"command": "x"}}}"#,
    );
    write(
        root,
        ".warp/.mcp.json",
        r#"{"bare": {"command": "x"}, "version": 1, "mcpServers": {"server": {"command": "x"}}}"#,
    );
    let home = Home::new(root, []).with_system(System::Linux);
    let expected = [
        "! ~/.cursor/mcp.json: line 1: Expected string for object property",
        "VS Code: older",
        "Copilot CLI: a (off)",
        "opencode: v1 (off)",
        "opencode: v2",
        "opencode: config",
        "Continue: list",
        "Amp: flat",
        "Warp: server",
        "Warp: bare",
    ];
    assert_eq!(tell(&home), expected);
    let told = tell(&home.with_project(root.join("site")));
    assert!(
        told.contains(&"Continue (project): dropped".to_owned()),
        "{told:?}"
    );
}

#[cfg(unix)]
#[test]
fn bundles_of_claude_desktop_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = ".config/Claude/Claude Extensions/ada.notes";
    let manifest = r#"{"manifest_version": "0.3", "name": "notes", "server": {"type": "node", "entry_point": "i.js", "mcp_config": {"command": "node", "args": ["${__dirname}/i.js", "${user_config.dir}"]}}, "user_config": {"dir": {"type": "directory"}}}"#;
    write(folder.path(), &format!("{bundle}/manifest.json"), manifest);
    write(
        folder.path(),
        ".config/Claude/Claude Extensions Settings/ada.notes.json",
        r#"{"isEnabled": true, "userConfig": {"dir": "/data"}}"#,
    );
    let home = Home::new(folder.path(), []).with_system(System::Linux);
    let entries = find(&home).remove(0).read(&home).entries;
    let server = crate::translate(&entries[0], &home).unwrap().server;
    assert_eq!(
        server.args,
        [
            format!("{}/{bundle}/i.js", folder.path().display()),
            "/data".to_owned()
        ]
    );
    assert!(!entries[0].place.as_ref().unwrap().is_removable);
}

#[test]
fn the_file_that_is_to_name_us_is_the_one_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path(), []).with_system(System::Linux);
    assert!(find(&home).is_empty());
    write(folder.path(), ".config/opencode/opencode.jsonc", "{}");
    write(folder.path(), ".cursor/extensions.json", "[]");
    let mains: Vec<_> = find(&home)
        .into_iter()
        .map(|installed| installed.main.unwrap().path)
        .collect();
    assert_eq!(
        mains,
        [
            folder.path().join(".cursor/mcp.json"),
            folder.path().join(".config/opencode/opencode.jsonc")
        ]
    );
}

/// Writes the files, and returns the names of the client's entries that are disabled.
fn off_in(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), ".claude.json", "{}");
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    let home = Home::new(folder.path(), []).with_system(System::Linux);
    let home = home.with_project(folder.path().join("site"));
    let entries = find(&home)
        .into_iter()
        .flat_map(|it| it.read(&home).entries);
    let off = entries.filter(|entry| entry.is_off);
    off.map(|entry| entry.name).collect()
}

#[test]
fn every_spelling_of_switched_off_is_known() {
    let table = |key: &str, off: &str| {
        format!(r#"{{"{key}": {{"a": {{"command": "x", {off}}}, "b": {{"command": "y"}}}}}}"#)
    };
    for (file, key, off) in [
        (".cursor/mcp.json", "mcpServers", r#""disabled": true"#),
        (".cursor/mcp.json", "mcpServers", r#""enabled": false"#),
        (
            ".config/opencode/opencode.json",
            "mcp",
            r#""type": "local", "enabled": false"#,
        ),
        (
            ".config/zed/settings.json",
            "context_servers",
            r#""enabled": false"#,
        ),
        (
            ".codeium/windsurf/mcp_config.json",
            "mcpServers",
            r#""disabled": true"#,
        ),
        (
            ".kiro/settings/mcp.json",
            "mcpServers",
            r#""disabled": true"#,
        ),
    ] {
        assert_eq!(off_in(&[(file, &table(key, off))]), ["a"], "{file}: {off}");
    }
    let codex =
        "[mcp_servers.a]\ncommand = \"x\"\nenabled = false\n[mcp_servers.b]\ncommand = \"y\"\n";
    assert_eq!(off_in(&[(".codex/config.toml", codex)]), ["a"]);
    let goose = "extensions:\n  a:\n    type: stdio\n    cmd: x\n    enabled: false\n  b:\n    type: stdio\n    cmd: y\n    enabled: true\n";
    assert_eq!(off_in(&[(".config/goose/config.yaml", goose)]), ["a"]);
}

#[test]
fn every_list_of_servers_that_are_off_is_known() {
    let servers = r#""mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}"#;
    for list in [
        r#""mcp": {"excluded": ["a"]}"#,
        r#""mcp": {"allowed": ["B"]}"#,
        r#""excludeMCPServers": ["a"]"#,
        r#""allowMCPServers": ["b"]"#,
    ] {
        let settings = format!("{{{servers}, {list}}}");
        assert_eq!(
            off_in(&[(".gemini/settings.json", &settings)]),
            ["a"],
            "{list}"
        );
    }
    let whole = format!("{{{servers}}}");
    for files in [
        [
            (".gemini/settings.json", whole.as_str()),
            (
                ".gemini/mcp-server-enablement.json",
                r#"{"a": {"enabled": false}, "b": {"enabled": true}}"#,
            ),
        ],
        [
            ("site/.mcp.json", whole.as_str()),
            (
                ".claude/settings.json",
                r#"{"disabledMcpjsonServers": ["a"]}"#,
            ),
        ],
        [
            ("site/.mcp.json", whole.as_str()),
            (
                "site/.claude/settings.local.json",
                r#"{"disabledMcpjsonServers": ["a"]}"#,
            ),
        ],
        [
            (".copilot/mcp-config.json", whole.as_str()),
            (".copilot/settings.json", r#"{"disabledMcpServers": ["a"]}"#),
        ],
    ] {
        assert_eq!(off_in(&files), ["a"], "{files:?}");
    }
}
