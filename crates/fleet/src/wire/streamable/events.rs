//! The events of a response, as rmcp wants them.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream::unfold};
use jsonrpc::events::{Event, EventReader};
use reqwest::Response;
use sse_stream::{Error as SseError, Sse};

use super::pending::{Outcome, PendingCall, TransportError};

/// The events of a response, ended where one grows past its bound.
pub(super) fn read_events(
    response: Response,
    call: Option<Arc<PendingCall>>,
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
                    let why = format!("its answer is {error}");
                    call?.put(Outcome::Failed(TransportError {
                        why,
                        denial: None,
                        is_unknown: false,
                        is_unreached: false,
                        obstacle: None,
                    }));
                    return None;
                }
            }
        }
    })
}

/// As rmcp wants it.
fn to_sse(event: Event) -> Result<Sse, SseError> {
    let text = |data: Bytes| match str::from_utf8(&data) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(SseError::Utf8Parse(error)),
    };
    Ok(Sse {
        event: event.name,
        data: event.data.map(text).transpose()?,
        id: event.id,
        retry: event.retry_ms,
    })
}
