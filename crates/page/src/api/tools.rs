//! Tools: the search as the model has it, descriptions, and calls.

use std::sync::Arc;

use gateway::{
    Gateway,
    api::{self, ApiCaller, JsonObject, SearchRequest, ToolArguments, describe_tool, explain},
    list_offered,
};
use registry::Entry;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::answer::{Done, Object};
use crate::{
    configure::ConfigChange,
    error::ApiError,
    routes::{Call, Nothing},
};

/// The hits of one answer if the query does not say.
const HITS_DEFAULT: usize = 20;

/// The most tools of a list.
const LISTED_MAX: usize = 10_000;

/// A search.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchQuery {
    /// Words as a model writes them; nothing: a list of every tool, with `{name, purpose, category, changed, hidden}`.
    query: Option<String>,
    /// Only tools of this category or server.
    category: Option<String>,
    /// Only tools with this tag.
    tag: Option<String>,
    /// The view of the client with this name.
    client: Option<String>,
    /// The number of hits, at most 20; of a list, at most 10,000.
    limit: Option<usize>,
    /// The number of hits to skip.
    offset: Option<usize>,
}

/// A call of a tool.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolCall {
    /// `SERVER/TOOL`.
    tool_name: String,
    #[serde(default)]
    tool_input: JsonObject,
    /// True: say what would happen, and call nothing.
    #[serde(default)]
    dry_run: bool,
}

/// A tool to forbid.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Forbidden {
    /// Only for the client with this name; without it, for every client.
    client: Option<String>,
    /// True: only show the difference.
    #[serde(default)]
    dry_run: bool,
}

/// The result of a call.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CallResult {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    pub(crate) ms: u64,
}

pub(crate) async fn search(call: Call<SearchQuery, Nothing>) -> Result<Object, ApiError> {
    let gateway = &call.page.daemon.gateway;
    let asked = call.query;
    gateway.survey_new().await;
    let words = asked.query.as_deref().map_or("", str::trim);
    if words.is_empty() {
        return list(gateway, &asked).await;
    }
    let request = SearchRequest {
        words: words.to_owned(),
        category: asked.category,
        tags: asked.tag.into_iter().collect(),
        limit: asked.limit.unwrap_or(HITS_DEFAULT),
        offset: asked.offset.unwrap_or(0),
        why: true,
        client: asked.client,
    };
    Ok(Object(api::search(gateway, &request).await?.hits))
}

/// Lists tools by name, those that rules or pins hide at the end.
async fn list(gateway: &Gateway, asked: &SearchQuery) -> Result<Object, ApiError> {
    let generation = gateway.catalog.generation().await;
    let generation = generation.map_err(|error| explain(&error))?;
    let client = asked.client.as_deref();
    let view = client.and_then(|client| gateway.settings().clients.of(Some(client)).view);
    let (category, tag) = (asked.category.as_deref(), asked.tag.as_ref());
    let is_of = |entry: &&Entry| {
        let is_in =
            category.is_none_or(|it| entry.at.server.as_str() == it || entry.category == it);
        let view = view.as_deref();
        let is_seen = view.is_none_or(|it| it.refuses(&entry.at.server, &entry.category).is_none());
        is_in && is_seen && tag.is_none_or(|tag| entry.tags.contains(tag))
    };
    let tools = list_offered(&generation).filter(is_of).map(|entry| {
        json!({
            "name": entry.at.to_string(),
            "purpose": entry.purpose(),
            "category": entry.category,
            "changed": entry.changed.is_some(),
            "change_held": entry.is_change_held,
        })
    });
    let is_whole = category.is_none() && tag.is_none() && view.is_none();
    let hidden = generation.blocked().filter(|_| is_whole);
    let hidden = hidden
        .map(|at| json!({"name": at.to_string(), "purpose": "", "category": "", "hidden": true}));
    let all: Vec<Value> = tools.chain(hidden).collect();
    let total = all.len();
    let limit = asked.limit.unwrap_or(LISTED_MAX).min(LISTED_MAX);
    let tools: Vec<Value> = all
        .into_iter()
        .skip(asked.offset.unwrap_or(0))
        .take(limit)
        .collect();
    Ok(Object(
        json!({"found": tools.len(), "total": total, "tools": tools}),
    ))
}

pub(crate) async fn describe(call: Call<Nothing, Nothing>) -> Result<Object, ApiError> {
    let described = describe_tool(&call.page.daemon.gateway, &call.path.join("/")).await?;
    let mut json = described.description;
    json["annotations"] = described.annotations;
    Ok(Object(json))
}

pub(crate) fn forbid(call: Call<Nothing, Forbidden>) -> Result<Done, ApiError> {
    let change = ConfigChange::Forbid {
        server: call.path[0].clone(),
        tool: call.path[1].clone(),
        client: call.body.client,
    };
    call.page.change(&change, call.body.dry_run)
}

pub(crate) async fn call(call: Call<Nothing, ToolCall>) -> Result<CallResult, ApiError> {
    let ToolCall {
        tool_name,
        tool_input,
        dry_run,
    } = call.body;
    run(&call.page.daemon.gateway, &tool_name, &tool_input, dry_run).await
}

/// Calls a tool as a person. The call is cancelled if its request is.
pub(crate) async fn run(
    gateway: &Arc<Gateway>,
    tool_name: &str,
    tool_input: &impl Serialize,
    dry_run: bool,
) -> Result<CallResult, ApiError> {
    let cancel = CancellationToken::new();
    let _gone = cancel.clone().drop_guard();
    let arguments = ToolArguments {
        tool_name,
        tool_input,
        raw: false,
        dry_run,
        timeout_ms: None,
        max_tokens: None,
    };
    let request = arguments.request(false).map_err(anyhow::Error::from)?;
    gateway.survey_new().await;
    let reply = api::call(gateway, &request, &ApiCaller::page(cancel)).await;
    Ok(CallResult {
        is_error: reply.is_error,
        text: reply.text,
        ms: reply.ms,
    })
}
