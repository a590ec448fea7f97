//! Spans of OpenTelemetry: made here, sent in batches to a collector by OTLP over HTTP, as JSON.
//!
//! It knows no call, no server and no configuration. Nobody waits for a collector: what does not fit
//! into the queue is dropped and counted.

mod delivery;
mod exporter;
mod open_span;
mod sending;
mod span;
mod trace_context;
mod wire;

pub use delivery::Delivery;
pub use exporter::{Exporter, Prepare};
pub use open_span::OpenSpan;
pub use sending::Collector;
pub use span::{Kind, Value};
pub use trace_context::TraceContext;
