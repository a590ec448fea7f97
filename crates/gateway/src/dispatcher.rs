//! One call of a tool: read, resolved, checked, authorized, counted, sent, recorded. Every call of a client,
//! a script or the command line passes here.

pub(crate) mod outcome;
pub(crate) mod record;
mod resolve;
mod send;

use std::sync::Arc;

use fleet::Request;
use futures::{FutureExt as _, future::BoxFuture};
use registry::Entry;
use tracing::debug;

use crate::{
    apps::check_caller,
    arguments::check_arguments,
    authorize::{AuthorizationRequest, Authorizer},
    built_in::{BuiltInTools, RUN_SCRIPT, Tools, is_own},
    call_context::CallContext,
    catalog::Catalog,
    dispatcher::outcome::CallOutcome,
    dispatcher::record::CallNote,
    envelope::{ExecuteRequest, Input},
    error::ToolError,
    quotas::QuotaBook,
    reply::ToolReply,
    running_calls::{RunningCall, RunningCalls},
};

/// Makes every call of a tool, from a client, a script or the command line.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) quotas: Arc<QuotaBook>,
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

    /// The stages of a call, in their order.
    async fn run(
        &self,
        request: ExecuteRequest,
        context: CallContext,
        note: &mut CallNote,
    ) -> Result<CallOutcome, ToolError> {
        let (name, options) = (request.tool_name, request.options);
        let settings = self.catalog.settings();
        let entry = &self.resolve(&name, &context, note).await?;
        note.record.by_app = options.app.is_some();
        check_caller(entry, &options, &context)?;
        let timeout = settings.timeout(entry, &options);
        let arguments = check_arguments(entry, request.input, timeout).await;
        let arguments = arguments.inspect_err(|error| self.catalog.note_mistake(entry, error))?;
        let call = AuthorizationRequest::tool(entry, &arguments);
        note.set_arguments(&arguments, settings.audit.arguments);
        if is_script(entry) {
            note.record.run = context.call.as_deref().map(RunningCall::run);
        }
        if options.dry_run && (context.script.is_some() || !is_script(entry)) {
            note.discard();
            let text = self.authorizer.explain_call(&call, &context)?;
            return Ok(CallOutcome::Own(ToolReply::text(&text)));
        }
        self.authorizer.authorize(&call, &context, note).await?;
        if !is_own(entry) {
            let call = (&**entry, arguments.as_str());
            let taken = self.quotas.take(&settings.quotas, call, &context);
            note.charge = taken.map_err(ToolError::QuotaUsedUp)?;
        }
        if is_own(entry) || entry.at.server.is_scripts() {
            // The task of a call within it would have another result.
            let context = CallContext {
                task_note: None,
                ..context
            };
            self.call_here(entry, &arguments, &options, context).await
        } else {
            let client = Arc::clone(&context.policy);
            let rules = self
                .authorizer
                .check_at_start(Arc::clone(&settings), &call, &client);
            let request = Request {
                timeout,
                start_check: Some(rules),
                header_arguments: entry.tool.header_arguments(arguments.as_str()),
                ..Request::call_tool(&entry.at.tool, arguments.clone())
            };
            let called = self
                .send(entry, request, &options, &settings, context)
                .await;
            if matches!(called, Err(ToolError::Refused(_))) {
                let authorizer = &self.authorizer;
                authorizer.refuse_if_denied_meanwhile(&call, &client, note)?;
            }
            let called = called?;
            if let CallOutcome::Server { result, .. } = &called
                && settings.is_redacted(&entry.at.server)
            {
                note.record.redacted = printable::count_redacted(result.as_str());
            }
            Ok(called)
        }
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
