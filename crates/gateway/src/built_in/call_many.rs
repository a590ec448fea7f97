//! `proxy/call_many`: several calls in one turn, their answers in one.

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use jsonrpc::Fields;
use results::{Budget, Origin, ResultStore, fit, text_block};
use serde::Deserialize;
use serde_json::value::RawValue;
use tool::ClientId;

use crate::{
    built_in::{BuiltInTool, CALL_MANY, OwnCall, Tools},
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

/// The outcome of one of the calls.
enum SubCallOutcome {
    CallOutcome(String, Box<CallOutcome>),
    Failed(String, ToolError),
    /// Not made, since an earlier call failed; the name of the call.
    NotMade(String),
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
        let max_tokens = call.max_tokens(tools);
        let made = self.call_many(call.arguments, max_tokens, call.context, tools);
        made.boxed()
    }
}

impl CallMany {
    async fn call_many(
        &self,
        arguments: &RawValue,
        max_tokens: u64,
        context: CallContext,
        tools: &dyn Tools,
    ) -> Result<ToolReply, ToolError> {
        let asked: CallManyInput = serde_json::from_str(arguments.get())
            .map_err(|error| ToolError::Internal(error.to_string()))?;
        let outcomes = if asked.stop_on_error {
            call_in_turn(&asked.calls, &context, tools).await
        } else {
            let calls = asked.calls.into_iter().map(|call| {
                let context = &context;
                async move { call_one(&call, context, tools).await }.boxed()
            });
            stream::iter(calls).buffered(PARALLEL_MAX).collect().await
        };
        let replies = self
            .fit_all(outcomes, context.client.as_ref(), max_tokens)
            .await;
        Ok(join(&replies))
    }

    /// Gives each answer an equal share of the budget, and what shorter ones leave of theirs.
    async fn fit_all(
        &self,
        outcomes: Vec<SubCallOutcome>,
        client: Option<&ClientId>,
        max_tokens: u64,
    ) -> Vec<(String, ToolReply)> {
        let count = outcomes.len();
        let mut left = usize::try_from(max_tokens)
            .unwrap_or(usize::MAX)
            .saturating_sub(count * MARK_TOKENS);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|place| outcomes[*place].bytes());
        let mut outcomes: Vec<Option<SubCallOutcome>> = outcomes.into_iter().map(Some).collect();
        let mut replies: Vec<Option<(String, ToolReply)>> = (0..count).map(|_| None).collect();
        for (nth, place) in order.into_iter().enumerate() {
            let share = left / (count - nth);
            let Some(outcome) = outcomes[place].take() else {
                continue;
            };
            let (name, reply) = self.fit_one(outcome, client, share).await;
            left = left.saturating_sub(reply.tokens().await);
            replies[place] = Some((name, reply));
        }
        replies.into_iter().flatten().collect()
    }

    async fn fit_one(
        &self,
        outcome: SubCallOutcome,
        client: Option<&ClientId>,
        share: usize,
    ) -> (String, ToolReply) {
        let origin = |tool: &str| Origin {
            client: client.cloned(),
            tool: tool.to_owned(),
            reads_on: true,
        };
        let (name, reply) = match outcome {
            SubCallOutcome::CallOutcome(name, brought) => match *brought {
                CallOutcome::Server {
                    result,
                    budget,
                    origin,
                    note,
                    record,
                    app: _,
                } => {
                    let called = CallOutcome::Server {
                        result,
                        budget: budget.share(share),
                        origin,
                        note,
                        app: None,
                        record,
                    };
                    return (name, called.reply(&self.results).await);
                }
                CallOutcome::Own(reply) => (name, reply),
            },
            SubCallOutcome::Failed(name, error) => {
                (name, ToolReply::error(&error, Audience::Model))
            }
            SubCallOutcome::NotMade(name) => {
                let text = "not called: a call before it failed, and stop_on_error is set";
                (name, ToolReply::text(text))
            }
        };
        // Our texts are short, but the share may be too.
        let budget = Budget {
            is_ours: true,
            ..Budget::new(u64::MAX).share(share)
        };
        let result = reply.json().clone();
        let fitted = fit(result, budget, origin(&name), &self.results).await;
        (name, ToolReply::from(fitted))
    }
}

async fn call_in_turn(
    calls: &[Box<RawValue>],
    context: &CallContext,
    tools: &dyn Tools,
) -> Vec<SubCallOutcome> {
    let mut outcomes = Vec::new();
    let mut failed = false;
    for call in calls {
        let outcome = if failed {
            SubCallOutcome::NotMade(name_of(call))
        } else {
            call_one(call, context, tools).await
        };
        failed |= outcome.is_error();
        outcomes.push(outcome);
    }
    outcomes
}

async fn call_one(call: &RawValue, context: &CallContext, tools: &dyn Tools) -> SubCallOutcome {
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
    match called {
        Ok(called) => SubCallOutcome::CallOutcome(name, Box::new(called)),
        Err(error) => SubCallOutcome::Failed(name, error),
    }
}

impl SubCallOutcome {
    fn is_error(&self) -> bool {
        match self {
            Self::CallOutcome(_, called) => called.is_error(),
            Self::Failed(..) => true,
            Self::NotMade(_) => false,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::CallOutcome(_, called) => called.bytes(),
            Self::Failed(..) | Self::NotMade(_) => 0,
        }
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
