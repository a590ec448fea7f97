//! The features that join every call of a tool, before it is sent and after it was answered.

use std::{fmt::Debug, sync::Arc, time::Duration};

use jsonrpc::Json;
use registry::Entry;

use crate::{
    call_context::CallContext, dispatcher::outcome::CallOutcome, dispatcher::record::CallNote,
    envelope::Options, error::ToolError, settings::Settings,
};

/// A call whose arguments are checked.
pub(crate) struct ToolCall<'c> {
    pub(crate) entry: &'c Entry,
    pub(crate) arguments: &'c Json,
    pub(crate) options: &'c Options,
    /// None for a tool of ours.
    pub(crate) timeout: Option<Duration>,
    /// The settings of the moment before its name was resolved.
    pub(crate) settings: &'c Arc<Settings>,
}

/// A feature that joins every call. Each is registered once, where the gateway makes its dispatcher.
pub(crate) trait CallHook: Debug + Send + Sync {
    /// Called when the rules allow the call, before it is sent. An error refuses the call.
    fn before(
        &self,
        _call: &ToolCall<'_>,
        _context: &CallContext,
        _note: &mut CallNote,
    ) -> Result<(), ToolError> {
        Ok(())
    }

    /// Called with the result, before it is cut to size.
    fn after(&self, _call: &ToolCall<'_>, _outcome: &CallOutcome, _note: &mut CallNote) {}
}
