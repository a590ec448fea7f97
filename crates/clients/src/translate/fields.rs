//! The fields of an entry, under the various names that clients use.

use serde_json::Value;

use crate::entry::ServerEntry;

/// The start of an entry, in its original syntax.
pub(super) enum EntryLaunch {
    /// The address.
    Remote(String),
    /// The program and its arguments.
    Local(String, Vec<String>),
}

const COMMANDS: [&str; 2] = ["command", "cmd"];
const URLS: [&str; 5] = ["url", "httpUrl", "serverUrl", "uri", "endpoint"];

/// Members that hold the start of a server in some files.
const NESTED: [&str; 4] = ["transport", "connection", "config", "server"];

/// Returns an entry with the members of a nested table (`"transport": {"type": ..., "url": ...}`) beside
/// the others, which count first. `None` without such a table. The error is the reason why the meaning
/// is not clear.
pub(super) fn flatten(value: &Value) -> Result<Option<Value>, String> {
    let mut nested = NESTED.into_iter().filter(|key| {
        let inner = value.get(key);
        inner.is_some_and(|inner| inner.is_object() && names_start(inner))
    });
    let Some(key) = nested.next() else {
        return Ok(None);
    };
    match (names_start(value), nested.next()) {
        (false, None) => {}
        (true, _) if key == "transport" => {
            return Err(format!("it names a server twice, beside and in `{key}`"));
        }
        // Settings of a server may have an address of something else.
        (true, _) => return Ok(None),
        (false, Some(other)) => {
            return Err(format!(
                "it names a server twice, in `{key}` and in `{other}`"
            ));
        }
    }
    let mut flat = value.clone();
    if let Some(members) = flat.as_object_mut()
        && let Some(Value::Object(inner)) = members.remove(key)
    {
        for (name, value) in inner {
            members.entry(name).or_insert(value);
        }
    }
    Ok(Some(flat))
}

/// Returns true if an entry has a command or an address, or a table that has one.
pub(crate) fn names_server(value: &Value) -> bool {
    let is_nested = |key: &&str| value.get(key).is_some_and(names_start);
    names_start(value) || NESTED.iter().any(is_nested)
}

/// Returns true if a member of a table of servers is one, though the table has other members too. One
/// whose name is `inner` is a table of servers unless it has a command or an address itself: it may list
/// a server with the name of a nested table, such as `config`.
pub(crate) fn is_server(name: &str, value: &Value, inner: &[&str]) -> bool {
    names_start(value) || !inner.contains(&name) && names_server(value)
}

/// Returns true if an entry itself has a command or an address.
pub(crate) fn names_start(value: &Value) -> bool {
    let says = |key: &&str| match value.get(key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(words)) => *key != "url" && words.first().is_some_and(Value::is_string),
        _ => false,
    };
    // `command` of an editor's settings may be anything; a server of Zed may be one table deeper.
    COMMANDS.iter().chain(&URLS).any(says) || value.pointer("/command/path").is_some()
}

/// Reads the start of an entry. The error is the reason why the entry cannot be started.
pub(super) fn read_launch(entry: &ServerEntry) -> Result<EntryLaunch, String> {
    let value = &entry.value;
    if !value.is_object() {
        return Err("its entry is not a table".to_owned());
    }
    let kind = text(value, &["type", "transport", "source"]).unwrap_or_default();
    refuse_kind(&kind, value, &entry.origin())?;
    let url = text(value, &URLS);
    let (command, args) = read_command(value);
    let is_remote = ["http", "sse", "streamable", "remote"]
        .iter()
        .any(|it| kind.contains(it));
    match (command, url) {
        (Some(command), url) if url.is_none() || !is_remote => {
            Ok(EntryLaunch::Local(command, args))
        }
        (_, Some(url)) if url.starts_with("unix:") || url.starts_with("pipe:") => {
            Err("it uses a local socket, which is not supported".to_owned())
        }
        (_, Some(url)) => Ok(EntryLaunch::Remote(url)),
        (_, None) => Err("it names neither `command` nor `url`".to_owned()),
    }
}

