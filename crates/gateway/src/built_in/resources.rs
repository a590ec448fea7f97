//! Prompts and resources for a model whose client does not show any: `proxy/read_resource`,
//! `proxy/list_resources`, `proxy/get_prompt`.

use std::{borrow::Cow, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::{Fields, Json, text_of};
use results::{Budget, ResultStore, fit, text_block};
use serde_json::{Value, value::RawValue};

use crate::{
    built_in::{BuiltInTool, OwnCall, Tools},
    catalog::Catalog,
    error::ToolError,
    forward::{
        ForwardError, Forwarder, RESOURCE_KINDS, SkillOrigin, json_text, matching_lines,
        origin_of_skill, seen,
    },
    json_text::list_member,
    render::whole_lines,
    reply::ToolReply,
};

/// Lines of one answer of `proxy/list_resources`.
const LINES_MAX: usize = 50;

/// The most files of a skill that are named with it.
const SKILL_FILES_SHOWN: usize = 50;

/// The longest URI of a file, in characters.
const SKILL_URI_CHARS_MAX: usize = 300;

/// `proxy/read_resource`.
#[derive(Debug)]
pub(crate) struct ReadResource {
    pub(crate) forwarder: Arc<Forwarder>,
    pub(crate) results: ResultStore,
}

impl BuiltInTool for ReadResource {
    fn call<'a>(
        &'a self,
        call: OwnCall<'a>,
        _tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        read_resource(&self.forwarder, &self.results, call).boxed()
    }
}

/// `proxy/get_prompt`.
#[derive(Debug)]
pub(crate) struct GetPrompt {
    pub(crate) forwarder: Arc<Forwarder>,
    pub(crate) results: ResultStore,
}

impl BuiltInTool for GetPrompt {
    fn call<'a>(
        &'a self,
        call: OwnCall<'a>,
        _tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        get_prompt(&self.forwarder, &self.results, call).boxed()
    }
}

/// `proxy/list_resources`.
#[derive(Debug)]
pub(crate) struct ListResources {
    pub(crate) catalog: Arc<Catalog>,
}

impl BuiltInTool for ListResources {
    fn call<'a>(
        &'a self,
        call: OwnCall<'a>,
        _tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        list_resources(&self.catalog, call).boxed()
    }
}

/// Reads a resource as blocks for a model, within its budget.
async fn read_resource(
    forwarder: &Forwarder,
    store: &ResultStore,
    call: OwnCall<'_>,
) -> Result<ToolReply, ToolError> {
    let context = &call.context;
    let uri = text(call.arguments, "uri").unwrap_or_default();
    let generation = forwarder.catalog.generation().await?;
    let params = Vec::new();
    let reading = forwarder.read_resource(&generation, &uri, &params, context);
    let read = reading.await;
    let result = read.map_err(|refusal| refusal.into_tool_error(&call, "uri"))?;
    let contents = list_member(result.as_str(), "contents").unwrap_or_default();
    let origin = origin_of_skill(&generation, &uri, context).map(|it| origin_block(&it));
    let contents = contents.into_iter().map(content_block);
    let blocks: Vec<String> = origin.into_iter().chain(contents).collect();
    Ok(fit_blocks(&blocks, store, &call).await)
}

/// Gets the messages of a prompt, each under its role.
async fn get_prompt(
    forwarder: &Forwarder,
    store: &ResultStore,
    call: OwnCall<'_>,
) -> Result<ToolReply, ToolError> {
    let context = &call.context;
    let name = text(call.arguments, "name").unwrap_or_default();
    let own = Fields::of(call.arguments.get()).and_then(|it| it.filled("arguments"));
    let own = own.map(|raw| Json::from(raw.to_owned()));
    let mut params = vec![("name".into(), json_text(&name))];
    params.extend(own.map(|own| ("arguments".into(), own)));
    let generation = forwarder.catalog.generation().await?;
    let seen = seen(&generation, &context.policy);
    let got = forwarder.get_prompt(&seen, &params, context).await;
    let result = got.map_err(|refusal| refusal.into_tool_error(&call, "name"))?;
    let messages = list_member(result.as_str(), "messages").unwrap_or_default();
    let blocks: Vec<String> = messages.into_iter().flat_map(message_blocks).collect();
    Ok(fit_blocks(&blocks, store, &call).await)
}

