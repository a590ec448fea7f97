//! A part of a kept result, by its number.

use excerpt::{Kind, tokens::Counter};
use printable::group_digits;
use serde_json::{Value, json};

use super::{
    note::write_note,
    room::read_within,
    wanted::{Output, ReadError, Reading, Wanted},
};
use crate::store::Kept;

/// Reads a part; the beginning of it where its reader has less room than the first one had.
pub(super) fn read(wanted: &Wanted, mut kept: Kept, output: Output) -> Result<Reading, ReadError> {
    let number = wanted.part.unwrap_or(1);
    let parts = kept.head.parts.len();
    let Some(range) = kept.part(number) else {
        let why = format!("there are {parts} parts, from 1 on");
        return Err(ReadError::Wanted("part", why));
    };
    let (texts, end) = read_within(&mut kept, range.clone(), output.room)?;
    let handle = &wanted.handle;
    let next = if end < range.end {
        json!({"handle": handle, "offset": end, "limit": range.end - end, "unit": "bytes"})
    } else if number < parts {
        json!({"handle": handle, "part": number + 1})
    } else {
        Value::Null
    };
    let is_whole = end == range.end;
    let what = if is_whole { "" } else { "the beginning of " };
    let what = format!(
        "{what}part {} of {}",
        group_digits(number),
        group_digits(parts)
    );
    let columns = columns(&mut kept, range.start)?;
    let note = write_note(&format!("{what}{columns}"), &next);
    Ok(Reading { texts, note })
}

/// The columns of the table that a part begins in the middle of.
fn columns(kept: &mut Kept, at: usize) -> Result<String, ReadError> {
    let mut start = 0;
    for text in kept.head.texts.clone() {
        let end = start + text.bytes;
        if at > start && at < end && matches!(text.kind, Kind::Table(_)) {
            let head = kept.read(start..end.min(start + COLUMNS_BYTES_MAX))?;
            let columns = excerpt::find_columns(&head);
            let cost = Counter::with(|counter| counter.count_to(columns, COLUMNS_TOKENS_MAX));
            if cost <= COLUMNS_TOKENS_MAX {
                return Ok(format!(
                    "; columns: {}",
                    printable::prose(columns).replace('\n', " ")
                ));
            }
        }
        start = end;
    }
    Ok(String::new())
}

/// The longest line of columns that is repeated.
const COLUMNS_BYTES_MAX: usize = 400;
const COLUMNS_TOKENS_MAX: usize = 45;
