//! Translates an entry to the form of our configuration: its variables, folders, programs and tools
//! keep their meaning, or a remark says what has changed.

mod bridge;
mod fields;
mod paths;
mod template;
mod words;

pub(crate) use fields::{is_server, names_server, names_start};

use serde_json::Value;

use self::{
    fields::{ALLOWED, DENIED, EntryLaunch, list, pairs, text},
    words::Words,
};
use crate::{
    Home, System,
    entry::ServerEntry,
    server::{ImportedServer, TranslatedServer},
    table::TimeUnit,
};

/// The longest timeout of a call in our configuration, in seconds.
const TIMEOUT_S_MAX: u64 = 86_400;

/// Returns the server of an entry; or the reason why it is left out.
pub fn translate(entry: &ServerEntry, home: &Home) -> Result<ImportedServer, String> {
    let original = entry;
    if entry.place.is_some() && entry.name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let flat = fields::flatten(&entry.value)?.map(|value| ServerEntry {
        value,
        ..entry.clone()
    });
    let entry = flat.as_ref().unwrap_or(original);
    let value = &entry.value;
    let launch = fields::read_launch(entry)?;
    let mut words = Words::new(entry, home);
    let mut server = match launch {
        EntryLaunch::Remote(url) => remote(&url, value, &mut words),
        EntryLaunch::Local(command, args) => local(&command, &args, value, &mut words),
    };
    let mut remarks = entry.remarks.clone();
    if server.command.is_some() {
        unwrap_shell(&mut server, home.system());
        bridge::unwrap(&mut server, &mut remarks);
    }
    server.is_per_client = words.is_per_client;
    if server.command.is_some() {
        paths::make_absolute(&mut server, entry, home, &mut remarks);
    }
    server.enabled = !entry.is_off;
    server.timeout_s = fields::timeout(value).and_then(|it| seconds(it, entry.timeout));
    let patterns = |keys: &[&str]| list(value, keys).iter().map(|it| escape_glob(it)).collect();
    server.allow = patterns(&ALLOWED);
    if server.allow.iter().any(|name| name == "*") {
        server.allow.clear();
    }
    server.deny = patterns(&DENIED);
    remarks.extend(words.remarks);
    let client = value.get("oauth").or_else(|| value.get("auth"));
    if client.is_some_and(Value::is_object) {
        remarks.push("its OAuth client is not imported".to_owned());
    }
    remarks.dedup();
    Ok(ImportedServer {
        server,
        entries: vec![original.clone()],
        remarks,
        needs: words.needs,
    })
}

fn remote(url: &str, value: &Value, words: &mut Words<'_>) -> TranslatedServer {
    let url = words.translate(url);
    let mut headers = pairs(value, &["headers", "http_headers"]);
    if headers.is_empty() {
        let options = value.get("requestOptions").unwrap_or(&Value::Null);
        headers = pairs(options, &["headers"]);
    }
    if let Some(token) = text(value, &["bearer_token", "apiKey"]) {
        headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    for (_, value) in &mut headers {
        *value = words.translate(value);
    }
    // Headers whose values are variables.
    let mut variables = pairs(value, &["env_http_headers"]);
    let bearer = text(value, &["bearer_token_env_var", "api_key_env"]);
    let is_bearer = bearer.is_some();
    variables.extend(bearer.map(|variable| ("Authorization".to_owned(), variable)));
    for (name, variable) in variables {
        let prefix = if is_bearer && name == "Authorization" {
            "Bearer "
        } else {
            ""
        };
        headers.push((name, format!("{prefix}${{{variable}}}")));
    }
    for helper in ["http_headers_helper", "headersHelper"] {
        if value.get(helper).is_some() {
            let remark =
                format!("`{helper}` is a program that generates headers: it is not imported");
            words.remarks.push(remark);
        }
    }
    TranslatedServer {
        url: Some(url),
        headers,
        ..TranslatedServer::default()
    }
}

fn local(command: &str, args: &[String], value: &Value, words: &mut Words<'_>) -> TranslatedServer {
    let command = words.translate(command);
    let args = args.iter().map(|arg| words.translate(arg)).collect();
    let inner = value.get("command").filter(|it| it.is_object());
    let mut env = pairs(inner.unwrap_or(value), &["env", "environment", "envs"]);
    for (_, value) in &mut env {
        *value = words.translate(value);
    }
    let mut needed = list(value, &["env_keys"]);
    needed.retain(|name| env.iter().all(|(set, _)| set != name));
    for name in needed {
        words.need(
            &name,
            "stored by its client in a place that the import does not read",
        );
        let variable = format!("${{{name}}}");
        env.push((name, variable));
    }
    let cwd = text(value, &["cwd", "working_directory", "workingDirectory"]);
    let cwd = cwd.map(|cwd| words.translate(&cwd));
    let mut server = TranslatedServer {
        command: Some(command),
        args,
        env,
        inherit_env: fields::inherited(value),
        cwd: cwd.filter(|cwd| cwd != "."),
        ..TranslatedServer::default()
    };
    if let Some(file) = text(value, &["envFile", "env_file"]) {
        let file = words.translate(&file);
        paths::read_env_file(&mut server, &file, words);
    }
    server
}

/// Windows starts `npx` by `cmd /c npx ...` or `wsl npx ...`; elsewhere it is `npx`.
fn unwrap_shell(server: &mut TranslatedServer, system: System) {
    if system == System::Windows {
        return;
    }
    let name = |command: &str| {
        let name = command
            .rsplit(['/', '\\'])
            .next()
            .unwrap_or(command)
            .to_ascii_lowercase();
        name.trim_end_matches(".exe")
            .trim_end_matches(".cmd")
            .to_owned()
    };
    let command = server.command.as_deref().unwrap_or_default();
    let first = server.args.first().map(String::as_str);
    let skipped = match (name(command).as_str(), first) {
        ("cmd", Some(arg)) if arg.eq_ignore_ascii_case("/c") => 1,
        ("wsl", Some("--" | "-e")) => 1,
        ("wsl", _) => 0,
        _ => {
            if ["npx.cmd", "npm.cmd", "uvx.exe", "node.exe"].contains(&command) {
                server.command = Some(name(command));
            }
            return;
        }
    };
    let is_program =
        |word: &String| !word.starts_with(['-', '/']) && !word.contains(char::is_whitespace);
    if server.args.get(skipped).is_some_and(is_program) {
        server.args.drain(..skipped);
        server.command = Some(name(&server.args.remove(0)));
    }
}

/// Returns the timeout in whole seconds, rounded up; `None` if its unit is not known.
fn seconds(timeout: f64, unit: Option<TimeUnit>) -> Option<u64> {
    let seconds = match unit {
        Some(TimeUnit::S) => timeout,
        Some(TimeUnit::Ms) => timeout / 1_000.0,
        None => return None,
    };
    let is_sensible = seconds.is_finite() && seconds > 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive, and a larger one becomes the largest number"
    )]
    is_sensible.then(|| (seconds.ceil() as u64).min(TIMEOUT_S_MAX))
}

/// Clients list names; our lists contain patterns.
fn escape_glob(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            '?' | '[' | ']' | '{' | '}' => format!("[{c}]"),
            c => c.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
