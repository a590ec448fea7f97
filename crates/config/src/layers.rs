//! The layers and their order: defaults, the file, variables, flags.

use figment::{Figment, providers::Serialized};
use serde_json::{Map, Value, json};

use super::{
    Environment, Mistake, MistakePlace, Overrides,
    keys::{KEYS, ValueKind},
    mistake::Fault,
    paths::from_current_folder,
    raw::RawConfig,
    rules,
};

/// The valid values of one layer.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) values: Map<String, Value>,
    pub(super) mistakes: Vec<Mistake>,
}

/// The values are checked already, so a failure here is a difference between the table of keys and the
/// raw types; it is returned as an error, without a panic.
pub(super) fn merge(
    servers: &[String],
    layers: [Map<String, Value>; 3],
) -> Result<RawConfig, Vec<Mistake>> {
    let mut figment = Figment::from(Serialized::defaults(defaults(servers)));
    for layer in layers {
        figment = figment.merge(Serialized::defaults(layer));
    }
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
            Ok(text) => self.values.extend([(key.to_owned(), text.into())]),
            Err(fault) => self.mistakes.push(fault.at(MistakePlace::Flag(flag), key)),
        }
    }
}

/// The defaults of the table of keys; those of a server are repeated for each configured server.
fn defaults(servers: &[String]) -> Value {
    let mut values = defaults_of("");
    for name in [
        "results", "search", "secrets", "audit", "stats", "reindex", "http", "daemon",
    ] {
        values.insert(name.to_owned(), defaults_of(name).into());
    }
    let each = servers.iter().map(|name| {
        let mut server = defaults_of("servers.NAME");
        let oauth = defaults_of("servers.NAME.oauth");
        server.insert("oauth".to_owned(), oauth.into());
        (name.clone(), server.into())
    });
    values.insert("servers".to_owned(), Value::Object(each.collect()));
    json!(values)
}

/// Defaults are numbers, texts and booleans, which TOML and JSON write alike.
fn defaults_of(pattern: &str) -> Map<String, Value> {
    let keys = KEYS.iter().filter(|key| key.table() == pattern);
    let value = |text: &str| serde_json::from_str(text).expect("a test reads every default");
    keys.filter_map(|key| Some((key.name().to_owned(), value(key.default?))))
        .collect()
}
