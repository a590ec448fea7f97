//! Properties of the event reader, for any bytes in any chunks.

use std::sync::Arc;

use super::*;

/// Reads `bytes` in chunks of these lengths, repeated cyclically. Returns the events, and true if
/// one was too long.
fn read(bytes: &[u8], lengths: &[u8], bytes_max: usize) -> (Vec<Event>, bool) {
    let mut reader = EventReader::new(bytes_max, Arc::new(move |_| bytes_max));
    let mut events = Vec::new();
    let (mut rest, mut given) = (bytes, 0);
    while !rest.is_empty() {
        let length = lengths.get(given % lengths.len().max(1)).copied();
        given += 1;
        let length = usize::from(length.unwrap_or(1)).max(1).min(rest.len());
        let (piece, after) = rest.split_at(length);
        rest = after;
        let taken = reader.take(piece);
        events.extend(std::iter::from_fn(|| reader.next_event()));
        if taken.is_err() {
            return (events, true);
        }
        assert!(reader.begun.bytes + reader.line.len() <= bytes_max);
    }
    (events, false)
}

/// Checks that the division of the bytes into chunks does not change the events, and that the
/// reader buffers nothing longer than the limit. `input`: the limit, then chunk lengths, then
/// bytes.
///
/// # Panics
///
/// Panics if the property does not hold.
pub fn events_are_the_same_however_they_come(input: &[u8]) {
    let (head, bytes) = input.split_at(input.len().min(8));
    let (bytes_max, lengths) = head.split_first().unwrap_or((&0, &[]));
    let bytes_max = usize::from(*bytes_max);
    let one_by_one = read(bytes, &[], bytes_max);
    let in_pieces = read(bytes, lengths, bytes_max);
    // A byte order mark counts towards the limit until its line ends.
    let read = &in_pieces.0;
    assert!(read.starts_with(&one_by_one.0), "{read:?} {one_by_one:?}");
    assert!(
        one_by_one.1 || in_pieces == one_by_one,
        "{in_pieces:?} {one_by_one:?}"
    );
}

/// Checks that messages written as events are read unchanged. `input`: the messages, one per line.
///
/// # Panics
///
/// Panics if the property does not hold.
pub fn messages_that_are_written_are_read(input: &[u8]) {
    let messages = input.split(|byte| matches!(byte, b'\n' | b'\r'));
    let messages: Vec<Bytes> = messages.map(Bytes::copy_from_slice).collect();
    let mut stream = vec![write_comment("here")];
    for message in &messages {
        let pieces = vec![message.clone(), Bytes::from_static(b"\n")];
        stream.extend(write_event(pieces));
    }
    let (events, is_too_long) = read(&stream.concat(), &[7], usize::MAX);
    assert!(!is_too_long);
    let data = events.into_iter().map(|event| event.data);
    assert!(data.eq(messages.into_iter().map(Some)));
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    /// Generates any bytes, with many tokens of the event format.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let pieces: &[&[u8]] = &[
            b"data",
            b":",
            b" ",
            b"\n",
            b"\r",
            b"\r\n",
            b"id: 1",
            b"event:",
            b"retry: 5",
        ];
        let known = prop::sample::select(pieces).prop_map(<[u8]>::to_vec);
        let piece = prop_oneof![3 => known, 1 => vec(any::<u8>(), 1..4)];
        let head = vec(any::<u8>(), 8);
        (head, vec(piece, 0..80)).prop_map(|(head, pieces)| [head, pieces.concat()].concat())
    }

    proptest! {
        #[test]
        fn events_are_the_same_however_they_come(input in bytes()) {
            super::events_are_the_same_however_they_come(&input);
        }

        #[test]
        fn messages_that_are_written_are_read(input in bytes()) {
            super::messages_that_are_written_are_read(&input);
        }
    }
}
