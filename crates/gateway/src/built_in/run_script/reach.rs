//! The interface of a script to the gateway: the tools that its client may call, searches, and its
//! workspace.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::Json;
use parking_lot::Mutex;
use registry::Entry;
use results::ResultStore;
use script::{CallSite, RequestError, RequestResult, ScriptRequest};
use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use telemetry::Recorder;
use tokio::task::spawn_blocking;
use tool::ServerName;

use super::{chunks::OpenResults, sites};
use crate::{
    built_in::{READ_RESULT, Tools, internal, workspace::Workspace},
    call_context::CallContext,
    catalog::Catalog,
    dispatcher::outcome::CallOutcome,
    envelope::{ExecuteRequest, Input, Options},
    error::ToolError,
    script_caller::ScriptCaller,
    tools::{
        describe_tool::{describe_json, describe_tool},
        search_tools::search_tools,
    },
};

/// The parts of the gateway that scripts use.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) results: ResultStore,
    pub(crate) recorder: Arc<Recorder>,
}

/// The access of one script to everything outside it.
pub(crate) struct Reach<'a> {
    parts: &'a Parts,
    tools: &'a dyn Tools,
    context: CallContext,
    workspace: Workspace,
    caller: ScriptCaller,
    dry_run: bool,
    opened: OpenResults,
    /// The calls that a dry run would make.
    planned: Mutex<Vec<String>>,
    /// The bytes of the results of its calls.
    read: AtomicU64,
}

