//! A server over streamable HTTP, or over HTTP+SSE, the older transport, if it speaks only that.

use std::sync::Arc;

use jsonrpc::mcp::Transport;

use super::{
    handshake::HandshakeError,
    http::Site,
    sse::{SseError, open_sse},
    streamable::Streamable,
};
use crate::{ServerInfo, Spoken, asking::Asking, changes::OnListChanged, connection::Connection};

/// Connects to a remote server over the transport that it speaks.
pub(crate) async fn open_remote(
    site: Site,
    guess: &Spoken,
    on_list_changed: OnListChanged,
    asking: &Arc<Asking>,
) -> Result<(Box<dyn Connection>, ServerInfo), HandshakeError> {
    let seems_sse = guess.transport == Transport::Sse || site.url.path().ends_with("/sse");
    if seems_sse {
        match open_sse(&site, Arc::clone(&on_list_changed), asking).await {
            Err(SseError::NotSpoken) => {}
            Err(SseError::Failed(error)) => return Err(error),
            Ok((sse, about)) => return Ok((Box::new(sse), about)),
        }
    }
    let opened = Streamable::open(&site, guess, Arc::clone(&on_list_changed), asking).await;
    let refused = match opened {
        Ok((streamable, about)) => return Ok((Box::new(streamable), about)),
        Err(refused) => refused,
    };
    if seems_sse || !refused.may_be_sse {
        return Err(refused.error);
    }
    match open_sse(&site, on_list_changed, asking).await {
        Ok((sse, about)) => Ok((Box::new(sse), about)),
        Err(SseError::NotSpoken) => Err(refused.error),
        Err(SseError::Failed(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests;
