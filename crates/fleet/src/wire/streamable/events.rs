//! The events of a response in the types of rmcp.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream::unfold};
use jsonrpc::events::{Event, EventReader, EventTooLong};
use reqwest::Response;
use sse_stream::{Error as SseError, Sse};

/// Reads the events of a response up to the first one that exceeds its limit, in place of which `refuse`
/// writes data. rmcp resumes a stream that ended before its response behind the last event, so it must not
/// get the same event again.
pub(super) fn read_events(
    response: Response,
    reader: EventReader,
    refuse: impl Fn(&EventTooLong) -> Option<String> + Send,
) -> impl Stream<Item = Result<Sse, SseError>> + Send {
    let chunks = response.bytes_stream().boxed();
    let state = Some((chunks, reader, refuse));
    unfold(state, |state| async move {
        let (mut chunks, mut reader, refuse) = state?;
        loop {
            if let Some(event) = reader.next_event() {
                return Some((to_sse(event), Some((chunks, reader, refuse))));
            }
            let read = match chunks.next().await? {
                Ok(chunk) => reader.take(&chunk),
                Err(error) => {
                    let error = SseError::Body(Box::new(error));
                    return Some((Err(error), Some((chunks, reader, refuse))));
                }
            };
            if let Err(error) = read {
                let last = Sse {
                    data: refuse(&error),
                    id: error.id,
                    ..Sse::default()
                };
                return Some((Ok(last), None));
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
