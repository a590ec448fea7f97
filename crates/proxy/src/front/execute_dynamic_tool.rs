//! `execute_dynamic_tool`: find it, check it, call it, cut it to size.

use std::time::Duration;

use fleet::{Failure, Json, Ran, Request};
use registry::{Entry, FindError, Generation};
use serde_json::{Map, Value, value::RawValue};
use tool::{ServerName, Violation};
use tracing::debug;

use super::{
    CallContext, Front, Reply, ToolError,
    budget::Budget,
    envelope::{ExecuteRequest, Input, Options, json_of, sole_object},
    error::Signed,
};

/// The longest a call may ask us to wait, in milliseconds: an hour.
const TIMEOUT_MS_MAX: u64 = 3_600_000;

impl Front {
    pub(super) async fn execute_dynamic_tool(
        &self,
        arguments: Option<&RawValue>,
        context: CallContext,
    ) -> Result<Reply, ToolError> {
        let ExecuteRequest {
            tool_name,
            input,
            options,
            repairs,
        } = ExecuteRequest::parse(arguments)?;
        if !repairs.is_empty() {
            debug!(tool = tool_name, ?repairs, "mended the envelope");
        }
        let generation = self.generation().await?;
        let entry = find(&generation, &tool_name)?;
        let arguments = checked(entry, input)?;
        if options.dry_run {
            return Ok(Reply::text(&format!(
                "would call {} {}",
                entry.at,
                arguments.as_str()
            )));
        }
        let request = Request {
            tool: entry.at.tool.clone(),
            arguments,
            meta: context.meta,
            progress: context.progress,
            log: context.log,
            caller: context.caller,
            limit: self.limit(entry, &options),
            limit_is_final: options.timeout_ms.is_some(),
            is_safe: is_safe(entry),
        };
        let call = self.fleet.call(&entry.at.server, &request, &context.cancel);
        let answer = call.await;
        self.usage.record(&entry.at, answer.is_ok());
        let result = answer.map_err(|error| {
            let available = || self.available(&generation);
            ToolError::of_call(error, &entry.at, entry.signature(), available)
        })?;
        let budget = self.budget(entry, &options);
        Ok(budget.fit(result, &self.results).await)
    }

    /// How long the caller waits: what the call says, else its tool; else the server's own limit.
    fn limit(&self, entry: &Entry, options: &Options) -> Option<Duration> {
        let asked = options
            .timeout_ms
            .map(|ms| Duration::from_millis(ms.min(TIMEOUT_MS_MAX)));
        let config = self.config();
        let limits = config.tool_limits(&entry.at);
        asked.or_else(|| limits.and_then(|limits| limits.timeout))
    }

    fn budget(&self, entry: &Entry, options: &Options) -> Budget {
        let config = self.config();
        let of_tool = config.tool_limits(&entry.at);
        let of_tool = of_tool.and_then(|limits| limits.max_tokens);
        let of_server = config.server(&entry.at.server);
        let of_server = of_server.and_then(|server| server.max_tokens);
        let configured = of_tool.or(of_server).unwrap_or(config.results.max_tokens);
        Budget {
            max_tokens: options.max_tokens.unwrap_or(configured),
            is_off: options.raw,
        }
    }

    /// Servers that have tools and did not fail last time.
    fn available(&self, generation: &Generation) -> Vec<ServerName> {
        let servers = generation.servers().iter();
        let up = servers.filter(|server| server.tools > 0 && !self.fleet.is_down(&server.name));
        up.map(|server| server.name.clone()).collect()
    }
}

/// Whether a second call does what one does, as the server says of its tool.
fn is_safe(entry: &Entry) -> bool {
    let says = entry.tool.annotations();
    says.read_only == Some(true) || says.idempotent == Some(true)
}

/// Resolves a name once; everything after uses the one result.
pub(super) fn find<'a>(generation: &'a Generation, asked: &str) -> Result<&'a Entry, ToolError> {
    let signed = |refs: Vec<tool::ToolRef>| {
        let sign = |at: tool::ToolRef| {
            let entry = generation.find(&at.to_string()).ok();
            let signature = entry
                .map(|entry| entry.signature().to_owned())
                .unwrap_or_default();
            Signed { at, signature }
        };
        refs.into_iter().map(sign).collect()
    };
    generation.find(asked).map_err(|error| match error {
        FindError::Unknown { asked, near } => {
            toolless(generation, &asked).unwrap_or_else(|| ToolError::UnknownTool {
                asked,
                near: signed(near),
            })
        }
        FindError::Ambiguous { asked, candidates } => ToolError::AmbiguousTool {
            asked,
            candidates: signed(candidates),
        },
        FindError::Denied { at, rule } => ToolError::Denied { tool: at, rule },
    })
}

/// A name on a server that has never told its tools: why it has not is the answer.
fn toolless(generation: &Generation, asked: &str) -> Option<ToolError> {
    let (server, _) = asked.split_once('/')?;
    let servers = generation.servers().iter();
    let mut silent = servers.clone().filter(|known| known.surveyed_at.is_none());
    let known = silent.find(|known| known.name.as_str() == server)?;
    let others = servers.filter(|known| known.tools > 0 && known.stale.is_none());
    Some(ToolError::ServerUnavailable {
        server: known.name.clone(),
        failure: Box::new(Failure::new(known.stale.clone()?)),
        tries: 0,
        ran: Ran::No,
        available: others.map(|known| known.name.clone()).collect(),
    })
}

/// The arguments as they will be sent: byte for byte as they came unless something in them had
/// to be mended.
fn checked(entry: &Entry, input: Input) -> Result<Json, ToolError> {
    let map = input.to_map();
    let violations = match entry.checker().check(&map) {
        Ok(None) => return Ok(input.into_json()),
        Ok(Some(coerced)) => return Ok(json_of(&coerced)),
        Err(violations) => violations,
    };
    match unwrapped(entry, &map) {
        Some(inner) => Ok(json_of(&inner)),
        None => Err(invalid(entry, violations)),
    }
}

/// `{"arguments": {...}}` where the tool has no such argument and takes what is inside.
fn unwrapped(entry: &Entry, map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let inner = sole_object(map)?;
    match entry.checker().check(&inner) {
        Ok(None) => Some(inner),
        Ok(Some(coerced)) => Some(coerced),
        Err(_) => None,
    }
}

fn invalid(entry: &Entry, violations: Vec<Violation>) -> ToolError {
    ToolError::InvalidInput {
        tool: entry.at.to_string(),
        violations,
        signature: entry.signature().to_owned(),
    }
}
