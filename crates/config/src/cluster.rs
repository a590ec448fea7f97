//! `[cluster]`, the placement of servers, and the configuration that the nodes of a cluster share.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use cluster::{ClusterSettings, KEY_CHARS_MIN};
use fleet::{Launch, Placement, ServerSpec, Template};
use printable::{LetterCase, Pattern};
use serde_json::Value;

use super::{
    MistakePlace, check,
    layers::Layer,
    mistake::Fault,
    node_name::plain_name,
    paths::Folders,
    raw::RawCluster,
    template::{read_optional, read_template},
};

/// The file of the shared configuration, in the state folder.
const SHARED_FILE: &str = "cluster/shared.toml";

/// The tables and keys that nodes share.
pub const SHARED_KEYS: [&str; 9] = [
    "servers",
    "commands",
    "clients",
    "profiles",
    "rules",
    "quotas",
    "policy",
    "pin",
    "redaction",
];

/// Begins the first line of that file; its revision follows.
const REVISION: &str = "# revision ";

/// Returns the path of the shared configuration of a state folder.
pub fn shared_path(state_dir: &Path) -> PathBuf {
    state_dir.join(SHARED_FILE)
}

/// Returns the text of that file.
pub fn shared_text(revision: u64, node: &str, text: &str) -> String {
    format!(
        "{REVISION}{revision}, pushed by node {node}. Generated: changes here are lost.\n{text}"
    )
}

/// Returns the revision of the shared configuration of a state folder; 0: there is none.
pub(super) fn shared_revision(state_dir: &Path) -> u64 {
    let text = fs::read_to_string(shared_path(state_dir)).unwrap_or_default();
    let rest = text
        .strip_prefix(REVISION)
        .and_then(|it| it.split_once(','));
    rest.and_then(|(revision, _)| revision.parse().ok())
        .unwrap_or(0)
}

/// Adds the shared configuration of this state folder to that of the file. A server, a client and a profile of
/// the file replace the shared one of the same name; rules and quotas of the file come first.
pub(super) fn add_shared(own: &mut Layer, state_dir: &Path) {
    let path = shared_path(state_dir);
    let Ok(text) = fs::read_to_string(&path) else {
        return;
    };
    let shared = check::check(&text);
    for mut mistake in shared.mistakes {
        mistake.what = format!(
            "in the shared configuration of the cluster: {}",
            mistake.what
        );
        mistake.place = MistakePlace::Shared(path.clone());
        own.mistakes.push(mistake);
    }
    for mut removed in shared.removed {
        removed.place = MistakePlace::Shared(path.clone());
        own.removed.push(removed);
    }
    let places = shared.places.into_keys();
    for key in places.filter(|key| is_shared(key)) {
        let place = MistakePlace::Shared(path.clone());
        own.places.entry(key).or_insert(place);
    }
    for (key, value) in shared.values.into_iter().filter(|(key, _)| is_shared(key)) {
        match (own.values.get_mut(&key), value) {
            (None, value) => drop(own.values.insert(key, value)),
            (Some(Value::Object(known)), Value::Object(added)) => {
                for (name, value) in added {
                    known.entry(name).or_insert(value);
                }
            }
            (Some(Value::String(known)), Value::String(added))
                if key == "rules" || key == "quotas" =>
            {
                *known = join_lists(known, &added);
            }
            (Some(_), _) => {}
        }
    }
}

fn is_shared(key: &str) -> bool {
    let first = key.split('.').next().unwrap_or_default();
    SHARED_KEYS.contains(&first)
}

/// Joins two lists that are JSON text.
fn join_lists(first: &str, second: &str) -> String {
    let read = |text| serde_json::from_str::<Vec<Value>>(text).unwrap_or_default();
    let mut all = read(first);
    all.extend(read(second));
    Value::Array(all).to_string()
}

