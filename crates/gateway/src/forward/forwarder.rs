//! The parts that a forwarded request needs.

use std::sync::Arc;

use fleet::{Asks, Request, StartCheck};
use jsonrpc::Json;
use registry::{Generation, KnownServer};
use results::ResultStore;

use super::error::ForwardError;
use crate::{
    authorize::{AuthorizationRequest, Authorizer},
    call_context::CallContext,
    catalog::Catalog,
    dispatcher::record::CallNote,
    elicitation::input_rounds::request_in_rounds,
    elicitation::requested_input::RoundError,
    error::ToolError,
};

/// Forwards requests for prompts, resources and completions.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) results: ResultStore,
}

/// A request that the rules allow.
pub(super) struct Authorized {
    pub(super) note: CallNote,
    /// The check that they still do when it starts.
    pub(super) rules: Arc<dyn StartCheck>,
}

impl Forwarder {
    pub(super) async fn known(&self) -> Result<Arc<Generation>, ForwardError> {
        let generation = self.catalog.generation().await;
        generation.map_err(|error| ForwardError::internal(error.to_string()))
    }

    /// Refuses requests that name a server, a prompt or a resource while the configuration is
    /// invalid: then no server is known, as for a call of a tool.
    pub(super) fn check_configured(&self) -> Result<(), ForwardError> {
        match self.catalog.mistakes_that_hide_servers() {
            Some(mistakes) => Err(ToolError::Misconfigured(mistakes).into()),
            None => Ok(()),
        }
    }

    /// Begins the record of a request, and authorizes it.
    pub(super) async fn authorize(
        &self,
        kind: &'static str,
        asked: &AuthorizationRequest<'_>,
        context: &CallContext,
    ) -> Result<Authorized, ForwardError> {
        let (authorizer, settings) = (&self.authorizer, self.catalog.settings());
        let mut note = authorizer.begin_note(kind, context);
        authorizer.authorize(asked, context, &mut note).await?;
        let rules = authorizer.check_at_start(settings, asked, &context.policy);
        Ok(Authorized { note, rules })
    }

    /// Sends an authorized request to the server that it belongs to.
    pub(super) async fn ask(
        &self,
        server: &KnownServer,
        request: Request,
        Authorized { note, rules }: Authorized,
        context: &CallContext,
    ) -> Result<Json, ForwardError> {
        let context = context.below(note.trace());
        let asker = context.asks.as_ref();
        let asker = asker.map(|asks| asks.for_server(&server.name));
        let asks = asker.clone().map(|asks| asks as Arc<dyn Asks>);
        let request = context.complete(Request {
            asks,
            start_check: Some(rules),
            ..request
        });
        let asking = request_in_rounds(
            &self.catalog.servers,
            &server.name,
            request,
            asker.as_deref(),
            &context.cancel,
            &|_| {},
        );
        let answer = note.end(asking.await, RoundError::code);
        answer.map_err(|error| match error {
            RoundError::Call(error) => error.into(),
            RoundError::Unanswered(why) => {
                ForwardError::internal(format!("the server asks for more before it goes on: {why}"))
            }
        })
    }
}
