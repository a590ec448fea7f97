//! Secrets in clear text in the file, and secrets that the file names and that are not stored.

use ::secrets::{Reference, Store};
use fleet::Template;
use gateway::{Settings, TraceSettings};
use printable::{find_secrets, find_secrets_in_arguments};

use super::Check;

/// Finds keys whose text looks like a secret and is no `${VAR}`. The text itself is never shown.
pub fn check_secrets(settings: &Settings) -> Vec<Check> {
    let mut checks = Vec::new();
    for server in &settings.servers {
        let name = &server.spec.name;
        let texts: Vec<(String, String)> = (server.spec.launch.texts().into_iter())
            .filter_map(|(key, text)| Some((key, text.plain()?)))
            .collect();
        let of_args = texts.iter().filter(|(key, _)| key == "args");
        let in_args = find_secrets_in_arguments(of_args.map(|(_, text)| text.as_str()));
        let is_clear = |(key, text): &&(String, String)| {
            let named = key.strip_prefix("env.").or(key.strip_prefix("headers."));
            key != "args" && !find_secrets(text, named).is_empty()
        };
        let args = in_args
            .iter()
            .any(|found| !found.is_empty())
            .then_some("args");
        let others = texts.iter().filter(is_clear).map(|(key, _)| key.as_str());
        let mut keys: Vec<&str> = args.into_iter().chain(others).collect();
        keys.dedup();
        for key in keys {
            let found = format!("`{key}` contains a secret in clear text");
            let check = Check::warning(format!("server {name}"), found);
            let variable = key.strip_prefix("env.").unwrap_or("VARIABLE");
            checks.push(check.then(format!(
                "proxy secret set {variable}, and write `${{secret:{variable}}}` there"
            )));
        }
    }
    checks
}

/// Finds secrets that servers and `[traces]` name and that are not stored; and checks that the stored
/// ones can be read.
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

/// Templates that are filled in at run time, each with the server or table that it belongs to.
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
