//! Lines or bytes of a kept result.

use std::{
    io::{self, BufRead},
    ops::Range,
};

use printable::group_digits;
use serde_json::{Value, json};

use super::{
    note::write_note,
    request::{Output, ReadError, ReadRequest, ReadTexts, Unit},
    room::read_within,
};
use crate::store::KeptResult;

/// A range of lines, and the number of all lines.
struct LineRange {
    bytes: Range<usize>,
    /// The number of lines before the first.
    before: usize,
    count: usize,
    all: usize,
}

pub(super) fn read(
    request: &ReadRequest,
    mut kept: KeptResult,
    output: Output,
) -> Result<ReadTexts, ReadError> {
    match request.unit {
        Unit::Bytes => read_bytes(request, &mut kept, output),
        Unit::Lines => read_lines(request, &mut kept, output),
    }
}

fn read_bytes(
    request: &ReadRequest,
    kept: &mut KeptResult,
    output: Output,
) -> Result<ReadTexts, ReadError> {
    let all = kept.head.text_bytes();
    let start = begin(request.offset.unwrap_or(0), all);
    let end = request
        .limit
        .map_or(all, |limit| start.saturating_add(limit).min(all));
    let (texts, read_to) = read_within(kept, start..end, output.room)?;
    let what = format!(
        "bytes {} to {} of {}",
        group_digits(start),
        group_digits(read_to),
        group_digits(all)
    );
    let next = if read_to < all {
        let limit = request
            .limit
            .map(|limit| if read_to < end { end - read_to } else { limit });
        call(request, read_to, limit, true)
    } else {
        Value::Null
    };
    let note = write_note(&what, &next);
    Ok(ReadTexts { texts, note })
}

fn read_lines(
    request: &ReadRequest,
    kept: &mut KeptResult,
    output: Output,
) -> Result<ReadTexts, ReadError> {
    let lines = locate(kept, request.offset.unwrap_or(0), request.limit)?;
    let (texts, read_to) = read_within(kept, lines.bytes.clone(), output.room)?;
    let all = group_digits(lines.all);
    if lines.count == 0 {
        let note = format!("[no lines there: there are {all}, offset counts from 0]");
        return Ok(ReadTexts { texts, note });
    }
    let shown: usize = texts.iter().map(|text| text.matches('\n').count()).sum();
    let is_whole = read_to >= lines.bytes.end;
    let shown = if is_whole { lines.count } else { shown };
    let first = group_digits(lines.before + 1);
    let what = format!(
        "lines {first} to {} of {all}",
        group_digits(lines.before + shown.max(1))
    );
    let next_line = lines.before + shown;
    let tail = texts.last().is_some_and(|text| !text.ends_with('\n'));
    let next = if is_whole && next_line >= lines.all {
        Value::Null
    } else if is_whole || !tail {
        let left = request
            .limit
            .map(|limit| if is_whole { limit } else { lines.count - shown });
        call(request, next_line, left, false)
    } else {
        // Within a line: the rest of the request, in bytes.
        call(request, read_to, Some(lines.bytes.end - read_to), true)
    };
    let note = write_note(&what, &next);
    Ok(ReadTexts { texts, note })
}

fn call(request: &ReadRequest, offset: usize, limit: Option<usize>, in_bytes: bool) -> Value {
    let mut call = json!({"handle": request.handle, "offset": offset});
    if let Some(limit) = limit {
        call["limit"] = json!(limit);
    }
    if in_bytes {
        call["unit"] = json!("bytes");
    }
    call
}

/// Resolves an offset; negative ones count from the end.
fn begin(offset: i64, all: usize) -> usize {
    let magnitude = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    if offset < 0 {
        all.saturating_sub(magnitude)
    } else {
        magnitude.min(all)
    }
}

fn locate(kept: &KeptResult, offset: i64, limit: Option<usize>) -> io::Result<LineRange> {
    let (all, _) = skip_lines(&mut kept.reader(0)?, usize::MAX)?;
    let before = begin(offset, all);
    let count = limit.unwrap_or(usize::MAX).min(all - before);
    let mut reader = kept.reader(0)?;
    let (_, start) = skip_lines(&mut reader, before)?;
    let (_, bytes) = skip_lines(&mut reader, count)?;
    Ok(LineRange {
        bytes: start..start + bytes,
        before,
        count,
        all,
    })
}

/// Skips so many lines, or all if there are fewer. Returns their number and their bytes. The last line may
/// lack its line end.
fn skip_lines(reader: &mut impl BufRead, max: usize) -> io::Result<(usize, usize)> {
    let (mut lines, mut bytes) = (0, 0);
    while lines < max {
        match reader.skip_until(b'\n')? {
            0 => break,
            length => bytes += length,
        }
        lines += 1;
    }
    Ok((lines, bytes))
}
