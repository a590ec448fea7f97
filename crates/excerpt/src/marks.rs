//! The positions at which a text is best cut.

use std::iter;

use crate::{
    TextKind, TextPiece,
    json::string_end,
    kind::{found_in, heading, is_log_line},
};

/// The number of ranks, from 0, the best.
pub(crate) const RANKS: usize = 5;

/// The bytes of the next line that are read: its kind depends only on its beginning.
const NEXT_BYTES: usize = 400;

/// A possible cut, and its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: usize,
    pub(crate) rank: usize,
}

pub(crate) fn marks<'a>(piece: &TextPiece<'a>) -> Box<dyn Iterator<Item = Mark> + 'a> {
    match piece.kind {
        TextKind::Json => Box::new(json_marks(piece.text)),
        kind => Box::new(line_marks(piece.text, kind)),
    }
}

/// Returns the positions after each comma, ranked by depth: a cut between outer items is better.
fn json_marks(text: &str) -> impl Iterator<Item = Mark> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    iter::from_fn(move || {
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'"' => at = string_end(bytes, at).unwrap_or(bytes.len()),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' => {
                    let rank = depth.saturating_sub(1).min(RANKS - 1);
                    return Some(Mark { at, rank });
                }
                _ => {}
            }
        }
        None
    })
}

/// Returns the ends of lines, ranked by the next line.
fn line_marks(text: &str, kind: TextKind) -> impl Iterator<Item = Mark> {
    let (mut start, mut is_inside) = (0, false);
    iter::from_fn(move || {
        let rest = &text[start..];
        let (line, after) = rest.split_at(memchr::memchr(b'\n', rest.as_bytes())? + 1);
        start += line.len();
        let next = &after[..after.floor_char_boundary(NEXT_BYTES)];
        let next = next.split('\n').next().unwrap_or_default();
        let rank = rank(kind, &mut is_inside, &line[..line.len() - 1], next);
        Some(Mark { at: start, rank })
    })
}

/// Returns the rank of a cut between two lines. `is_inside` is true within a quoted field of a table, or a
/// fence of Markdown.
fn rank(kind: TextKind, is_inside: &mut bool, line: &str, next: &str) -> usize {
    let is_blank = line.trim().is_empty();
    match kind {
        TextKind::Table(_) => {
            let quotes = line.bytes().filter(|byte| *byte == b'"').count();
            *is_inside ^= quotes % 2 == 1;
            if *is_inside { 4 } else { 3 }
        }
        TextKind::Markdown => {
            *is_inside ^= line.starts_with("```");
            match heading(next) {
                _ if *is_inside => 4,
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
