//! The state folder of a house, as `reindex` would leave it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use files::clock::{now_ms, now_s};
use registry::{News, Registry, Rules, ServerRules, Snapshot};
use sha2::{Digest as _, Sha256};
use tool::{ServerName, Tool};

use super::House;
use crate::fake::{Era, LEGACY_VERSION, Paging, Script, with_catalog};

/// Keys of a server's table that do not affect its survey.
const PLAIN_KEYS: [&str; 11] = [
    "args",
    "category",
    "command",
    "idle_timeout_s",
    "max_concurrent_calls",
    "max_tokens",
    "overlay",
    "retry_safe_calls",
    "tags",
    "timeout_max_s",
    "timeout_s",
];

impl House {
    /// Indexes the tools of every server.
    ///
    /// In a house without a state, if all servers are fakes with an ordinary handshake and list,
    /// the registry writes the result that a survey would have: no process starts, and no fake
    /// receives anything. Otherwise `reindex` surveys them. Journeys about `reindex`, or about the
    /// number of starts of a server, call `reindex`.
    pub async fn indexed(&self) {
        let has_state = self.state().join("catalog.json").exists();
        match self.proper_servers() {
            Some(scripts) if !self.understands && !has_state => self.write_state(scripts),
            _ => {
                self.cli(["reindex"]).await.ended(0);
            }
        }
    }

    /// Returns the configured servers, if each is a fake with an ordinary handshake and list.
    fn proper_servers(&self) -> Option<Vec<(ServerName, Script)>> {
        let text = fs::read_to_string(self.config()).ok()?;
        let config: toml::Table = text.parse().ok()?;
        let top = ["servers", "results", "reindex", "http", "daemon", "clients"];
        if config.keys().any(|key| !top.contains(&key.as_str())) {
            return None;
        }
        let servers = config.get("servers")?.as_table()?.iter();
        servers
            .map(|(name, table)| Some((name.parse().ok()?, self.proper_script(table)?)))
            .collect()
    }

    fn proper_script(&self, table: &toml::Value) -> Option<Script> {
        let table = table.as_table()?;
        let is_plain = |key: &str| key == "env" || key == "tools" || PLAIN_KEYS.contains(&key);
        if !table.keys().all(|key| is_plain(key)) {
            return None;
        }
        let command = table.get("command")?.as_str()?;
        let args: Vec<&str> = table
            .get("args")?
            .as_array()?
            .iter()
            .filter_map(|it| it.as_str())
            .collect();
        let ["--script-file", script] = args[..] else {
            return None;
        };
        // A missing variable keeps a server from starting.
        let mut env = table.get("env")?.as_table()?.values();
        let is_fake = Path::new(command) == self.programs.fake_server;
        if !is_fake || env.any(|value| value.as_str().is_none_or(|it| it.contains('$'))) {
            return None;
        }
        let script = serde_json::from_slice(&fs::read(script).ok()?).ok()?;
        Some(with_catalog(script).ok()?).filter(is_proper)
    }

    fn write_state(&self, servers: Vec<(ServerName, Script)>) {
        let all = Rules {
            servers: servers
                .iter()
                .map(|(name, _)| ServerRules::plain(name.clone()))
                .collect(),
            disabled: Vec::new(),
        };
        let news = servers.into_iter().map(|(server, script)| News {
            asked_ms: now_ms(),
            outcome: Ok(snapshot(&server, &script)),
            server,
        });
        let registry = Registry::open(&self.state(), all).expect("the rules have no glob");
        let committed = registry.commit(news.collect(), false, now_s());
        committed.expect("the test folder is writable");
    }

    /// Returns the state folder of the proxy for this configuration.
    pub fn state(&self) -> PathBuf {
        let config = self.config();
        let digest = Sha256::digest(config.as_os_str().as_encoded_bytes());
        let head = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        self.path("xdg-state/proxy")
            .join(format!("config-{head:08x}"))
    }
}

fn is_proper(script: &Script) -> bool {
    let answers = [&script.on_initialize, &script.on_discover, &script.on_list];
    script.era != Era::Modern
        && script.discover_refusal.is_none()
        && script.version.is_none()
        && script.server_info.is_none()
        && script.capabilities.is_none()
        && script.paging == Paging::Proper
        && script.before.is_empty()
        && script.on_initialized.is_empty()
        && script.listed.is_empty()
        && script.prompts.is_empty()
        && script.resources.is_empty()
        && script.templates.is_empty()
        && answers.iter().all(|steps| steps.is_none())
}

/// Returns the snapshot that a survey of this fake would store.
fn snapshot(server: &ServerName, script: &Script) -> Snapshot {
    let shown = script.tools.iter().filter(|tool| !tool.hidden);
    let tools = shown.map(|tool| {
        Tool::parse(&tool.definition.to_string()).expect("a journey defines valid tools")
    });
    let tools: Vec<Tool> = tools.collect();
    Snapshot {
        server: server.clone(),
        tokens: tools.iter().map(tokens).sum(),
        tools,
        offer: tool::Offer::default(),
        server_name: "fake-server".to_owned(),
        server_version: "1.0.0".to_owned(),
        instructions: script.instructions.clone(),
        protocol: LEGACY_VERSION.to_owned(),
        transport: None,
        asking_calls: Vec::new(),
        surveyed_at: now_s(),
    }
}

/// Counts the tokens of the tool's definition as shown to a model.
fn tokens(tool: &Tool) -> u64 {
    let whole: serde_json::Value = serde_json::from_str(tool.json()).expect("a tool is JSON");
    let members = ["name", "description", "inputSchema"].into_iter();
    let members = members.filter_map(|key| {
        let value = tool::minified(&whole.get(key)?.to_string());
        Some(format!("\"{key}\":{value}"))
    });
    let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    let count = tiktoken_rs::o200k_base_singleton()
        .encode_ordinary(&text)
        .len();
    u64::try_from(count).unwrap_or(u64::MAX)
}
