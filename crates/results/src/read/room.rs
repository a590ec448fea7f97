//! Reads as much of a kept result as fits.

use std::ops::Range;

use excerpt::{TextPiece, tokens::Counter};

use super::request::{ReadError, TOKEN_BYTES_MAX};
use crate::store::KeptResult;

/// Reads the part of a range that fits into so many tokens, and returns its end.
pub(super) fn read_within(
    kept: &mut KeptResult,
    range: Range<usize>,
    room: usize,
) -> Result<(Vec<String>, usize), ReadError> {
    let bytes_max = room.saturating_mul(TOKEN_BYTES_MAX);
    let end = range.end.min(range.start.saturating_add(bytes_max));
    let texts = kept.read_by_text(range.start..end)?;
    if room == usize::MAX {
        return Ok((texts, end));
    }
    let (mut fitting, mut at, mut left) = (Vec::new(), range.start, room);
    for text in texts {
        let cost = Counter::with(|counter| counter.count_to(&text, left));
        if cost <= left {
            at += text.len();
            left -= cost;
            fitting.push(text);
            continue;
        }
        let cut = excerpt::find_first_cut(&TextPiece::plain(&text), left);
        if left >= cut.tokens {
            at += cut.end;
            fitting.push(text[..cut.end].to_owned());
        }
        break;
    }
    Ok((fitting, at))
}
