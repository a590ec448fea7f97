//! Real MCP servers inside the program, for `proxy demo` and for journeys.
//!
//! A server is a list of tools: each has its definition, written as the JSON
//! a client sees, and a small function from arguments to an answer. What
//! they answer depends on their arguments alone (and, in `notes`, on what was
//! added before), except for the tool whose purpose is the time of day.

mod archive;
mod clock;
mod flaky;
mod notes;
mod text;

use std::{fmt, time::Duration};

use anyhow::{Context as _, bail};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
        Tool,
    },
    service::RequestContext,
    transport::io::stdio_pipes,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The servers [`run`] knows.
pub const NAMES: &[&str] = &["archive", "clock", "flaky", "notes", "text"];

/// How long a client may keep our lists: they never change.
const LIST_TTL_MS: u64 = 24 * 60 * 60 * 1_000;

/// Serves one of [`NAMES`] over standard input and output until the client
/// closes its end.
pub async fn run(name: &str) -> anyhow::Result<()> {
    let Some(server) = server(name) else {
        bail!("no demo server `{name}`; there are {}", NAMES.join(", "));
    };
    let session = server
        .serve(stdio_pipes())
        .await
        .with_context(|| format!("demo server `{name}` got no good first message"))?;
    session.waiting().await?;
    Ok(())
}

fn server(name: &str) -> Option<DemoServer> {
    match name {
        "archive" => Some(archive::server()),
        "clock" => Some(clock::server()),
        "flaky" => Some(flaky::server()),
        "notes" => Some(notes::server()),
        "text" => Some(text::server()),
        _ => None,
    }
}

#[derive(Debug)]
struct DemoServer {
    name: &'static str,
    instructions: &'static str,
    tools: Vec<DemoTool>,
}

struct DemoTool {
    definition: Tool,
    answer: Box<dyn Fn(JsonObject) -> Answer + Send + Sync>,
}

/// What a tool says: a reply, or why it refuses, in words a model can act on.
type Answer = Result<Reply, String>;

#[derive(Debug, PartialEq)]
enum Reply {
    Text(String),
    /// Any JSON, sent both as `structuredContent` and as text.
    Structured(Value),
    /// The text, but not before this time has passed.
    Late(Duration, String),
    /// No answer at all: the process ends with this code in the middle of the call.
    Crash(i32),
}

/// A tool from its definition and its function, whose argument type says
/// which arguments there are and what they default to.
fn tool<A, F>(definition: Value, answer: F) -> DemoTool
where
    A: DeserializeOwned,
    F: Fn(A) -> Answer + Send + Sync + 'static,
{
    DemoTool {
        definition: serde_json::from_value(definition)
            .expect("every definition here is a tool, which the tests prove"),
        answer: Box::new(move |arguments| {
            let arguments = serde_json::from_value(Value::Object(arguments))
                .map_err(|error| format!("bad arguments: {error}"))?;
            answer(arguments)
        }),
    }
}

impl fmt::Debug for DemoTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DemoTool")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}

impl DemoServer {
    fn find(&self, name: &str) -> Option<&DemoTool> {
        self.tools.iter().find(|tool| tool.definition.name == name)
    }
}

impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(
                format!("proxy-demo-{}", self.name),
                env!("CARGO_PKG_VERSION"),
            ))
            .with_instructions(self.instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self
            .tools
            .iter()
            .map(|tool| tool.definition.clone())
            .collect();
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(LIST_TTL_MS))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.find(&request.name) else {
            let message = format!("unknown tool `{}`", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let answer = (tool.answer)(request.arguments.unwrap_or_default());
        Ok(deliver(answer).await.into())
    }
}

async fn deliver(answer: Answer) -> CallToolResult {
    match answer {
        Ok(Reply::Text(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Ok(Reply::Structured(value)) => CallToolResult::structured(value),
        Ok(Reply::Late(wait, text)) => {
            tokio::time::sleep(wait).await;
            CallToolResult::success(vec![ContentBlock::text(text)])
        }
        Ok(Reply::Crash(code)) => std::process::exit(code),
        Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
    }
}

#[cfg(test)]
mod tests;
