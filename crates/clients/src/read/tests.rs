//! Texts as users paste them.

use std::fs;

use crate::{Home, read_any_file, read_text, translate};

/// Returns the servers of a text, one per line.
fn tell(text: &str) -> String {
    let home = Home::new("/home/ada", []);
    let entries = match read_text(text) {
        Ok(entries) => entries,
        Err(error) => return error.to_string(),
    };
    let line = |entry: &crate::ServerEntry| match translate(entry, &home) {
        Ok(taken) => {
            let server = taken.server;
            let start = server
                .command
                .map(|command| [vec![command], server.args].concat().join(" "));
            let start = start.or(server.url).unwrap_or_default();
            let pairs = server.env.iter().chain(&server.headers);
            let pairs: Vec<String> = pairs
                .map(|(name, value)| format!(" {name}={value}"))
                .collect();
            let off = if server.enabled { "" } else { " (off)" };
            format!("{}: {start}{}{off}", entry.name, pairs.concat())
        }
        Err(why) => format!("{}: left out, {why}", entry.name),
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(tell(text), expected);
}

#[test]
fn every_shape_is_understood() {
    let inner = r#""a": {"command": "x", "args": ["1"]}, "b": {"url": "https://b.dev/mcp", "disabled": true}"#;
    let both = "a: x 1\nb: https://b.dev/mcp (off)";
    check(&format!("{{\"mcpServers\": {{{inner}}}}}"), both);
    check(
        &format!("\u{feff}{{ // mine\n\"servers\": {{{inner},}},}}"),
        both,
    );
    check(&format!("\"mcpServers\": {{{inner}}},"), both);
    check(&format!("{{\"mcp\": {{\"servers\": {{{inner}}}}}}}"), both);
    check(&format!("{{{inner}}}"), both);
    check(inner, both);
    check(
        "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"1\"]\n[mcp_servers.b]\nurl = \"https://b.dev/mcp\"\nenabled = false\n",
        both,
    );
    check(
        "extensions:\n  a: {cmd: x, args: ['1'], type: stdio}\n  b:\n    uri: https://b.dev/mcp\n    enabled: false\n",
        both,
    );
    check(
        "mcpServers:\n- name: a\n  command: x\n  args: [1]\n- name: b\n  url: https://b.dev/mcp\n  disabled: true\n",
        both,
    );
    check(r#"{"name": "a", "command": "x", "args": ["1"]}"#, "a: x 1");
    check(r#"{"url": "https://b.dev/mcp"}"#, ": https://b.dev/mcp");
}

#[test]
fn a_server_with_the_name_of_a_nested_table_is_one_of_several() {
    check(
        r#"{"server": {"command": "x"}, "git": {"command": "y"}}"#,
        "server: x\ngit: y",
    );
    check(
        r#"{"name": "far", "transport": {"type": "http", "url": "https://b.dev/mcp"}}"#,
        "far: https://b.dev/mcp",
    );
}

/// VS Code's `settings.json`, and opencode's file with both forms of `mcp`.
#[test]
fn a_table_of_servers_below_mcp_is_not_a_server() {
    for name in ["config", "server", "transport", "connection"] {
        check(
            &format!(
                r#"{{"mcp": {{"inputs": [{{"id": "key", "description": "Key"}}], "servers": {{"{name}": {{"command": "x", "args": ["${{input:key}}"]}}}}}}}}"#
            ),
            &format!("{name}: x ${{KEY}}"),
        );
        check(
            &format!(
                r#"{{"mcp": {{"a": {{"type": "local", "command": ["y"]}}, "servers": {{"{name}": {{"command": "x"}}}}}}}}"#
            ),
            &format!("{name}: x\na: y"),
        );
    }
}

#[test]
fn what_lists_no_server_is_told_which_shapes_are_understood() {
    for text in [
        r#"{"a": 1}"#,
        "[]",
        "{\"mcpServers\": {}}",
        "just words",
        "",
    ] {
        let told = tell(text);
        assert!(
            told.starts_with("no server in it; supported formats: `mcpServers`"),
            "{text}: {told}"
        );
    }
    assert!(
        tell("{\n  \"a\": ").starts_with("cannot be read: line"),
        "{}",
        tell("{\n  \"a\": ")
    );
    check(
        r#"{"mcpServers": {"good": {"command": "x"}, "bad": 3, "worse": {"url": "unix:///x"}}}"#,
        "good: x\nbad: left out, its entry is not a table\n\
         worse: left out, it uses a local socket, which is not supported",
    );
}

#[test]
fn a_registrys_server_is_added_by_another_command() {
    for text in [
        r#"{"name": "io.github.ada/weather", "packages": [{"registryType": "npm", "identifier": "@ada/weather"}]}"#,
        r#"{"server": {"name": "dev.x/far", "remotes": [{"type": "sse", "url": "https://x.dev/mcp"}]}}"#,
    ] {
        let told = tell(text);
        assert!(
            told.contains("proxy add registry:NAME --from FILE"),
            "{told}"
        );
    }
}

#[test]
fn a_bundle_is_read_from_its_folder() {
    let manifest = r#"{"manifest_version": "0.3", "name": "notes", "server": {"type": "node", "entry_point": "server/index.js",
        "mcp_config": {"command": "node", "args": ["${__dirname}/server/index.js", "--dir=${user_config.dir}"], "env": {"KEY": "${user_config.api_key}"}}},
        "user_config": {"dir": {"type": "directory", "default": "${HOME}/notes"}, "api_key": {"type": "string", "title": "Key", "sensitive": true, "required": true}}}"#;
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new("/home/ada", []);
    let pasted = translate(&read_text(manifest).unwrap()[0], &home).unwrap();
    assert_eq!(pasted.server.args[0], "${BUNDLE_DIR}/server/index.js");
    let needs = pasted.needs.iter();
    let needs: Vec<String> = needs
        .map(|it| format!("{}: {}", it.variable, it.what))
        .collect();
    let folder_need = "BUNDLE_DIR: the folder that the bundle is unpacked to";
    assert_eq!(needs, [folder_need, "API_KEY: Key"]);
    let unpacked = folder.path().join("manifest.json");
    fs::write(&unpacked, manifest).unwrap();
    let entries = read_any_file(&unpacked, &home).unwrap();
    let own = translate(&entries[0], &home).unwrap().server;
    let place = folder.path().canonicalize().unwrap();
    assert_eq!(own.args[0], format!("{}/server/index.js", place.display()));
    assert_eq!(own.args[1], "--dir=/home/ada/notes");
    assert_eq!(own.env, [("KEY".to_owned(), "${API_KEY}".to_owned())]);
    let packed = folder.path().join("notes.mcpb");
    fs::write(&packed, "PK").unwrap();
    let error = read_any_file(&packed, &home).unwrap_err();
    assert!(error.to_string().contains("manifest.json"), "{error}");
}

#[test]
fn an_error_of_a_file_leaves_its_name_to_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path(), []);
    let large = fs::File::create(folder.path().join("large.json")).unwrap();
    large.set_len(9 << 20).unwrap();
    fs::write(folder.path().join("packed.mcpb"), "no zip").unwrap();
    fs::write(folder.path().join(".mcp.json"), "{").unwrap();
    for name in ["large.json", "packed.mcpb", ".mcp.json"] {
        let error = read_any_file(&folder.path().join(name), &home).unwrap_err();
        assert!(!error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_pasted_command_of_another_client_is_told_as_ours() {
    for text in [
        "claude mcp add github -e TOKEN=x -- npx -y @modelcontextprotocol/server-github",
        "$ codex mcp add docs --url https://docs.example.com/mcp\n",
    ] {
        let told = tell(text);
        assert!(
            told.starts_with("a command, not a list of servers"),
            "{told}"
        );
        assert!(told.contains("proxy add NAME -- COMMAND"), "{told}");
        assert!(!told.contains("TOKEN"), "{told}");
    }
}