/// Lists items, one a line: those that match the words best, or all from an offset on.
async fn list_resources(catalog: &Catalog, call: OwnCall<'_>) -> Result<ToolReply, ToolError> {
    let (arguments, policy) = (call.arguments, &call.context.policy);
    let generation = catalog.generation().await?;
    let mut seen = seen(&generation, policy);
    if let Some(server) = text(arguments, "server") {
        seen.retain(|it| tool::fold(it.name.as_str()) == tool::fold(&server));
    }
    let offset = Fields::of(arguments.get()).and_then(|it| it.get("offset")?.get().parse().ok());
    let offset: usize = offset.unwrap_or(0);
    let query = text(arguments, "query").unwrap_or_default();
    let lines = matching_lines(&seen, &RESOURCE_KINDS, &query);
    let total = lines.len();
    let mut shown: Vec<String> = lines.into_iter().skip(offset).take(LINES_MAX).collect();
    let end = offset + shown.len();
    shown.insert(0, format!("{} of {total}", shown.len()));
    if end < total {
        shown.push(format!("more: \"offset\":{end}"));
    }
    let room = catalog.settings().room(policy);
    Ok(ToolReply::text(&whole_lines(shown.join("\n"), room)))
}

async fn fit_blocks(blocks: &[String], store: &ResultStore, call: &OwnCall<'_>) -> ToolReply {
    let result = ToolReply::of_blocks(blocks, false).json().clone();
    let origin = call.context.origin();
    let fitted = fit(result, Budget::new(call.max_tokens), origin, store);
    ToolReply::from(fitted.await)
}

impl ForwardError {
    /// Converts the refusal to a tool error for a model; `path` is the argument that names the item.
    fn into_tool_error(self, call: &OwnCall<'_>, path: &str) -> ToolError {
        let (at, signature) = (&call.entry.at, call.entry.signature());
        match self {
            Self::Own { message, .. } => {
                ToolError::own_input(&at.to_string(), path, &message, signature)
            }
            Self::Call(error) => ToolError::of_call(*error, at, signature, Vec::new),
        }
    }
}

fn text(arguments: &RawValue, key: &str) -> Option<String> {
    let value = Fields::of(arguments.get())?.get(key)?;
    text_of(value).map(Cow::into_owned)
}

/// A skill is text of its server: a model is told whose it is.
fn origin_block(skill: &SkillOrigin) -> String {
    let server = &skill.server;
    let mut text = if server.is_scripts() {
        "[a skill of the user's own folder skills/]".to_owned()
    } else {
        format!(
            "[a skill of the server `{server}`, which wrote it; it speaks for that server alone]"
        )
    };
    for file in skill.files.iter().take(SKILL_FILES_SHOWN) {
        text.push('\n');
        text.push_str(&printable::one_line_of(file, SKILL_URI_CHARS_MAX));
    }
    text_block(&text)
}

/// One content of a resource. A picture or a sound is shown as what it is.
fn content_block(content: &RawValue) -> String {
    let fields = Fields::of(content.get());
    let get = |key: &str| fields.as_ref().and_then(|it| it.filled(key));
    let mime = get("mimeType").and_then(text_of).unwrap_or_default();
    let kind = ["image", "audio"]
        .into_iter()
        .find(|kind| mime.split('/').next() == Some(kind));
    match (kind, get("blob")) {
        (Some(kind), Some(blob)) => {
            let mime = Value::from(&*mime);
            format!(r#"{{"type":"{kind}","data":{blob},"mimeType":{mime}}}"#)
        }
        _ => format!(r#"{{"type":"resource","resource":{content}}}"#),
    }
}

fn message_blocks(message: &RawValue) -> Vec<String> {
    let fields = Fields::of(message.get());
    let Some(content) = fields.and_then(|it| it.get("content")) else {
        return Vec::new();
    };
    let role = text(message, "role").unwrap_or_default();
    match text(content, "text") {
        Some(written) => vec![text_block(&format!("{role}: {written}"))],
        None => vec![text_block(&format!("{role}:")), content.get().to_owned()],
    }
}
