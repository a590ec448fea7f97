//! A call of one of the three tools.

use std::sync::Arc;

use mcp::{ADDRESSES_FIRST, MISSING_CAPABILITY};
use registry::{Entry, Generation};
use serde_json::value::RawValue;
use tool::{ServerName, ToolRef};

use crate::{
    asks::CallAsker,
    call_context::CallContext,
    definitions::{DESCRIBE, EXECUTE, SEARCH},
    error::{Audience, ToolError},
    find::{admit, damaged, find},
    gateway::Gateway,
    policy::ClientPolicy,
    reply::Reply,
    surveys::WaitsFor,
};

impl Gateway {
    /// Answers a call of one of the three tools; `None` for any other name.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<&RawValue>,
        mut context: CallContext,
    ) -> Option<Reply> {
        if ![SEARCH, DESCRIBE, EXECUTE].contains(&name) {
            return None;
        }
        let (asks, audience) = (context.asks.clone(), context.audience);
        let mut span = self.traces.begin_request(name, &mut context);
        let reply = match name {
            SEARCH => self.search_tools(arguments, &context).await,
            DESCRIBE => self.describe_tool(arguments, &context).await,
            _ => self.execute_dynamic_tool(arguments, context).await,
        };
        if let Some(span) = &mut span {
            span.ends();
            match &reply {
                Ok(reply) if reply.is_error() => span.fails("tool_error"),
                Ok(_) => {}
                Err(error) => span.fails(error.code()),
            }
        }
        Some(reply.unwrap_or_else(|error| explain(error, asks.as_ref(), audience)))
    }

    /// The tool that a name means, or the error that a client would get.
    pub async fn find(
        &self,
        generation: &Arc<Generation>,
        asked: &str,
    ) -> Result<Arc<Entry>, ToolError> {
        find(generation, asked, &ClientPolicy::default()).await
    }

    /// The tool that a name means to a client. Of a name as we write it no other server is loaded; one
    /// that is not known waits for servers that are being asked for their tools.
    pub(crate) async fn resolve(
        &self,
        asked: &str,
        policy: &ClientPolicy,
    ) -> Result<Arc<Entry>, ToolError> {
        if let Some(entry) = self.named(asked).await {
            return admit(&entry, policy);
        }
        let sees = |server: &ServerName| self.shows(policy, server);
        loop {
            let end = self.surveys.next_end();
            let generation = self.generation().await?;
            let error = match find(&generation, asked, policy).await {
                Ok(entry) => return Ok(entry),
                Err(error) => error,
            };
            let (waits_for, untold) = match &error {
                ToolError::UnknownTool { instead: None, .. } => (WaitsFor::AnyTools, None),
                // It has never told its tools, and may be about to.
                ToolError::ServerUnavailable { server, .. }
                | ToolError::LoginRequired { server, .. } => {
                    (WaitsFor::FirstTools, Some(server.clone()))
                }
                _ => return Err(error),
            };
            if untold.is_none()
                && self.settings().servers.is_empty()
                && let Some(mistakes) = self.config_mistakes()
            {
                return Err(ToolError::Misconfigured(mistakes));
            }
            let concerns = |server: &ServerName| match &untold {
                Some(untold) => server == untold,
                None => sees(server),
            };
            if !self.surveys.wait_for(end, waits_for, concerns).await {
                let ToolError::UnknownTool { asked, near, .. } = error else {
                    return Err(error);
                };
                let missing = self.surveys.missing(sees);
                let damaged = damaged(&generation, &asked, policy, self.is_mending());
                return Err(damaged.unwrap_or(ToolError::UnknownTool {
                    asked,
                    near,
                    instead: None,
                    missing,
                }));
            }
        }
    }

    /// The same for a call. Where a person has to log in to the server first, and the client can have
    /// them do it, the client is asked to.
    pub(crate) async fn resolve_after_login(
        &self,
        asked: &str,
        context: &CallContext,
    ) -> Result<Arc<Entry>, ToolError> {
        let policy = &context.policy;
        let error = match self.resolve(asked, policy).await {
            Err(error @ ToolError::LoginRequired { .. }) => error,
            found => return found,
        };
        if let ToolError::LoginRequired { server, .. } = &error
            && Box::pin(self.log_in_first(server, context)).await
        {
            return self.resolve(asked, policy).await;
        }
        Err(error)
    }

    /// The tool that a name was meant for, whether it may be called or not.
    pub(crate) async fn intended(&self, asked: &str) -> Option<ToolRef> {
        let generation = self.generation().await.ok()?;
        generation.intended(asked)
    }

    /// Whether a client may know of a server.
    pub(crate) fn shows(&self, policy: &ClientPolicy, server: &ServerName) -> bool {
        let catalog = self.registry.catalog();
        let known = catalog.servers.iter().find(|it| it.name == *server);
        known.is_none_or(|it| policy.sees(&it.name, &it.category))
    }
}

/// What went wrong, for the model; or for the client, where it alone can do something about it.
fn explain(error: ToolError, asks: Option<&CallAsker>, audience: Audience) -> Reply {
    let reply = Reply::error(&error, audience);
    let (ToolError::ServerError { error, .. }, Some(asks)) = (error, asks) else {
        return reply;
    };
    let is_for_client = match error.code.parse() {
        Ok(MISSING_CAPABILITY) => asks.takes_rounds(),
        Ok(ADDRESSES_FIRST) => !asks.takes_rounds() && asks.takes_addresses(),
        _ => false,
    };
    if is_for_client {
        reply.with_client_error(*error)
    } else {
        reply
    }
}
