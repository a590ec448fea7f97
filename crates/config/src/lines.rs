//! From a byte of the file to its line and column.

use super::MistakePlace;

#[derive(Debug)]
pub(super) struct LineIndex<'a> {
    text: &'a str,
    /// The first byte of each line.
    starts: Vec<usize>,
}

/// The longest distance that is counted in characters, for speed; further along a line, the column
/// counts bytes.
const COUNTED_BYTES_MAX: usize = 10_000;

impl<'a> LineIndex<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(after).collect();
        Self { text, starts }
    }

    /// Counts from zero.
    pub(super) fn line_of(&self, byte: usize) -> usize {
        self.starts.partition_point(|&start| start <= byte) - 1
    }

    pub(super) fn place(&self, byte: usize) -> MistakePlace {
        let line = self.line_of(byte);
        let start = self.starts[line];
        let before = self
            .text
            .get(start..byte)
            .filter(|text| text.len() <= COUNTED_BYTES_MAX);
        MistakePlace::Line {
            line: line + 1,
            column: before.map_or(byte - start, |text| text.chars().count()) + 1,
        }
    }

    pub(super) fn line(&self, line: usize) -> &'a str {
        let rest = self.starts.get(line).and_then(|&at| self.text.get(at..));
        rest.and_then(|rest| rest.lines().next()).unwrap_or("")
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// Returns true if the line looks like `[table]`, valid or not.
    pub(super) fn is_header(&self, line: usize) -> bool {
        self.line(line).trim_start().starts_with('[')
    }
}
