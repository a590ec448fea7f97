//! The fields of an entry, under the various names that clients use.

use serde_json::Value;

use crate::entry::ServerEntry;

/// The fields of an entry in their original syntax.
#[derive(Debug, Default)]
pub(super) struct EntryFields {
    pub(super) command: Option<String>,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    /// Variables whose values the client stores elsewhere.
    pub(super) env_needed: Vec<String>,
    pub(super) inherit_env: Vec<String>,
    pub(super) env_file: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) url: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    /// Headers whose values are variables.
    pub(super) header_variables: Vec<(String, String)>,
    /// True if the variable of `Authorization` contains the token alone.
    pub(super) is_bearer: bool,
    pub(super) timeout: Option<f64>,
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) remarks: Vec<String>,
}

const COMMANDS: [&str; 2] = ["command", "cmd"];
const URLS: [&str; 5] = ["url", "httpUrl", "serverUrl", "uri", "endpoint"];

/// Returns true if an entry has a command or an address.
pub(crate) fn names_server(value: &Value) -> bool {
    let says = |key: &&str| match value.get(key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(words)) => *key != "url" && words.first().is_some_and(Value::is_string),
        _ => false,
    };
    let (commands, urls) = (COMMANDS.iter().any(says), URLS.iter().any(says));
    // `command` of an editor's settings may be anything; a server of Zed may be one table deeper.
    commands
        || urls
        || value
            .get("command")
            .is_some_and(|it| it.get("path").is_some())
}

/// Reads an entry. The error is the reason why the entry cannot be started.
pub(super) fn read(entry: &ServerEntry) -> Result<EntryFields, String> {
    let value = &entry.value;
    if !value.is_object() {
        return Err("its entry is not a table".to_owned());
    }
    let kind = text(value, &["type", "transport", "source"]).unwrap_or_default();
    refuse_kind(&kind, value, &entry.origin())?;
    let mut fields = EntryFields {
        timeout: timeout(value),
        ..EntryFields::default()
    };
    read_tools(value, &mut fields);
    let url = text(value, &URLS);
    let (command, args) = read_command(value);
    let is_remote = ["http", "sse", "streamable", "remote"]
        .iter()
        .any(|it| kind.contains(it));
    match (command, url) {
        (Some(_), Some(url)) if is_remote => read_remote(url, value, &mut fields)?,
        (Some(command), _) => read_local(command, args, value, &mut fields),
        (None, Some(url)) => read_remote(url, value, &mut fields)?,
        (None, None) => return Err("it names neither `command` nor `url`".to_owned()),
    }
    if value
        .get("oauth")
        .or_else(|| value.get("auth"))
        .is_some_and(Value::is_object)
    {
        fields
            .remarks
            .push("its OAuth client is not imported".to_owned());
    }
    Ok(fields)
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

fn text(value: &Value, keys: &[&str]) -> Option<String> {
    let found = keys.iter().find_map(|key| value.get(key)?.as_str());
    found.filter(|text| !text.is_empty()).map(str::to_owned)
}

fn list(value: &Value, keys: &[&str]) -> Vec<String> {
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

fn pairs(value: &Value, keys: &[&str]) -> Vec<(String, String)> {
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
        Some(Value::Object(inner)) => {
            let inner = Value::Object(inner.clone());
            (text(&inner, &["path"]), list(&inner, &["args"]))
        }
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
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                if !in_word {
                    words.push(String::new());
                }
                in_word = true;
            }
            (c, None) if c.is_whitespace() => in_word = false,
            (c, _) => {
                if !in_word {
                    words.push(String::new());
                }
                in_word = true;
                words.last_mut()?.push(c);
            }
        }
    }
    let (command, args) = words.split_first()?;
    Some((command.clone(), args.to_vec()))
}

fn read_local(command: String, args: Vec<String>, value: &Value, fields: &mut EntryFields) {
    fields.command = Some(command);
    fields.args = args;
    let inner = value
        .get("command")
        .filter(|it| it.is_object())
        .unwrap_or(value);
    fields.env = pairs(inner, &["env", "environment", "envs"]);
    fields.env_needed = list(value, &["env_keys"]);
    fields
        .env_needed
        .retain(|name| fields.env.iter().all(|(set, _)| set != name));
    let inherited = value
        .get("env_vars")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let name = |it: &Value| {
        it.as_str()
            .or_else(|| it.get("name")?.as_str())
            .map(str::to_owned)
    };
    fields.inherit_env = inherited.filter_map(name).collect();
    fields.env_file = text(value, &["envFile", "env_file"]);
    fields.cwd = text(value, &["cwd", "working_directory", "workingDirectory"]);
}

fn read_remote(url: String, value: &Value, fields: &mut EntryFields) -> Result<(), String> {
    if url.starts_with("unix:") || url.starts_with("pipe:") {
        return Err("it uses a local socket, which is not supported".to_owned());
    }
    fields.url = Some(url);
    fields.headers = pairs(value, &["headers", "http_headers"]);
    if fields.headers.is_empty() {
        let options = value.get("requestOptions").unwrap_or(&Value::Null);
        fields.headers = pairs(options, &["headers"]);
    }
    fields.header_variables = pairs(value, &["env_http_headers"]);
    if let Some(variable) = text(value, &["bearer_token_env_var", "api_key_env"]) {
        fields
            .header_variables
            .push(("Authorization".to_owned(), variable));
        fields.is_bearer = true;
    }
    if let Some(token) = text(value, &["bearer_token", "apiKey"]) {
        fields
            .headers
            .push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    for helper in ["http_headers_helper", "headersHelper"] {
        if value.get(helper).is_some() {
            let remark =
                format!("`{helper}` is a program that generates headers: it is not imported");
            fields.remarks.push(remark);
        }
    }
    Ok(())
}

fn timeout(value: &Value) -> Option<f64> {
    let seconds = ["tool_timeout_sec", "timeout_s"]
        .into_iter()
        .find_map(|key| value.get(key)?.as_f64());
    seconds.or_else(|| value.get("timeout")?.as_f64())
}

fn read_tools(value: &Value, fields: &mut EntryFields) {
    fields.allow = list(
        value,
        &[
            "includeTools",
            "enabled_tools",
            "available_tools",
            "tools",
            "allowedTools",
        ],
    );
    if fields.allow.iter().any(|name| name == "*") {
        fields.allow.clear();
    }
    fields.deny = list(
        value,
        &[
            "excludeTools",
            "disabled_tools",
            "disabledTools",
            "blockedTools",
        ],
    );
}
