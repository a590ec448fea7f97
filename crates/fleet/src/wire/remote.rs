//! A server over HTTP: streamable HTTP, or the older HTTP+SSE for those that speak only that.

use jsonrpc::Json;

use super::{
    About, Era, OnListChanged, ShakeError,
    http::Site,
    sse::{Older, OlderError},
    streamable::Streamable,
};
use crate::{
    Template,
    error::Failure,
    link::{LinkError, Request},
};

/// An open connection to a remote server.
#[derive(Debug)]
pub(crate) enum Remote {
    Streamable(Streamable),
    Older(Older),
}

impl Remote {
    pub(crate) async fn open(
        url: &Template,
        headers: &[(String, Template)],
        era: Era,
        on_list_changed: OnListChanged,
    ) -> Result<(Self, About), ShakeError> {
        let site = Site::read(url, headers).map_err(ShakeError::Other)?;
        let seems_older = era == Era::Older || site.url.path().ends_with("/sse");
        if seems_older {
            match open_older(&site, &on_list_changed).await {
                Err(OlderError::NotSpoken) => {}
                Err(OlderError::Failed(error)) => return Err(error),
                Ok(open) => return Ok(open),
            }
        }
        let opened = Streamable::open(&site, era, OnListChanged::clone(&on_list_changed)).await;
        let refused = match opened {
            Ok((streamable, about)) => return Ok((Self::Streamable(streamable), about)),
            Err(refused) => refused,
        };
        if seems_older || !refused.may_be_older {
            return Err(refused.error);
        }
        match open_older(&site, &on_list_changed).await {
            Ok(open) => Ok(open),
            Err(OlderError::NotSpoken) => Err(refused.error),
            Err(OlderError::Failed(error)) => Err(error),
        }
    }

    pub(crate) async fn call(&self, request: &Request) -> Result<Json, LinkError> {
        match self {
            Self::Streamable(streamable) => streamable.call(request).await,
            Self::Older(older) => older.call(request).await,
        }
    }

    pub(crate) async fn list_tools(&self, cursor: Option<&str>) -> Result<Json, LinkError> {
        match self {
            Self::Streamable(streamable) => streamable.list_tools(cursor).await,
            Self::Older(older) => older.list_tools(cursor).await,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Streamable(streamable) => streamable.has_ended(),
            Self::Older(older) => older.has_ended(),
        }
    }

    pub(crate) async fn ended(&self) {
        match self {
            Self::Streamable(streamable) => streamable.ended().await,
            Self::Older(older) => older.ended().await,
        }
    }

    /// Why it ended by itself.
    pub(crate) fn exit_reason(&self) -> Failure {
        let denied = match self {
            Self::Streamable(streamable) => streamable.denied(),
            Self::Older(older) => older.denied(),
        };
        denied.map_or_else(|| Failure::new("the connection ended"), denial)
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Streamable(streamable) => streamable.close().await,
            Self::Older(older) => older.close(),
        }
    }
}

async fn open_older(
    site: &Site,
    on_list_changed: &OnListChanged,
) -> Result<(Remote, About), OlderError> {
    let (older, about) = Older::open(site, OnListChanged::clone(on_list_changed)).await?;
    Ok((Remote::Older(older), about))
}

/// A server that wants to know who asks will not change its mind by itself.
pub(crate) fn denial(why: String) -> Failure {
    Failure::new(why)
        .lasting()
        .hint("set `headers.Authorization` of this server")
}

#[cfg(test)]
mod tests;
