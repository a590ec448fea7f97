//! Reads lines from a byte stream without copying them.
//!
//! The readers of `tokio` and `tokio-util` copy each line, cannot continue after a line that is too
//! long, or lose data if they are dropped between two polls. This reader avoids all three.

use std::{fmt, io, sync::Arc};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::{
    limits::{HEAD_BYTES, LINE_BYTES_MAX, READ_BYTES, ROOM_BYTES_MIN},
    one_line::replace_breaks,
};

/// One line that a peer sent, without its line end. A carriage return inside it is a space, or a tab in
/// a string: some readers take it for a line end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A complete line.
    Whole(Bytes),
    /// A line that exceeded the limit and was discarded.
    TooLong {
        /// The first bytes of the line, 4 KiB at most.
        head: Bytes,
        /// The length of the line.
        bytes: usize,
    },
}

/// A reader of lines. Dropping [`LineReader::next`] between two polls loses no data.
pub struct LineReader {
    input: Box<dyn AsyncRead + Send + Unpin>,
    buffer: BytesMut,
    /// The capacity of the buffer when it last grew.
    room: usize,
    /// The number of bytes of `buffer` that are known to contain no line end.
    searched: usize,
    /// The head of a line that is being discarded, and its length so far.
    skipped: Option<(Bytes, usize)>,
    is_at_end: bool,
    line_bytes_max: usize,
    /// The length above which the callback decides the limit of a line.
    cap: Option<(usize, Cap)>,
}

/// A callback that returns the length limit, in bytes, of a line or event that begins with these
/// bytes.
pub type Cap = Arc<dyn Fn(&[u8]) -> usize + Send + Sync>;

impl fmt::Debug for LineReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineReader").finish_non_exhaustive()
    }
}

impl LineReader {
    /// Creates a reader of lines of at most 256 MiB.
    pub fn new(input: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self {
            input: Box::new(input),
            buffer: BytesMut::with_capacity(READ_BYTES),
            room: READ_BYTES,
            searched: 0,
            skipped: None,
            is_at_end: false,
            line_bytes_max: LINE_BYTES_MAX,
            cap: None,
        }
    }

    /// Sets a limit that depends on the line: for a line over `bytes`, `cap` returns the limit, given its
    /// first 4 KiB.
    #[must_use]
    pub fn capped(self, bytes: usize, cap: Cap) -> Self {
        let cap = Some((bytes, cap));
        Self { cap, ..self }
    }

    /// Returns true if the stream has ended: the last line, if there was one, had no line end and may be
    /// incomplete.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Returns true if a line that begins with these bytes is already too long.
    fn is_too_long(&self, line: &[u8]) -> bool {
        let head = &line[..HEAD_BYTES.min(line.len())];
        let is_over = |(bytes, cap): &(usize, Cap)| line.len() > *bytes && line.len() > cap(head);
        line.len() > self.line_bytes_max || self.cap.as_ref().is_some_and(is_over)
    }

