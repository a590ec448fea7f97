//! The body of a request, limited in size and time.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{
    body::Incoming,
    header::{CONTENT_LENGTH, EXPECT},
    http::request::Parts,
};
use tokio::time::timeout;

/// The time for which the rest of a refused body is read. A client that is still writing when the
/// connection closes may never read the response.
const LINGER: Duration = Duration::from_secs(1);

/// The reason why a body was not read.
#[derive(Debug)]
pub enum BodyError {
    /// It has more bytes than the limit.
    TooLarge,
    /// It did not arrive within the time.
    TooSlow,
    /// It ended early, with this error.
    Cut(String),
}

/// Reads a body of at most `bytes_max` bytes, which arrives within `wait`.
pub async fn read_body(
    head: &Parts,
    body: Incoming,
    bytes_max: usize,
    wait: Duration,
) -> Result<Bytes, BodyError> {
    let announced = head.headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > bytes_max) {
        if !head.headers.contains_key(EXPECT) {
            linger(body).await;
        }
        return Err(BodyError::TooLarge);
    }
    match timeout(wait, Limited::new(body, bytes_max).collect()).await {
        Err(_) => Err(BodyError::TooSlow),
        Ok(Ok(read)) => Ok(read.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(error)) => Err(BodyError::Cut(error.to_string())),
    }
}

async fn linger(mut body: Incoming) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = timeout(LINGER, rest).await;
}
