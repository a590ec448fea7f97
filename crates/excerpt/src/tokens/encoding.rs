//! The `o200k` encoding. Its tables lie in the program and are read there: nothing is loaded, and
//! of 3.2 MB no more is in memory than what was looked at.

mod merge;
mod ranks;
mod split;

use self::split::split;

/// The tokens of a text.
pub(super) fn count(text: &str) -> usize {
    split(text)
        .map(|piece| merge::count(piece.as_bytes()))
        .sum()
}

#[cfg(test)]
mod tests;
