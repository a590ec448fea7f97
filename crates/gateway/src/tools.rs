//! The three tools: each parses its arguments, asks the catalog or the dispatcher, and renders.

pub(crate) mod describe_tool;
mod loose;
pub(crate) mod search_tools;
mod server_marks;

pub use describe_tool::{describe_as_json, describe_json};
pub use search_tools::{search_json, search_text};

use jsonrpc::mcp::{ADDRESSES_FIRST, MISSING_CAPABILITY};
use serde_json::value::RawValue;
use telemetry::Outcome;

use self::{describe_tool::describe_tool, search_tools::search_tools};
use crate::{
    call_context::CallContext,
    definitions::{DESCRIBE, EXECUTE, SEARCH},
    elicitation::CallAsker,
    envelope::ExecuteRequest,
    error::{Audience, ToolError},
    gateway::Gateway,
    reply::ToolReply,
};

impl Gateway {
    /// Answers a call of one of the three tools; `None` for any other name.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<&RawValue>,
        mut context: CallContext,
    ) -> Option<ToolReply> {
        if ![SEARCH, DESCRIBE, EXECUTE].contains(&name) {
            return None;
        }
        let (asks, audience) = (context.asks.clone(), context.audience);
        let mut span = self.traces.begin_request(name, &mut context);
        let (catalog, recorder, results) = (&self.catalog, &self.recorder, &self.results);
        let reply = match name {
            SEARCH => Box::pin(search_tools(catalog, recorder, arguments, &context)).await,
            DESCRIBE => Box::pin(describe_tool(catalog, results, arguments, &context)).await,
            _ => self.execute(arguments, context).await,
        };
        if let Some(span) = &mut span {
            span.complete();
            match &reply {
                Ok(reply) if reply.is_error() => span.fail(Outcome::TOOL_ERROR.as_str()),
                Ok(_) => {}
                Err(error) => span.fail(error.code()),
            }
        }
        Some(reply.unwrap_or_else(|error| explain(error, asks.as_ref(), audience)))
    }

    async fn execute(
        &self,
        arguments: Option<&RawValue>,
        context: CallContext,
    ) -> Result<ToolReply, ToolError> {
        let request = ExecuteRequest::parse(arguments)?;
        let called = self.dispatcher.dispatch(request, context).await?;
        let (reply, record) = called.reply_and_record(&self.results).await;
        Ok(match record {
            Some(record) => reply.with_record(record),
            None => reply,
        })
    }
}

/// Returns the error for the model, or for the client if only the client can act on it.
fn explain(error: ToolError, asks: Option<&CallAsker>, audience: Audience) -> ToolReply {
    let mut reply = ToolReply::error(&error, audience);
    let (ToolError::ServerError { error, .. }, Some(asks)) = (error, asks) else {
        return reply;
    };
    let is_for_client = match error.code.parse() {
        Ok(MISSING_CAPABILITY) => asks.uses_rounds(),
        Ok(ADDRESSES_FIRST) => !asks.uses_rounds() && asks.opens_addresses(),
        _ => false,
    };
    reply.client_error = is_for_client.then_some(error);
    reply
}
