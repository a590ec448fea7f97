//! The layers and their order: defaults, the file, variables, flags.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use figment::{Figment, Metadata, Profile, Provider, providers::Serialized, value::Dict};
use serde_json::{Map, Value};

use super::{
    Environment, Mistake, MistakePlace, Overrides,
    keys::{KEYS, ValueKind},
    mistake::{Fault, key_of},
    paths::from_current_folder,
    raw::RawConfig,
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
    layers.fold(Figment::new(), |figment, layer| {
        figment.merge(LayerProvider {
            values: layer.values,
            places: Arc::new(layer.places),
            file: file.to_owned(),
        })
    })
}

/// The values are checked already, so a failure here is a difference between the table of keys and the
/// raw types; it is returned as an error, without a panic.
pub(super) fn extract(figment: &Figment) -> Result<RawConfig, Vec<Mistake>> {
    let told = |error: figment::Error| {
        let key = error.path.join(".");
        Fault::bare(error.kind.to_string()).at(MistakePlace::File, key)
    };
    figment
        .extract()
        .map_err(|errors| errors.into_iter().map(told).collect())
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
    let mut server = defaults_of("servers.NAME");
    let oauth = defaults_of("servers.NAME.oauth");
    server.insert("oauth".to_owned(), oauth.into());
    let server = Value::from(server);
    let each = servers.iter().map(|name| (name.clone(), server.clone()));
    values.insert("servers".to_owned(), Value::Object(each.collect()));
    values
}

/// Defaults are numbers, texts and booleans, which TOML and JSON write alike.
fn defaults_of(pattern: &str) -> Map<String, Value> {
    let keys = KEYS.iter().filter(|key| key.table() == pattern);
    let value = |text: &str| serde_json::from_str(text).expect("a test reads every default");
    keys.filter_map(|key| Some((key.name().to_owned(), value(key.default?))))
        .collect()
}
