//! The request of a reader, and its outcome.

use std::{io, time::Duration};

use jsonrpc::Fields;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::limits::READING_BYTES_MAX;
use crate::store::HandleError;

/// The arguments of `read_result`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReadRequest {
    /// The handle from the footer of a cut result.
    pub handle: String,
    /// A part by its number, from 1 on; all parts joined are the whole.
    #[serde(alias = "chunk")]
    pub part: Option<usize>,
    /// Lines (bytes, matches) to skip; negative counts from the end.
    pub offset: Option<i64>,
    /// The number of lines, bytes or matches to return.
    pub limit: Option<usize>,
    /// The unit of `offset` and `limit`.
    pub unit: Unit,
    /// A regular expression; selects the lines that match.
    pub grep: Option<String>,
    /// A jq expression; selects values, one a line.
    pub select: Option<String>,
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

/// Arguments of earlier versions, and the ones that replace them.
const REMOVED: [(&str, &str); 2] = [
    ("pointer", "select: a jq expression, such as .items[3].name"),
    ("find", "grep: a regular expression, such as refund|paid"),
];

impl ReadRequest {
    /// Reads the arguments of a call.
    pub fn read(arguments: &RawValue) -> Result<Self, ReadError> {
        let fields = Fields::of(arguments.get());
        let has = |name: &str| fields.as_ref().and_then(|it| it.filled(name)).is_some();
        if let Some((name, instead)) = REMOVED.into_iter().find(|(name, _)| has(name)) {
            let why = format!("it was removed; use {instead}");
            return Err(ReadError::Argument(name, why));
        }
        serde_json::from_str(arguments.get())
            .map_err(|error| ReadError::Argument("handle", error.to_string()))
    }

    /// The name of the argument that selects what is read; `None` for the first part.
    pub(super) fn kind(&self) -> Result<Option<&'static str>, String> {
        let kinds = [
            ("part", self.part.is_some()),
            ("grep", self.grep.is_some()),
            ("select", self.select.is_some()),
        ];
        let mut asked = kinds.iter().filter(|(_, is_asked)| *is_asked);
        let first = asked.next().map(|(kind, _)| *kind);
        if let (Some(first), Some((second, _))) = (first, asked.next()) {
            return Err(format!("give either {first} or {second}, not both"));
        }
        let has_range = self.offset.is_some() || self.limit.is_some();
        match first {
            None if has_range => Ok(Some("offset")),
            Some(kind @ ("part" | "select")) if has_range => {
                Err(format!("offset and limit cannot be combined with {kind}"))
            }
            kind => Ok(kind),
        }
    }
}

/// Unchanged pieces of a result, and a note about them.
#[derive(Debug, Default)]
pub struct ReadTexts {
    /// The pieces.
    pub texts: Vec<String>,
    /// The position of the pieces, and the next call.
    pub note: String,
}

/// The outcome of a reading.
#[derive(Debug)]
pub enum ReadOutcome {
    /// Pieces of the result.
    Texts(ReadTexts),
    /// A value of the result, which may itself be long.
    Value(String),
}

/// The room of a reading: that of an answer, or practically unlimited for a person who requests all
/// of it.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// The room in tokens; `usize::MAX` for all of it.
    pub room: usize,
}

/// The longest expected token, in bytes; only a run of blanks is longer.
pub(super) const TOKEN_BYTES_MAX: usize = 64;

impl Output {
    /// The most that is read for it, in bytes.
    pub(super) fn bytes_max(self) -> usize {
        self.room
            .saturating_mul(TOKEN_BYTES_MAX)
            .min(READING_BYTES_MAX)
    }
}

/// A reading that failed.
#[derive(Debug)]
pub enum ReadError {
    /// An invalid argument: its name, and the mistake.
    Argument(&'static str, String),
    /// The handle as it was written, and why nothing can be read under it.
    Handle(String, HandleError),
    /// The disk, or the process that reads.
    Disk(io::Error),
    /// It was not finished, or not even started, within this time.
    TimedOut(Duration),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Disk(error)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::{ReadError, ReadRequest};

    #[test]
    fn a_chunk_is_a_part() {
        let input = to_raw_value(&json!({"handle": "r1", "chunk": 3})).unwrap();
        assert_eq!(ReadRequest::read(&input).unwrap().part, Some(3));
        let input = to_raw_value(&json!({"handle": "r1", "chunk": 3, "part": 3})).unwrap();
        assert!(ReadRequest::read(&input).is_err());
    }

    #[test]
    fn an_argument_of_an_earlier_version_is_refused_with_the_one_that_replaces_it() {
        for (name, instead) in [("pointer", "use select: "), ("find", "use grep: ")] {
            let input = to_raw_value(&json!({"handle": "r1", "part": 1, name: "/a"})).unwrap();
            let Err(ReadError::Argument(told, why)) = ReadRequest::read(&input) else {
                panic!("{input} was read");
            };
            assert!(told == name && why.contains(instead), "{told}: {why}");
            let input = to_raw_value(&json!({"handle": "r1", "part": 2, name: null})).unwrap();
            assert_eq!(ReadRequest::read(&input).unwrap().part, Some(2));
        }
    }
}
