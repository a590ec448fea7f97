//! Credentials that were refused over HTTP, in the audit log.

use files::clock::now_ms;
use telemetry::{CallRecord, Event};

use crate::gateway::Gateway;

/// Records in the audit log that a credential was refused over HTTP; `why` holds no part of it.
pub fn record_refused_credential(gateway: &Gateway, why: &str) {
    let record = CallRecord {
        at_ms: now_ms(),
        transport: "http",
        kind: "credential",
        name: why.to_owned(),
        decision: "deny",
        outcome: "denied".into(),
        ..CallRecord::default()
    };
    gateway.recorder.record(Event::Refusal(Box::new(record)));
}
