//! The resources that a session is subscribed to.

use std::{collections::HashMap, sync::Arc};

use fleet::WatchGuard;
use jsonrpc::{frame, quote};
use parking_lot::Mutex;

use crate::{
    call_context::CallContext,
    forward::{ForwardError, UpdateSink},
    gateway::Gateway,
    json_text::write_object,
    out::Out,
};

/// The most subscriptions of one client: each keeps its server from resting.
pub(super) const SUBSCRIPTIONS_MAX: usize = 256;

/// The resources that a session is subscribed to, by the URI that its client sent.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<HashMap<String, WatchGuard>>);

impl Subscriptions {
    /// Subscribes to a resource: its changes are sent to `out` from now on.
    pub(super) async fn begin(
        &self,
        uri: &str,
        gateway: &Gateway,
        context: &CallContext,
        out: &Out,
    ) -> Result<(), ForwardError> {
        let session = context.client.as_ref().and_then(|it| it.connection);
        if session.is_none() {
            let why = "a subscription belongs to a session: begin one";
            return Err(ForwardError::params(why));
        }
        if self.0.lock().len() >= SUBSCRIPTIONS_MAX {
            let why = format!("more than {SUBSCRIPTIONS_MAX} subscriptions; end some first");
            return Err(ForwardError::params(why));
        }
        let hear = tell(out.clone(), None);
        let watched = gateway.forwarder.watch_resource(uri, context, hear).await?;
        self.0.lock().insert(uri.to_owned(), watched);
        Ok(())
    }

    /// Ends all subscriptions of a client that is gone.
    pub(super) fn end_all(&self) {
        let ended = std::mem::take(&mut *self.0.lock());
        drop(ended);
    }

    /// Ends a subscription; an unknown one is ignored.
    pub(super) fn end(&self, uri: &str) {
        let ended = self.0.lock().remove(uri);
        drop(ended);
    }
}

/// Notifies a client of a resource that changed; `meta` is JSON text.
pub(super) fn tell(out: Out, meta: Option<String>) -> UpdateSink {
    Arc::new(move |uri: &str| {
        let uri = quote(uri);
        let meta = meta.as_ref().map(|meta| ("_meta", meta));
        let params = write_object([("uri", &uri)].into_iter().chain(meta));
        let line = frame::notification("notifications/resources/updated", &params);
        out.offer(vec![line]);
    })
}
