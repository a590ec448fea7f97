//! `proxy/run_script`: many calls, one answer. `script` runs it; each of its calls passes the same
//! stages as a call of its model. A saved script is run the same way.

mod chunks;
mod outcome;
pub(crate) mod reach;
mod sites;

use files::clock::now_ms;
use std::{collections::BTreeMap, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use results::{Budget, fit};
use script::{
    Clock, Ended, Job, Limit, Runner, SCRIPT_BYTES_MAX, ScriptOutcome, WALL_DEFAULT, WALL_MAX,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use self::{
    outcome::{answer_script, explain},
    reach::{Parts, Reach, raw_of},
};
use crate::{
    built_in::{BuiltInTool, OwnCall, Tools},
    call_context::CallContext,
    error::ToolError,
    forward::seen,
    reply::ToolReply,
    script_caller::ScriptCaller,
    script_turns::{ScriptSession, ScriptTurns},
};

const TOOL: &str = "proxy/run_script";

const SIGNATURE: &str = "(script: string, args?: {…}, timeout_ms?: integer, max_tokens?: integer, \
    dry_run?: boolean)";

#[derive(Deserialize)]
struct ScriptInput {
    script: String,
    args: Option<Box<RawValue>>,
    timeout_ms: Option<u64>,
    max_tokens: Option<u64>,
    #[serde(default)]
    dry_run: bool,
}

struct Work {
    text: String,
    args: Box<RawValue>,
    timeout_ms: Option<u64>,
    max_tokens: u64,
    dry_run: bool,
    /// The name of the script if it declares itself read-only.
    read_only: Option<String>,
}

/// `proxy/run_script`, and the saved scripts.
#[derive(Debug)]
pub(crate) struct RunScript {
    pub(crate) parts: Parts,
    /// `None` if our own program cannot be found.
    pub(crate) runner: Option<Runner>,
    pub(crate) turns: ScriptTurns,
}

impl BuiltInTool for RunScript {
    fn call<'a>(
        &'a self,
        call: OwnCall<'a>,
        tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        if call.entry.at.server.is_scripts() {
            self.run_saved(call, tools).boxed()
        } else {
            self.run_script(call, tools).boxed()
        }
    }
}

impl RunScript {
    pub(crate) async fn stop(&self) {
        if let Some(runner) = &self.runner {
            runner.stop().await;
        }
    }

    async fn run_script(
        &self,
        call: OwnCall<'_>,
        tools: &dyn Tools,
    ) -> Result<ToolReply, ToolError> {
        let asked: ScriptInput = serde_json::from_str(call.arguments.get())
            .map_err(|error| wrong_input("script", &error.to_string()))?;
        if call.context.script.is_some() {
            let why = "a script cannot run another; call its functions, or a saved one as a tool";
            return Err(wrong_input("script", why));
        }
        if asked.script.len() > SCRIPT_BYTES_MAX {
            return Err(wrong_input("script", &Limit::Length.to_string()));
        }
        let work = Work {
            text: asked.script,
            args: asked.args.unwrap_or_else(|| RawValue::NULL.to_owned()),
            timeout_ms: call.options.timeout_ms.or(asked.timeout_ms),
            max_tokens: asked.max_tokens.unwrap_or(call.max_tokens),
            dry_run: asked.dry_run || call.options.dry_run,
            read_only: None,
        };
        self.run(call, work, tools).await
    }

    /// Runs a saved script with arguments that fit its schema.
    async fn run_saved(
        &self,
        call: OwnCall<'_>,
        tools: &dyn Tools,
    ) -> Result<ToolReply, ToolError> {
        let (entry, options) = (call.entry, call.options);
        let catalog = &self.parts.catalog;
        let saved = catalog.saved_scripts().get(&entry.at.tool);
        let saved = saved.ok_or_else(|| ToolError::Script {
            code: "script_failed",
            text: "its file is gone, or cannot be understood any more; `proxy status` says why"
                .to_owned(),
        })?;
        let timeout = catalog.settings().timeout(entry, options);
        let work = Work {
            text: saved.text.clone(),
            args: call.arguments.to_owned(),
            timeout_ms: timeout.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
            max_tokens: call.max_tokens,
            dry_run: options.dry_run,
            read_only: saved.interface.is_read_only.then(|| entry.at.to_string()),
        };
        self.run(call, work, tools).await
    }

    async fn run(
        &self,
        call: OwnCall<'_>,
        work: Work,
        tools: &dyn Tools,
    ) -> Result<ToolReply, ToolError> {
        let context = call.context;
        let no_program = || ToolError::Internal("our own program is not found".to_owned());
        let runner = self.runner.as_ref().ok_or_else(no_program)?;
        let outer = context.script.clone();
        let caller = ScriptCaller::within(outer.as_ref(), work.read_only.as_deref())?;
        let caller = caller.of_call(context.call.clone());
        let wall = work.timeout_ms.map_or(WALL_DEFAULT, Duration::from_millis);
        let wall = wall.min(WALL_MAX);
        let (servers, names) = self.names_for_scripts(&context).await?;
        let job = Job {
            script: work.text,
            args: work.args,
            servers,
            tools: names,
            dry_run: work.dry_run,
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
        };
        let origin = context.origin();
        let cancel = context.cancel.clone();
        let taking = self.turns.take(session_of(&context), caller.depth());
        let taking = cancel.run_until_cancelled(timeout(wall, taking)).await;
        let _turn = taking
            .ok_or(ToolError::Cancelled)?
            .map_err(|_| ToolError::ScriptLimit(Limit::Turn))?;
        let clock = Clock::start(wall);
        let context = CallContext {
            asks: context.asks.clone().map(|asks| asks.stopping(&clock)),
            ..context
        };
        let reach = Reach::new(&self.parts, tools, context, caller.clone(), work.dry_run);
        let running = runner.run(&job, &clock, &reach);
        let running = cancel.run_until_cancelled(running).await;
        let outcome = running.ok_or(ToolError::Cancelled)?.map_err(|error| {
            let why = format!("the process of the script cannot be started: {error}");
            ToolError::Internal(why)
        })?;
        let outcome = ScriptOutcome {
            // Those within `call_many` and other scripts too.
            calls: caller.calls(),
            ..outcome
        };
        if outer.is_some() {
            return Ok(answer_script(outcome));
        }
        let bytes_read = reach.bytes_read();
        // Only a value is the script's own text; other outcomes already mark the text of others.
        let is_value = matches!(outcome.ended, Ended::Value(_)) && !job.dry_run;
        let budget = Budget {
            is_off: call.options.raw,
            is_ours: !is_value,
            ..Budget::new(work.max_tokens)
        };
        let reply = explain(outcome, reach.into_planned());
        let fitted = fit(reply.json().clone(), budget, origin, &self.parts.results);
        let reply = ToolReply::from(fitted.await);
        if !job.dry_run {
            self.parts.recorder.record(telemetry::Event::Script {
                at_ms: now_ms(),
                bytes_read,
                bytes_sent: reply.json().len() as u64,
            });
        }
        Ok(reply)
    }

    /// The servers that are objects in a script, those that its client sees and ours, and the names of
    /// their tools.
    async fn names_for_scripts(
        &self,
        context: &CallContext,
    ) -> Result<(Vec<String>, Box<RawValue>), ToolError> {
        let generation = self.parts.catalog.generation().await?;
        let policy = &context.policy;
        let seen = seen(&generation, policy).into_iter();
        let names = seen.map(|server| server.name.as_str());
        let names = names.filter(|name| *name != "proxy").chain(["proxy"]);
        let mut tools: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for entry in generation.entries() {
            if policy.sees(&entry.at.server, &entry.category) {
                let of_server = tools.entry(entry.at.server.as_str()).or_default();
                of_server.push(entry.tool.name());
            }
        }
        Ok((names.map(str::to_owned).collect(), raw_of(&tools)?))
    }
}

fn session_of(context: &CallContext) -> ScriptSession {
    let connection = context.client.as_ref().and_then(|it| it.connection);
    connection.map_or_else(
        || ScriptSession::Caller(context.caller.clone()),
        ScriptSession::Connection,
    )
}

fn wrong_input(path: &str, why: &str) -> ToolError {
    ToolError::own_input(TOOL, path, why, SIGNATURE)
}
