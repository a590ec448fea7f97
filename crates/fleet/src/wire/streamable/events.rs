//! The events of a response in the types of rmcp.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream::unfold};
use jsonrpc::events::{Event, EventReader};
use reqwest::Response;
use sse_stream::{Error as SseError, Sse};

use super::posted::PostedRequest;
use crate::error::RequestError;

/// Reads the events of a response up to the first one that exceeds its limit.
pub(super) fn read_events(
    response: Response,
    call: Option<Arc<PostedRequest>>,
    bytes_max: usize,
) -> impl Stream<Item = Result<Sse, SseError>> + Send + use<> {
    let reader = EventReader::new(bytes_max, Arc::new(move |_| bytes_max));
    let chunks = response.bytes_stream().boxed();
    unfold((chunks, reader), move |(mut chunks, mut reader)| {
        let call = call.clone();
        async move {
            loop {
                if let Some(event) = reader.next_event() {
                    return Some((to_sse(event), (chunks, reader)));
                }
                let taken = match chunks.next().await? {
                    Ok(chunk) => reader.take(&chunk),
                    Err(error) => {
                        let error = SseError::Body(Box::new(error));
                        return Some((Err(error), (chunks, reader)));
                    }
                };
                if let Err(error) = taken {
                    let why = format!("its response is {error}");
                    call?.request.respond(Err(RequestError::Failed(why)));
                    return None;
                }
            }
        }
    })
}

fn to_sse(event: Event) -> Result<Sse, SseError> {
    let text = |data: Bytes| match str::from_utf8(&data) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(SseError::Utf8Parse(error)),
    };
    let is_message = event.is_message();
    Ok(Sse {
        event: event.name,
        data: event.data.filter(|_| is_message).map(text).transpose()?,
        id: event.id,
        retry: event.retry_ms,
    })
}
