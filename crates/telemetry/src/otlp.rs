//! OpenTelemetry spans: recorded here, and sent in batches to a collector by OTLP over HTTP, as JSON.
//!
//! This module knows no call, no server and no configuration. No call waits for a collector: spans that
//! do not fit into the queue are dropped and counted.

mod exporter;
mod open_span;
mod sending;
mod span;
mod trace_context;
mod wire;

pub use exporter::{Delivery, Exporter, Prepare};
pub use open_span::OpenSpan;
pub use sending::Collector;
pub use span::{SpanKind, Value};
pub use trace_context::TraceContext;
