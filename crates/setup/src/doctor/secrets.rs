//! Secrets that stand in the file as they are, and those that the file names and nobody keeps.

use ::secrets::{Reference, Store};
use fleet::Template;
use gateway::{Settings, TraceSettings};

use super::Check;

/// Keys whose text seems to be a secret, and no `${VAR}`. The text itself is never told.
pub fn check_secrets(settings: &Settings) -> Vec<Check> {
    let mut checks = Vec::new();
    for server in &settings.servers {
        let name = &server.spec.name;
        let texts: Vec<(String, String)> = (server.spec.launch.texts().into_iter())
            .filter_map(|(key, text)| Some((key, text.plain()?)))
            .collect();
        let before = std::iter::once("").chain(texts.iter().map(|(_, text)| text.as_str()));
        let mut keys: Vec<&str> = (texts.iter().zip(before))
            .filter(|((key, text), before)| is_secret(key, text, before))
            .map(|((key, _), _)| key.as_str())
            .collect();
        keys.dedup();
        for key in keys {
            let found = format!("`{key}` holds a secret in clear");
            let check = Check::warning(format!("server {name}"), found);
            let variable = key.strip_prefix("env.").unwrap_or("VARIABLE");
            checks.push(check.then(format!(
                "proxy secret set {variable}, and write `${{secret:{variable}}}` there"
            )));
        }
    }
    checks
}

/// Secrets that servers and `[traces]` name and that are not kept; and whether those that are can be read at all.
pub fn check_kept_secrets(settings: &Settings) -> Vec<Check> {
    let store = Store::of(&settings.private_files());
    let kept = match store.list() {
        Ok(kept) => kept,
        Err(error) => return vec![Check::problem("secrets", error.to_string())],
    };
    let mut checks = Vec::new();
    for (about, text) in templates(settings) {
        for (_, reference) in text.references() {
            let Reference::Secret(name) = reference else {
                continue;
            };
            if kept.iter().all(|it| it != name.as_str()) {
                let check = Check::problem(&*about, format!("there is no secret `{name}`"));
                checks.push(check.then(format!("proxy secret set {name}")));
            }
        }
    }
    checks
}

/// What is filled in when it is needed, and what that is about.
fn templates(settings: &Settings) -> Vec<(String, &Template)> {
    let of_servers = settings.enabled().flat_map(|server| {
        let about = format!("server {}", server.spec.name);
        let texts = server.spec.launch.texts().into_iter();
        texts.map(move |(_, text)| (about.clone(), text))
    });
    let of_traces = settings.traces.iter().flat_map(TraceSettings::templates);
    let of_traces = of_traces.map(|text| ("traces".to_owned(), text));
    of_servers.chain(of_traces).collect()
}

/// Whether a text that stands after `before` in the arguments seems to be a secret.
fn is_secret(key: &str, text: &str, before: &str) -> bool {
    let says_secret = |name: &str| {
        let name = name.to_ascii_uppercase().replace('-', "_");
        let name = name.trim_start_matches('_');
        SECRET_NAMES.iter().any(|word| name.ends_with(word))
    };
    if text.len() < SECRET_CHARS_MIN {
        return false;
    }
    if SECRET_STARTS.iter().any(|start| text.contains(start)) {
        return true;
    }
    match key.split_once('.') {
        Some(("env", name)) => says_secret(name) && !text.contains(['/', ' ']),
        Some(("headers", name)) => says_secret(name) || name.eq_ignore_ascii_case("authorization"),
        _ if key == "args" => match text.split_once('=') {
            Some((flag, value)) => {
                flag.starts_with('-') && says_secret(flag) && value.len() >= SECRET_CHARS_MIN
            }
            None => before.starts_with('-') && !text.starts_with('-') && says_secret(before),
        },
        _ => has_login(text),
    }
}

/// Whether an address holds a password or a token.
fn has_login(url: &str) -> bool {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let login = authority.rsplit_once('@').map_or("", |(login, _)| login);
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut parts = query.split('&').filter_map(|part| part.split_once('='));
    let is_telling = |name: &str| {
        let name = name.to_ascii_uppercase().replace('-', "_");
        SECRET_NAMES.iter().any(|word| name.ends_with(word))
    };
    login.contains(':') || parts.any(|(name, value)| is_telling(name) && !value.is_empty())
}

/// Ends of names whose values are secrets.
const SECRET_NAMES: [&str; 9] = [
    "TOKEN",
    "API_KEY",
    "APIKEY",
    "SECRET",
    "PASSWORD",
    "PASS",
    "PASSWD",
    "ACCESS_KEY",
    "_KEY",
];

/// What well-known services let their tokens begin with.
const SECRET_STARTS: [&str; 8] = [
    "ghp_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "sk-ant-",
    "sk_live_",
    "AKIA",
];

/// Shorter texts are `true`, `stdio`, a number.
const SECRET_CHARS_MIN: usize = 8;
