//! Server-sent events, parsed from chunks of bytes and written around messages.
//!
//! `sse-stream`, which rmcp uses, ends a stream at an unknown field, and buffers events of any length.
//! This reader ignores unknown fields, as the standard requires, and limits the length of each event.

#[cfg(any(test, fuzzing))]
pub(crate) mod laws;

use std::{collections::VecDeque, fmt, mem};

use bytes::{Bytes, BytesMut};

use crate::{
    Cap,
    limits::{HEAD_BYTES, JOINED_BYTES_MAX},
    one_line::{Outgoing, check_outgoing, replace_breaks},
};

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The event type; an event without a type is a message.
    pub name: Option<String>,
    /// The data lines, joined on one line as [`crate::one_line`] does; `None` if the event
    /// has no data line.
    pub data: Option<Bytes>,
    /// The id of the position in the stream from which it can be resumed.
    pub id: Option<String>,
    /// The delay, in milliseconds, before a broken stream is resumed.
    pub retry_ms: Option<u64>,
}

impl Event {
    /// Returns true if the data is a message of the protocol. Events of other types, such as pings, are not
    /// part of it.
    pub fn is_message(&self) -> bool {
        let name = self.name.as_deref().unwrap_or_default();
        ["", "message"].contains(&name)
    }
}

/// The error for an event that exceeded its limit. The rest of the stream cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("one event of more than {bytes_max} bytes")]
pub struct EventTooLong {
    /// The limit.
    pub bytes_max: usize,
    /// The first 4 KiB of its data, to find the id of its request.
    pub head: Bytes,
    /// Its position in the stream, if that came before the limit.
    pub id: Option<String>,
}

/// A reader of events from chunks, which may be divided anywhere.
pub struct EventReader {
    ready: VecDeque<Event>,
    begun: Begun,
    /// The current, incomplete line.
    line: BytesMut,
    is_first_line: bool,
    /// True if the last line ended with `\r`: a `\n` that follows belongs to that line end.
    ended_with_cr: bool,
    /// The length above which the callback decides the limit of an event.
    cap: (usize, Cap),
}

/// An incomplete event.
#[derive(Debug, Default)]
struct Begun {
    event: Event,
    data: Option<BytesMut>,
    has_fields: bool,
    /// The bytes of all its lines, including comments.
    bytes: usize,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl fmt::Debug for EventReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventReader").finish_non_exhaustive()
    }
}

impl EventReader {
    /// Creates a reader. For an event over `bytes`, `cap` returns the maximum length, given the
    /// first 4 KiB of its data.
    pub fn new(bytes: usize, cap: Cap) -> Self {
        Self {
            ready: VecDeque::new(),
            begun: Begun::default(),
            line: BytesMut::new(),
            is_first_line: true,
            ended_with_cr: false,
            cap: (bytes, cap),
        }
    }

    /// Replaces the limit.
    #[must_use]
    pub fn capped(self, bytes: usize, cap: Cap) -> Self {
        let cap = (bytes, cap);
        Self { cap, ..self }
    }

    /// Returns the next complete event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// Reads the next bytes of the stream. After an error, the complete events before it are still
    /// available.
    pub fn take(&mut self, chunk: &[u8]) -> Result<(), EventTooLong> {
        let mut rest = chunk;
        if mem::take(&mut self.ended_with_cr) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.ended_with_cr = chunk.is_empty();
        }
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, after) = rest.split_at(at);
            if self.line.is_empty() {
                self.end_line(line);
            } else {
                self.line.extend_from_slice(line);
                let mut line = mem::take(&mut self.line);
                self.end_line(&line);
                line.clear();
                self.line = line;
            }
            self.ended_with_cr = after == b"\r";
            let is_crlf = after.starts_with(b"\r\n");
            rest = &after[1 + usize::from(is_crlf)..];
            self.check_length()?;
        }
        self.line.extend_from_slice(rest);
        self.check_length()
    }

    fn end_line(&mut self, line: &[u8]) {
        let line = if mem::take(&mut self.is_first_line) {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            self.ready.extend(mem::take(&mut self.begun).end());
        } else {
            self.begun.add(line);
        }
    }

    fn check_length(&self) -> Result<(), EventTooLong> {
        let (bytes, cap) = &self.cap;
        let held = self.begun.bytes + self.line.len();
        if held <= *bytes {
            return Ok(());
        }
        let unended = || {
            let value = self.line.strip_prefix(b"data:").unwrap_or_default();
            value.strip_prefix(b" ").unwrap_or(value)
        };
        let data = self.begun.data.as_deref().unwrap_or_else(unended);
        let beginning = &data[..HEAD_BYTES.min(data.len())];
        let bytes_max = cap(beginning);
        if held > bytes_max {
            return Err(EventTooLong {
                bytes_max,
                head: Bytes::copy_from_slice(beginning),
                id: self.begun.event.id.clone(),
            });
        }
        Ok(())
    }
}

impl Begun {
    /// Adds a field. Ignores unknown fields and invalid values.
    fn add(&mut self, line: &[u8]) {
        self.bytes += line.len();
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match &line[..colon] {
            b"data" => self.add_data(value),
            b"event" => self.event.name = Some(text()),
            b"id" if !value.contains(&0) => self.event.id = Some(text()),
            b"retry" => match text().trim().parse() {
                Ok(ms) => self.event.retry_ms = Some(ms),
                Err(_) => return,
            },
            _ => return,
        }
        self.has_fields = true;
    }

