//! The parts that a forwarded request needs.

use std::sync::Arc;

use fleet::{Asks, Request};
use jsonrpc::Json;
use registry::{Generation, KnownServer};
use results::ResultStore;

use super::error::ForwardError;
use crate::{
    authorize::Authorizer, call_context::CallContext, catalog::Catalog,
    elicitation::input_rounds::request_in_rounds, elicitation::requested_input::RoundError,
    error::ToolError,
};

/// Forwards requests for prompts, resources and completions.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub(crate) catalog: Arc<Catalog>,
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) results: ResultStore,
}

impl Forwarder {
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        authorizer: Arc<Authorizer>,
        results: ResultStore,
    ) -> Self {
        Self {
            catalog,
            authorizer,
            results,
        }
    }

    pub(super) async fn known(&self) -> Result<Arc<Generation>, ForwardError> {
        let generation = self.catalog.generation().await;
        generation.map_err(|error| ForwardError::internal(error.to_string()))
    }

    /// Refuses requests that name a server, a prompt or a resource while the configuration is
    /// invalid: then no server is known, as for a call of a tool.
    pub(super) fn check_configured(&self) -> Result<(), ForwardError> {
        match self.catalog.settings.mistakes_that_hide_servers() {
            Some(mistakes) => Err(ToolError::Misconfigured(mistakes).into()),
            None => Ok(()),
        }
    }

    /// Sends the request to the server that it belongs to.
    pub(super) async fn ask(
        &self,
        server: &KnownServer,
        request: Request,
        context: &CallContext,
    ) -> Result<Json, ForwardError> {
        let asker = context.asks.as_ref();
        let asker = asker.map(|asks| asks.for_server(&server.name));
        let asks = asker.clone().map(|asks| asks as Arc<dyn Asks>);
        let request = context.complete(Request { asks, ..request });
        let (name, cancel) = (&server.name, &context.cancel);
        let refuse = |error| ForwardError::Call(Box::new(error));
        let asking = request_in_rounds(
            &self.catalog.servers,
            name,
            request,
            asker.as_deref(),
            cancel,
            &|_| {},
        );
        asking.await.map_err(|error| match error {
            RoundError::Call(error) => refuse(error),
            RoundError::Unanswered(why) => {
                ForwardError::internal(format!("the server asks for more before it goes on: {why}"))
            }
        })
    }
}
