//! The note of a call, recorded when the call ends for any reason.

use files::clock::now_ms;
use std::{borrow::Cow, sync::Arc, time::Instant};

use ::policy::Decision;
use jsonrpc::Json;
use telemetry::otlp::{OpenSpan, TraceContext};
use telemetry::{CallRecord, Event, RecordedArguments, Recorder, estimate_tokens};
use tool::ServerName;

use crate::{
    call_context::CallContext, quotas::TokenCharge, reply::ToolReply, running_calls::RunningCall,
    settings::KeptArguments, traces::describe_call,
};

/// The outcome if no other was noted: the caller cancelled the call or disconnected.
const CANCELLED: &str = "cancelled";

/// The note of a call; it is recorded when dropped.
#[derive(Debug)]
pub(crate) struct CallNote {
    recorder: Arc<Recorder>,
    record: CallRecord,
    began: Instant,
    span: Option<OpenSpan>,
    /// The quotas that count its tokens.
    charge: Option<TokenCharge>,
    /// Nothing was called: nothing is recorded.
    is_discarded: bool,
}

impl CallNote {
    pub(crate) fn begin(
        recorder: &Arc<Recorder>,
        kind: &'static str,
        context: &CallContext,
    ) -> Self {
        Self {
            recorder: Arc::clone(recorder),
            record: CallRecord {
                at_ms: now_ms(),
                client: Arc::clone(&context.policy.name),
                caller: context.admitted_as.clone().unwrap_or_default(),
                session: context.client.as_ref().and_then(|it| it.connection),
                transport: context.transport,
                parent: context
                    .script
                    .as_ref()
                    .and_then(|it| Some(it.call()?.run())),
                kind,
                outcome: CANCELLED.into(),
                ..CallRecord::default()
            },
            began: Instant::now(),
            span: None,
            charge: None,
            is_discarded: false,
        }
    }

    /// Attaches a span that ends with the note.
    pub(crate) fn traced(mut self, span: Option<OpenSpan>) -> Self {
        self.span = span;
        self
    }

    /// The trace context for calls within this one, which have it as their parent.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.span.as_ref().and_then(OpenSpan::context)
    }

    /// Sets the name of the call, which may match nothing.
    pub(crate) fn set_name(&mut self, name: &str) {
        name.clone_into(&mut self.record.name);
    }

    /// Sets the server, and the name as the server knows it.
    pub(crate) fn set_target(&mut self, server: &ServerName, name: &str) {
        self.record.server = server.clone().into();
        name.clone_into(&mut self.record.name);
    }

    /// Sets the node of the cluster that runs the server.
    pub(crate) fn set_node(&mut self, node: Option<String>) {
        self.record.node = node;
    }

    /// Notes the size of the input as it was sent, until its arguments are checked.
    pub(crate) fn set_input(&mut self, bytes: usize) {
        self.record.bytes_in = bytes as u64;
    }

    pub(crate) fn set_arguments(&mut self, arguments: &Json, kept: KeptArguments) {
        self.record.bytes_in = arguments.len() as u64;
        self.record.arguments = match kept {
            KeptArguments::None => RecordedArguments::None,
            KeptArguments::Digest => RecordedArguments::Digest(arguments.bytes()),
            KeptArguments::Full => RecordedArguments::Full(arguments.bytes()),
        };
    }

    /// Notes that calls are made within this one.
    pub(crate) fn set_run(&mut self, call: Option<&RunningCall>) {
        self.record.run = call.map(RunningCall::run);
    }

    /// Notes that an app made the call.
    pub(crate) fn set_app(&mut self) {
        self.record.by_app = true;
    }

    pub(crate) fn set_decision(&mut self, decision: &Decision) {
        self.record.decision = decision.verdict.as_str();
        self.record.rule = decision.rule();
    }

    /// Sets the quotas that count the tokens of the call when it ends.
    pub(crate) fn set_charge(&mut self, charge: Option<TokenCharge>) {
        self.charge = charge;
    }

    pub(crate) fn set_failure(&mut self, code: &'static str) {
        self.record.outcome = Cow::Borrowed(code);
    }

    /// Notes the response of the server. Until `set_sent` is called, the client got the same bytes.
    pub(crate) fn set_result(&mut self, bytes: usize, is_error: bool) {
        self.record.bytes = bytes as u64;
        self.record.bytes_sent = bytes as u64;
        self.record.outcome = if is_error { "tool_error" } else { "ok" }.into();
    }

    pub(crate) fn set_redacted(&mut self, texts: u64) {
        self.record.redacted = texts;
    }

    /// Notes what the client got: its bytes, and the handle of the whole if it is a part.
    pub(crate) fn set_sent(&mut self, reply: &ToolReply) {
        self.set_time();
        self.record.bytes_sent = reply.json().len() as u64;
        self.record.is_cut = reply.part().is_some_and(|part| !part.is_read_on);
        self.record.handle = reply.part().and_then(|part| part.handle.clone());
    }

    /// Notes the time that the call took up to now.
    fn set_time(&mut self) {
        let micros = self.began.elapsed().as_micros();
        self.record.micros = u64::try_from(micros).unwrap_or(u64::MAX).max(1);
    }

    /// Notes the end of a request that is no call of a tool.
    pub(crate) fn end<E>(mut self, result: Result<Json, E>) -> Result<Json, E> {
        match &result {
            Ok(result) => self.set_result(result.len(), false),
            Err(_) => self.set_failure("server_error"),
        }
        result
    }

    /// Discards the note, since nothing was called.
    pub(crate) fn discard(&mut self) {
        self.is_discarded = true;
    }
}

impl Drop for CallNote {
    fn drop(&mut self) {
        if self.is_discarded {
            if let Some(span) = &mut self.span {
                span.discard();
            }
            return;
        }
        if self.record.micros == 0 {
            self.set_time();
        }
        let record = std::mem::take(&mut self.record);
        if let Some(charge) = &self.charge {
            charge.add(estimate_tokens(record.bytes_in + record.bytes_sent));
        }
        if let Some(span) = &mut self.span {
            describe_call(span, &record);
        }
        self.recorder.record(Event::Call(Box::new(record)));
    }
}
