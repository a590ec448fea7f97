//! Prompts and resources for a model whose client does not show any: `proxy/read_resource`,
//! `proxy/list_resources`, `proxy/get_prompt`.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::{Fields, Json, text_of};
use registry::Entry;
use results::{Budget, ResultStore};
use serde_json::{Value, json, value::RawValue};

use crate::{
    built_in::{BuiltInTool, OwnCall, Tools},
    call_context::CallContext,
    catalog::Catalog,
    dispatcher::outcome::CallOutcome,
    error::ToolError,
    forward::{
        ForwardError, Forwarder, ItemKinds, SkillOrigin, json_text, matching_lines,
        origin_of_skill, seen,
    },
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
        tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        let max_tokens = call.max_tokens(tools);
        self.read(call, max_tokens).boxed()
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
        tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        let max_tokens = call.max_tokens(tools);
        self.get(call, max_tokens).boxed()
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
        async move { list_resources(&self.catalog, call.arguments, &call.context).await }.boxed()
    }
}

impl ReadResource {
    /// The resource as blocks that a model reads, within its budget.
    async fn read(
        &self,
        OwnCall {
            entry,
            arguments,
            context,
            ..
        }: OwnCall<'_>,
        max_tokens: u64,
    ) -> Result<ToolReply, ToolError> {
        let uri = text(arguments, "uri").unwrap_or_default();
        let generation = self.forwarder.catalog.generation().await?;
        let read = self
            .forwarder
            .read_resource(&generation, &uri, &Vec::new(), &context)
            .await;
        let result =
            read.map_err(|refusal| refusal.into_tool_error(&entry.at, "uri", entry.signature()))?;
        let blocks = elements(result.as_str(), "contents");
        let origin = origin_of_skill(&generation, &uri, &context).map(|it| origin_block(&it));
        let blocks = blocks.into_iter().map(content_block);
        let blocks: Vec<String> = origin.into_iter().chain(blocks).collect();
        Ok(fit(&self.results, entry, &blocks, max_tokens, &context).await)
    }
}

impl GetPrompt {
    /// The messages of a prompt, each under its role.
    async fn get(
        &self,
        OwnCall {
            entry,
            arguments,
            context,
            ..
        }: OwnCall<'_>,
        max_tokens: u64,
    ) -> Result<ToolReply, ToolError> {
        let name = text(arguments, "name").unwrap_or_default();
        let own = Fields::of(arguments.get()).and_then(|it| it.filled("arguments"));
        let own = own.map(|raw| Json::from(raw.to_owned()));
        let mut params = vec![("name".into(), json_text(&name))];
        params.extend(own.map(|own| ("arguments".into(), own)));
        let generation = self.forwarder.catalog.generation().await?;
        let seen = seen(&generation, &context.policy);
        let got = self.forwarder.get_prompt(&seen, &params, &context).await;
        let result =
            got.map_err(|refusal| refusal.into_tool_error(&entry.at, "name", entry.signature()))?;
        let messages = elements(result.as_str(), "messages");
        let blocks: Vec<String> = messages.into_iter().flat_map(message_blocks).collect();
        Ok(fit(&self.results, entry, &blocks, max_tokens, &context).await)
    }
}

/// Lists items, one a line: those that match the words best, or all from an offset on.
async fn list_resources(
    catalog: &Catalog,
    arguments: &RawValue,
    context: &CallContext,
) -> Result<ToolReply, ToolError> {
    let generation = catalog.generation().await?;
    let mut seen = seen(&generation, &context.policy);
    if let Some(server) = text(arguments, "server") {
        seen.retain(|it| tool::fold(it.name.as_str()) == tool::fold(&server));
    }
    let offset = Fields::of(arguments.get()).and_then(|it| it.get("offset")?.get().parse().ok());
    let offset: usize = offset.unwrap_or(0);
    let query = text(arguments, "query").unwrap_or_default();
    let lines = matching_lines(&seen, ItemKinds::RESOURCES, &query);
    let total = lines.len();
    let mut shown: Vec<String> = lines.into_iter().skip(offset).take(LINES_MAX).collect();
    let end = offset + shown.len();
    shown.insert(0, format!("{} of {total}", shown.len()));
    if end < total {
        shown.push(format!("more: \"offset\":{end}"));
    }
    let text = shown.join("\n");
    Ok(ToolReply::text(&crate::render::whole_lines(
        text,
        catalog.settings().room(&context.policy),
    )))
}

async fn fit(
    results: &ResultStore,
    entry: &Entry,
    blocks: &[String],
    max_tokens: u64,
    context: &CallContext,
) -> ToolReply {
    let result = Json::of_built(format!(r#"{{"content":[{}]}}"#, blocks.join(",")));
    let called = CallOutcome::Server {
        result,
        budget: Budget::new(max_tokens),
        origin: context.origin(entry.at.to_string()),
        note: None,
        app: None,
        record: None,
    };
    called.reply(results).await
}

impl ForwardError {
    /// Converts the refusal to a tool error for a model.
    fn into_tool_error(self, at: &tool::ToolRef, path: &str, signature: &str) -> ToolError {
        match self {
            Self::Own { message, .. } => {
                ToolError::own_input(&at.to_string(), path, &message, signature)
            }
            Self::Call(error) => ToolError::of_call(*error, at, signature, Vec::new),
        }
    }
}

fn text(arguments: &RawValue, key: &str) -> Option<String> {
    let fields = Fields::of(arguments.get())?;
    fields
        .get(key)
        .and_then(text_of)
        .map(std::borrow::Cow::into_owned)
}

fn elements<'r>(result: &'r str, key: &str) -> Vec<&'r RawValue> {
    let list = Fields::of(result).and_then(|fields| fields.get(key));
    list.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

/// A skill is text of its server: a model is told whose it is.
fn origin_block(skill: &SkillOrigin) -> String {
    let mut text = if skill.server.is_scripts() {
        "[a skill of the user's own folder skills/]".to_owned()
    } else {
        let server = &skill.server;
        format!(
            "[a skill of the server `{server}`, which wrote it; it speaks for that server alone]"
        )
    };
    let files = skill.files.iter().take(SKILL_FILES_SHOWN);
    for file in files {
        text.push('\n');
        text.push_str(&printable::one_line_of(file, SKILL_URI_CHARS_MAX));
    }
    json!({"type": "text", "text": text}).to_string()
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
            format!(
                r#"{{"type":"{kind}","data":{},"mimeType":{mime}}}"#,
                blob.get()
            )
        }
        _ => format!(r#"{{"type":"resource","resource":{}}}"#, content.get()),
    }
}

fn message_blocks(message: &RawValue) -> Vec<String> {
    let fields = Fields::of(message.get());
    let get = |key: &str| fields.as_ref().and_then(|it| it.get(key));
    let role = get("role").and_then(text_of).unwrap_or_default();
    let Some(content) = get("content") else {
        return Vec::new();
    };
    let block = Fields::of(content.get());
    let written = block
        .as_ref()
        .and_then(|it| it.get("text"))
        .and_then(text_of);
    match written {
        Some(written) => {
            vec![json!({"type": "text", "text": format!("{role}: {written}")}).to_string()]
        }
        None => vec![
            json!({"type": "text", "text": format!("{role}:")}).to_string(),
            content.get().to_owned(),
        ],
    }
}
