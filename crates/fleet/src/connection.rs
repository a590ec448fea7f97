//! An open connection to a server, whatever its transport.

use std::{fmt, future::ready};

use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::Json;

use printable::Redactor;

use crate::{
    Request,
    error::{Denied, RequestError},
    redaction::mask_list,
    request::Origin,
    updates::Updates,
};

/// An open connection. Each transport has one implementation.
pub(crate) trait Connection: Send + Sync {
    /// Sends a request and waits for its result, as the server wrote it. Dropping the future cancels the
    /// request at the server.
    fn request<'a>(
        &'a self,
        request: &'a Request,
        origin: Origin,
    ) -> BoxFuture<'a, Result<Json, RequestError>>;

    fn updates(&self) -> &Updates;

    /// Masks the secrets that the server was given.
    fn redactor(&self) -> Option<&Redactor> {
        None
    }

    /// Returns true if no further request can succeed.
    fn has_ended(&self) -> bool;

    fn ended(&self) -> BoxFuture<'_, ()>;

    /// Notifies the server that its roots may have changed.
    fn tell_roots_changed(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    /// Returns true if it is certain that the server, which has ended, did not read the request that
    /// was sent after this many bytes.
    fn is_unread(&self, _before: u64) -> bool {
        false
    }

    /// Returns the refusal with which the server denied access, if it did.
    fn denied(&self) -> Option<Denied> {
        None
    }

    /// Fails the pending requests of a server whose process has ended, even if another process holds
    /// its pipes.
    fn give_up(&self) {}

    /// Asks the server to end: closes the stdin of a child, ends a remote session.
    fn close(&self) -> BoxFuture<'_, ()>;
}

impl fmt::Debug for dyn Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl dyn Connection {
    /// Sends a request of a client.
    pub(crate) async fn call(&self, request: &Request) -> Result<Json, RequestError> {
        self.request(request, Origin::Client).await
    }

    /// Sends a request of the proxy itself.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Json, RequestError> {
        self.request(request, Origin::Proxy).await
    }

    /// Reads one page of a list, such as `tools/list`, without the server's secrets.
    pub(crate) async fn list(
        &self,
        method: &'static str,
        cursor: Option<&str>,
    ) -> Result<Json, RequestError> {
        let page = self.ask(&Request::list(method, cursor)).await?;
        let Some(redactor) = self.redactor() else {
            return Ok(page);
        };
        let masked = mask_list(redactor, page).await;
        masked.ok_or_else(|| RequestError::Failed(format!("secrets in `{method}` were not masked")))
    }
}
