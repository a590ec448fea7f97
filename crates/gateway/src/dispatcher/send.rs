//! The last stages of a call: sends it, counts it, and sets the budget of its result.

use std::sync::Arc;

use files::clock::now_s;
use fleet::{Asks, CallError, Request};
use registry::Entry;
use results::Budget;
use serde_json::value::RawValue;
use tool::ServerName;

use super::Dispatcher;
use crate::{
    apps::find_app_use,
    authorize::AuthorizationRequest,
    built_in::{OwnCall, is_own},
    call_context::CallContext,
    dispatcher::hook::ToolCall,
    dispatcher::outcome::CallOutcome,
    dispatcher::record::CallNote,
    elicitation::ServerAsker,
    elicitation::input_rounds::request_in_rounds,
    elicitation::requested_input::RoundError,
    elicitation::server_tasks::{HeldTask, ServerTask, task_parameter},
    error::ToolError,
    render::hit::list_remarks,
    settings::Settings,
};

impl Dispatcher {
    /// Sends a call to its server. The result keeps its bytes; the receiver cuts it to the budget.
    pub(super) async fn send(
        &self,
        call: &ToolCall<'_>,
        asked: &AuthorizationRequest<'_>,
        context: &CallContext,
        note: &mut CallNote,
    ) -> Result<CallOutcome, ToolError> {
        let (entry, options, settings) = (call.entry, call.options, call.settings);
        let server = &entry.at.server;
        let server_asker = context.asks.as_ref().map(|asks| asks.for_server(server));
        let face = server_asker.clone().map(|asker| asker as Arc<dyn Asks>);
        let request = self.request(call, asked, face, context);
        let max_tokens = settings.max_tokens(entry, options, &context.policy);
        let on_task = |task: &ServerTask| {
            if let Some(note) = &context.task_note {
                note.send_replace(Some(HeldTask {
                    server: server.to_string(),
                    max_tokens,
                    task: task.clone(),
                }));
            }
        };
        let answer = request_in_rounds(
            &self.catalog.servers,
            server,
            request,
            server_asker.as_deref(),
            &context.cancel,
            &on_task,
        )
        .await;
        if let Err(RoundError::Call(CallError::Refused(refusal))) = answer {
            let error = ToolError::of_refusal(refusal);
            if matches!(error, ToolError::Refused(_)) {
                self.authorizer
                    .refuse_if_denied_meanwhile(asked, &context.policy, note)?;
            }
            return Err(error);
        }
        let is_ok = matches!(&answer, Ok(result) if !results::is_error(result));
        self.count_use(entry, settings, is_ok);
        let remarks = self.note_of(
            entry,
            server_asker
                .as_deref()
                .and_then(ServerAsker::explain_untaken),
        );
        // A search teaches nothing about a call of an app.
        let searches = context.searches.as_deref();
        let searches = searches.filter(|_| options.app.is_none());
        let result = answer.map_err(|error| {
            self.catalog.learn(searches, entry, || false);
            let policy = &context.policy;
            let available = || self.catalog.list_others_available(server, policy);
            explain(error, entry, available).with_note(remarks.as_deref())
        })?;
        context.note_uris(server, &result);
        let called = CallOutcome::Server {
            result,
            budget: Budget {
                is_off: options.raw,
                ..Budget::new(max_tokens)
            },
            origin: context.origin(),
            tool: entry.at.full_name(),
            note: remarks,
            app: find_app_use(entry, options, context),
            record: None,
        };
        self.catalog.learn(searches, entry, || !called.is_error());
        Ok(called)
    }

    /// Makes the request of a call. The rules are checked again when it starts.
    fn request(
        &self,
        call: &ToolCall<'_>,
        asked: &AuthorizationRequest<'_>,
        asks: Option<Arc<dyn Asks>>,
        context: &CallContext,
    ) -> Request {
        let entry = call.entry;
        let settings = Arc::clone(call.settings);
        let rules = self
            .authorizer
            .check_at_start(settings, asked, &context.policy);
        let mut request = context.complete(Request {
            asks,
            timeout: call.timeout,
            timeout_is_final: call.options.timeout_ms.is_some(),
            is_safe: is_safe(entry),
            start_check: Some(rules),
            header_arguments: entry.tool.header_arguments(call.arguments.as_str()),
            ..Request::call_tool(&entry.at.tool, call.arguments.clone())
        });
        request.params.extend(task_parameter(&entry.tool));
        request
    }

    /// Returns the note below a result: what no client could be asked, and remarks of the configuration.
    fn note_of(&self, entry: &Entry, untaken: Option<String>) -> Option<String> {
        let least = entry.overlay.min_version.as_ref();
        let known = least.and_then(|_| self.catalog.registry.known_server(&entry.at.server));
        let remarks = list_remarks(entry, known.as_deref()).into_iter();
        let remarks = remarks.map(|it| format!("[proxy: {it}]"));
        let notes: Vec<String> = untaken.into_iter().chain(remarks).collect();
        (!notes.is_empty()).then(|| notes.join("\n"))
    }

    /// Counts a call that was sent and has ended, unless statistics are off.
    fn count_use(&self, entry: &Entry, settings: &Settings, ok: bool) {
        if settings.keeps_stats {
            self.catalog.usage.record(&entry.at, ok, now_s());
        }
    }

    /// Answers a call of a tool of ours or of a saved script, which is sent to no server.
    pub(super) async fn call_here(
        &self,
        call: &ToolCall<'_>,
        context: CallContext,
    ) -> Result<CallOutcome, ToolError> {
        let (entry, options, settings) = (call.entry, call.options, call.settings);
        let arguments = RawValue::from_string(call.arguments.as_str().to_owned())
            .map_err(ToolError::internal)?;
        let call = OwnCall {
            entry,
            arguments: &arguments,
            options,
            max_tokens: settings.max_tokens(entry, options, &context.policy),
            context: CallContext {
                // The task of a call within it would have another result.
                task_note: None,
                ..context
            },
        };
        let reply = self.built_in.find(entry)?.call(call, self).await;
        if !is_own(entry) {
            let is_ok = matches!(&reply, Ok(reply) if !reply.is_error());
            self.count_use(entry, settings, is_ok);
        }
        Ok(CallOutcome::Own(reply?.of_tool(entry.at.to_string())))
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

/// Returns true if the server says that a second call of its tool has no further effect.
fn is_safe(entry: &Entry) -> bool {
    let says = entry.tool.annotations();
    says.read_only == Some(true) || says.idempotent == Some(true)
}
