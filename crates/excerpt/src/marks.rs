//! The positions at which a text is best cut.

use crate::{
    TextKind, TextPiece,
    json::JsonMarks,
    kind::{found_in, heading, is_log_line},
    mark::Mark,
};

/// Returns the marks of a text, in order.
pub(crate) fn marks<'a>(piece: &TextPiece<'a>) -> Box<dyn Iterator<Item = Mark> + 'a> {
    match piece.kind {
        TextKind::Json => Box::new(JsonMarks::of(piece.text)),
        kind => Box::new(LineMarks::new(piece.text, kind)),
    }
}

/// The ends of lines, ranked by the next line.
struct LineMarks<'a> {
    text: &'a str,
    kind: TextKind,
    at: usize,
    /// True within a quoted field of a table, or a fence of Markdown.
    inside: bool,
}

impl<'a> LineMarks<'a> {
    fn new(text: &'a str, kind: TextKind) -> Self {
        Self {
            text,
            kind,
            at: 0,
            inside: false,
        }
    }

    fn rank(&mut self, line: &str, next: &str) -> usize {
        let is_blank = line.trim().is_empty();
        match self.kind {
            TextKind::Table(_) => {
                let quotes = line.bytes().filter(|byte| *byte == b'"').count();
                self.inside ^= quotes % 2 == 1;
                if self.inside { 4 } else { 3 }
            }
            TextKind::Markdown => {
                self.inside ^= line.starts_with("```");
                match heading(next) {
                    _ if self.inside => 4,
                    Some(1 | 2) => 0,
                    Some(_) => 1,
                    None if is_blank => 2,
                    None => 3,
                }
            }
            TextKind::Log if !is_log_line(next) => 4,
            TextKind::Search => match (found_in(line), found_in(next)) {
                (Some(path), Some(other)) if path != other => 2,
                _ if line == "--" => 2,
                _ => 3,
            },
            TextKind::Code if is_blank && next.starts_with(|c: char| !c.is_whitespace()) => 1,
            _ if is_blank => 2,
            _ => 3,
        }
    }
}

impl Iterator for LineMarks<'_> {
    type Item = Mark;

    fn next(&mut self) -> Option<Mark> {
        let rest = &self.text[self.at..];
        let end = memchr::memchr(b'\n', rest.as_bytes())?;
        self.at += end + 1;
        let after = &self.text[self.at..];
        // The kind of the next line depends only on its beginning.
        let next_end = memchr::memchr(b'\n', &after.as_bytes()[..after.len().min(400)]);
        let mut next_end = next_end.unwrap_or(after.len().min(400));
        while !after.is_char_boundary(next_end) {
            next_end -= 1;
        }
        let rank = self.rank(&rest[..end], &after[..next_end]);
        Some(Mark { at: self.at, rank })
    }
}
