//! A part of a kept result, by its number.

use excerpt::{TextKind, tokens::Counter};
use printable::group_digits;
use serde_json::{Value, json};

use super::{
    note::write_note,
    request::{Output, ReadError, ReadRequest, ReadTexts},
    room::read_within,
};
use crate::store::KeptResult;

/// Reads a part, or its beginning if this reader has less room than the first one.
pub(super) fn read(
    request: &ReadRequest,
    mut kept: KeptResult,
    output: Output,
) -> Result<ReadTexts, ReadError> {
    let number = request.part.unwrap_or(1);
    let parts = kept.count_parts();
    let Some(range) = kept.part(number) else {
        let why = format!("there are {parts} parts, counted from 1");
        return Err(ReadError::Argument("part", why));
    };
    let (texts, end) = read_within(&mut kept, range.clone(), output.room)?;
    let handle = &request.handle;
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
    Ok(ReadTexts { texts, note })
}

/// Returns the columns of a table if the part begins in the middle of it.
fn columns(kept: &mut KeptResult, at: usize) -> Result<String, ReadError> {
    let mut start = 0;
    for text in kept.head.texts.clone() {
        let end = start + text.bytes;
        if at > start && at < end && matches!(text.kind, TextKind::Table(_)) {
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
