//! The layers and their order: defaults, the file, variables, flags.

use std::collections::BTreeMap;

use figment::{Figment, providers::Serialized};
use serde_json::{Map, Value, json};

use super::{
    Environment, Mistake, Overrides, Place,
    keys::{KEYS, Kind},
    mistake::Fault,
    paths::here,
    rules,
};

/// Values from one place, as far as they fit.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) values: Map<String, Value>,
    pub(super) mistakes: Vec<Mistake>,
}

/// The configuration as written, all layers on one another.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    pub(super) state_dir: Option<String>,
    pub(super) log: String,
    pub(super) results: RawResults,
    pub(super) search: RawSearch,
    pub(super) reindex: RawReindex,
    pub(super) http: RawHttp,
    #[serde(default)]
    pub(super) clients: BTreeMap<String, RawClient>,
    pub(super) daemon: RawDaemon,
    #[serde(default)]
    pub(super) servers: BTreeMap<String, RawServer>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawResults {
    pub(super) max_tokens: u64,
    pub(super) keep_hours: u64,
    pub(super) keep_mib: u64,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSearch {
    pub(super) learn: bool,
    pub(super) semantic: Semantic,
}

/// What finds tools beside their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Semantic {
    Encoder,
    Off,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawReindex {
    pub(super) parallel: usize,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDaemon {
    /// 0: for ever.
    pub(super) linger_s: u64,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHttp {
    pub(super) listen: Option<String>,
    #[serde(default)]
    pub(super) tokens: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) token_files: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) allowed_hosts: Vec<String>,
    #[serde(default)]
    pub(super) allowed_origins: Vec<String>,
    pub(super) tls_cert: Option<String>,
    pub(super) tls_key: Option<String>,
    pub(super) sessions: bool,
    pub(super) max_body_kib: usize,
    pub(super) max_header_kib: usize,
    pub(super) max_connections: usize,
    pub(super) max_sessions: usize,
    pub(super) max_requests: usize,
    pub(super) session_idle_s: u64,
    pub(super) receive_timeout_s: u64,
    pub(super) stall_timeout_s: u64,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawClient {
    pub(super) max_tokens: Option<u64>,
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawServer {
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) cwd: Option<String>,
    #[serde(default)]
    pub(super) inherit_env: Vec<String>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) enabled: bool,
    pub(super) category: Option<String>,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    pub(super) timeout_s: u64,
    pub(super) timeout_max_s: Option<u64>,
    pub(super) start_timeout_s: u64,
    pub(super) start: String,
    pub(super) scope: String,
    /// 0: never.
    pub(super) idle_timeout_s: u64,
    /// 0: any number.
    pub(super) max_concurrent_calls: usize,
    pub(super) retry_safe_calls: bool,
    pub(super) max_tokens: Option<u64>,
    #[serde(default)]
    pub(super) tools: RawTools,
    #[serde(default)]
    pub(super) overlay: BTreeMap<String, RawOverlay>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawTools {
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawOverlay {
    pub(super) description: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) category: Option<String>,
    pub(super) notes: Option<String>,
    /// JSON text, because a layer would sort the keys of a table.
    pub(super) example: Option<String>,
    pub(super) hidden: bool,
    pub(super) timeout_s: Option<u64>,
    pub(super) max_tokens: Option<u64>,
}

/// The values are checked already, so what fails here is a gap between the table of keys and the
/// raw types; it is told, not panicked about.
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
        Fault::bare(error.kind.to_string()).at(Place::File, key)
    };
    figment
        .extract()
        .map_err(|errors| errors.into_iter().map(told).collect())
}

pub(super) fn flags(overrides: &Overrides, env: &Environment) -> Layer {
    let mut layer = Layer::default();
    if let Some(log) = &overrides.log {
        let read = rules::fits(&Kind::Filter, log).map(|()| log.clone());
        layer.flag("--log", "log", read);
    }
    if let Some(folder) = &overrides.state_dir {
        layer.flag("--state-dir", "state_dir", here(folder, env));
    }
    layer
}

impl Layer {
    fn flag(&mut self, flag: &'static str, key: &str, read: Result<String, Fault>) {
        match read {
            Ok(text) => self.values.extend([(key.to_owned(), text.into())]),
            Err(fault) => self.mistakes.push(fault.at(Place::Flag(flag), key)),
        }
    }
}

/// The defaults that the table of keys declares; those of a server for each server there is.
fn defaults(servers: &[String]) -> Value {
    let mut values = table("");
    for name in ["results", "search", "reindex", "http", "daemon"] {
        values.insert(name.to_owned(), table(name).into());
    }
    let each = servers
        .iter()
        .map(|name| (name.clone(), table("servers.NAME").into()));
    values.insert("servers".to_owned(), Value::Object(each.collect()));
    json!(values)
}

/// Defaults are numbers, texts and switches, which TOML and JSON write alike.
fn table(pattern: &str) -> Map<String, Value> {
    let keys = KEYS.iter().filter(|key| key.table() == pattern);
    let value = |text: &str| serde_json::from_str(text).expect("a test reads every default");
    keys.filter_map(|key| Some((key.name().to_owned(), value(key.default?))))
        .collect()
}
