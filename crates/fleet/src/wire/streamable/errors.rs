//! The errors of HTTP in the types of rmcp.

use std::borrow::Cow;

use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::super::http::{BodyError, SendError};

pub(super) type HttpError = StreamableHttpError<reqwest::Error>;

/// Creates the error of a response that violates the protocol.
pub(super) fn unexpected(why: impl Into<String>) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(why.into()))
}

pub(super) fn explain_unread(error: BodyError, bytes_max: usize) -> HttpError {
    match error {
        BodyError::TooLong => StreamableHttpError::ResponseBodyTooLarge {
            max_size: bytes_max,
        },
        BodyError::Http(error) => without_url(error),
    }
}

/// Creates the error of a request that was not sent, or that has no response.
pub(super) fn explain_unsent(error: SendError) -> HttpError {
    match error {
        SendError::Http(error) => without_url(error),
        SendError::NoToken(why) => unexpected(why),
    }
}

/// Removes the URL, which may contain a secret: these errors reach logs.
pub(super) fn without_url(error: reqwest::Error) -> HttpError {
    StreamableHttpError::Client(error.without_url())
}

pub(super) fn without_address(error: HttpError) -> HttpError {
    match error {
        StreamableHttpError::Client(error) => without_url(error),
        other => other,
    }
}