    /// Returns the next line, or `None` at the end of the stream. The last line may lack its line end.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            self.discard_excess();
            self.make_room();
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                self.is_at_end = true;
                return Ok(self.take_rest());
            }
        }
    }

    fn take_line(&mut self) -> Option<Line> {
        let fresh = &self.buffer[self.searched..];
        let Some(at) = memchr::memchr(b'\n', fresh) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + at + 1);
        self.searched = 0;
        self.release_buffer();
        line.truncate(line.len() - 1);
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Some(self.finish(line))
    }

    fn take_rest(&mut self) -> Option<Line> {
        let rest = self.buffer.split();
        self.searched = 0;
        (!rest.is_empty() || self.skipped.is_some()).then(|| self.finish(rest))
    }

    fn finish(&mut self, mut line: BytesMut) -> Line {
        replace_breaks(&mut line);
        let line = line.freeze();
        match self.skipped.take() {
            Some((head, bytes)) => Line::TooLong {
                head,
                bytes: bytes + line.len(),
            },
            None if self.is_too_long(&line) => Line::TooLong {
                head: line.slice(..HEAD_BYTES.min(line.len())),
                bytes: line.len(),
            },
            None => Line::Whole(line),
        }
    }

    /// Discards the buffered part of a line that is already too long.
    fn discard_excess(&mut self) {
        // The `\r` may be the first half of a line end.
        let line = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer);
        if self.skipped.is_none() && !self.is_too_long(line) {
            return;
        }
        let head_bytes = HEAD_BYTES.min(line.len());
        let shed = self.buffer.split();
        self.searched = 0;
        match &mut self.skipped {
            Some((_, bytes)) => *bytes += shed.len(),
            None => {
                let head = Bytes::copy_from_slice(&shed[..head_bytes]);
                self.skipped = Some((head, shed.len()));
            }
        }
    }

    /// Grows the buffer in proportion to its line, so that a long line is copied only a few times.
    fn make_room(&mut self) {
        if self.buffer.capacity() - self.buffer.len() < ROOM_BYTES_MIN {
            self.buffer.reserve(READ_BYTES.max(self.buffer.len()));
            self.room = self.buffer.capacity();
        }
    }

    /// Releases the buffer of a long line, so that it is freed together with the line. Otherwise
    /// hundreds of peers would each keep a buffer of the size of their longest response.
    fn release_buffer(&mut self) {
        if self.buffer.is_empty() && self.room > READ_BYTES {
            self.buffer = BytesMut::new();
            self.room = 0;
        }
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) mod laws;
#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &'static [u8], line_bytes_max: usize) -> Vec<Line> {
        let mut reader = LineReader::new(input);
        reader.line_bytes_max = line_bytes_max;
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.expect("a slice does not fail") {
            lines.push(line);
        }
        lines
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn lines_end_with_either_line_end_and_the_last_needs_none() {
        let expected = vec![whole("{\"a\":1}"), whole(""), whole("b"), whole("half")];
        assert_eq!(lines(b"{\"a\":1}\r\n\nb\nhalf", 100).await, expected);
        assert_eq!(lines(b"", 100).await, vec![]);
    }

    #[tokio::test]
    async fn a_line_over_the_cap_is_named_and_the_next_is_read() {
        let head = Bytes::from_static(b"0123456789");
        let too_long = Line::TooLong { head, bytes: 10 };
        assert_eq!(
            lines(b"0123456789\nok\n", 9).await,
            vec![too_long, whole("ok")]
        );
    }

    #[tokio::test]
    async fn the_room_of_a_long_line_goes_with_it() {
        let long = "x".repeat(50 * READ_BYTES);
        let mut reader = LineReader::new(std::io::Cursor::new(format!("{long}\nshort\n")));
        for expected in [long.as_str(), "short"] {
            let line = reader.next().await.expect("a slice does not fail");
            let Some(Line::Whole(line)) = line else {
                panic!("{line:?}");
            };
            assert_eq!(line, expected);
        }
        let held = reader.buffer.capacity();
        assert!(held <= READ_BYTES, "{held} bytes are held");
    }

    /// Reads a line far over the limit, of which only a bounded part may be buffered.
    #[tokio::test]
    async fn of_a_line_that_is_refused_no_more_is_held_than_it_may_have() {
        const BYTES_MAX: usize = 32 * 1024 * 1024;
        const SENT: u64 = 6 * BYTES_MAX as u64;
        let input = tokio::io::repeat(b'x').take(SENT);
        let mut reader = LineReader::new(input).capped(BYTES_MAX, Arc::new(|_| BYTES_MAX));
        let line = reader.next().await.expect("it does not fail");
        let Some(Line::TooLong { head, bytes }) = line else {
            panic!("it was taken");
        };
        assert_eq!((head.len(), bytes as u64), (HEAD_BYTES, SENT));
        let held = reader.buffer.capacity();
        assert!(held <= 3 * BYTES_MAX, "{held} bytes are held");
    }
}
