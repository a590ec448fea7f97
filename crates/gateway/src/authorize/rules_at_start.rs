//! The rules for a call when it starts: they may have changed while it waited.

use std::sync::Arc;

use ::policy::{PolicyVerdict, RequestKind};
use fleet::{Refusal, StartCheck};
use futures::{FutureExt as _, future::BoxFuture};

use super::{AuthorizationRequest, Authorizer, refusal::RefusalReason, refuse};
use crate::{error::ToolError, policy::ClientPolicy, settings::Settings};

/// A call that was authorized, and the settings of that moment.
struct RulesAtStart {
    authorizer: Arc<Authorizer>,
    settings: Arc<Settings>,
    asked: AuthorizationRequest<'static>,
    client: Arc<ClientPolicy>,
}

impl Authorizer {
    /// Returns the check of an authorized call when it starts. `settings` are those of a moment before it
    /// was authorized.
    pub(crate) fn check_at_start(
        self: &Arc<Self>,
        settings: Arc<Settings>,
        asked: &AuthorizationRequest<'_>,
        client: &Arc<ClientPolicy>,
    ) -> Arc<dyn StartCheck> {
        Arc::new(RulesAtStart {
            authorizer: Arc::clone(self),
            settings,
            asked: asked.to_owned(),
            client: Arc::clone(client),
        })
    }

    /// Returns the error with which the current rules refuse a call that earlier ones allowed. A person who
    /// allowed it is not asked again.
    async fn refuse_by_current_rules(
        &self,
        asked: &AuthorizationRequest<'_>,
        client: &Arc<ClientPolicy>,
    ) -> Result<(), ToolError> {
        let client = &self.catalog.settings().clients.renew(client);
        let decision = if asked.kind == RequestKind::Tool {
            let name = format!("{}/{}", asked.server, asked.name);
            let entry = self.catalog.resolve(&name, client).await?;
            self.decide(
                &AuthorizationRequest::tool(&entry, &asked.arguments),
                client,
            )
        } else {
            self.decide(asked, client)
        }
        .decision;
        match decision.verdict {
            PolicyVerdict::Deny => Err(refuse(asked, &decision, RefusalReason::Denied)),
            PolicyVerdict::Allow | PolicyVerdict::Ask => Ok(()),
        }
    }
}

impl StartCheck for RulesAtStart {
    fn check(&self) -> BoxFuture<'_, Result<(), Refusal>> {
        async {
            if Arc::ptr_eq(&self.settings, &self.authorizer.catalog.settings()) {
                return Ok(());
            }
            let (authorizer, client) = (&self.authorizer, &self.client);
            let checked = authorizer
                .refuse_by_current_rules(&self.asked, client)
                .await;
            checked.map_err(Refusal::from)
        }
        .boxed()
    }
}
