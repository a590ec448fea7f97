//! The built-in server `proxy`: tools that a model calls through the three tools, besides those of
//! servers.

mod call_many;
mod list;
mod read_result;
mod resources;
mod run_script;
mod types;
mod workspace;

use std::{
    collections::BTreeMap,
    fmt::{Debug, Display},
    sync::Arc,
};

use futures::future::BoxFuture;
use registry::{BuiltIn, Entry};
use serde_json::value::RawValue;
use tool::{Capability, Tool};

use crate::{
    call_context::CallContext,
    dispatcher::outcome::CallOutcome,
    envelope::{ExecuteRequest, Options},
    error::ToolError,
    reply::ToolReply,
};

pub(crate) use call_many::CallMany;
pub(crate) use list::List;
pub(crate) use read_result::ReadResult;
pub(crate) use resources::{GetPrompt, ListResources, ReadResource};
#[cfg(test)]
pub(crate) use run_script::reach::Reach;
pub(crate) use run_script::{RunScript, reach::Parts};
pub(crate) use types::{DeclareTypes, declare_all};

/// A tool of ours, or the saved scripts.
pub(crate) trait BuiltInTool: Debug + Send + Sync {
    /// Answers a call. Calls that it makes itself go through `tools`.
    fn call<'a>(
        &'a self,
        call: OwnCall<'a>,
        tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>>;
}

/// A call of a tool of ours or of a saved script, with arguments that fit its schema.
#[derive(Debug)]
pub(crate) struct OwnCall<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) arguments: &'a RawValue,
    pub(crate) options: &'a Options,
    pub(crate) context: CallContext,
    /// The largest part of the answer that is sent to its caller, in tokens.
    pub(crate) max_tokens: u64,
}

/// All tools, for a tool of ours that calls others.
pub(crate) trait Tools: Send + Sync {
    /// Makes a call as a client would.
    fn call(
        &self,
        request: ExecuteRequest,
        context: CallContext,
    ) -> BoxFuture<'_, Result<CallOutcome, ToolError>>;
}

