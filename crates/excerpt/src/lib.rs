//! Counts the tokens of texts, and cuts texts at items, records, paragraphs, lines, sentences or words.
//!
//! Pure functions: they take texts and return positions and numbers. Each part ends where the next
//! one begins, so all of them joined are the text, whatever it contains. This crate uses no protocol
//! and no disk.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![warn(missing_docs)]

mod json;
mod kind;
#[cfg(any(test, fuzzing))]
pub mod laws;
mod marks;
mod shape;
mod splitter;
pub mod tokens;

pub use json::{CutPosition, close, locate};
pub use kind::TextKind;
pub use shape::{count_items, count_lines, describe_shape, find_columns};
pub use splitter::{Cut, Rooms, find_first_cut, find_first_part, split};

#[cfg(test)]
mod tests;

/// A text and its kind.
#[derive(Debug, Clone, Copy)]
pub struct TextPiece<'a> {
    /// The text.
    pub text: &'a str,
    /// Its kind.
    pub kind: TextKind,
}

impl<'a> TextPiece<'a> {
    /// Creates a piece of a text, and detects its kind.
    pub fn of(text: &'a str) -> Self {
        Self {
            text,
            kind: TextKind::of(text),
        }
    }

    /// Creates a piece of plain text, which is cut at lines, sentences or words.
    pub fn plain(text: &'a str) -> Self {
        Self {
            text,
            kind: TextKind::Text,
        }
    }
}
