//! One call of a tool: resolved, checked, authorized, joined by hooks, sent, recorded. Every call of a client,
//! a script or the command line passes here.

pub(crate) mod hook;
pub(crate) mod outcome;
pub(crate) mod record;
mod resolve;
mod send;

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use registry::Entry;
use tracing::debug;

use crate::{
    arguments::check_arguments,
    authorize::{AuthorizationRequest, Authorizer},
    built_in::{BuiltInTools, RUN_SCRIPT, Tools, is_answered_here, is_own},
    call_context::CallContext,
    catalog::Catalog,
    dispatcher::hook::{CallHook, ToolCall},
    dispatcher::outcome::CallOutcome,
    dispatcher::record::CallNote,
    envelope::{ExecuteRequest, Input},
    error::ToolError,
    reply::ToolReply,
    running_calls::{RunningCall, RunningCalls},
};

/// Makes every call of a tool, from a client, a script or the command line.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) hooks: Vec<Box<dyn CallHook>>,
    pub(crate) built_in: BuiltInTools,
    pub(crate) running: RunningCalls,
}

impl Dispatcher {
    /// Runs one tool call. Every call of a client, a script or the command line passes here; its
    /// record is written when its result is delivered, or when it fails.
    pub(crate) async fn dispatch(
        &self,
        request: ExecuteRequest,
        mut context: CallContext,
    ) -> Result<CallOutcome, ToolError> {
        let mut note = Box::new(self.authorizer.begin_note("tool", &context));
        note.record.name.clone_from(&request.tool_name);
        if let Input::AsSent(raw) = &request.input {
            // Until its arguments are checked.
            note.record.bytes_in = raw.get().len() as u64;
        }
        if !request.repairs.is_empty() {
            debug!(tool = request.tool_name, repairs = ?request.repairs, "repaired the envelope");
        }
        context.trace = note.trace().or(context.trace);
        if context.script.is_some() {
            // A script may outlive a change of the configuration: each of its calls follows the
            // current rules.
            context.policy = self.catalog.settings().clients.renew(&context.policy);
        }
        let script = context.script.as_ref();
        let listed = self.running.begin(
            &request.tool_name,
            (&context.policy.name, context.transport),
            script.and_then(|it| Some(it.call()?.id)),
        );
        context.call = Some(Arc::clone(&listed.call));
        // Dropping a call cancels it at its server.
        let outcome = tokio::select! {
            biased;
            () = listed.call.end.cancelled() => Err(ToolError::EndedByPerson),
            outcome = self.run(request, context, &mut note) => outcome,
        };
        let called = outcome.inspect_err(|error| note.set_failure(error.code()))?;
        Ok(called.with_record(note))
    }

    /// The stages of a call, in their order. Its receiver fits the outcome to size.
    async fn run(
        &self,
        request: ExecuteRequest,
        context: CallContext,
        note: &mut CallNote,
    ) -> Result<CallOutcome, ToolError> {
        let options = &request.options;
        let settings = &self.catalog.settings();
        let entry = &self
            .resolve(&request.tool_name, options, &context, note)
            .await?;
        let timeout = settings.timeout(entry, options);
        let arguments = &check_arguments(entry, request.input, timeout)
            .await
            .inspect_err(|error| self.catalog.note_mistake(entry, error))?;
        note.set_arguments(arguments, settings.audit.arguments);
        if is_script(entry) {
            note.record.run = context.call.as_deref().map(RunningCall::run);
        }
        let asked = AuthorizationRequest::tool(entry, arguments);
        if options.dry_run && (context.script.is_some() || !is_script(entry)) {
            note.discard();
            let text = self.authorizer.explain_call(&asked, &context)?;
            return Ok(CallOutcome::Own(ToolReply::text(&text)));
        }
        self.authorizer.authorize(&asked, &context, note).await?;
        let call = ToolCall {
            entry,
            arguments,
            options,
            timeout,
            settings,
        };
        for hook in &self.hooks {
            hook.before(&call, &context, note)?;
        }
        let outcome = if is_answered_here(entry) {
            self.call_here(&call, context).await?
        } else {
            self.send(&call, &asked, &context, note).await?
        };
        for hook in &self.hooks {
            hook.after(&call, &outcome, note);
        }
        Ok(outcome)
    }
}

impl Tools for Dispatcher {
    fn call(
        &self,
        request: ExecuteRequest,
        context: CallContext,
    ) -> BoxFuture<'_, Result<CallOutcome, ToolError>> {
        self.dispatch(request, context).boxed()
    }
}

/// Returns true for a script: its dry run lists its calls, but for a script within a script only
/// that it would be called.
fn is_script(entry: &Entry) -> bool {
    entry.at.server.is_scripts() || is_own(entry) && entry.at.tool == RUN_SCRIPT
}
