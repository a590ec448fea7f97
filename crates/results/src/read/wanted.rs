//! The question of a reader, and the answer.

use std::{io, time::Duration};

use serde::Deserialize;

use super::limits::READING_BYTES_MAX;
use crate::store::HandleError;

/// The arguments of `read_result`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// As the footer of a cut result names it.
    pub handle: String,
    /// A part by its number, from 1 on; all parts joined are the whole.
    pub part: Option<usize>,
    /// Lines (bytes, matches, passages) to pass over; negative counts from the end.
    pub offset: Option<i64>,
    /// How many lines, bytes, matches or passages.
    pub limit: Option<usize>,
    /// Of `offset` and `limit`.
    pub unit: Unit,
    /// A regular expression; lines that match.
    pub grep: Option<String>,
    /// A JSON pointer; the value there.
    pub pointer: Option<String>,
    /// A jq expression; its values, a line each.
    pub select: Option<String>,
    /// Words; the passages that fit best.
    pub find: Option<String>,
}

/// The unit that `offset` and `limit` count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Lines.
    #[default]
    Lines,
    /// Bytes.
    Bytes,
}

impl Wanted {
    /// The name of the argument that says what is read; none for the first part.
    pub(super) fn kind(&self) -> Result<Option<&'static str>, String> {
        let kinds = [
            ("part", self.part.is_some()),
            ("grep", self.grep.is_some()),
            ("pointer", self.pointer.is_some()),
            ("select", self.select.is_some()),
            ("find", self.find.is_some()),
        ];
        let mut asked = kinds.iter().filter(|(_, is_asked)| *is_asked);
        let first = asked.next().map(|(kind, _)| *kind);
        if let (Some(first), Some((second, _))) = (first, asked.next()) {
            return Err(format!("say either {first} or {second}, not both"));
        }
        let has_range = self.offset.is_some() || self.limit.is_some();
        match first {
            None if has_range => Ok(Some("offset")),
            Some(kind @ ("part" | "pointer" | "select")) if has_range => {
                Err(format!("offset and limit do not go with {kind}"))
            }
            kind => Ok(kind),
        }
    }
}

/// Pieces of a result as they are, and what there is to say of them.
#[derive(Debug, Default)]
pub struct Reading {
    /// The pieces.
    pub texts: Vec<String>,
    /// Where they stand, and the next call.
    pub note: String,
}

/// The outcome of a reading.
#[derive(Debug)]
pub enum Found {
    /// Pieces of the result.
    Reading(Reading),
    /// A value of the result, which may be a long one itself.
    Value(String),
}

/// The room that a reading has: that of an answer, or none to speak of for a person who wants it
/// all.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// In tokens; `usize::MAX` for all of it.
    pub room: usize,
}

/// The longest token that is reckoned with, in bytes; only a run of blanks is longer.
pub(super) const TOKEN_BYTES_MAX: usize = 64;

impl Output {
    /// The most that is read for it, in bytes.
    pub(super) fn bytes_max(self) -> usize {
        self.room
            .saturating_mul(TOKEN_BYTES_MAX)
            .min(READING_BYTES_MAX)
    }
}

/// A reading that brought nothing.
#[derive(Debug)]
pub enum ReadError {
    /// An argument that cannot be obeyed: its name, and what is wrong with it.
    Wanted(&'static str, String),
    /// The handle as it was written, and why nothing can be read under it.
    Handle(String, HandleError),
    /// The disk, or the process that reads.
    Disk(io::Error),
    /// It was not done, or not even begun, within this time.
    TimedOut(Duration),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}
