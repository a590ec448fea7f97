//! `proxy/call_many`: several calls in one turn, their answers in one.

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use jsonrpc::Fields;
use results::{Budget, Origin, ResultStore, fit, text_block};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    built_in::{BuiltInTool, CALL_MANY, OwnCall, Tools, internal},
    call_context::CallContext,
    dispatcher::outcome::CallOutcome,
    envelope::ExecuteRequest,
    error::{Audience, ToolError},
    reply::ToolReply,
};

/// Calls under way at one time.
const PARALLEL_MAX: usize = 16;

/// The cost of the line over each answer, in tokens.
const MARK_TOKENS: usize = 24;

#[derive(Deserialize)]
struct CallManyInput {
    calls: Vec<Box<RawValue>>,
    #[serde(default)]
    stop_on_error: bool,
}

/// One of the calls, and its outcome.
struct SubCall {
    name: String,
    /// The size of the result; 0 for an error of ours.
    bytes: usize,
    outcome: CallOutcome,
}

/// `proxy/call_many`.
#[derive(Debug)]
pub(crate) struct CallMany {
    pub(crate) results: ResultStore,
}

impl BuiltInTool for CallMany {
    fn call<'a>(
        &'a self,
        call: OwnCall<'a>,
        tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        call_many(&self.results, call, tools).boxed()
    }
}

async fn call_many(
    store: &ResultStore,
    call: OwnCall<'_>,
    tools: &dyn Tools,
) -> Result<ToolReply, ToolError> {
    let asked: CallManyInput = serde_json::from_str(call.arguments.get()).map_err(internal)?;
    let context = &call.context;
    let calls = if asked.stop_on_error {
        call_in_turn(&asked.calls, context, tools).await
    } else {
        let calls = asked.calls.into_iter();
        let calls = calls.map(|call| async move { call_one(&call, context, tools).await }.boxed());
        stream::iter(calls).buffered(PARALLEL_MAX).collect().await
    };
    let replies = fit_all(calls, store, context, call.max_tokens).await;
    Ok(join(&replies))
}

/// Gives each answer an equal share of the budget, and what shorter ones leave of theirs.
async fn fit_all(
    calls: Vec<SubCall>,
    store: &ResultStore,
    context: &CallContext,
    max_tokens: u64,
) -> Vec<(String, ToolReply)> {
    let count = calls.len();
    let mut left = usize::try_from(max_tokens)
        .unwrap_or(usize::MAX)
        .saturating_sub(count * MARK_TOKENS);
    let mut calls: Vec<(usize, SubCall)> = calls.into_iter().enumerate().collect();
    calls.sort_by_key(|(_, call)| call.bytes);
    let mut replies = Vec::new();
    for (nth, (place, call)) in calls.into_iter().enumerate() {
        let share = left / (count - nth);
        let reply = fit_one(call.outcome, store, context, share).await;
        left = left.saturating_sub(reply.tokens().await);
        replies.push((place, (call.name, reply)));
    }
    replies.sort_by_key(|(place, _)| *place);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

async fn fit_one(
    outcome: CallOutcome,
    store: &ResultStore,
    context: &CallContext,
    share: usize,
) -> ToolReply {
    match outcome {
        CallOutcome::Own(reply) => {
            // Our texts are short, but the share may be too.
            let budget = Budget {
                is_ours: true,
                ..Budget::new(u64::MAX).share(share)
            };
            let origin = Origin {
                reads_on: true,
                ..context.origin()
            };
            ToolReply::from(fit(reply.json().clone(), budget, origin, store).await)
        }
        mut called @ CallOutcome::Server { .. } => {
            if let CallOutcome::Server { budget, app, .. } = &mut called {
                *budget = budget.share(share);
                *app = None;
            }
            called.reply(store).await
        }
    }
}

async fn call_in_turn(
    calls: &[Box<RawValue>],
    context: &CallContext,
    tools: &dyn Tools,
) -> Vec<SubCall> {
    let mut made = Vec::new();
    let mut failed = false;
    for call in calls {
        let call = if failed {
            let text = "not called: a call before it failed, and stop_on_error is set";
            SubCall {
                name: name_of(call),
                bytes: 0,
                outcome: CallOutcome::Own(ToolReply::text(text)),
            }
        } else {
            call_one(call, context, tools).await
        };
        failed |= call.outcome.is_error();
        made.push(call);
    }
    made
}

async fn call_one(call: &RawValue, context: &CallContext, tools: &dyn Tools) -> SubCall {
    let name = name_of(call);
    let called = match ExecuteRequest::parse(Some(call)) {
        Ok(request) if is_ourselves(&request.tool_name) => Err(ToolError::own_input(
            "proxy/call_many",
            "tool_name",
            "one call_many cannot make another",
            "(calls: {tool_name, tool_input}[])",
        )),
        Ok(request) => tools.call(request, context.clone()).await,
        Err(error) => Err(error),
    };
    let (bytes, outcome) = match called {
        Ok(called) => (called.bytes(), called),
        Err(error) => (
            0,
            CallOutcome::Own(ToolReply::error(&error, Audience::Model)),
        ),
    };
    SubCall {
        name,
        bytes,
        outcome,
    }
}

/// The tool name in a call, which may be written in any of the accepted forms.
fn name_of(call: &RawValue) -> String {
    let request = ExecuteRequest::parse(Some(call));
    let name = request.map(|request| request.tool_name);
    let name = name.unwrap_or_else(|_| "?".to_owned());
    printable::one_line_of(&name, 100)
}

fn is_ourselves(name: &str) -> bool {
    let folded = tool::fold(name);
    folded.ends_with(&tool::fold(CALL_MANY)) && (folded.len() < 12 || folded.contains("proxy"))
}

/// Joins all results; the joined result is an error only if every one is.
fn join(replies: &[(String, ToolReply)]) -> ToolReply {
    let count = replies.len();
    let mut blocks = Vec::new();
    for (at, (name, reply)) in replies.iter().enumerate() {
        let ended = if reply.is_error() { "error" } else { "ok" };
        blocks.push(text_block(&format!(
            "[{} of {count}: {name} {ended}]",
            at + 1
        )));
        let content = Fields::of(reply.json().as_str()).and_then(|fields| fields.content());
        let content = content.unwrap_or_default();
        blocks.extend(content.iter().map(|block| block.get().to_owned()));
    }
    let is_error = count > 0 && replies.iter().all(|(_, reply)| reply.is_error());
    ToolReply::of_blocks(&blocks, is_error)
}