/// Returns the settings of the table; `None`: there is no cluster. An error has the key.
pub(super) fn read_cluster(
    raw: Option<&RawCluster>,
    keep_hours: u64,
    folders: &Folders<'_>,
) -> Result<Option<ClusterSettings>, (&'static str, Fault)> {
    let Some(raw) = raw else {
        return Ok(None);
    };
    let required = |key: &'static str, hint: &str| {
        let what = format!("`{key}` is missing");
        (key, Fault::new(what, hint))
    };
    if raw.nats.is_empty() {
        return Err(required(
            "nats",
            "write `nats = [\"tls://nats.example.com:4222\"]`",
        ));
    }
    let key = raw.key.as_ref().ok_or_else(|| {
        let hint = "write `key = \"${secret:cluster-key}\"`, and store a long random text: `openssl rand \
                    -hex 32 | proxy secret set cluster-key`";
        required("key", hint)
    })?;
    let nats = raw.nats.iter().map(|address| read_template(address));
    let node = raw
        .node
        .clone()
        .or_else(|| processes::host_name().map(|name| plain_name(&name)));
    let node = node.ok_or_else(|| required("node", "name this node: the host has no name"))?;
    let identity = match (&raw.tls_cert, &raw.tls_key) {
        (None, None) => None,
        (Some(cert), Some(key)) => Some((
            folders.read(cert).map_err(|fault| ("tls_cert", fault))?,
            folders.read(key).map_err(|fault| ("tls_key", fault))?,
        )),
        _ => {
            let fault = Fault::new(
                "`tls_cert` and `tls_key` belong together",
                "write both, or none",
            );
            return Err(("tls_cert", fault));
        }
    };
    Ok(Some(ClusterSettings {
        name: raw.name.clone(),
        node,
        nats: nats
            .collect::<Result<_, _>>()
            .map_err(|fault| ("nats", fault))?,
        key: read_key(key).map_err(|fault| ("key", fault))?,
        credentials: read_optional(raw.credentials.as_ref())
            .map_err(|fault| ("credentials", fault))?,
        tls_ca: (raw
            .tls_ca
            .as_ref()
            .map(|path| folders.read(path))
            .transpose())
        .map_err(|fault| ("tls_ca", fault))?,
        tls_identity: identity,
        result_life: Duration::from_secs(keep_hours.saturating_mul(3_600)),
        require_shared: raw.require_shared,
    }))
}

/// Reads the key; its length is known here if it is in the file.
fn read_key(key: &str) -> Result<Template, Fault> {
    let key = read_template(key)?;
    let is_short = |text: &String| text.chars().count() < KEY_CHARS_MIN;
    if key.plain().is_some_and(|text| is_short(&text)) {
        let what = format!("shorter than {KEY_CHARS_MIN} characters");
        return Err(Fault::new(
            what,
            "use a long random text: `openssl rand -hex 32`",
        ));
    }
    Ok(key)
}

/// Reads where a server runs. Without a cluster it runs here.
pub(super) fn read_placement(
    placement: Option<Placement>,
    on: Option<String>,
    spec: &ServerSpec,
    has_cluster: bool,
) -> Result<Placement, Fault> {
    let is_on = on.is_some();
    let written = match (on, placement) {
        (Some(_), Some(_)) => {
            let what = "both `on` and `placement`";
            return Err(Fault::new(
                what,
                "keep `on` for certain nodes, or `placement`",
            ));
        }
        (Some(pattern), None) => {
            let pattern = Pattern::new(&pattern, LetterCase::Matters).map_err(Fault::bare)?;
            Some(Placement::On(pattern))
        }
        (None, placement) => placement,
    };
    let is_alike = spec.is_alike_for_all();
    match written {
        Some(_) if !has_cluster => {
            let key = if is_on { "on" } else { "placement" };
            let what = format!("`{key}` needs a `[cluster]`");
            Err(Fault::new(what, "add the table, or remove the key"))
        }
        Some(Placement::One | Placement::On(_)) if !is_alike => Err(Fault::new(
            "this server differs between clients, so other nodes cannot call it",
            "use `${secret:NAME}` or `${file:PATH}` in place of `${VAR}`, and no `scope`, `login` or \
             `inherit_env`; or write `placement = \"client\"`",
        )),
        Some(placement) => Ok(placement),
        None if !has_cluster => Ok(Placement::Everywhere),
        None => Ok(match spec.launch {
            _ if !is_alike => Placement::Client,
            Launch::Child { .. } => Placement::One,
            Launch::Remote { .. } => Placement::Everywhere,
            Launch::Commands(_) => Placement::Client,
        }),
    }
}
