//! A server of the demo: its tools, and the code that serves them.

use std::{fmt, time::Duration};

use anyhow::Context as _;
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
use serde_json::{Value, json};

/// The time for which a client may cache our lists: they never change.
const LIST_TTL_MS: u64 = 24 * 60 * 60 * 1_000;

#[derive(Debug)]
pub(super) struct DemoServer {
    pub(super) name: &'static str,
    pub(super) instructions: &'static str,
    pub(super) tools: Vec<DemoTool>,
}

pub(super) struct DemoTool {
    pub(super) definition: Tool,
    pub(super) answer: Box<dyn Fn(JsonObject) -> ToolOutcome + Send + Sync>,
}

/// The answer of a tool: a reply, or the reason for a refusal, in words that a model can act on.
pub(super) type ToolOutcome = Result<ToolReply, String>;

#[derive(Debug, PartialEq)]
pub(super) enum ToolReply {
    Text(String),
    /// Any JSON, sent both as `structuredContent` and as text.
    Structured(Value),
    /// The text, after this time has passed.
    Late(Duration, String),
    /// No answer at all: the process ends with this code in the middle of the call.
    Crash(i32),
}

/// Returns the schema of arguments.
pub(super) fn input(required: &[&str], properties: &Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

/// Creates a tool from its definition and its function. Arguments that were not given have the defaults of
/// the definition.
pub(super) fn tool<A, F>(definition: Value, answer: F) -> DemoTool
where
    A: DeserializeOwned,
    F: Fn(A) -> ToolOutcome + Send + Sync + 'static,
{
    let properties = definition["inputSchema"]["properties"].as_object();
    let default = |(name, it): (&String, &Value)| Some((name.clone(), it.get("default")?.clone()));
    let defaults: JsonObject = properties
        .into_iter()
        .flatten()
        .filter_map(default)
        .collect();
    DemoTool {
        definition: serde_json::from_value(definition)
            .expect("every definition here is a tool, which the tests prove"),
        answer: Box::new(move |arguments| {
            let mut given = defaults.clone();
            given.extend(arguments);
            let given = serde_json::from_value(Value::Object(given))
                .map_err(|error| format!("bad arguments: {error}"))?;
            answer(given)
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
    /// Serves until the client closes its end.
    pub(super) async fn serve_stdio(self) -> anyhow::Result<()> {
        let name = self.name;
        let session = self.serve(stdio_pipes()).await;
        let session =
            session.with_context(|| format!("demo server `{name}` got no good first message"))?;
        session.waiting().await?;
        Ok(())
    }

    pub(super) fn find(&self, name: &str) -> Option<&DemoTool> {
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

async fn deliver(answer: ToolOutcome) -> CallToolResult {
    match answer {
        Ok(ToolReply::Text(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Ok(ToolReply::Structured(value)) => CallToolResult::structured(value),
        Ok(ToolReply::Late(wait, text)) => {
            tokio::time::sleep(wait).await;
            CallToolResult::success(vec![ContentBlock::text(text)])
        }
        Ok(ToolReply::Crash(code)) => std::process::exit(code),
        Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
    }
}
