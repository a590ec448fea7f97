//! The errors of HTTP as rmcp takes them.

use std::borrow::Cow;

use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::super::http::{BodyError, SendError};

pub(super) type HttpError = StreamableHttpError<reqwest::Error>;

/// An answer that is not what the protocol says, and why.
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

/// A request that was not sent, or of which nothing came back.
pub(super) fn explain_unsent(error: SendError) -> HttpError {
    match error {
        SendError::Http(error) => without_url(error),
        SendError::NoToken(why) => unexpected(why),
    }
}

/// An address may hold a secret, and these errors reach logs.
pub(super) fn without_url(error: reqwest::Error) -> HttpError {
    StreamableHttpError::Client(error.without_url())
}

pub(super) fn without_address(error: HttpError) -> HttpError {
    match error {
        StreamableHttpError::Client(error) => without_url(error),
        other => other,
    }
}
