//! `PROXY_*` variables: a layer of values, each checked like a value of the file.

use std::ffi::OsStr;

use fleet::TIMEOUT_DEFAULT;
use serde_json::{Map, Value};
use tool::fold;

use super::{
    Environment, Mistake, MistakePlace,
    keys::{self, KEYS, KeyMatch, KeySpec, ValueKind},
    layers::Layer,
    mistake::{Fault, key_of, shown},
    paths::from_current_folder,
    rules::{self, Written},
};

const PREFIX: &str = "PROXY_";

/// `__` separates the parts of a key.
const DOT: &str = "__";

pub(super) fn read(env: &Environment, file: &Layer) -> Layer {
    let mut layer = Layer::default();
    for (name, value) in env.starting(PREFIX) {
        let place = MistakePlace::Variable(name.to_owned());
        match find_target(name, &file.servers()) {
            Ok(None) => {}
            Ok(Some(target)) => match target.key {
                Ok(key) => layer.set(place, &target.path, read_one(key, value, env)),
                Err(removed) => layer.removed.push(removed.at(place, key_of(&target.path))),
            },
            Err(fault) => layer.mistakes.push(fault.at(place, "")),
        }
    }
    let limits = check_limits(&layer.values, &file.values);
    layer.mistakes.extend(limits);
    layer
}

/// The limits in the file are consistent; a variable may contradict those in the file.
fn check_limits(variables: &Map<String, Value>, file: &Map<String, Value>) -> Vec<Mistake> {
    let Some(Value::Object(servers)) = variables.get("servers") else {
        return Vec::new();
    };
    let mistake = |(server, set): (&String, &Value)| {
        let filed = file.get("servers").and_then(|all| all.get(server));
        let of = |name: &str| set.get(name).or_else(|| filed?.get(name))?.as_u64();
        let set_here = |name: &&str| set.get(name).is_some();
        let name = ["timeout_max_s", "timeout_s"].into_iter().find(set_here)?;
        let timeout = of("timeout_s").unwrap_or(TIMEOUT_DEFAULT.as_secs());
        let fault = rules::check_limits(timeout, of("timeout_max_s")?).err()?;
        let path = format!("servers.{server}.{name}");
        Some(fault.at(MistakePlace::Variable(variable_of(&path)), path))
    };
    servers.iter().filter_map(mistake).collect()
}

/// Returns the variable that sets a key; `NAME` is left for the reader to fill in.
pub(super) fn variable_of(path: &str) -> String {
    let name = path.replace('.', DOT).replace('-', "_");
    format!("{PREFIX}{}", name.to_uppercase())
}

/// The key that a variable sets; an error describes a former key.
struct Target {
    key: Result<&'static KeySpec, Fault>,
    path: Vec<String>,
}

/// Returns true if a variable has our prefix and could set no key whatever the file contains: other
/// programs use the prefix too.
pub fn is_of_another_program(variable: &str) -> bool {
    let Some(name) = variable.strip_prefix(PREFIX) else {
        return false;
    };
    let name = name.to_lowercase();
    match name.split_once(DOT) {
        Some((table, _)) => !keys::names("").contains(&table),
        None => !matches!(keys::find(&name), Some(KeyMatch::Value(key)) if key.variable),
    }
}

/// `None` for a variable that is not ours: other programs use the prefix too.
fn find_target(variable: &str, servers: &[&str]) -> Result<Option<Target>, Fault> {
    let name = variable
        .strip_prefix(PREFIX)
        .unwrap_or_default()
        .to_lowercase();
    let parts: Vec<&str> = name.split(DOT).collect();
    let ours = parts.len() > 1 && keys::names("").contains(&parts[0]);
    let (pattern, path) = match resolve(&parts, servers) {
        Ok(resolved) => resolved,
        Err(fault) if ours => return Err(fault),
        Err(_) => return Ok(None),
    };
    match keys::find(&pattern) {
        Some(KeyMatch::Value(key)) if key.variable => Ok(Some(Target { key: Ok(key), path })),
        Some(KeyMatch::Removed(replacement)) => {
            let key = Err(Fault::removed(replacement));
            Ok(Some(Target { key, path }))
        }
        Some(_) if ours => Err(Fault::new(
            "no variable sets this key",
            format!("set `{}` in the file", path.join(".")),
        )),
        None if ours => Err(explain_unknown(&pattern, &parts)),
        _ => Ok(None),
    }
}

/// Returns the pattern in the table of keys and the path in the file.
fn resolve(parts: &[&str], servers: &[&str]) -> Result<(String, Vec<String>), Fault> {
    let mut pattern = String::new();
    let mut path = Vec::new();
    for &part in parts {
        let name = match pattern.as_str() {
            "servers" => find_server(part, servers)?,
            _ => part.to_owned(),
        };
        pattern = keys::child(&pattern, &name).unwrap_or_else(|| format!("{pattern}.?"));
        path.push(name);
    }
    Ok((pattern, path))
}

/// A variable's name cannot contain `-`, so `_` is used instead.
fn find_server(part: &str, servers: &[&str]) -> Result<String, Fault> {
    let same = |name: &&&str| fold(name) == fold(part);
    let found = servers.iter().find(same).map(ToString::to_string);
    found.ok_or_else(|| {
        let near = keys::nearest(part, servers.iter().copied());
        let hint = match (near, servers.is_empty()) {
            (Some(near), _) => {
                let written = near.replace('-', "_").to_uppercase();
                format!("did you mean `{PREFIX}SERVERS{DOT}{written}{DOT}...`?")
            }
            (None, true) => "the file has no servers; unset the variable".to_owned(),
            (None, false) => format!("servers of the file: `{}`", servers.join("`, `")),
        };
        Fault::new(format!("no server `{}`", shown(part)), hint)
    })
}

fn explain_unknown(pattern: &str, parts: &[&str]) -> Fault {
    let table = pattern.rsplit_once('.').map_or("", |(table, _)| table);
    let last = parts.last().copied().unwrap_or_default();
    let known: Vec<&KeySpec> = KEYS
        .iter()
        .filter(|key| key.variable && key.table() == table)
        .collect();
    let head = parts[..parts.len() - 1].join(DOT).to_uppercase();
    let written = |name: &str| format!("`{PREFIX}{head}{DOT}{}`", name.to_uppercase());
    let hint = match keys::nearest(last, known.iter().map(|key| key.name())) {
        Some(near) => format!("did you mean {}?", written(near)),
        None if known.is_empty() => "unset it".to_owned(),
        None => {
            let known: Vec<String> = known.iter().map(|key| written(key.name())).collect();
            format!("known: {}", known.join(", "))
        }
    };
    Fault::new("does not set a known key", hint)
}

fn read_one(key: &KeySpec, value: &OsStr, env: &Environment) -> Result<Value, Fault> {
    let text = value.to_str().ok_or_else(|| Fault::bare("not UTF-8"))?;
    let read = rules::read(&key.kind, read_written(&key.kind, text))?;
    match key.kind {
        ValueKind::StateDir => from_current_folder(text.as_ref(), env).map(Value::String),
        _ => Ok(read),
    }
}

/// Every variable is text, so the key determines its type.
fn read_written<'a>(kind: &ValueKind, text: &'a str) -> Written<'a> {
    let trimmed = text.trim();
    match kind {
        ValueKind::Switch => trimmed.parse().map_or(Written::Text(text), Written::Switch),
        ValueKind::Count(_) => {
            let number = trimmed.parse().map(Ok);
            number.map_or(Written::Text(text), Written::Number)
        }
        _ => Written::Text(text),
    }
}
