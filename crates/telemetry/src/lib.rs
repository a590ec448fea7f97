//! The audit log of calls, a chain of lines with digests; statistics per day; metrics since the program
//! started; and OpenTelemetry spans ([`otlp`]). Only spans leave the machine, and only if the
//! configuration names a collector.
//!
//! The log and the statistics are written by a separate thread; a call queues a record and continues.
//! This crate knows no server, no session and no protocol.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod audit;
mod exposition;
pub mod otlp;
mod outcome;
mod record;
mod recorder;
mod stats;
mod totals;

pub use audit::{Broken, Filter, Hide, Verified, find_head, has_lines, read, read_newest, verify};
pub use exposition::{CONTENT_TYPE, Exposition, Family, MetricKind};
pub use outcome::{CallCount, Outcome};
pub use record::{AuditHead, CallRecord, Event, RecordedArguments, estimate_tokens};
pub use recorder::{Recorder, RecorderSettings};
pub use stats::{
    AskedWords, By, COMMAND_LINE, CallFigures, DAYS_KEPT, Figures, FirstUses, Searches,
    read as read_stats,
};
pub use totals::Totals;
