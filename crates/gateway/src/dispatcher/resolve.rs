//! The first stage of a call: the tool that its name means.

use std::sync::Arc;

use fleet::Asks;
use registry::Entry;
use tool::ServerName;

use super::Dispatcher;
use crate::{
    apps::check_caller, call_context::CallContext, dispatcher::record::CallNote, envelope::Options,
    error::ToolError, script_caller::ScriptCaller, survey::survey_now,
};

impl Dispatcher {
    /// Resolves the name of a call, and refuses a caller that the tool is not for. The record names
    /// the server and tool of the call, or, if there is no such tool, the tool that was probably meant.
    pub(super) async fn resolve(
        &self,
        tool_name: &str,
        options: &Options,
        context: &CallContext,
        note: &mut CallNote,
    ) -> Result<Arc<Entry>, ToolError> {
        // Calls within `call_many` pass here too; calls of unknown names count as well.
        let counted = context.script.as_ref().map(ScriptCaller::count_call);
        let found = self.resolve_after_login(tool_name, context).await;
        let at = match &found {
            Ok(entry) => Some(entry.at.clone()),
            // Boxed, so that not every call reserves memory for this rare case.
            Err(_) => Box::pin(self.catalog.intended(tool_name)).await,
        };
        if let Some(at) = at {
            note.set_target(&at.server, &at.tool);
        }
        let entry = found?;
        counted.transpose()?;
        if let Some(script) = &context.script {
            script.check_reads(&entry)?;
        }
        note.record.by_app = options.app.is_some();
        check_caller(&entry, options, context)?;
        Ok(entry)
    }

    /// Resolves a name. If a person has to log in to the server first, and the client can have them
    /// do it, the client is asked to.
    async fn resolve_after_login(
        &self,
        asked: &str,
        context: &CallContext,
    ) -> Result<Arc<Entry>, ToolError> {
        let policy = &context.policy;
        let mut found = self.catalog.resolve(asked, policy).await;
        let client = context.client.as_ref();
        let has_caller = client.is_some_and(|it| it.caller.is_some());
        let is_known = match &found {
            Err(ToolError::LoginRequired { server, .. }) if context.is_here || has_caller => {
                Box::pin(self.log_in_first(server, context)).await
            }
            // No caller that the server accepts was there before.
            Err(ToolError::ServerUnavailable { server, .. })
                if has_caller
                    && self
                        .catalog
                        .servers
                        .callers()
                        .is_some_and(|callers| callers.is_of_callers(server)) =>
            {
                Box::pin(survey_now(&self.catalog, server)).await;
                true
            }
            _ => false,
        };
        if is_known {
            found = self.catalog.resolve(asked, policy).await;
        }
        found.map_err(|mut error| {
            if let ToolError::LoginRequired { server, needed, .. } = &mut error {
                needed.address = self
                    .catalog
                    .servers
                    .callers()
                    .and_then(|callers| callers.offer_login(server, context.client.as_ref()));
            }
            error
        })
    }

    /// Has the person of this client log in to a server that has not sent its tools, and then
    /// surveys the server. Returns true if there was a login.
    async fn log_in_first(&self, server: &ServerName, context: &CallContext) -> bool {
        let Some(asks) = &context.asks else {
            return false;
        };
        let asks: Arc<dyn Asks> = asks.for_server(server);
        let servers = &self.catalog.servers;
        let logging_in = servers.log_in(server, context.client.as_ref(), &asks);
        let logged_in = context.cancel.run_until_cancelled(logging_in).await == Some(true);
        if logged_in {
            survey_now(&self.catalog, server).await;
        }
        logged_in
    }
}
