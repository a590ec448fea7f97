//! A finished span and its attributes.

use crate::otlp::trace_context::TraceContext;

/// The role of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside this process.
    Internal,
    /// A request that we receive.
    Server,
    /// A request that we send.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(u64),
    /// A boolean.
    Switch(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(switch: bool) -> Self {
        Self::Switch(switch)
    }
}

/// A finished span.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) context: TraceContext,
    pub(crate) parent: Option<TraceContext>,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    /// The start time in unix nanoseconds.
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) is_error: bool,
    pub(crate) attributes: Vec<(&'static str, Value)>,
}
