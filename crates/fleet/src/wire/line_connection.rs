//! A connection whose messages are lines: the pipes of a child, and HTTP+SSE, which is made to look
//! like them.

use std::{future::ready, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::Json;
use parking_lot::Mutex;
use printable::Redactor;
use tokio_util::sync::DropGuard;

use super::handshake::{OwnMeta, Service};
use crate::{
    Request, ServerInfo,
    channel::CallChannel,
    connection::Connection,
    error::{Denied, RequestError},
    request::Origin,
    updates::Updates,
};

pub(crate) struct LineConnection {
    channel: CallChannel,
    /// The members that the revision requires in the `_meta` of each request.
    own_meta: OwnMeta,
    service: Service,
    /// The HTTP side, if the server is not a child.
    http: Option<HttpSide>,
}

/// The HTTP side of a connection over HTTP+SSE.
pub(crate) struct HttpSide {
    pub(super) denied: Arc<Mutex<Option<Denied>>>,
    pub(super) _open: DropGuard,
}

impl LineConnection {
    pub(crate) fn new(
        channel: CallChannel,
        service: Service,
        about: &ServerInfo,
        http: Option<HttpSide>,
    ) -> Self {
        Self {
            channel,
            own_meta: OwnMeta::of(&about.spoken.revision),
            service,
            http,
        }
    }
}

impl Connection for LineConnection {
    fn request<'a>(
        &'a self,
        request: &'a Request,
        origin: Origin,
    ) -> BoxFuture<'a, Result<Json, RequestError>> {
        async move {
            let own_meta = self.own_meta.members(request, origin);
            let params = |id| request.write_params(&own_meta, id);
            let listeners = request.listeners(origin);
            self.channel
                .request(request.method, params, listeners)
                .await
        }
        .boxed()
    }

    fn updates(&self) -> &Updates {
        &self.channel.pending.updates
    }

    fn redactor(&self) -> Option<&Redactor> {
        Some(&self.channel.mask)
    }

    fn has_ended(&self) -> bool {
        self.channel.has_ended()
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        self.channel.ended().boxed()
    }

    fn tell_roots_changed(&self) -> BoxFuture<'_, ()> {
        self.service.tell_roots_changed().boxed()
    }

    fn is_unread(&self, before: u64) -> bool {
        self.channel.outbox.is_unread(before)
    }

    fn denied(&self) -> Option<Denied> {
        self.http.as_ref()?.denied.lock().clone()
    }

    fn give_up(&self) {
        // A remote server still gets the queued messages.
        if self.http.is_none() {
            self.channel.give_up();
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.channel.outbox.close();
        ready(()).boxed()
    }
}
