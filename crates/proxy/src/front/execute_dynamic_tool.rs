//! `execute_dynamic_tool`: find it, check it, call it, cut it to size.

use std::{sync::Arc, time::Duration};

use fleet::{Failure, Json, Ran, Request};
use registry::{Entry, FindError, Generation};
use serde_json::{Map, Value, value::RawValue};
use tool::{ServerName, Violation};
use tracing::debug;

use super::{
    Budget, CallContext, Front, Origin, Reply, ToolError,
    budget::Answer,
    built_in::is_own,
    envelope::{ExecuteRequest, Input, Options, json_of, sole_object},
    error::Signed,
};
use crate::{config::Client, results::ResultStore};

/// The longest a call may ask us to wait, in milliseconds: an hour.
const TIMEOUT_MS_MAX: u64 = 3_600_000;

impl Front {
    pub(super) async fn execute_dynamic_tool(
        &self,
        arguments: Option<&RawValue>,
        context: CallContext,
    ) -> Result<Reply, ToolError> {
        let request = ExecuteRequest::parse(arguments)?;
        let called = self.call(request, context).await?;
        Ok(called.reply(&self.results).await)
    }

    /// Calls a tool; how much of its result is sent is decided later.
    pub(super) async fn call(
        &self,
        request: ExecuteRequest,
        context: CallContext,
    ) -> Result<Called, ToolError> {
        let ExecuteRequest {
            tool_name,
            input,
            options,
            repairs,
        } = request;
        if !repairs.is_empty() {
            debug!(tool = tool_name, ?repairs, "mended the envelope");
        }
        let generation = self.generation().await?;
        let client = Arc::clone(&context.client);
        let entry = find(&generation, &tool_name, &client)?;
        let arguments = checked(entry, input)?;
        if options.dry_run {
            let text = format!("would call {} {}", entry.at, arguments.as_str());
            return Ok(Called::Own(Reply::text(&text)));
        }
        if is_own(entry) {
            let arguments = RawValue::from_string(arguments.as_str().to_owned());
            let arguments = arguments.map_err(|error| ToolError::Internal(error.to_string()))?;
            let reply = self.call_own(entry, &arguments, &options, context).await?;
            return Ok(Called::Own(reply));
        }
        let habits = context.habits;
        let request = Request {
            tool: entry.at.tool.clone(),
            arguments,
            meta: context.meta,
            progress: context.progress,
            log: context.log,
            caller: context.seat,
            limit: self.limit(entry, &options),
            limit_is_final: options.timeout_ms.is_some(),
            is_safe: is_safe(entry),
        };
        let call = self.fleet.call(&entry.at.server, &request, &context.cancel);
        let answer = call.await;
        self.usage.record(&entry.at, answer.is_ok());
        let result = answer.map_err(|error| {
            self.learn(habits.as_deref(), &entry.at, || false);
            let available = || self.available(&generation, &client);
            ToolError::of_call(error, &entry.at, entry.signature(), available)
        })?;
        let budget = Budget {
            is_off: options.raw,
            ..Budget::new(self.max_tokens(entry, &options, &client))
        };
        let origin = Origin {
            caller: context.caller,
            tool: entry.at.to_string(),
        };
        let called = Called::Server {
            result,
            budget,
            origin,
        };
        self.learn(habits.as_deref(), &entry.at, || !called.is_error());
        Ok(called)
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

    /// How much of a result its caller is sent, in tokens: what the call says, else its tool,
    /// else its server, else what its client or the configuration for all has. The one place
    /// that decides it.
    pub(super) fn max_tokens(&self, entry: &Entry, options: &Options, client: &Client) -> u64 {
        let config = self.config();
        let of_tool = config.tool_limits(&entry.at);
        let of_tool = of_tool.and_then(|limits| limits.max_tokens);
        let of_server = config.server(&entry.at.server);
        let of_server = of_server.and_then(|server| server.max_tokens);
        let configured = client.max_tokens(of_tool.or(of_server), config.results.max_tokens);
        options.max_tokens.unwrap_or(configured)
    }

    /// Servers that have tools and did not fail last time.
    fn available(&self, generation: &Generation, client: &Client) -> Vec<ServerName> {
        let servers = generation.servers().iter();
        let servers = servers.filter(|server| client.sees(&server.name, &server.category));
        let up = servers.filter(|server| server.tools > 0 && !self.fleet.is_down(&server.name));
        up.map(|server| server.name.clone()).collect()
    }
}

/// What a call brought, before it is cut to size.
pub(super) enum Called {
    Server {
        result: Json,
        budget: Budget,
        origin: Origin,
    },
    /// Of a tool of ours, which keeps to its budget itself.
    Own(Reply),
}

impl Called {
    pub(super) async fn reply(self, store: &ResultStore) -> Reply {
        match self {
            Self::Server {
                result,
                budget,
                origin,
            } => budget.fit(result, origin, store).await,
            Self::Own(reply) => reply,
        }
    }

    pub(super) fn is_error(&self) -> bool {
        match self {
            Self::Server { result, .. } => Answer::read(result.as_str()).is_error(),
            Self::Own(reply) => reply.is_error(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Server { result, .. } => result.len(),
            Self::Own(reply) => reply.json().len(),
        }
    }
}

/// Whether a second call does what one does, as the server says of its tool.
fn is_safe(entry: &Entry) -> bool {
    let says = entry.tool.annotations();
    says.read_only == Some(true) || says.idempotent == Some(true)
}

/// Resolves a name once; everything after uses the one result. A client is told of no tool that
/// it does not see, but for the one it names itself.
pub(super) fn find<'a>(
    generation: &'a Generation,
    asked: &str,
    client: &Client,
) -> Result<&'a Entry, ToolError> {
    match find_any(generation, asked, client) {
        Ok(entry) => match client.refuses(&entry.at.server, &entry.category) {
            Some(rule) => Err(ToolError::Denied {
                tool: entry.at.clone(),
                table: client.table.clone().unwrap_or_default(),
                rule,
            }),
            None => Ok(entry),
        },
        Err(error) => Err(error),
    }
}

fn find_any<'a>(
    generation: &'a Generation,
    asked: &str,
    client: &Client,
) -> Result<&'a Entry, ToolError> {
    let is_seen = |at: &tool::ToolRef| {
        let entry = generation.find(&at.to_string()).ok();
        entry.is_some_and(|entry| client.sees(&entry.at.server, &entry.category))
    };
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
    generation.find(asked).or_else(|error| match error {
        FindError::Unknown { asked, mut near } => {
            near.retain(is_seen);
            Err(
                toolless(generation, &asked).unwrap_or_else(|| ToolError::UnknownTool {
                    asked,
                    near: signed(near),
                }),
            )
        }
        FindError::Ambiguous {
            asked,
            mut candidates,
        } => {
            candidates.retain(is_seen);
            if let [only] = candidates.as_slice()
                && let Ok(entry) = generation.find(&only.to_string())
            {
                return Ok(entry);
            }
            Err(ToolError::AmbiguousTool {
                asked,
                candidates: signed(candidates),
            })
        }
        FindError::Denied { at, rule } => Err(ToolError::Denied {
            table: format!("servers.{}", at.server),
            tool: at,
            rule,
        }),
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
