//! The raw configuration, in types that accept any valid value of each key.

use std::collections::BTreeMap;

use fleet::{CommandDefinition, Placement, ServerScope, Start};
use gateway::{KeptArguments, policy::ShownCatalog};
use oauth::{CallbackHost, GrantKind};
use policy::Preset;
use registry::Pin;
use secrets::Keeping;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The raw configuration, with all layers merged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    pub(super) state_dir: Option<String>,
    pub(super) log: String,
    pub(super) policy: Preset,
    pub(super) pin: Pin,
    #[serde(default, deserialize_with = "read_json")]
    pub(super) rules: Vec<Map<String, Value>>,
    #[serde(default, deserialize_with = "read_json")]
    pub(super) quotas: Vec<Map<String, Value>>,
    pub(super) approvals: RawApprovals,
    pub(super) results: results::ResultSettings,
    pub(super) search: RawSearch,
    pub(super) secrets: RawSecrets,
    pub(super) audit: RawAudit,
    pub(super) redaction: RawRedaction,
    pub(super) stats: RawStats,
    #[serde(default)]
    pub(super) traces: RawTraces,
    pub(super) http: RawHttp,
    #[serde(default)]
    pub(super) clients: BTreeMap<String, RawClient>,
    #[serde(default)]
    pub(super) profiles: BTreeMap<String, RawProfile>,
    pub(super) daemon: RawDaemon,
    pub(super) cluster: Option<RawCluster>,
    /// In the order of the file. They are read one by one.
    #[serde(skip)]
    pub(super) servers: Vec<(String, RawServer)>,
    #[serde(default)]
    pub(super) commands: BTreeMap<String, CommandDefinition>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawApprovals {
    /// 0: a call is refused at once.
    pub(super) wait_s: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSearch {
    pub(super) learn: bool,
    pub(super) enrich: Option<String>,
    pub(super) semantic: Semantic,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAudit {
    pub(super) arguments: KeptArguments,
    /// 0: no log.
    pub(super) keep_mib: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawProfile {
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) max_tokens: Option<u64>,
    pub(super) folders: Vec<String>,
    pub(super) outside_folders: Vec<String>,
    pub(super) callers: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRedaction {
    pub(super) enabled: bool,
    #[serde(default)]
    pub(super) patterns: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStats {
    pub(super) enabled: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawTraces {
    pub(super) endpoint: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSecrets {
    pub(super) store: Keeping,
}

/// Reads a value that the layers have as JSON text.
fn read_json<'de, D: Deserializer<'de>, T: DeserializeOwned>(layer: D) -> Result<T, D::Error> {
    let text = String::deserialize(layer)?;
    serde_json::from_str(&text).map_err(serde::de::Error::custom)
}

fn default_cluster() -> String {
    "home".to_owned()
}

/// The search methods beside matching words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Semantic {
    Encoder,
    Off,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDaemon {
    /// 0: for ever.
    pub(super) linger_s: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCluster {
    #[serde(default = "default_cluster")]
    pub(super) name: String,
    pub(super) node: Option<String>,
    #[serde(default)]
    pub(super) nats: Vec<String>,
    pub(super) key: Option<String>,
    pub(super) credentials: Option<String>,
    pub(super) tls_ca: Option<String>,
    pub(super) tls_cert: Option<String>,
    pub(super) tls_key: Option<String>,
    #[serde(default)]
    pub(super) require_shared: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHttp {
    pub(super) listen: Option<String>,
    #[serde(default)]
    pub(super) tokens: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) token_files: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) oauth: RawGuard,
    pub(super) public_url: Option<String>,
    #[serde(default)]
    pub(super) allowed_hosts: Vec<String>,
    #[serde(default)]
    pub(super) allowed_origins: Vec<String>,
    pub(super) tls_cert: Option<String>,
    pub(super) tls_key: Option<String>,
    pub(super) metrics: bool,
    pub(super) max_body_kib: usize,
    pub(super) max_sessions: usize,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawGuard {
    pub(super) issuer: Option<String>,
    pub(super) audience: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) introspection_client_id: Option<String>,
    pub(super) introspection_client_secret: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawClient {
    pub(super) max_tokens: Option<u64>,
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) resources: String,
    pub(super) catalog: ShownCatalog,
}

#[derive(Debug, Deserialize)]
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
    pub(super) sandbox: Option<RawSandbox>,
    pub(super) image: Option<String>,
    pub(super) pin: Option<Pin>,
    pub(super) roots: Option<Vec<String>>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) oauth: RawOauth,
    pub(super) login: String,
    pub(super) enabled: bool,
    pub(super) category: Option<String>,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    pub(super) description: Option<String>,
    pub(super) notes: Option<String>,
    pub(super) timeout_s: u64,
    pub(super) timeout_max_s: Option<u64>,
    pub(super) start_timeout_s: u64,
    pub(super) start: Start,
    pub(super) scope: Option<ServerScope>,
    pub(super) placement: Option<Placement>,
    pub(super) on: Option<String>,
    /// 0: never.
    pub(super) idle_timeout_s: u64,
    /// 0: no limit.
    pub(super) max_concurrent_calls: usize,
    pub(super) retry_safe_calls: bool,
    pub(super) max_tokens: Option<u64>,
    pub(super) redact: Option<bool>,
    #[serde(default)]
    pub(super) tools: RawTools,
    #[serde(default, deserialize_with = "read_json")]
    pub(super) arguments: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) overlay: BTreeMap<String, RawOverlay>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawSandbox {
    pub(super) network: bool,
    pub(super) write: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawOauth {
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(super) private_key: Option<String>,
    pub(super) private_key_id: Option<String>,
    pub(super) assertion: Option<String>,
    pub(super) idp_issuer: Option<String>,
    pub(super) idp_client_id: Option<String>,
    pub(super) idp_client_secret: Option<String>,
    pub(super) client_metadata_url: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) callback_port: Option<u16>,
    pub(super) callback_host: CallbackHost,
    pub(super) resource: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) grant: GrantKind,
    pub(super) pkce: String,
    pub(super) endpoints: String,
    pub(super) parameters: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawTools {
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawOverlay {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) usage: Option<String>,
    pub(super) min_version: Option<String>,
    pub(super) deprecated: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) category: Option<String>,
    pub(super) notes: Option<String>,
    #[serde(deserialize_with = "read_json")]
    pub(super) example: Option<Value>,
    pub(super) hidden: bool,
    #[serde(deserialize_with = "read_json")]
    pub(super) arguments: BTreeMap<String, Value>,
    pub(super) timeout_s: Option<u64>,
    pub(super) max_tokens: Option<u64>,
}
