//! Manifests of command-line programs: a JSON list of `{id, name, description, usage, capabilities,
//! min_version, ...}`, each of which becomes a command.

use std::{io::Read as _, path::Path};

use config::edit::Document;
use secrets::Reference;
use serde_json::{Map, Value, json};
use tool::ServerName;

use super::super::{
    edit,
    moving::{ask_servers, say_all},
};
use crate::{cli::global::Global, exit::Exit, report};

type ManifestEntry = Map<String, Value>;

/// Members that a command has under the same name.
const KEPT: [&str; 4] = ["args", "stdin", "ok_codes", "read_only"];

/// Members that are rewritten.
const READ: [&str; 7] = [
    "id",
    "name",
    "command",
    "description",
    "usage",
    "capabilities",
    "min_version",
];

/// The largest manifest, in bytes: some thousand programs.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// Reads a manifest; `None` if the file is something else or too large.
pub(super) fn read(file: &str) -> Option<Vec<ManifestEntry>> {
    let mut text = String::new();
    let file = files::open_to_read(Path::new(file)).ok()?;
    let mut file = file.take(MANIFEST_BYTES_MAX + 1);
    file.read_to_string(&mut text).ok()?;
    let is_whole = file.limit() > 0;
    let all: Vec<ManifestEntry> = is_whole.then(|| serde_json::from_str(&text).ok())??;
    all.iter().any(|it| it.contains_key("id")).then_some(all)
}

/// Adds the commands to the configuration, all of them or none.
pub(super) fn import(
    global: &Global,
    entries: &[ManifestEntry],
    dry_run: bool,
) -> anyhow::Result<Exit> {
    if dry_run {
        let mut document = edit::read(global)?;
        let (_, remarks) = receive(&mut document, entries);
        edit::print_difference(&document);
        say_all(&remarks);
        return Ok(Exit::Success);
    }
    let add = |document: &mut Document| Ok(receive(document, entries));
    let (names, remarks) = edit::change_with(global, add, |_, _, write| write())?.value;
    say_all(&remarks);
    if global.json {
        report::print_json(&json!({"commands": names, "remarks": remarks}));
    }
    if names.is_empty() {
        return Err(Exit::Nothing.with("nothing was imported"));
    }
    if global.json {
        return Ok(Exit::Success);
    }
    Ok(ask_servers(global, vec![ServerName::commands()])?.print())
}

/// Adds each entry that is not there. Returns the names, and remarks about the rest.
fn receive(document: &mut Document, entries: &[ManifestEntry]) -> (Vec<String>, Vec<String>) {
    let (mut names, mut remarks) = (Vec::new(), Vec::new());
    for entry in entries {
        let id = entry.get("id").and_then(Value::as_str).unwrap_or_default();
        if document.commands().iter().any(|it| it == id) {
            remarks.push(format!("{id}: not imported: the command exists"));
            continue;
        }
        document.add_command(id, &to_table(id, entry));
        let is_known = |key: &str| KEPT.contains(&key) || READ.contains(&key);
        let unused = entry.keys().filter(|key| !is_known(key));
        remarks.extend(unused.map(|key| format!("{id}: `{key}` was not used")));
        names.push(id.to_owned());
    }
    (names, remarks)
}

fn to_table(id: &str, entry: &ManifestEntry) -> ManifestEntry {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::trim);
    let words = text("command").map(|line| Reference::parse(&format!("command:{line}")));
    let command = match words {
        Some(Some(Ok(Reference::Command(words)))) => json!(words),
        _ => entry
            .get("command")
            .cloned()
            .unwrap_or_else(|| json!([id, "{-args...}"])),
    };
    let mut table = Map::from_iter([("command".to_owned(), command)]);
    let mut put =
        |key: &str, value: Option<Value>| table.extend(value.map(|it| (key.to_owned(), it)));
    let title = text("name").filter(|name| *name != id);
    put("title", title.map(Value::from));
    let usage = text("usage").map(|usage| format!("Usage: {usage}"));
    let version = text("min_version").map(|it| format!("Needs version {it} or newer."));
    let texts = [text("description").map(str::to_owned), usage, version];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    let description = (!texts.is_empty()).then(|| texts.join("\n").into());
    put("description", description);
    put("tags", entry.get("capabilities").cloned());
    for key in KEPT {
        put(key, entry.get(key).cloned());
    }
    table
}

#[cfg(test)]
mod tests {
    use config::{Environment, Overrides};

    use super::*;

    const MANIFEST: &str = r#"[
        {"id": "rg", "name": "ripgrep", "description": "Search files.", "usage": "rg PATTERN [PATH]",
         "capabilities": ["search code"], "min_version": "13", "homepage": "x"},
        {"id": "count", "command": "wc -l {file}", "read_only": true},
        {"id": "list", "command": ["ls", "-l", "{folder?}"], "args": {"folder": "string"}}
    ]"#;

    fn read_text(text: &str) -> Option<Vec<ManifestEntry>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tools.json");
        std::fs::write(&file, text).unwrap();
        read(file.to_str().unwrap())
    }

    #[test]
    fn entries_become_commands_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut document = Document::read(&folder.path().join("config.toml")).unwrap();
        let entries = read_text(MANIFEST).unwrap();
        let env: Environment = [("HOME", "/home/ada")].into_iter().collect();
        let (names, remarks) = receive(&mut document, &entries);
        assert_eq!(names, ["rg", "count", "list"]);
        assert_eq!(remarks, ["rg: `homepage` was not used"]);
        insta::assert_snapshot!(document.text(), @r#"
        [commands.rg]
        command = ["rg", "{-args...}"]
        title = "ripgrep"
        description = """
        Search files.
        Usage: rg PATTERN [PATH]
        Needs version 13 or newer."""
        tags = ["search code"]

        [commands.count]
        command = ["wc", "-l", "{file}"]
        read_only = true

        [commands.list]
        command = ["ls", "-l", "{folder?}"]
        args = { folder = "string" }
        "#);
        document.check(&Overrides::default(), &env).unwrap();
        let (names, remarks) = receive(&mut document, &entries[..1]);
        assert!(names.is_empty());
        assert_eq!(remarks, ["rg: not imported: the command exists"]);
    }

    #[test]
    fn other_files_are_no_manifest() {
        assert!(read_text("[]").is_none());
        assert!(read_text(r#"{"mcpServers": {}}"#).is_none());
        assert!(read_text(r#"[{"name": "x", "command": "npx"}]"#).is_none());
        assert!(read("cursor").is_none());
    }
}
