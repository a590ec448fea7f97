//! Counts what was redacted in the result of a call, for its record.

use printable::count_redacted;

use crate::dispatcher::{
    hook::{CallHook, ToolCall},
    outcome::CallOutcome,
    record::CallNote,
};

#[derive(Debug)]
pub(crate) struct RedactionCount;

impl CallHook for RedactionCount {
    fn after(&self, call: &ToolCall<'_>, outcome: &CallOutcome, note: &mut CallNote) {
        let server = call.settings.server(&call.entry.at.server);
        if let CallOutcome::Server { result, .. } = outcome
            && server.is_some_and(|it| it.spec.redaction.is_some())
        {
            note.record.redacted = count_redacted(result.as_str());
        }
    }
}
