//! `proxy/run_script`: many calls, one answer. `script` runs it; every call that it makes takes the
//! way of a call that its model makes.

mod outcome;
mod reach;
mod sites;

use std::time::Duration;

use jsonrpc::Json;
use registry::Entry;
use results::{Budget, Origin, fit};
use script::{Job, SCRIPT_BYTES_MAX, WALL_DEFAULT, WALL_MAX};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::{outcome::explain, reach::Reach};
use crate::{
    call_context::CallContext, envelope::Options, error::ToolError, gateway::Gateway, reply::Reply,
};

const TOOL: &str = "proxy/run_script";

const SIGNATURE: &str = "(script: string, args?: {…}, timeout_ms?: integer, max_tokens?: integer, \
    dry_run?: boolean)";

#[derive(Deserialize)]
struct Asked {
    script: String,
    args: Option<Box<RawValue>>,
    timeout_ms: Option<u64>,
    max_tokens: Option<u64>,
    #[serde(default)]
    dry_run: bool,
}

impl Gateway {
    pub(super) async fn run_script(
        &self,
        entry: &Entry,
        arguments: &RawValue,
        options: &Options,
        context: CallContext,
    ) -> Result<Reply, ToolError> {
        let asked: Asked = serde_json::from_str(arguments.get())
            .map_err(|error| wrong_input("script", &error.to_string()))?;
        if context.is_script {
            let why = "a script cannot run another; call its functions";
            return Err(wrong_input("script", why));
        }
        if asked.script.len() > SCRIPT_BYTES_MAX {
            let why = script::Limit::Length.to_string();
            return Err(wrong_input("script", &why));
        }
        let runner = self.scripts.as_ref();
        let runner =
            runner.ok_or_else(|| ToolError::Internal("our own program is not found".to_owned()))?;
        let wall = options.timeout_ms.or(asked.timeout_ms);
        let wall = wall
            .map_or(WALL_DEFAULT, Duration::from_millis)
            .min(WALL_MAX);
        let dry_run = asked.dry_run || options.dry_run;
        let job = Job {
            script: asked.script,
            args: asked.args.unwrap_or_else(|| RawValue::NULL.to_owned()),
            servers: self.servers_of_scripts(&context).await?,
            dry_run,
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
        };
        let (client, cancel) = (context.client.clone(), context.cancel.clone());
        let max_tokens = asked
            .max_tokens
            .unwrap_or_else(|| self.max_tokens(entry, options, &context.policy));
        let reach = Reach::new(self, context, dry_run);
        let running = cancel.run_until_cancelled(runner.run(&job, &reach)).await;
        let outcome = running
            .ok_or(ToolError::Cancelled)?
            .map_err(|error| ToolError::Internal(error.to_string()))?;
        let reply = explain(outcome, reach.into_planned());
        let budget = Budget {
            is_off: options.raw,
            ..Budget::new(max_tokens)
        };
        let origin = Origin {
            client,
            tool: TOOL.to_owned(),
        };
        let result: Json = reply.json().clone();
        Ok(Reply::from(
            fit(result, budget, origin, &self.results).await,
        ))
    }

    /// The names that are objects in a script: servers that its client sees, and ours.
    async fn servers_of_scripts(&self, context: &CallContext) -> Result<Vec<String>, ToolError> {
        let generation = self.generation().await?;
        let servers = generation.servers().iter();
        let seen = servers.filter(|it| context.policy.sees(&it.name, &it.category));
        let names = seen.map(|server| server.name.as_str());
        let names = names.filter(|name| *name != "proxy").chain(["proxy"]);
        Ok(names.map(str::to_owned).collect())
    }
}

fn wrong_input(path: &str, why: &str) -> ToolError {
    ToolError::own_input(TOOL, path, why, SIGNATURE)
}
