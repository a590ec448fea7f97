//! Servers in a pasted text, or in a file of an unknown client, in any shape.

use std::path::Path;

use serde_json::Value;

use crate::{
    Home, bundle,
    client_file::ClientFile,
    disk::{read_open, read_stream},
    document::{self, Format, SyntaxError},
    entry::{ServerEntry, is_marked_disabled, refuse_many},
    find,
    translate::{is_server, names_server, names_start},
};

/// The shapes that are understood, for the error message.
pub const SHAPES: &str = "`mcpServers`, `servers`, `mcp`, `mcp_servers`, `context_servers` or `extensions` with one entry per name, as JSON, TOML or YAML; a single entry with `command` or `url`; a bundle's `manifest.json`";

/// The reason why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not JSON, TOML or YAML.
    #[error("cannot be read: {0}")]
    Syntax(#[from] SyntaxError),
    /// The text lists no server in any known shape.
    #[error("no server in it; supported formats: {SHAPES}")]
    NoServer,
    /// It is a command that adds a server to a client.
    #[error(
        "a command, not a list of servers; instead of `{0} ...` run `proxy add NAME -- COMMAND` or \
        `proxy add NAME URL`, with the same `--env` and `--header`"
    )]
    Command(&'static str),
    /// It describes a server of a registry.
    #[error(
        "a registry's `server.json`: add its server with `proxy add registry:NAME --from FILE`"
    )]
    Listed,
    /// It is a packed bundle.
    #[error("a packed bundle: unpack it (`unzip FILE -d FOLDER`), and import FOLDER/manifest.json")]
    Packed,
    /// The file cannot be opened.
    #[error("{0}")]
    Unreadable(String),
}

/// Returns the servers that a file lists. A file of a known client is read as that client reads it. An
/// error does not name the file: its caller does.
pub fn read_any_file(path: &Path, home: &Home) -> Result<Vec<ServerEntry>, ReadError> {
    let folder = path
        .parent()
        .filter(|it| *it != "")
        .unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let ending = path.extension().unwrap_or_default();
    if ["mcpb", "dxt"]
        .iter()
        .any(|it| ending.eq_ignore_ascii_case(it))
    {
        return Err(ReadError::Packed);
    }
    let home = home.clone().with_project(&folder);
    let whole = path.canonicalize().ok();
    let same = |found: &ClientFile| {
        found.path == path || whole.is_some() && found.path.canonicalize().ok() == whole
    };
    let known = find::find(&home).into_iter();
    let files = known.flat_map(|installed| installed.files);
    let mut entries = Vec::new();
    for found in files.filter(same) {
        let read = found.read_entries(&home);
        entries.extend(read.map_err(ReadError::Unreadable)?);
    }
    if !entries.is_empty() {
        return Ok(entries);
    }
    let text = read_open(path).map_err(ReadError::Unreadable)?;
    let mut entries = read_text(&text)?;
    for entry in &mut entries {
        entry.project = Some(folder.clone());
    }
    Ok(entries)
}

/// Returns the servers in pasted or piped text.
pub fn read_piped(stream: impl std::io::Read) -> Result<Vec<ServerEntry>, ReadError> {
    read_text(&read_stream(stream, None).map_err(ReadError::Unreadable)?)
}

/// Returns the servers in a text.
pub fn read_text(text: &str) -> Result<Vec<ServerEntry>, ReadError> {
    let words: Vec<&str> = text
        .trim_start_matches(['$', ' '])
        .split_whitespace()
        .take(3)
        .collect();
    let words = words.join(" ");
    if let Some(command) = ADD_COMMANDS.into_iter().find(|it| *it == words) {
        return Err(ReadError::Command(command));
    }
    let whole = read_value(text)?;
    if is_listed(&whole) {
        return Err(ReadError::Listed);
    }
    let entries = entries_of(&whole);
    refuse_many(&entries).map_err(ReadError::Unreadable)?;
    if entries.is_empty() {
        return Err(ReadError::NoServer);
    }
    Ok(entries)
}

