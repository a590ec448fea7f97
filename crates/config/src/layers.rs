//! The layers and their order: defaults, the file, variables, flags.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use figment::{Figment, Metadata, Profile, Provider, providers::Serialized, value::Dict};
use serde::{Deserialize as _, de::value::MapDeserializer};
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
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) values: Map<String, Value>,
    /// The place of each value, by its key. A default has none.
    pub(super) places: BTreeMap<String, MistakePlace>,
    pub(super) mistakes: Vec<Mistake>,
}

/// A layer as figment takes it. The interpolater of its metadata returns the place of a key.
struct LayerProvider {
    values: Map<String, Value>,
    places: Arc<BTreeMap<String, MistakePlace>>,
    file: PathBuf,
}

impl Provider for LayerProvider {
    fn metadata(&self) -> Metadata {
        let (places, file) = (Arc::clone(&self.places), self.file.clone());
        Metadata::default().interpolater(move |_, path| match places.get(&key_of(path)) {
            None => "default".to_owned(),
            Some(MistakePlace::File) => file.display().to_string(),
            Some(MistakePlace::Line { line, .. }) => format!("{}:{line}", file.display()),
            Some(MistakePlace::Variable(name)) => name.clone(),
            Some(MistakePlace::Flag(name)) => (*name).to_owned(),
            Some(MistakePlace::Shared(path)) => path.display().to_string(),
        })
    }

    fn data(&self) -> figment::Result<figment::value::Map<Profile, Dict>> {
        Serialized::defaults(&self.values).data()
    }
}

/// Puts the layers over the defaults. `file` is the path as it is shown.
pub(super) fn merge(servers: &[String], file: &Path, layers: [Layer; 3]) -> Figment {
    let defaults = Layer {
        values: defaults(servers),
        ..Layer::default()
    };
    let layers = [defaults].into_iter().chain(layers);
    let filled = layers.filter(|layer| !layer.values.is_empty());
    filled.fold(Figment::new(), |figment, layer| {
        figment.merge(LayerProvider {
            values: layer.values,
            places: Arc::new(layer.places),
            file: file.to_owned(),
        })
    })
}

/// Reads the layers. Servers that only the file sets are laid over their defaults here, because merging
/// them by figment takes most of the time of reading a file with many servers.
pub(super) fn read(
    servers: &[String],
    file: &Path,
    mut layers: [Layer; 3],
) -> Result<RawConfig, Vec<Mistake>> {
    let Some(own) = take_servers(&mut layers) else {
        return extract(&merge(servers, file, layers));
    };
    let mut raw = extract(&merge(&[], file, layers))?;
    raw.servers = read_servers(servers, own)?;
    Ok(raw)
}

/// Removes the servers from the layer of the file; `None` if another layer sets keys of servers.
fn take_servers([file, others @ ..]: &mut [Layer; 3]) -> Option<Map<String, Value>> {
    if others.iter().any(|it| it.values.contains_key("servers")) {
        return None;
    }
    match file.values.remove("servers") {
        Some(Value::Object(servers)) => Some(servers),
        _ => Some(Map::new()),
    }
}

fn read_servers(
    names: &[String],
    mut own: Map<String, Value>,
) -> Result<BTreeMap<String, RawServer>, Vec<Mistake>> {
    let defaults = server_defaults();
    let read = |name: &String| {
        let own = match own.remove(name) {
            Some(Value::Object(own)) => own,
            _ => Map::new(),
        };
        let server = read_server(own, &defaults);
        let server = server.map_err(|error| differ(error.to_string(), format!("servers.{name}")));
        Ok((name.clone(), server?))
    };
    let read: Result<_, Mistake> = names.iter().map(read).collect();
    read.map_err(|mistake| vec![mistake])
}

/// Reads a server from its own values and the defaults, without a copy of the defaults.
fn read_server(
    mut own: Map<String, Value>,
    defaults: &Map<String, Value>,
) -> serde_json::Result<RawServer> {
    for (key, value) in &mut own {
        if let (Value::Object(own), Some(Value::Object(defaults))) = (value, defaults.get(key)) {
            let absent = defaults.iter().filter(|(key, _)| !own.contains_key(*key));
            let absent: Vec<_> = absent.map(|(k, v)| (k.clone(), v.clone())).collect();
            own.extend(absent);
        }
    }
    let absent = defaults.iter().filter(|(key, _)| !own.contains_key(*key));
    let values = own.iter().chain(absent);
    let values = values.map(|(key, value)| (key.as_str(), value));
    RawServer::deserialize(MapDeserializer::new(values))
}

fn extract(figment: &Figment) -> Result<RawConfig, Vec<Mistake>> {
    let told = |error: figment::Error| differ(error.kind.to_string(), error.path.join("."));
    figment
        .extract()
        .map_err(|errors| errors.into_iter().map(told).collect())
}

/// The values are checked already, so a failure to read them is a difference between the table of keys and
/// the raw types; it is returned as an error, without a panic.
fn differ(what: String, key: String) -> Mistake {
    Fault::bare(what).at(MistakePlace::File, key)
}

pub(super) fn read_flags(overrides: &Overrides, env: &Environment) -> Layer {
    let mut layer = Layer::default();
    if let Some(log) = &overrides.log {
        let read = rules::check(&ValueKind::Filter, log).map(|()| log.clone());
        layer.flag("--log", "log", read);
    }
    if let Some(folder) = &overrides.state_dir {
        layer.flag("--state-dir", "state_dir", from_current_folder(folder, env));
    }
    layer
}

impl Layer {
    fn flag(&mut self, flag: &'static str, key: &str, read: Result<String, Fault>) {
        match read {
            Ok(text) => {
                self.values.insert(key.to_owned(), text.into());
                let place = MistakePlace::Flag(flag);
                self.places.insert(key.to_owned(), place);
            }
            Err(fault) => self.mistakes.push(fault.at(MistakePlace::Flag(flag), key)),
        }
    }
}

/// The defaults of the table of keys; those of a server are repeated for each configured server.
fn defaults(servers: &[String]) -> Map<String, Value> {
    let mut values = defaults_of("");
    for name in [
        "results",
        "search",
        "secrets",
        "approvals",
        "audit",
        "redaction",
        "stats",
        "reindex",
        "http",
        "daemon",
    ] {
        values.insert(name.to_owned(), defaults_of(name).into());
    }
    if servers.is_empty() {
        return values;
    }
    let server = Value::from(server_defaults());
    let each = servers.iter().map(|name| (name.clone(), server.clone()));
    values.insert("servers".to_owned(), Value::Object(each.collect()));
    values
}

fn server_defaults() -> Map<String, Value> {
    let mut server = defaults_of("servers.NAME");
    let oauth = defaults_of("servers.NAME.oauth");
    server.insert("oauth".to_owned(), oauth.into());
    server
}

/// Defaults are numbers, texts and booleans, which TOML and JSON write alike.
fn defaults_of(pattern: &str) -> Map<String, Value> {
    let value = |text: &str| serde_json::from_str(text).expect("a test reads every default");
    let with_default = KEYS.iter().filter_map(|key| Some((key, key.default?)));
    let of_table = with_default.filter(|(key, _)| key.table() == pattern);
    of_table
        .map(|(key, default)| (key.name().to_owned(), value(default)))
        .collect()
}
