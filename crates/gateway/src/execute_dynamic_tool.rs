//! `execute_dynamic_tool`: find it, check it, call it, cut it to size.

use std::{sync::Arc, time::Duration};

use fleet::{Asks, Request};
use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::Json;
use registry::Entry;
use results::{Budget, Origin};
use serde_json::value::RawValue;
use tool::ServerName;
use tracing::debug;

use crate::{
    arguments::check_arguments,
    asks::ServerAsker,
    authorize::Asked,
    built_in::{
        CALL_MANY, GET_PROMPT, LIST, LIST_RESOURCES, READ_RESOURCE, READ_RESULT, RUN_SCRIPT, TYPES,
        is_own,
    },
    call_context::CallContext,
    call_note::CallNote,
    called::Called,
    clock::now,
    envelope::{ExecuteRequest, Options},
    error::ToolError,
    gateway::Gateway,
    policy::ClientPolicy,
    reply::Reply,
    rounds::RoundError,
    script_caller::ScriptCaller,
};

impl Gateway {
    pub(super) async fn execute_dynamic_tool(
        &self,
        arguments: Option<&RawValue>,
        context: CallContext,
    ) -> Result<Reply, ToolError> {
        let request = ExecuteRequest::parse(arguments)?;
        let called = self.call(request, context).await?;
        Ok(called.reply(&self.results).await)
    }

    /// Decides on a call, makes it, and has it recorded; how much of its result is sent is decided
    /// later. Whatever makes calls of its own makes them here.
    pub(super) async fn call(
        &self,
        request: ExecuteRequest,
        context: CallContext,
    ) -> Result<Called, ToolError> {
        let mut note = self.begin_note("tool", &context);
        note.is_named(&request.tool_name);
        let context = CallContext {
            trace: note.trace().or(context.trace),
            // A script outlives a change of the configuration; each of its calls follows the
            // tables as they are at that moment.
            policy: match &context.script {
                Some(_) => self.settings().clients.renew(&context.policy),
                None => context.policy,
            },
            ..context
        };
        let (tool, repairs) = (&request.tool_name, &request.repairs);
        if !repairs.is_empty() {
            debug!(tool, ?repairs, "mended the envelope");
        }
        match self.call_noted(request, context, &mut note).await {
            Ok(called) => Ok(called.noted(note)),
            Err(error) => {
                note.fails(error.code());
                Err(error)
            }
        }
    }

    async fn call_noted(
        &self,
        request: ExecuteRequest,
        context: CallContext,
        note: &mut CallNote,
    ) -> Result<Called, ToolError> {
        let ExecuteRequest {
            tool_name,
            input,
            options,
            repairs: _,
        } = request;
        // Calls within `call_many` pass here too; those of unknown names count as well.
        let counted = context.script.as_ref().map(ScriptCaller::count_call);
        let policy = Arc::clone(&context.policy);
        let entry = &self.resolve_noted(&tool_name, &context, note).await?;
        counted.transpose()?;
        let reads = |script: &ScriptCaller| script.check_reads(entry);
        context.script.as_ref().map(reads).transpose()?;
        let limit = self.limit(entry, &options);
        let arguments =
            check_arguments(entry, input, limit.or_else(|| self.usual_limit(entry))).await?;
        let subject = Asked::tool(entry, arguments.as_str());
        note.takes(&arguments, self.settings().audit.arguments);
        if options.dry_run && (context.script.is_some() || !is_script(entry)) {
            note.is_nothing();
            let text = self.explain_call(&subject, &context)?;
            return Ok(Called::Own(Reply::text(&text)));
        }
        self.authorize(&subject, &context, note).await?;
        if is_own(entry) || entry.at.server.is_scripts() {
            return self.call_here(entry, &arguments, &options, context).await;
        }
        let searches = context.searches.clone();
        let asker = context.asks.clone();
        let asker = asker.map(|asks| asks.for_server(&entry.at.server));
        let request = Request {
            asks: asker.clone().map(|asks| asks as Arc<dyn Asks>),
            limit,
            limit_is_final: options.timeout_ms.is_some(),
            is_safe: is_safe(entry),
            header_arguments: entry.tool.header_arguments(arguments.as_str()),
            ..Request::call_tool(&entry.at.tool, arguments)
        };
        let request = context.complete(request);
        let (server, asker) = (&entry.at.server, asker.as_deref());
        let answer = self
            .request_in_rounds(server, request, asker, &context.cancel)
            .await;
        self.usage.record(&entry.at, answer.is_ok(), now());
        let untaken = asker.and_then(ServerAsker::explain_untaken);
        let result = answer.map_err(|error| {
            self.learn(searches.as_deref(), &entry.at, || false);
            let available = || self.list_others_available(&entry.at.server, &policy);
            explain(error, entry, available).with_note(untaken.as_deref())
        })?;
        context.note_uris(&entry.at.server, result.as_str());
        let max_tokens = self.max_tokens(entry, &options, &policy);
        let budget = Budget {
            is_off: options.raw,
            ..Budget::new(max_tokens)
        };
        let origin = Origin {
            client: context.client,
            tool: entry.at.to_string(),
        };
        let called = Called::Server {
            result,
            budget,
            origin,
            note: untaken,
            taken: None,
        };
        self.learn(searches.as_deref(), &entry.at, || !called.is_error());
        Ok(called)
    }

