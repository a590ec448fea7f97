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
fn a_registrys_server_is_started_or_called() {
    check(
        r#"{"$schema": "x", "name": "io.github.ada/weather", "version": "1.0.0", "packages": [{"registryType": "npm", "identifier": "@ada/weather", "version": "1.2.3", "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "valueHint": "dir", "isRequired": true}, {"type": "named", "name": "--units", "default": "metric"}],
        "environmentVariables": [{"name": "API_KEY", "isRequired": true, "isSecret": true}, {"name": "LEVEL"}]}]}"#,
        "weather: npx -y @ada/weather@1.2.3 ${DIR} --units metric API_KEY=${API_KEY}",
    );
    check(
        r#"{"server": {"name": "dev.x/box", "packages": [{"registryType": "oci", "identifier": "ghcr.io/x/box:1", "environmentVariables": [{"name": "T", "isRequired": true}]}]}}"#,
        "box: docker run -i --rm -e T ghcr.io/x/box:1 T=${T}",
    );
    check(
        r#"{"name": "dev.x/far", "remotes": [{"type": "streamable-http", "url": "https://{region}.x.dev/mcp", "variables": {"region": {"default": "eu"}}, "headers": [{"name": "X-Key", "isRequired": true}]}]}"#,
        "far: https://eu.x.dev/mcp X-Key=${X_KEY}",
    );
    check(
        r#"{"name": "a/old", "packages": [{"registry_name": "pypi", "name": "old-mcp", "version": "2", "runtime_arguments": [{"type": "named", "name": "--with", "value": "x"}], "environment_variables": [{"name": "A", "value": "b"}]}]}"#,
        "old: uvx --with x old-mcp@2 A=b",
    );
}

#[test]
fn a_bundle_is_read_packed_and_unpacked() {
    let manifest = r#"{"manifest_version": "0.3", "name": "notes", "server": {"type": "node", "entry_point": "server/index.js",
        "mcp_config": {"command": "node", "args": ["${__dirname}/server/index.js", "--dir=${user_config.dir}"], "env": {"KEY": "${user_config.api_key}"}}},
        "user_config": {"dir": {"type": "directory", "default": "${HOME}/notes"}, "api_key": {"type": "string", "title": "Key", "sensitive": true, "required": true}}}"#;
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("notes.mcpb");
    let mut archive = zip::ZipWriter::new(fs::File::create(&packed).unwrap());
    archive
        .start_file("manifest.json", zip::write::SimpleFileOptions::default())
        .unwrap();
    std::io::Write::write_all(&mut archive, manifest.as_bytes()).unwrap();
    archive.finish().unwrap();
    let home = Home::new("/home/ada", []);
    let taken = |path: &std::path::Path| {
        let entries = read_any_file(path, &home).unwrap();
        translate(&entries[0], &home).unwrap()
    };
    let from_zip = taken(&packed);
    assert_eq!(from_zip.server.args[0], "${BUNDLE_DIR}/server/index.js");
    let needs: Vec<&str> = from_zip
        .needs
        .iter()
        .map(|need| need.variable.as_str())
        .collect();
    assert_eq!(needs, ["BUNDLE_DIR", "API_KEY"]);
    let unpacked = folder.path().join("manifest.json");
    fs::write(&unpacked, manifest).unwrap();
    let own = taken(&unpacked).server;
    let place = folder.path().canonicalize().unwrap();
    assert_eq!(own.args[0], format!("{}/server/index.js", place.display()));
    assert_eq!(own.args[1], "--dir=/home/ada/notes");
    assert_eq!(own.env, [("KEY".to_owned(), "${API_KEY}".to_owned())]);
    fs::write(&packed, "no zip").unwrap();
    assert!(read_any_file(&packed, &home).is_err());
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
