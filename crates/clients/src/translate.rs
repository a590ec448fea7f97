//! Translates an entry to the form of our configuration: its variables, folders, programs and tools
//! keep their meaning, or a remark says what has changed.

mod bridge;
mod fields;
mod paths;
mod secrets;
mod template;
mod words;

pub(crate) use fields::names_server;
pub use secrets::find_secrets;

use self::{fields::EntryFields, words::Words};
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
    let fields = fields::read(entry)?;
    let mut words = Words::new(entry, home);
    let mut server = match &fields.url {
        Some(_) => remote(&fields, &mut words),
        None => local(&fields, &mut words),
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
    server.timeout_s = fields
        .timeout
        .and_then(|timeout| seconds(timeout, entry.timeout));
    server.allow = fields.allow.iter().map(|name| escape_glob(name)).collect();
    server.deny = fields.deny.iter().map(|name| escape_glob(name)).collect();
    remarks.extend(words.remarks);
    remarks.extend(fields.remarks);
    remarks.dedup();
    Ok(ImportedServer {
        secrets: find_secrets(&server),
        server,
        entries: vec![entry.clone()],
        remarks,
        needs: words.needs,
    })
}

fn remote(fields: &EntryFields, words: &mut Words<'_>) -> TranslatedServer {
    let url = fields.url.as_deref().unwrap_or_default();
    let pair = |(name, value): &(String, String)| (name.clone(), words.translate(value));
    let mut headers: Vec<(String, String)> = fields.headers.iter().map(pair).collect();
    for (name, variable) in &fields.header_variables {
        let prefix = if name == "Authorization" && fields.is_bearer {
            "Bearer "
        } else {
            ""
        };
        headers.push((name.clone(), format!("{prefix}${{{variable}}}")));
    }
    TranslatedServer {
        url: Some(words.translate(url)),
        headers,
        ..TranslatedServer::default()
    }
}

fn local(fields: &EntryFields, words: &mut Words<'_>) -> TranslatedServer {
    let command = fields
        .command
        .as_deref()
        .map(|command| words.translate(command));
    let args = fields.args.iter().map(|arg| words.translate(arg)).collect();
    let mut env: Vec<(String, String)> = Vec::new();
    for (name, value) in &fields.env {
        env.push((name.clone(), words.translate(value)));
    }
    for name in &fields.env_needed {
        words.need(
            name,
            "stored by its client in a place that the import does not read",
        );
        env.push((name.clone(), format!("${{{name}}}")));
    }
    let cwd = fields.cwd.as_deref().map(|cwd| words.translate(cwd));
    let mut server = TranslatedServer {
        command,
        args,
        env,
        inherit_env: fields.inherit_env.clone(),
        cwd: cwd.filter(|cwd| cwd != "."),
        ..TranslatedServer::default()
    };
    if let Some(file) = &fields.env_file {
        let file = words.translate(file);
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
    let skipped = match name(server.command.as_deref().unwrap_or_default()).as_str() {
        "cmd"
            if server
                .args
                .first()
                .is_some_and(|arg| arg.eq_ignore_ascii_case("/c")) =>
        {
            1
        }
        "wsl" => usize::from(
            server
                .args
                .first()
                .is_some_and(|arg| arg == "--" || arg == "-e"),
        ),
        _ => {
            let command = server.command.as_deref().unwrap_or_default();
            if ["npx.cmd", "npm.cmd", "uvx.exe", "node.exe"].contains(&command) {
                server.command = Some(name(command));
            }
            return;
        }
    };
    let is_program =
        |word: &String| !word.starts_with(['-', '/']) && !word.contains(char::is_whitespace);
    if server.args.get(skipped).is_some_and(is_program) {
        let rest = server.args.split_off(skipped);
        server.command = rest.first().map(|program| name(program));
        server.args = rest[1..].to_vec();
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
        reason = "it is clamped before"
    )]
    is_sensible
        .then(|| seconds.ceil().clamp(1.0, 86_400.0) as u64)
        .map(|it| it.min(TIMEOUT_S_MAX))
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
