//! Responses of a correct server, in either era.

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    LEGACY_VERSION, LEGACY_VERSIONS, META_CAPABILITIES, META_VERSION, MODERN_VERSION,
    script::{Era, FakeItem, Paging, Script, Step},
};

/// A request as received.
#[derive(Debug)]
pub(super) struct FakeRequest {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
    /// The text of `params.arguments`, byte for byte.
    pub(super) arguments: String,
}

impl FakeRequest {
    /// Returns true if the request has the metadata that every modern request must have.
    pub(super) fn is_modern(&self) -> bool {
        let meta = &self.params["_meta"];
        meta[META_VERSION] == MODERN_VERSION && meta[META_CAPABILITIES].is_object()
    }

    /// Returns false if the request continues an earlier one with the answers of its client.
    pub(super) fn is_first(&self) -> bool {
        self.params["requestState"].is_null() && self.params["inputResponses"].is_null()
    }
}

/// The part of a catalogue file that describes the server itself.
#[derive(Debug, Default, Deserialize)]
struct FakeCatalog {
    #[serde(default)]
    initialize: Value,
    #[serde(default)]
    tools: Vec<Value>,
}

/// Copies the catalogue into the script, so that no other code handles catalogue files.
pub(crate) fn with_catalog(mut script: Script) -> Result<Script, String> {
    let Some(path) = script.catalog.take() else {
        return Ok(script);
    };
    let say = |error: &dyn std::fmt::Display| format!("catalog {}: {error}", path.display());
    let text = fs::read(&path).map_err(|error| say(&error))?;
    let catalog: FakeCatalog = serde_json::from_slice(&text).map_err(|error| say(&error))?;
    let tools = catalog
        .tools
        .into_iter()
        .map(|tool| FakeItem::defined(tool, Step::Echo));
    script.tools.extend(tools);
    let greeting = catalog.initialize;
    let part = |name: &str| greeting.get(name).cloned();
    script.server_info = script.server_info.or_else(|| part("serverInfo"));
    script.capabilities = script.capabilities.or_else(|| part("capabilities"));
    let text = |name| part(name)?.as_str().map(str::to_owned);
    script.instructions = script.instructions.or_else(|| text("instructions"));
    Ok(script)
}

pub(super) fn initialize(script: &Script, request: &FakeRequest) -> Value {
    let asked = request.params["protocolVersion"]
        .as_str()
        .unwrap_or_default();
    let known = LEGACY_VERSIONS.contains(&asked);
    let version = script.version.as_deref();
    let mut result = json!({
        "protocolVersion": version.unwrap_or(if known { asked } else { LEGACY_VERSION }),
        "capabilities": capabilities(script),
        "serverInfo": server_info(script),
    });
    if let Some(instructions) = &script.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}

pub(super) fn discover(script: &Script) -> Value {
    let mut versions = vec![MODERN_VERSION];
    if script.era == Era::Both {
        versions.extend(LEGACY_VERSIONS);
    }
    let mut result = json!({ "supportedVersions": versions, "capabilities": capabilities(script) });
    if let Some(instructions) = &script.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}

/// Returns one page of `tools/list`. The cursor is the index of its first tool.
pub(super) fn page(script: &Script, request: &FakeRequest, revealed: bool) -> Result<Value, Value> {
    if script.paging == Paging::Endless {
        return Ok(endless_page(&request.params["cursor"]));
    }
    let shown = script.tools.iter().filter(|tool| revealed || !tool.hidden);
    let mut tools: Vec<&Value> = shown.map(|tool| &tool.definition).collect();
    tools.extend(&script.listed);
    let from = match &request.params["cursor"] {
        Value::Null => 0,
        cursor => cursor
            .as_str()
            .and_then(|cursor| cursor.parse::<usize>().ok())
            .filter(|from| *from <= tools.len())
            .ok_or_else(|| error(-32602, "no such cursor"))?,
    };
    let size = script.page_size.unwrap_or(tools.len());
    let to = (from + size).min(tools.len());
    let mut result = json!({ "tools": tools[from..to] });
    if script.paging == Paging::RepeatsCursor {
        result["nextCursor"] = json!(from.to_string());
    } else if to < tools.len() {
        result["nextCursor"] = json!(to.to_string());
    }
    Ok(result)
}

fn endless_page(cursor: &Value) -> Value {
    let number = cursor.as_str().and_then(|cursor| cursor.parse().ok());
    let number: u64 = number.unwrap_or(0);
    let tool = FakeItem::new(&format!("page_{number}"), Step::Echo).definition;
    json!({ "tools": [tool], "nextCursor": (number + 1).to_string() })
}

/// Adds the members that a modern result has besides its content.
pub(super) fn modernize(mut result: Value, script: &Script, method: &str) -> Value {
    if let Some(result) = result.as_object_mut() {
        result.entry("resultType").or_insert(json!("complete"));
        let meta = result.entry("_meta").or_insert(json!({}));
        meta["io.modelcontextprotocol/serverInfo"] = server_info(script);
        let is_kept = method.ends_with("/list") || method.ends_with("/read");
        if is_kept || method == "server/discover" {
            result.insert("ttlMs".to_owned(), json!(60_000));
            result.insert("cacheScope".to_owned(), json!("public"));
        }
    }
    result
}

pub(super) fn error(code: i64, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

pub(super) fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn capabilities(script: &Script) -> Value {
    script.capabilities.clone().unwrap_or_else(|| {
        let mut proper = json!({ "tools": { "listChanged": true }, "logging": {} });
        announce(script, &mut proper);
        proper
    })
}

/// Adds the capabilities for the prompts, resources and completions of the script.
fn announce(script: &Script, capabilities: &mut Value) {
    if !script.prompts.is_empty() {
        capabilities["prompts"] = json!({ "listChanged": true });
    }
    if has_resources(script) {
        capabilities["resources"] = json!({ "listChanged": true, "subscribe": true });
    }
    if !script.skills.is_empty() {
        capabilities["extensions"] = json!({ "io.modelcontextprotocol/skills": {} });
    }
    if !script.completions.is_empty() {
        capabilities["completions"] = json!({});
    }
}

pub(super) fn has_resources(script: &Script) -> bool {
    !script.resources.is_empty() || !script.templates.is_empty()
}

fn server_info(script: &Script) -> Value {
    let proper = || json!({ "name": "fake-server", "version": "1.0.0" });
    script.server_info.clone().unwrap_or_else(proper)
}