impl<'a> Reach<'a> {
    pub(crate) fn new(
        parts: &'a Parts,
        tools: &'a dyn Tools,
        context: CallContext,
        caller: ScriptCaller,
        dry_run: bool,
    ) -> Self {
        Self {
            workspace: Workspace::of(&parts.catalog.settings().state_dir, &context.caller),
            parts,
            tools,
            context: CallContext {
                script: Some(caller.clone()),
                ..context
            },
            caller,
            dry_run,
            opened: OpenResults::default(),
            planned: Mutex::default(),
            read: AtomicU64::new(0),
        }
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The calls that a dry run would have made; `None` if they were made.
    pub(super) fn into_planned(self) -> Option<Vec<String>> {
        self.dry_run.then(|| self.planned.into_inner())
    }

    async fn call(&self, tool: String, input: Box<RawValue>) -> Result<Json, ToolError> {
        let request = ExecuteRequest {
            tool_name: tool,
            input: Input::AsSent(input),
            options: Options {
                // The whole result: a result cut for the model would be cut for the script too.
                raw: true,
                dry_run: self.dry_run,
                ..Options::default()
            },
            repairs: Vec::new(),
        };
        let called = self.tools.call(request, self.context.clone()).await?;
        let bytes = called.bytes() as u64;
        self.read.fetch_add(bytes, Ordering::Relaxed);
        Ok(match called {
            CallOutcome::Server { result, .. } => result,
            CallOutcome::Own(reply) => {
                if self.dry_run {
                    self.planned.lock().push(reply.printable());
                }
                reply.json().clone()
            }
        })
    }

    /// The first chunk is authorized and counted like any call.
    async fn read_chunk(&self, handle: &str, from: usize) -> Result<Box<RawValue>, ToolError> {
        if !self.opened.knows(handle) {
            let input = raw_of(&json!({"handle": handle, "offset": 0, "limit": 1}))?;
            let tool = format!("{}/{READ_RESULT}", ServerName::built_in());
            self.call(tool, input).await?;
        }
        let client = self.context.client.as_ref();
        let reading = self.opened.read(&self.parts.results, client, handle, from);
        raw_of(&reading.await?)
    }

    /// The tools that a search can find, of one server or of all.
    async fn list(&self, server: Option<String>) -> Result<Box<RawValue>, ToolError> {
        let generation = self.parts.catalog.generation().await?;
        let policy = Arc::clone(&self.context.policy);
        let listing = spawn_blocking(move || {
            let is_asked =
                |it: &Entry| server.as_ref().is_none_or(|of| it.at.server.as_str() == of);
            let entries = generation.entries().filter(|it| is_asked(it));
            let seen = entries.filter(|it| policy.sees(&it.at.server, &it.category));
            let tool = |it: &Entry| {
                let signature = format!("{}{}", it.at, it.signature());
                json!({"name": it.at.to_string(), "signature": signature, "description": it.purpose()})
            };
            raw_of(&seen.map(tool).collect::<Vec<_>>())
        });
        listing.await.map_err(internal)?
    }

    async fn ask(&self, question: ScriptRequest) -> Result<Box<RawValue>, ToolError> {
        match question {
            ScriptRequest::Call { tool, input } => {
                let result = self.call(tool, input).await?;
                RawValue::from_string(result.as_str().to_owned()).map_err(internal)
            }
            ScriptRequest::Search { query } => {
                let asked = raw_of(&json!({"query": query, "format": "json"}))?;
                let (catalog, recorder) = (&self.parts.catalog, &self.parts.recorder);
                let found = search_tools(catalog, recorder, Some(&asked), &self.context).await?;
                let found: Value = serde_json::from_str(&found.printable()).unwrap_or_default();
                raw_of(found.get("tools").unwrap_or(&json!([])))
            }
            ScriptRequest::Describe { name } => {
                let asked = raw_of(&json!({"name": name}))?;
                let (catalog, results) = (&self.parts.catalog, &self.parts.results);
                let told = describe_tool(catalog, results, Some(&asked), &self.context).await?;
                raw_of(&Value::from(told.printable()))
            }
            ScriptRequest::Help { name } => {
                let catalog = &self.parts.catalog;
                let entry = catalog.resolve(&name, &self.context.policy).await?;
                raw_of(&describe_json(catalog, &entry))
            }
            ScriptRequest::List { server } => self.list(server).await,
            ScriptRequest::Chunk { handle, from } => self.read_chunk(&handle, from).await,
            ScriptRequest::Workspace { verb, path, text } => {
                let changes = !matches!(verb.as_str(), "read" | "list" | "exists");
                if changes {
                    self.caller.check_may_change("the workspace")?;
                }
                if self.dry_run && changes {
                    let plan = format!("would {verb} {path} in the workspace");
                    self.planned.lock().push(plan);
                    return raw_of(&Value::Null);
                }
                let workspace = self.workspace.clone();
                let work = spawn_blocking(move || workspace.act(&verb, &path, text.as_deref()));
                let done = work.await.map_err(internal)?;
                let code = "workspace";
                raw_of(&done.map_err(|text| ToolError::Script { code, text })?)
            }
            ScriptRequest::Sleep { .. } => raw_of(&Value::Null),
        }
    }
}

impl script::Tools for Reach<'_> {
    fn check(&self, calls: Vec<CallSite>) -> BoxFuture<'_, Vec<String>> {
        async move {
            let mut mistakes = Vec::new();
            for site in calls {
                let name = format!("{}/{}", site.server, site.tool);
                let catalog = &self.parts.catalog;
                let mistake = match catalog.resolve(&name, &self.context.policy).await {
                    Ok(entry) => sites::check(&site, &entry),
                    Err(error) => Some(error.to_string()),
                };
                mistakes.extend(mistake.map(|why| format!("line {}: {why}", site.line)));
            }
            mistakes
        }
        .boxed()
    }

    fn answer(&self, question: ScriptRequest) -> BoxFuture<'_, RequestResult> {
        async move {
            let tool = match &question {
                ScriptRequest::Call { tool, .. } => tool.clone(),
                _ => String::new(),
            };
            self.ask(question).await.map_err(|error| {
                let (server, tool) = tool.split_once('/').unwrap_or_default();
                RequestError {
                    code: error.code().to_owned(),
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                    text: error.to_string(),
                    limit: match error {
                        ToolError::ScriptLimit(limit) => Some(limit),
                        _ => None,
                    },
                }
            })
        }
        .boxed()
    }
}

pub(super) fn raw_of(value: &impl Serialize) -> Result<Box<RawValue>, ToolError> {
    to_raw_value(value).map_err(internal)
}