/// Commands of clients that add a server as `proxy add` does.
const ADD_COMMANDS: [&str; 5] = [
    "claude mcp add",
    "codex mcp add",
    "gemini mcp add",
    "amp mcp add",
    "copilot mcp add",
];

/// Parses the text in the first format that fits. JSON members without their braces are accepted too.
fn read_value(text: &str) -> Result<Value, SyntaxError> {
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    let json = document::read(trimmed, Format::Json);
    let is_meant = trimmed.starts_with('{');
    if is_meant || matches!(json, Ok(Value::Object(_) | Value::Array(_))) {
        return json;
    }
    if trimmed.starts_with('"') {
        let braced = format!("{{{}}}", trimmed.trim_end_matches(','));
        if let Ok(value) = document::read(&braced, Format::Json) {
            return Ok(value);
        }
    }
    if let Ok(Value::Object(table)) = document::read(trimmed, Format::Toml)
        && !table.is_empty()
    {
        return Ok(Value::Object(table));
    }
    document::read(trimmed, Format::Yaml)
}

/// Keys that contain servers, at any depth of a file; true if they contain nothing else.
const HOLDERS: [(&[&str], bool); 8] = [
    (&["mcpServers"], true),
    (&["mcp", "servers"], true),
    (&["mcp"], false),
    (&["mcp_servers"], true),
    (&["context_servers"], true),
    (&["amp.mcpServers"], true),
    (&["servers"], true),
    (&["extensions"], false),
];

/// Returns true if a value is a `server.json`, or an element of a registry's list that has one.
fn is_listed(whole: &Value) -> bool {
    let server = whole.get("server").unwrap_or(whole);
    let has_ways = ["packages", "remotes"]
        .iter()
        .any(|key| server[*key].is_array());
    server["name"].is_string() && has_ways
}

fn entries_of(whole: &Value) -> Vec<ServerEntry> {
    if bundle::is_manifest(whole) {
        return vec![bundle::entry_of(whole, None)];
    }
    let inputs = [&whole["inputs"], &whole["mcp"]["inputs"]].into_iter();
    let inputs = inputs.filter_map(Value::as_array).flatten();
    let inputs: Vec<Value> = inputs.cloned().collect();
    let holders = HOLDERS.iter().filter_map(|(path, is_only)| {
        let holder = path.iter().try_fold(whole, |value, key| value.get(key))?;
        Some((holder, *is_only))
    });
    let projects = whole["projects"].as_object();
    let local = projects.into_iter().flat_map(|projects| projects.values());
    let local = local.filter_map(|project| Some((project.get("mcpServers")?, true)));
    let mut entries: Vec<ServerEntry> = holders.chain(local).flat_map(read_holder).collect();
    if entries.is_empty() {
        entries = match read_holder((whole, false)) {
            // One of several servers may have the name of a nested table, such as `server`.
            many if many.len() > 1 && !names_start(whole) => many,
            _ if names_server(whole) => vec![named(whole)],
            many => many,
        };
    }
    for entry in &mut entries {
        entry.inputs.clone_from(&inputs);
    }
    entries
}

/// Returns the entries of a holder. One that contains nothing else has unreadable entries too, which are
/// reported.
fn read_holder((holder, is_only): (&Value, bool)) -> Vec<ServerEntry> {
    let one = |(name, value): (&String, &Value)| {
        (is_only || is_server(name, value, &["servers"])).then(|| ServerEntry {
            is_off: is_marked_disabled(value),
            ..ServerEntry::pasted(name, value.clone())
        })
    };
    match holder {
        Value::Object(members) => members.iter().filter_map(one).collect(),
        Value::Array(items) => items
            .iter()
            .filter(|item| is_only || names_server(item))
            .map(named)
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns an entry without a key, whose name is in its value or empty.
fn named(value: &Value) -> ServerEntry {
    let own = ["name", "id", "title"]
        .into_iter()
        .find_map(|key| value.get(key)?.as_str());
    ServerEntry {
        is_off: is_marked_disabled(value),
        ..ServerEntry::pasted(own.unwrap_or_default(), value.clone())
    }
}

#[cfg(test)]
mod tests;