    fn add_data(&mut self, value: &[u8]) {
        match &mut self.data {
            Some(data) => {
                data.extend_from_slice(b"\n");
                data.extend_from_slice(value);
            }
            None => self.data = Some(BytesMut::from(value)),
        }
    }

    fn end(self) -> Option<Event> {
        let data = self.data.map(|mut data| {
            replace_breaks(&mut data);
            data.freeze()
        });
        let event = Event { data, ..self.event };
        self.has_fields.then_some(event)
    }
}

/// Writes an event around the pieces of a message, which is one line and ends with its line end. Of a
/// message of several lines it writes only an error response, or nothing if it is no response.
/// Copies only short events.
pub fn write_event(mut message: Vec<Bytes>) -> Vec<Bytes> {
    match check_outgoing(&message) {
        Outgoing::OneLine => {}
        Outgoing::Replaced(error) => message = vec![error],
        Outgoing::Refused => return Vec::new(),
    }
    message.insert(0, Bytes::from_static(b"data: "));
    message.push(Bytes::from_static(b"\n"));
    let bytes: usize = message.iter().map(Bytes::len).sum();
    if bytes <= JOINED_BYTES_MAX {
        return vec![Bytes::from(message.concat())];
    }
    message
}

/// Writes a one-line comment, as a keep-alive.
pub fn write_comment(text: &str) -> Bytes {
    Bytes::from(format!(": {text}\n\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn reader(bytes_max: usize) -> EventReader {
        EventReader::new(bytes_max, Arc::new(move |_| bytes_max))
    }

    fn read(stream: &[u8]) -> Vec<Event> {
        let mut reader = reader(1_000);
        reader.take(stream).expect("the events are short");
        std::iter::from_fn(|| reader.next_event()).collect()
    }

    fn data(text: &'static str) -> Event {
        Event {
            data: Some(Bytes::from_static(text.as_bytes())),
            ..Event::default()
        }
    }

    #[test]
    fn events_are_read_whatever_else_is_in_the_stream() {
        let stream: &[u8] =
            b"\xEF\xBB\xBFdata: first\n\n: hello\n\nevent: endpoint\r\ndata: /post?id=1\r\n\r\n\
            id: 7\nretry: 10\nstrange\nother: x\nretry: soon\ndata:{\"a\":\ndata: 1}\n\n\
            event: ping\ndata\n\ndata: by\rdata: \rdata: cr\r\rid: 8\n\ndata: half";
        let named = |name: &str, event: Event| Event {
            name: Some(name.to_owned()),
            ..event
        };
        let numbered = |id: &str, retry_ms: Option<u64>, event: Event| Event {
            id: Some(id.to_owned()),
            retry_ms,
            ..event
        };
        let expected = [
            data("first"),
            named("endpoint", data("/post?id=1")),
            numbered("7", Some(10), data("{\"a\": 1}")),
            named("ping", data("")),
            data("by  cr"),
            numbered("8", None, Event::default()),
        ];
        assert_eq!(read(stream), expected);
    }

    #[test]
    fn an_event_over_its_bound_ends_the_reading_wherever_it_grows() {
        let streams: [(&[u8], &'static str, Option<&str>); 3] = [
            (b"data: 1\n\ndata: 23456789", "2345678", None),
            (b"data: 1\n\ndata: 2\ndata: 3\n", "2", None),
            (b"data: 1\n\nid: 2\n: 345678\n", "", Some("2")),
        ];
        for (stream, head, id) in streams {
            let mut reader = reader(12);
            let taken = stream.iter().try_for_each(|byte| reader.take(&[*byte]));
            let expected = EventTooLong {
                bytes_max: 12,
                head: Bytes::from_static(head.as_bytes()),
                id: id.map(str::to_owned),
            };
            assert_eq!(taken, Err(expected));
            assert_eq!(reader.next_event(), Some(data("1")));
            assert_eq!(reader.next_event(), None);
        }
    }

    #[test]
    fn the_bound_may_depend_on_how_the_data_begins() {
        let cap = |head: &[u8]| if head.starts_with(b"long") { 60 } else { 20 };
        for (data, fits) in [("long", true), ("short", false)] {
            let mut reader = EventReader::new(10, Arc::new(cap));
            let text = format!("data: {data} {}\n\n", "x".repeat(30));
            let taken = text.bytes().try_for_each(|byte| reader.take(&[byte]));
            assert_eq!(taken.is_ok(), fits, "{data}");
        }
    }

    #[test]
    fn a_long_message_is_not_copied() {
        let event = write_event(vec![Bytes::from_static(b"{}\n")]);
        assert_eq!(event, ["data: {}\n\n"]);
        let long = Bytes::from(vec![b'x'; JOINED_BYTES_MAX]);
        let event = write_event(vec![long.clone(), Bytes::from_static(b"\n")]);
        assert_eq!(event[1].as_ptr(), long.as_ptr());
        assert_eq!(write_comment("here"), ": here\n\n");
    }
}
