//! The errors of HTTP in the types of rmcp.

use std::borrow::Cow;

use rmcp::transport::streamable_http_client::StreamableHttpError;

pub(super) type HttpError = StreamableHttpError<reqwest::Error>;

/// Creates the error of a response that violates the protocol.
pub(super) fn unexpected(why: impl Into<String>) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why.into()))
}

/// Removes the URL, which may contain a secret: these errors reach logs.
pub(super) fn without_url(error: reqwest::Error) -> HttpError {
    StreamableHttpError::Client(error.without_url())
}
