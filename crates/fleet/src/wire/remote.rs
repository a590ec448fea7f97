//! A server over streamable HTTP, or over HTTP+SSE, the older transport, if it speaks only that.

use std::sync::Arc;

use jsonrpc::mcp::Transport;

use super::{handshake::HandshakeError, http::Site, sse::open_sse, streamable::Streamable};
use crate::{ServerInfo, Spoken, asking::Asking, connection::Connection};

/// Connects to a remote server over the transport that it speaks.
pub(crate) async fn open_remote(
    site: Site,
    guess: &Spoken,
    asking: &Arc<Asking>,
) -> Result<(Box<dyn Connection>, ServerInfo), HandshakeError> {
    let seems_sse = guess.transport == Transport::Sse || site.url().path().ends_with("/sse");
    if seems_sse && let Some((sse, about)) = open_sse(&site, guess, asking).await? {
        return Ok((Box::new(sse), about));
    }
    let refused = match Streamable::open(&site, guess, asking).await {
        Ok((streamable, about)) => return Ok((Box::new(streamable), about)),
        Err(refused) => refused,
    };
    if !seems_sse
        && refused.may_be_sse
        && let Some((sse, about)) = open_sse(&site, guess, asking).await?
    {
        return Ok((Box::new(sse), about));
    }
    Err(refused.error)
}

#[cfg(test)]
mod tests;
