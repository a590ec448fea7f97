//! Tools: the search as the model has it, descriptions, and calls.

use std::{sync::Arc, time::Instant};

use gateway::{
    Audience, CallContext, EXECUTE, Gateway, ToolError, describe_json, list_offered, search_json,
};
use registry::{Entry, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};
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
#[derive(Debug, Deserialize, JsonSchema)]
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
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolCall {
    /// `SERVER/TOOL`.
    tool_name: String,
    #[serde(default)]
    tool_input: Map<String, Value>,
    /// True: say what would happen, and call nothing.
    #[serde(default)]
    dry_run: bool,
}

/// A tool to forbid.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forbidden {
    /// Only for the client with this name; without it, for every client.
    client: Option<String>,
    /// True: only show the difference.
    #[serde(default)]
    dry_run: bool,
}

/// The result of a call.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallResult {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    pub(crate) ms: u64,
}

pub(crate) async fn search(call: Call<SearchQuery, Nothing>) -> Result<Object, ApiError> {
    let gateway = &call.page.daemon.gateway;
    let asked = call.query;
    let words = asked.query.as_deref().map_or("", str::trim);
    let policy = asked.client.as_deref();
    let policy = policy.map(|client| gateway.settings().clients.of(Some(client)));
    let query = Query {
        category: asked.category,
        tags: asked.tag.into_iter().collect(),
        limit: asked.limit.unwrap_or(HITS_DEFAULT),
        offset: asked.offset.unwrap_or(0),
        why: true,
        view: policy.and_then(|it| it.view),
        ..Query::words(words)
    };
    gateway.survey_new().await;
    if words.is_empty() {
        return list(gateway, &query, asked.limit).await;
    }
    let answer = gateway.catalog.search(query, None).await;
    let answer = answer.map_err(|error| explain(&error))?;
    Ok(Object(search_json(&gateway.catalog, &answer)))
}

/// Lists tools by name, those that rules or pins hide at the end.
async fn list(gateway: &Gateway, query: &Query, limit: Option<usize>) -> Result<Object, ApiError> {
    let generation = gateway.catalog.generation().await;
    let generation = generation.map_err(|error| explain(&error))?;
    let is_of = |entry: &&Entry| {
        let category = query.category.as_deref();
        let is_in =
            category.is_none_or(|it| entry.at.server.as_str() == it || entry.category == it);
        let view = query.view.as_deref();
        let is_seen = view.is_none_or(|it| it.refuses(&entry.at.server, &entry.category).is_none());
        is_in && is_seen && query.tags.iter().all(|tag| entry.tags.contains(tag))
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
    let is_whole = query.category.is_none() && query.tags.is_empty() && query.view.is_none();
    let hidden = generation.blocked().filter(|_| is_whole);
    let hidden = hidden
        .map(|at| json!({"name": at.to_string(), "purpose": "", "category": "", "hidden": true}));
    let all: Vec<Value> = tools.chain(hidden).collect();
    let total = all.len();
    let limit = limit.unwrap_or(LISTED_MAX).min(LISTED_MAX);
    let tools: Vec<Value> = all.into_iter().skip(query.offset).take(limit).collect();
    Ok(Object(
        json!({"found": tools.len(), "total": total, "tools": tools}),
    ))
}

pub(crate) async fn describe(call: Call<Nothing, Nothing>) -> Result<Object, ApiError> {
    let catalog = &call.page.daemon.gateway.catalog;
    let generation = catalog
        .generation()
        .await
        .map_err(|error| explain(&error))?;
    let name = call.path.join("/");
    let entry = catalog.find(&generation, &name).await;
    let entry = entry.map_err(|error| explain(&error))?;
    let mut json = describe_json(catalog, &entry);
    let definition: Value = serde_json::from_str(entry.tool.json()).unwrap_or_default();
    json["annotations"] = definition["annotations"].clone();
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
    let input = json!({"tool_name": tool_name, "tool_input": tool_input, "dry_run": dry_run});
    run(&call.page.daemon.gateway, &input).await
}

/// Calls a tool as a person. The call is cancelled if its request is.
pub(crate) async fn run(gateway: &Arc<Gateway>, input: &Value) -> Result<CallResult, ApiError> {
    let cancel = CancellationToken::new();
    let _gone = cancel.clone().drop_guard();
    let context = CallContext::of_person("page", cancel);
    let arguments = RawValue::from_string(input.to_string()).map_err(anyhow::Error::from)?;
    let began = Instant::now();
    gateway.survey_new().await;
    let reply = gateway.call_tool(EXECUTE, Some(&arguments), context).await;
    let reply = reply.expect("it is one of our own tools");
    Ok(CallResult {
        is_error: reply.is_error(),
        text: reply.printable(),
        ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// Returns the error of a tool: its sentence, and what follows it as the next step.
pub(crate) fn explain(error: &ToolError) -> ApiError {
    let text = error.text_for(Audience::Person);
    let status = match error.code() {
        "unknown_tool" | "ambiguous_tool" => hyper::StatusCode::NOT_FOUND,
        "denied" => hyper::StatusCode::FORBIDDEN,
        "invalid_input" => hyper::StatusCode::UNPROCESSABLE_ENTITY,
        _ => hyper::StatusCode::BAD_GATEWAY,
    };
    let (message, next) = match text.split_once('\n') {
        Some((message, next)) => (message.to_owned(), Some(next.to_owned())),
        None => (text, None),
    };
    let mut explained = ApiError::new(status, error.code(), message);
    explained.next_step = next;
    explained
}