fn refuse_kind(kind: &str, value: &Value, origin: &str) -> Result<(), String> {
    match kind {
        "builtin" | "platform" => Err(format!("it is a part of {origin} itself")),
        "frontend" | "inline_python" => Err(format!("only {origin} can run it (`{kind}`)")),
        "extension" if !names_server(value) => Err(format!("it is an extension of {origin}")),
        "ws" | "websocket" => Err("it uses WebSocket, which is not supported".to_owned()),
        _ => Ok(()),
    }
}

pub(super) fn text(value: &Value, keys: &[&str]) -> Option<String> {
    let found = keys.iter().find_map(|key| value.get(key)?.as_str());
    found.filter(|text| !text.is_empty()).map(str::to_owned)
}

pub(super) fn list(value: &Value, keys: &[&str]) -> Vec<String> {
    let found = keys.iter().find_map(|key| value.get(key)?.as_array());
    found.into_iter().flatten().filter_map(scalar).collect()
}

/// Converts a scalar to text: some clients write numbers and booleans without quotes.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

pub(super) fn pairs(value: &Value, keys: &[&str]) -> Vec<(String, String)> {
    let found = keys.iter().find_map(|key| value.get(key)?.as_object());
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), scalar(value)?));
    found.into_iter().flatten().filter_map(pair).collect()
}

/// Returns the program and its arguments: separate, in one list, or in one text.
fn read_command(value: &Value) -> (Option<String>, Vec<String>) {
    let args = list(value, &["args", "arguments"]);
    let command = COMMANDS.iter().find_map(|key| value.get(key));
    match command {
        Some(Value::Array(words)) => {
            let mut words = words.iter().filter_map(scalar);
            let command = words.next();
            (command, words.chain(args).collect())
        }
        Some(Value::String(text)) if text.is_empty() => (None, args),
        Some(Value::String(text)) => match split_line(text) {
            Some((command, words)) => (Some(command), [words, args].concat()),
            None => (Some(text.clone()), args),
        },
        // Zed's older form.
        Some(inner @ Value::Object(_)) => (text(inner, &["path"]), list(inner, &["args"])),
        _ => (None, args),
    }
}

/// Splits a command line in one text; `None` if the text is a program whose path contains a space.
fn split_line(line: &str) -> Option<(String, Vec<String>)> {
    let first = line.split_whitespace().next()?;
    if first == line || first.contains(['/', '\\', '$']) {
        return None;
    }
    let mut words: Vec<String> = Vec::new();
    let (mut quote, mut in_word) = (None, false);
    for c in line.chars() {
        if quote.is_none() && c.is_whitespace() {
            in_word = false;
            continue;
        }
        if !in_word {
            words.push(String::new());
            in_word = true;
        }
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => words.last_mut()?.push(c),
        }
    }
    let (command, args) = words.split_first()?;
    Some((command.clone(), args.to_vec()))
}

/// Returns the variables that an entry passes on.
pub(super) fn inherited(value: &Value) -> Vec<String> {
    let inherited = value.get("env_vars").and_then(Value::as_array);
    let name = |it: &Value| {
        let name = it.as_str().or_else(|| it.get("name")?.as_str());
        name.map(str::to_owned)
    };
    inherited.into_iter().flatten().filter_map(name).collect()
}

pub(super) fn timeout(value: &Value) -> Option<f64> {
    let seconds = ["tool_timeout_sec", "timeout_s"]
        .into_iter()
        .find_map(|key| value.get(key)?.as_f64());
    seconds.or_else(|| value.get("timeout")?.as_f64())
}

/// The keys of lists of tools.
pub(super) const ALLOWED: [&str; 5] = [
    "includeTools",
    "enabled_tools",
    "available_tools",
    "tools",
    "allowedTools",
];
pub(super) const DENIED: [&str; 4] = [
    "excludeTools",
    "disabled_tools",
    "disabledTools",
    "blockedTools",
];
