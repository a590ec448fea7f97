//! A server over HTTP: streamable HTTP, or HTTP+SSE, the older transport, for those that speak only
//! that.

use std::sync::Arc;

use jsonrpc::Json;
use jsonrpc::mcp::Transport;

use super::{
    handshake::HandshakeError,
    http::Site,
    sse::{SseConnection, SseError},
    streamable::Streamable,
};
use crate::{
    About, Request, Spoken,
    asking::Asking,
    changes::OnListChanged,
    error::{Denied, RequestError},
    updates::Updates,
};

/// An open connection to a remote server.
#[derive(Debug)]
pub(crate) enum Remote {
    Streamable(Streamable),
    Sse(SseConnection),
}

impl Remote {
    pub(crate) async fn open(
        site: Site,
        guess: &Spoken,
        on_list_changed: OnListChanged,
        asking: &Arc<Asking>,
    ) -> Result<(Self, About), HandshakeError> {
        let seems_sse = guess.transport == Transport::Sse || site.url.path().ends_with("/sse");
        if seems_sse {
            match open_sse(&site, &on_list_changed, asking).await {
                Err(SseError::NotSpoken) => {}
                Err(SseError::Failed(error)) => return Err(error),
                Ok(open) => return Ok(open),
            }
        }
        let on_changed = OnListChanged::clone(&on_list_changed);
        let opened = Streamable::open(&site, guess, on_changed, asking).await;
        let refused = match opened {
            Ok((streamable, about)) => return Ok((Self::Streamable(streamable), about)),
            Err(refused) => refused,
        };
        if seems_sse || !refused.may_be_sse {
            return Err(refused.error);
        }
        match open_sse(&site, &on_list_changed, asking).await {
            Ok(open) => Ok(open),
            Err(SseError::NotSpoken) => Err(refused.error),
            Err(SseError::Failed(error)) => Err(error),
        }
    }

    pub(crate) async fn call(&self, request: &Request) -> Result<Json, RequestError> {
        match self {
            Self::Streamable(streamable) => streamable.call(request).await,
            Self::Sse(sse) => sse.call(request).await,
        }
    }

    pub(crate) async fn ask(&self, request: &Request) -> Result<Json, RequestError> {
        match self {
            Self::Streamable(streamable) => streamable.ask(request).await,
            Self::Sse(sse) => sse.ask(request).await,
        }
    }

    pub(crate) fn updates(&self) -> &Updates {
        match self {
            Self::Streamable(streamable) => streamable.updates(),
            Self::Sse(sse) => sse.updates(),
        }
    }

    pub(crate) async fn list(
        &self,
        method: &'static str,
        cursor: Option<&str>,
    ) -> Result<Json, RequestError> {
        match self {
            Self::Streamable(streamable) => streamable.list(method, cursor).await,
            Self::Sse(sse) => sse.list(method, cursor).await,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Streamable(streamable) => streamable.has_ended(),
            Self::Sse(sse) => sse.has_ended(),
        }
    }

    pub(crate) async fn ended(&self) {
        match self {
            Self::Streamable(streamable) => streamable.ended().await,
            Self::Sse(sse) => sse.ended().await,
        }
    }

    pub(crate) async fn tell_roots_changed(&self) {
        match self {
            Self::Streamable(streamable) => streamable.tell_roots_changed().await,
            Self::Sse(sse) => sse.tell_roots_changed().await,
        }
    }

    /// The refusal with which the server denied us, if it did.
    pub(crate) fn denied(&self) -> Option<Denied> {
        match self {
            Self::Streamable(streamable) => streamable.denied(),
            Self::Sse(sse) => sse.denied(),
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Streamable(streamable) => streamable.close().await,
            Self::Sse(sse) => sse.close(),
        }
    }
}

async fn open_sse(
    site: &Site,
    on_list_changed: &OnListChanged,
    asking: &Arc<Asking>,
) -> Result<(Remote, About), SseError> {
    let on_list_changed = OnListChanged::clone(on_list_changed);
    let (sse, about) = SseConnection::open(site, on_list_changed, asking).await?;
    Ok((Remote::Sse(sse), about))
}

#[cfg(test)]
mod tests;