/// The tools of ours by name.
#[derive(Debug)]
pub(crate) struct BuiltInTools(pub(crate) BTreeMap<&'static str, Arc<dyn BuiltInTool>>);

impl BuiltInTools {
    /// The tool that answers a call of this entry.
    pub(crate) fn find(&self, entry: &Entry) -> Result<&dyn BuiltInTool, ToolError> {
        let name = if entry.at.server.is_scripts() {
            RUN_SCRIPT
        } else {
            entry.at.tool.as_str()
        };
        let found = self.0.get(name).map(AsRef::as_ref);
        found.ok_or_else(|| ToolError::Internal(format!("no way to run {name}")))
    }
}

pub(crate) const READ_RESULT: &str = "read_result";
pub(crate) const CALL_MANY: &str = "call_many";
pub(crate) const READ_RESOURCE: &str = "read_resource";
pub(crate) const LIST_RESOURCES: &str = "list_resources";
pub(crate) const GET_PROMPT: &str = "get_prompt";
pub(crate) const LIST: &str = "list";
pub(crate) const RUN_SCRIPT: &str = "run_script";
pub(crate) const TYPES: &str = "types";

const TOOLS: [&str; 8] = [
    concat!(
        r#"{"name":"read_result","#,
        r#""description":"Read on in a result that was cut, by the handle its footer names. Say one of: part (by number; all parts joined are the whole), offset and limit (lines or bytes), grep, select.","#,
        r#""inputSchema":{"type":"object","properties":{"#,
        r#""handle":{"type":"string"},"#,
        r#""part":{"type":"integer","minimum":1},"#,
        r#""offset":{"type":"integer","description":"lines (or bytes, or matches of grep) to pass over; negative counts from the end"},"#,
        r#""limit":{"type":"integer","minimum":1,"description":"how many lines, bytes or matches"},"#,
        r#""unit":{"enum":["lines","bytes"],"default":"lines","description":"of offset and limit"},"#,
        r#""grep":{"type":"string","description":"regular expression; answers matching lines with numbers and two lines around"},"#,
        r#""select":{"type":"string","description":"jq expression, such as .items[3].name or [.items[] | {id, title}]"}"#,
        r#"},"required":["handle"]},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    ),
    concat!(
        r#"{"name":"call_many","#,
        r#""description":"Make several calls in one turn, up to 16 of them in parallel. The answers come in the order of the calls, each marked; one that fails does not hide the others.","#,
        r#""inputSchema":{"type":"object","properties":{"#,
        r#""calls":{"type":"array","minItems":1,"maxItems":64,"items":{"type":"object","properties":{"#,
        r#""tool_name":{"type":"string"},"tool_input":{"type":"object"}}}},"#,
        r#""stop_on_error":{"type":"boolean","default":false,"description":"one call after the other; the first that fails ends it"}"#,
        r#"},"required":["calls"]},"#,
        r#""annotations":{"readOnlyHint":false,"openWorldHint":true}}"#,
    ),
    concat!(
        r#"{"name":"read_resource","#,
        r#""description":"Read an MCP resource by its URI, such as a resource_link in a tool's result.","#,
        r#""inputSchema":{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":true}}"#,
    ),
    concat!(
        r#"{"name":"list_resources","#,
        r#""description":"MCP resources and resource templates of the servers, a line each.","#,
        r#""inputSchema":{"type":"object","properties":{"#,
        r#""query":{"type":"string","description":"words; left out: all"},"#,
        r#""server":{"type":"string"},"#,
        r#""offset":{"type":"integer","minimum":0}}},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    ),
    concat!(
        r#"{"name":"get_prompt","#,
        r#""description":"The messages of an MCP prompt, by the name under which a search lists it.","#,
        r#""inputSchema":{"type":"object","properties":{"name":{"type":"string"},"#,
        r#""arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["name"]},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":true}}"#,
    ),
    concat!(
        r#"{"name":"list","#,
        r#""description":"The connected servers, a line each: how many tools, what about, in which state, which of them were used most and last. With a server's name its tools.","#,
        r#""inputSchema":{"type":"object","properties":{"server":{"type":"string"},"#,
        r#""categories":{"type":"boolean","description":"the number of tools of each category instead"},"#,
        r#""popular":{"type":"boolean","description":"the most called tools of all servers instead"},"#,
        r#""top_n":{"type":"integer","minimum":1,"description":"of popular; 10 if left out"}}},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    ),
    concat!(
        r#"{"name":"run_script","#,
        r#""description":"Run TypeScript that calls many tools and answers with its value alone; what it read stays out of the context. Every server is a global: await github.create_issue({...}) is the tool's value: its structuredContent (members behind -> in a hit), else its text, parsed where it is JSON; tools[\"git-hub\"][\"a.b\"]({...}) where a name is no identifier, (...).raw the whole result. A tool error throws with code, server, text. Also search(words), describe(name), help(), print(...), args, sleep(ms), for await (const line of result(handle).lines()), result(handle).jq(filter), workspace.read/write/append/list/remove(path, text). Promise.all calls in parallel. The last expression, or what is returned, is the answer. No network, files, modules; 30 s, 100 calls.","#,
        r#""inputSchema":{"type":"object","properties":{"#,
        r#""script":{"type":"string"},"#,
        r#""args":{"description":"the value of args"},"#,
        r#""timeout_ms":{"type":"integer","minimum":1,"default":30000},"#,
        r#""max_tokens":{"type":"integer","minimum":1,"description":"of the answer"},"#,
        r#""dry_run":{"type":"boolean","default":false,"description":"answer the calls that would be made"}"#,
        r#"},"required":["script"]},"#,
        r#""annotations":{"readOnlyHint":false,"openWorldHint":true}}"#,
    ),
    concat!(
        r#"{"name":"types","#,
        r#""description":"TypeScript declarations of a server's tools, for run_script.","#,
        r#""inputSchema":{"type":"object","properties":{"server":{"type":"string"}},"required":["server"]},"#,
        r#""annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    ),
];

pub(crate) fn tools() -> Vec<BuiltIn> {
    let read = |json: &&str| {
        let tool = Tool::parse(json).expect("our own definitions can be read");
        let needs = match tool.name() {
            READ_RESOURCE | LIST_RESOURCES => Some(Capability::Resources),
            GET_PROMPT => Some(Capability::Prompts),
            _ => None,
        };
        BuiltIn { tool, needs }
    };
    TOOLS.iter().map(read).collect()
}

fn internal(error: impl Display) -> ToolError {
    ToolError::Internal(error.to_string())
}

pub(crate) fn is_own(entry: &Entry) -> bool {
    entry.at.server.is_built_in()
}

/// Returns true for a tool of ours or a saved script: its calls are sent to no server.
pub(crate) fn is_answered_here(entry: &Entry) -> bool {
    is_own(entry) || entry.at.server.is_scripts()
}

#[cfg(test)]
mod tests {
    #[test]
    fn our_own_definitions_can_be_read() {
        let names: Vec<String> = super::tools()
            .iter()
            .map(|it| it.tool.name().to_owned())
            .collect();
        let ours = [
            super::READ_RESULT,
            super::CALL_MANY,
            super::READ_RESOURCE,
            super::LIST_RESOURCES,
            super::GET_PROMPT,
            super::LIST,
            super::RUN_SCRIPT,
            super::TYPES,
        ];
        assert_eq!(names, ours);
    }
}
