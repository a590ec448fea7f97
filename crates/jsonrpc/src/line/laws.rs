//! Properties of the line reader, for any bytes in any chunks.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use tokio::io::ReadBuf;

use super::*;

/// A stream that returns its bytes in chunks of these lengths, repeated cyclically, and is not
/// ready before each chunk.
struct Pieces {
    bytes: Vec<u8>,
    lengths: Vec<u8>,
    given: usize,
    is_ready: bool,
}

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_ready = !self.is_ready;
        if self.is_ready || self.bytes.is_empty() {
            return if self.is_ready {
                Poll::Pending
            } else {
                Poll::Ready(Ok(()))
            };
        }
        let at = self.given % self.lengths.len().max(1);
        self.given += 1;
        let length = self.lengths.get(at).copied().unwrap_or(1).max(1);
        let length = usize::from(length)
            .min(self.bytes.len())
            .min(buffer.remaining());
        let rest = self.bytes.split_off(length);
        buffer.put_slice(&std::mem::replace(&mut self.bytes, rest));
        Poll::Ready(Ok(()))
    }
}

/// Returns the lines that are read if each read is cancelled once and restarted.
fn read(bytes: &[u8], lengths: &[u8], line_bytes_max: usize) -> Vec<Line> {
    let mut reader = LineReader::new(Pieces {
        bytes: bytes.to_vec(),
        lengths: lengths.to_vec(),
        given: 0,
        is_ready: false,
    });
    reader.line_bytes_max = line_bytes_max;
    let mut lines = Vec::new();
    loop {
        let next = pin!(reader.next()).poll(&mut Context::from_waker(Waker::noop()));
        match next {
            Poll::Pending => assert!(reader.buffer.len() <= line_bytes_max + 1),
            Poll::Ready(line) => match line.expect("pieces do not fail") {
                Some(line) => lines.push(line),
                None => return lines,
            },
        }
    }
}

/// Returns the lines contained in `bytes`.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let last = lines.pop().filter(|last| !last.is_empty());
    let ended = lines.iter();
    let ended = ended.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    ended.chain(last).collect()
}

/// Checks that lines are read as they were sent, separately and within the limit, regardless of how
/// the bytes are divided and when a read is cancelled. `input`: the limit, then chunk lengths, then
/// bytes.
///
/// # Panics
///
/// Panics if the property does not hold.
pub fn lines_are_those_that_were_sent(input: &[u8]) {
    let (head, bytes) = input.split_at(input.len().min(8));
    let (line_bytes_max, lengths) = head.split_first().unwrap_or((&0, &[]));
    let line_bytes_max = usize::from(*line_bytes_max);
    let read = read(bytes, lengths, line_bytes_max);
    let sent = split(bytes);
    assert_eq!(read.len(), sent.len());
    let flat = |bytes: &[u8]| {
        let mut flat = bytes.to_vec();
        replace_breaks(&mut flat);
        flat
    };
    for (read, sent) in read.iter().zip(sent) {
        match read {
            Line::Whole(line) => {
                assert_eq!(line, &flat(sent));
                assert!(line.len() <= line_bytes_max);
            }
            Line::TooLong { head, bytes } => {
                assert!(sent.len() > line_bytes_max, "{} bytes fit", sent.len());
                assert!(flat(sent).starts_with(&flat(head)) && head.len() <= HEAD_BYTES);
                // A `\r` that was discarded before its `\n` arrived is counted.
                assert!((sent.len()..=sent.len() + 1).contains(bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    /// Generates any bytes, many of them line ends.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>(), any::<u8>()];
        vec(byte, 0..600)
    }

    proptest! {
        #[test]
        fn lines_are_those_that_were_sent(input in bytes()) {
            super::lines_are_those_that_were_sent(&input);
        }
    }
}
