//! The layers and their order: defaults, the file, variables, flags.

use std::{collections::BTreeMap, fmt::Display};

use figment::{Figment, providers::Serialized};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{
    Environment, Mistake, MistakePlace, Overrides,
    keys::{KEYS, ValueKind},
    mistake::{Fault, key_of},
    paths::from_current_folder,
    raw::{RawConfig, RawServer},
    rules,
};

/// The valid values of one layer.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    pub(super) values: Map<String, Value>,
    /// The place of each value, by its key.
    pub(super) places: BTreeMap<String, MistakePlace>,
    pub(super) mistakes: Vec<Mistake>,
    /// The former keys that it sets.
    pub(super) removed: Vec<Mistake>,
}

impl Layer {
    /// Stores a value, or its mistake.
    pub(super) fn set(
        &mut self,
        place: MistakePlace,
        path: &[impl AsRef<str>],
        read: Result<Value, Fault>,
    ) {
        let key = key_of(path);
        match read {
            Ok(value) => {
                put(&mut self.values, path, value);
                self.places.insert(key, place);
            }
            Err(fault) => self.mistakes.push(fault.at(place, key)),
        }
    }

    pub(super) fn sets(&self, path: &[&str]) -> bool {
        let top = self.values.get(path[0]);
        let found = path[1..].iter().fold(top, |value, name| value?.get(name));
        found.is_some()
    }

    /// The names of the servers in the order of the file.
    pub(super) fn servers(&self) -> Vec<&str> {
        let servers = self.values.get("servers").and_then(Value::as_object);
        let names = servers.into_iter().flat_map(Map::keys);
        names.map(String::as_str).collect()
    }
}

fn put(values: &mut Map<String, Value>, path: &[impl AsRef<str>], value: Value) {
    let Some((last, tables)) = path.split_last() else {
        return;
    };
    let table = tables.iter().try_fold(values, |values, name| {
        let inner = values.entry(name.as_ref());
        inner.or_insert_with(|| Map::new().into()).as_object_mut()
    });
    if let Some(table) = table {
        table.insert(last.as_ref().to_owned(), value);
    }
}

/// Returns the values in effect: the layers over the defaults, which are repeated for each server. figment
/// merges all but servers, whose merge by it took most of the time of a start (0025).
pub(super) fn merge(layers: [Layer; 3]) -> Result<Map<String, Value>, Vec<Mistake>> {
    let mut figment = Figment::from(Serialized::defaults(defaults_of("")));
    let mut servers = Value::Object(Map::new());
    for mut layer in layers {
        if let Some(own) = layer.values.remove("servers") {
            lay_over(&mut servers, own);
        }
        figment = figment.merge(Serialized::defaults(layer.values));
    }
    let defaults = Value::Object(defaults_of("servers.NAME."));
    for server in servers
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        let own = std::mem::replace(server, defaults.clone());
        lay_over(server, own);
    }
    let merged = figment.extract::<Map<String, Value>>();
    let mut merged = merged.map_err(|error| vec![differ(&error, String::new())])?;
    merged.insert("servers".to_owned(), servers);
    Ok(merged)
}

/// Tables are merged, all other values are replaced.
fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                match below.get_mut(&key) {
                    Some(below) => lay_over(below, value),
                    None => drop(below.insert(key, value)),
                }
            }
        }
        (below, above) => *below = above,
    }
}

pub(super) fn read(layers: [Layer; 3]) -> Result<RawConfig, Vec<Mistake>> {
    let mut merged = merge(layers)?;
    let servers = merged.remove("servers");
    let raw = RawConfig::deserialize(Value::Object(merged));
    let mut raw = raw.map_err(|error| vec![differ(&error, String::new())])?;
    if let Some(Value::Object(servers)) = servers {
        for (name, server) in servers {
            let read = RawServer::deserialize(server);
            let read = read.map_err(|error| vec![differ(&error, format!("servers.{name}"))])?;
            raw.servers.push((name, read));
        }
    }
    Ok(raw)
}

/// The values are checked already, so a failure to read them is a difference between the table of keys and
/// the raw types; it is returned as an error, without a panic.
fn differ(error: &dyn Display, key: String) -> Mistake {
    Fault::bare(error.to_string()).at(MistakePlace::File, key)
}

pub(super) fn read_flags(overrides: &Overrides, env: &Environment) -> Layer {
    let mut layer = Layer::default();
    if let Some(log) = &overrides.log {
        let read = rules::check(&ValueKind::Filter, log).map(|()| log.as_str().into());
        layer.set(MistakePlace::Flag("--log"), &["log"], read);
    }
    if let Some(folder) = &overrides.state_dir {
        let read = from_current_folder(folder, env).map(Value::String);
        layer.set(MistakePlace::Flag("--state-dir"), &["state_dir"], read);
    }
    layer
}

/// Returns the defaults of the keys that begin with `table`, without those of a name in it. They are
/// numbers, texts and booleans, which TOML and JSON write alike.
fn defaults_of(table: &str) -> Map<String, Value> {
    let mut values = Map::new();
    for key in KEYS {
        let below = key.path.strip_prefix(table);
        let is_of_name = |path: &str| path.contains("NAME") || path.contains("TOOL");
        // A table `cluster` makes the process a node, so its defaults are those of its type.
        let below = below.filter(|path| !is_of_name(path) && key.table() != "cluster");
        if let (Some(path), Some(default)) = (below, key.default) {
            let path: Vec<&str> = path.split('.').collect();
            let value = serde_json::from_str(default).expect("a test reads every default");
            put(&mut values, &path, value);
        }
    }
    values
}
