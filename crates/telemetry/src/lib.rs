//! What was called, asked and answered: an audit log whose lines prove one another, figures a day,
//! and figures since the program began; and spans ([`otlp`]). Only spans leave the machine, and only
//! where the configuration names a collector.
//!
//! Log and figures are written by a thread of their own; a call hands over a record and goes on. This
//! crate knows no server, no session and no protocol.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod audit;
mod exposition;
pub mod otlp;
mod record;
mod recorder;
mod stats;
mod totals;

pub use audit::{AuditLog, Broken, Filter, Hide, Verified, read, verify};
pub use exposition::{CONTENT_TYPE, Exposition, Family, Kind};
pub use record::{Arguments, CallRecord, Event, estimate_tokens};
pub use recorder::{Recorder, Settings};
pub use stats::{By, DAYS_KEPT, Figures, Line, Searches, list_clients, read as read_stats};
pub use totals::Totals;
