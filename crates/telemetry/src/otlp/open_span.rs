//! One open span: begun, given attributes, and queued when it ends.

use std::{
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use crate::otlp::{
    exporter::Exporter,
    span::{Span, SpanKind, Value},
    trace_context::TraceContext,
};

/// An open span; it ends when it is dropped.
#[derive(Debug)]
pub struct OpenSpan {
    exporter: Arc<Exporter>,
    began: Instant,
    /// The error code of the span if it is dropped before its result is known.
    unended: Option<&'static str>,
    /// None after the span was queued.
    span: Option<Span>,
}

impl OpenSpan {
    /// Begins a span. Returns `None` if its parent is not sampled, or if no random number is available.
    pub fn begin(exporter: &Arc<Exporter>, parent: Option<TraceContext>) -> Option<Self> {
        if parent.is_some_and(|parent| !parent.is_sampled) {
            return None;
        }
        let context = TraceContext::begin(parent)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let span = Span {
            context,
            parent,
            name: String::new(),
            kind: SpanKind::Internal,
            began: since.map_or(0, |since| nanos(since.as_nanos())),
            ended: 0,
            is_error: false,
            attributes: Vec::new(),
        };
        Some(Self {
            exporter: Arc::clone(exporter),
            began: Instant::now(),
            unended: None,
            span: Some(span),
        })
    }

    /// Sets the name and the kind of the span.
    pub fn set_name(&mut self, name: String, kind: SpanKind) {
        if let Some(span) = &mut self.span {
            span.name = name;
            span.kind = kind;
        }
    }

    /// Adds an attribute.
    pub fn set_attribute(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.span {
            span.attributes.push((key, value.into()));
        }
    }

    /// Marks the span as failed, with this code.
    pub fn fail(&mut self, code: &str) {
        self.set_attribute("error.type", code);
        if let Some(span) = &mut self.span {
            span.is_error = true;
        }
    }

    /// Marks the span as failed with this code if it is dropped before [`OpenSpan::complete`].
    pub fn fail_if_dropped(&mut self, code: &'static str) {
        self.unended = Some(code);
    }

    /// Records that the result of the span is known.
    pub fn complete(&mut self) {
        self.unended = None;
    }

    /// Discards the span: it is not sent.
    pub fn discard(&mut self) {
        self.span = None;
    }

    /// Returns the context that child spans have as their parent.
    pub fn context(&self) -> Option<TraceContext> {
        self.span.as_ref().map(|span| span.context)
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(code) = self.unended.take() {
            self.fail(code);
        }
        if let Some(mut span) = self.span.take() {
            let lasted = nanos(self.began.elapsed().as_nanos());
            span.ended = span.began.saturating_add(lasted);
            self.exporter.record(span);
        }
    }
}

fn nanos(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
