//! The resources that a session is subscribed to.

use std::{collections::HashMap, fmt, sync::Arc};

use fleet::WatchGuard;
use jsonrpc::frame;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    call_context::CallContext,
    forward::{ForwardError, UpdateSink},
    gateway::Gateway,
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
        if context
            .client
            .as_ref()
            .is_none_or(|it| it.connection.is_none())
        {
            return Err(ForwardError::params(
                "a subscription belongs to a session: begin one",
            ));
        }
        if self.0.lock().len() >= SUBSCRIPTIONS_MAX {
            let why = format!("more than {SUBSCRIPTIONS_MAX} subscriptions; end some first");
            return Err(ForwardError::params(why));
        }
        let watched = gateway
            .forwarder
            .watch_resource(uri, context, tell(out.clone(), None))
            .await?;
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
        let mut params = json!({ "uri": uri });
        if let Some(meta) = &meta {
            params["_meta"] = serde_json::from_str(meta).unwrap_or(Value::Null);
        }
        let line = frame::notification("notifications/resources/updated", &params.to_string());
        out.offer(vec![line]);
    })
}

impl fmt::Debug for Subscriptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscriptions")
    }
}
