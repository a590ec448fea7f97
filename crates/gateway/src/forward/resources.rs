//! Resources and their templates: listed from snapshots, and read from the server that has them.

use std::{collections::HashMap, sync::Arc};

use fleet::{Asks, Request, Subscriber, WatchGuard};
use jsonrpc::Json;
use registry::{Generation, KnownServer};
use tool::{Capability, ItemKind, OfferItem};

use super::{
    error::ForwardError,
    forwarder::{Authorized, Forwarder},
    owner::Owner,
    owner_for_client::find_owner,
    page,
    request::{Params, json_text, replaced},
    server_uri, skills,
};
use crate::{authorize::AuthorizationRequest, call_context::CallContext, error::code_of_call};

/// Receives the URI of a resource that changed, in the form that its client uses.
pub(crate) type UpdateSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Lists resources or templates. Every URI has its server's form, except those that several servers have.
pub(super) fn list<'g>(
    kind: ItemKind,
    seen: &[&'g KnownServer],
    params: &Params,
) -> Result<Json, ForwardError> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    let items =
        |server: &'g KnownServer| server.offer.list(kind).iter().map(move |it| (server, it));
    let all = || seen.iter().copied().flat_map(items);
    all().for_each(|(_, item)| *owners.entry(item.id()).or_default() += 1);
    let write = |(server, item): (&KnownServer, &OfferItem)| {
        if owners[item.id()] == 1 {
            return item.json().to_owned();
        }
        let explicit = server_uri::write(&server.name, item.id());
        page::with_text(item.json(), kind.id_key(), &explicit)
    };
    page::write(kind, seen, params, all().map(write))
}

impl Forwarder {
    /// Sends `resources/read` to the server that the URI belongs to.
    pub(crate) async fn read_resource(
        &self,
        generation: &Generation,
        uri: &str,
        params: &Params,
        context: &CallContext,
    ) -> Result<Json, ForwardError> {
        let owner = find_owner(generation, uri, context)?;
        let is_explicit = owner.uri != uri;
        let (server, own) = (owner.server, owner.uri.clone());
        let read = self.read_of(owner, params, context).await?;
        if is_explicit && server.offer.skills.iter().any(|it| it.is_skill_file(&own)) {
            return Ok(skills::with_server_in_contents(&server.name, read));
        }
        Ok(read)
    }

    /// Sends `resources/read` to this server.
    pub(super) async fn read_of(
        &self,
        Owner { server, uri }: Owner<'_>,
        params: &Params,
        context: &CallContext,
    ) -> Result<Json, ForwardError> {
        let asked = AuthorizationRequest::resource(server, &uri);
        let authorized = self.authorize("resource", &asked, context).await?;
        if server.name.is_scripts() {
            return authorized
                .note
                .end(self.read_saved(uri).await, ForwardError::record_code);
        }
        let params = replaced(params, "uri", json_text(&uri));
        let request = Request::new("resources/read", params);
        let asking = self.ask(server, request, authorized, context);
        let result = asking.await.map_err(ForwardError::known_by_its_uri)?;
        skills::check_skill_file(self, server, &uri, &result)?;
        context.note_uris(&server.name, &result);
        Ok(result)
    }

    /// Reads a file of the user's own skills.
    async fn read_saved(&self, uri: String) -> Result<Json, ForwardError> {
        let saved = self.catalog.saved_scripts();
        let reading = tokio::task::spawn_blocking(move || saved.skills.read_file(&uri)).await;
        let read = reading.map_err(|error| ForwardError::internal(error.to_string()))?;
        read.map_err(ForwardError::params)
    }

    /// Notifies a client of changes of a resource, until the returned value is dropped.
    pub(crate) async fn watch_resource(
        &self,
        uri: &str,
        context: &CallContext,
        hear: UpdateSink,
    ) -> Result<WatchGuard, ForwardError> {
        let generation = self.known().await?;
        self.check_configured()?;
        let owner = find_owner(&generation, uri, context)?;
        let name = owner.server.name.clone();
        let asked = AuthorizationRequest::resource(owner.server, &owner.uri);
        let Authorized { mut note, rules } =
            self.authorize("subscription", &asked, context).await?;
        if !owner.server.offer.has(Capability::Subscribe) {
            let why = format!("server `{name}` does not tell of resources that change");
            let refusal = ForwardError::params(why);
            note.set_failure(refusal.record_code());
            return Err(refusal);
        }
        let (is_explicit, server) = (owner.uri != uri, name.clone());
        let sink = move |told: &str| {
            if is_explicit {
                hear(&server_uri::write(&server, told));
            } else {
                hear(told);
            }
        };
        let asks = context.asks.clone();
        let asks = asks.map(|asks| asks.for_server(&name) as Arc<dyn Asks>);
        let subscriber = Subscriber {
            client: context.client.clone(),
            asks,
            start_check: Some(rules),
            sink: Arc::new(sink),
        };
        let watching = self.catalog.servers.watch(&name, &owner.uri, subscriber);
        match watching.await {
            Ok(guard) => {
                note.set_result(0, false);
                Ok(guard)
            }
            Err(error) => {
                note.set_failure(code_of_call(&error));
                Err(error.into())
            }
        }
    }
}