    /// Finds the tool of a call. The record names the server and tool that the call is for, or was meant
    /// for where there is no such tool.
    async fn resolve_noted(
        &self,
        tool_name: &str,
        context: &CallContext,
        note: &mut CallNote,
    ) -> Result<Arc<Entry>, ToolError> {
        let found = self.resolve_after_login(tool_name, context).await;
        let at = match &found {
            Ok(entry) => Some(entry.at.clone()),
            // Boxed, since every call would carry the room of this rare case.
            Err(_) => Box::pin(self.intended(tool_name)).await,
        };
        if let Some(at) = at {
            note.is_for(&at.server, &at.tool);
        }
        found
    }

    /// Makes a call that no server hears of.
    async fn call_here(
        &self,
        entry: &Entry,
        arguments: &Json,
        options: &Options,
        context: CallContext,
    ) -> Result<Called, ToolError> {
        let arguments = RawValue::from_string(arguments.as_str().to_owned());
        let arguments = arguments.map_err(|error| ToolError::Internal(error.to_string()))?;
        let reply = self.call_own(entry, &arguments, options, context).await;
        if !is_own(entry) {
            self.usage.record(&entry.at, reply.is_ok(), now());
        }
        Ok(Called::Own(reply?))
    }

    /// Runs one of our own tools, or a saved script, with arguments that fit its schema. Boxed, for one of them
    /// makes calls itself.
    pub(super) fn call_own<'a>(
        &'a self,
        entry: &'a Entry,
        arguments: &'a RawValue,
        options: &'a Options,
        context: CallContext,
    ) -> BoxFuture<'a, Result<Reply, ToolError>> {
        async move {
            if entry.at.server.is_scripts() {
                let run = self.run_saved(entry, arguments, options, context);
                return run.await;
            }
            match entry.at.tool.as_str() {
                CALL_MANY => {
                    let max_tokens = self.max_tokens(entry, options, &context.policy);
                    self.call_many(arguments, max_tokens, context).await
                }
                READ_RESOURCE => {
                    let max_tokens = self.max_tokens(entry, options, &context.policy);
                    let read = self.read_resource_for_model(entry, arguments, max_tokens, context);
                    read.await
                }
                GET_PROMPT => {
                    let max_tokens = self.max_tokens(entry, options, &context.policy);
                    let got = self.get_prompt_for_model(entry, arguments, max_tokens, context);
                    got.await
                }
                RUN_SCRIPT => {
                    let run = self.run_script(entry, arguments, options, context);
                    run.await
                }
                TYPES => {
                    self.declare_types(entry, arguments, options, &context)
                        .await
                }
                LIST => self.list_servers(arguments, &context).await,
                LIST_RESOURCES => self.list_resources(arguments, &context).await,
                READ_RESULT => {
                    let client = context.client.as_ref();
                    self.read_result(arguments, options, client).await
                }
                other => Err(ToolError::Internal(format!("no way to run {other}"))),
            }
        }
        .boxed()
    }

    /// The time that the caller waits: what the call says, else its tool; else the server's own
    /// limit.
    pub(super) fn limit(&self, entry: &Entry, options: &Options) -> Option<Duration> {
        let asked = options.limit();
        let settings = self.settings();
        let limits = settings.tool_limits(&entry.at);
        asked.or_else(|| limits.and_then(|limits| limits.timeout))
    }

    /// The time that a call of its server is waited for where nobody says otherwise; a tool of our
    /// own has no such limit.
    fn usual_limit(&self, entry: &Entry) -> Option<Duration> {
        let settings = self.settings();
        let server = settings.server(&entry.at.server)?;
        Some(server.spec.call_timeout)
    }

    /// The most of a result that its caller is sent, in tokens: what the call says, else its tool,
    /// else its server, else what its client or the configuration for all has. The one place
    /// that decides it.
    pub(super) fn max_tokens(
        &self,
        entry: &Entry,
        options: &Options,
        policy: &ClientPolicy,
    ) -> u64 {
        let settings = self.settings();
        let of_tool = settings.tool_limits(&entry.at);
        let of_tool = of_tool.and_then(|limits| limits.max_tokens);
        let of_server = settings.server(&entry.at.server);
        let of_server = of_server.and_then(|server| server.max_tokens);
        let configured = policy.max_tokens(of_tool.or(of_server), settings.results.max_tokens);
        options.max_tokens.unwrap_or(configured)
    }

    /// Other servers than `failed` that have tools and did not fail last time.
    fn list_others_available(&self, failed: &ServerName, policy: &ClientPolicy) -> Vec<ServerName> {
        let catalog = self.registry.catalog();
        let servers = catalog.servers.iter().filter(|it| it.name != *failed);
        let servers = servers.filter(|server| policy.sees(&server.name, &server.category));
        let up = servers.filter(|server| server.tools > 0 && !self.servers.is_down(&server.name));
        up.map(|server| server.name.clone()).collect()
    }
}

fn explain(
    error: RoundError,
    entry: &Entry,
    available: impl FnOnce() -> Vec<ServerName>,
) -> ToolError {
    match error {
        RoundError::Call(error) => {
            ToolError::of_call(error, &entry.at, entry.signature(), available)
        }
        RoundError::Unanswered(why) => ToolError::InputRequired {
            tool: entry.at.clone(),
            why,
        },
    }
}

/// Of a script a dry run tells its calls; of one within another that it would be called.
fn is_script(entry: &Entry) -> bool {
    entry.at.server.is_scripts() || is_own(entry) && entry.at.tool == RUN_SCRIPT
}

/// Whether a second call does what one does, as the server says of its tool.
fn is_safe(entry: &Entry) -> bool {
    let says = entry.tool.annotations();
    says.read_only == Some(true) || says.idempotent == Some(true)
}
