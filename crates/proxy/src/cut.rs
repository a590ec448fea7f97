//! Where a long text may be cut: at items, records, paragraphs, lines, sentences or words.
//!
//! Pure: it is given texts and answers with places. Parts end where the next one begins, so all
//! of them joined are the text, whatever it holds.

mod json;
mod kind;
mod marks;
mod shape;
mod splitter;

pub(crate) use json::{closed, place};
pub(crate) use kind::Kind;
pub(crate) use shape::{columns, lines, shape};
pub(crate) use splitter::{Cut, Rooms, cuts, first_cut};

#[cfg(test)]
mod tests;

/// A text and what it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    pub(crate) kind: Kind,
}

impl<'a> Piece<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self {
            text,
            kind: Kind::of(text),
        }
    }

    /// Text to be cut at lines, sentences or words, whatever it is.
    pub(crate) fn plain(text: &'a str) -> Self {
        Self {
            text,
            kind: Kind::Text,
        }
    }
}
