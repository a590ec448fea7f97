//! The note of a call, recorded when the call ends for any reason.

use files::clock::now_ms;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use ::policy::Decision;
use jsonrpc::Json;
use telemetry::otlp::{OpenSpan, TraceContext};
use telemetry::{CallRecord, Event, Outcome, RecordedArguments, Recorder};
use tool::ServerName;

use crate::{
    call_context::CallContext, clients::CallCounter, reply::ToolReply, settings::KeptArguments,
    traces::describe_call,
};

/// Called with the record of a call when the call ends.
type OnEnd = Box<dyn FnOnce(&CallRecord) + Send + Sync>;

pub(crate) struct CallNote {
    recorder: Arc<Recorder>,
    pub(crate) record: CallRecord,
    began: Instant,
    /// Counts the calls of the client.
    counter: Option<CallCounter>,
    /// It ends with the note.
    span: Option<OpenSpan>,
    pub(crate) on_end: Vec<OnEnd>,
    /// Nothing was called: nothing is recorded.
    is_discarded: bool,
}

impl CallNote {
    pub(crate) fn begin(
        recorder: &Arc<Recorder>,
        span: Option<OpenSpan>,
        kind: &'static str,
        context: &CallContext,
    ) -> Self {
        let script = context.script.as_ref();
        Self {
            recorder: Arc::clone(recorder),
            record: CallRecord {
                at_ms: now_ms(),
                client: Arc::clone(&context.policy.name),
                caller: context.admitted_as.clone().unwrap_or_default(),
                session: context.client.as_ref().and_then(|it| it.connection),
                transport: context.transport,
                parent: script.and_then(|it| Some(it.call()?.run())),
                kind,
                ..CallRecord::default()
            },
            began: Instant::now(),
            counter: context.counter.clone(),
            span,
            on_end: Vec::new(),
            is_discarded: false,
        }
    }

    /// The trace context for calls within this one, which have it as their parent.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.span.as_ref().and_then(OpenSpan::context)
    }

    /// Sets the server, and the name as the server knows it.
    pub(crate) fn set_target(&mut self, server: &ServerName, name: &str) {
        self.record.server = server.clone().into();
        name.clone_into(&mut self.record.name);
    }

    pub(crate) fn set_arguments(&mut self, arguments: &Json, kept: KeptArguments) {
        self.record.bytes_in = arguments.len() as u64;
        self.record.arguments = match kept {
            KeptArguments::None => RecordedArguments::None,
            KeptArguments::Digest => RecordedArguments::Digest(arguments.bytes()),
            KeptArguments::Full => RecordedArguments::Full(arguments.bytes()),
        };
    }

    pub(crate) fn set_decision(&mut self, decision: &Decision) {
        self.record.decision = decision.verdict.as_str();
        self.record.rule = decision.rule;
    }

    pub(crate) fn set_failure(&mut self, code: &'static str) {
        self.record.outcome = Outcome::of_code(code);
    }

    /// Notes the response of the server. Until `set_sent` is called, the client got the same bytes.
    pub(crate) fn set_result(&mut self, bytes: usize, is_error: bool) {
        self.record.bytes = bytes as u64;
        self.record.bytes_sent = bytes as u64;
        self.record.outcome = Outcome::of_result(is_error);
    }

    /// Notes what the client got: its bytes, and the handle of the whole if it is a part.
    pub(crate) fn set_sent(&mut self, reply: &ToolReply) {
        self.set_time();
        self.record.bytes_sent = reply.json().len() as u64;
        self.record.is_cut = reply.part().is_some_and(|part| !part.is_read_on);
        self.record.handle = reply.part().and_then(|part| part.handle.clone());
    }

    fn set_time(&mut self) {
        let micros = self.began.elapsed().as_micros();
        self.record.micros = u64::try_from(micros).unwrap_or(u64::MAX).max(1);
    }

    /// Notes the end of a request that is no call of a tool; `code` returns the code of an error.
    pub(crate) fn end<E>(
        mut self,
        result: Result<Json, E>,
        code: impl FnOnce(&E) -> &'static str,
    ) -> Result<Json, E> {
        match &result {
            Ok(result) => self.set_result(result.len(), false),
            Err(error) => self.set_failure(code(error)),
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
        if let Some(counter) = &self.counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        for on_end in self.on_end.drain(..) {
            on_end(&record);
        }
        if let Some(span) = &mut self.span {
            describe_call(span, &record);
        }
        self.recorder.record(Event::Call(Box::new(record)));
    }
}
