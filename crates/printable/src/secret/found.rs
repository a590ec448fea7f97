//! A secret in a text, and its masking.

use std::ops::Range;

/// The text in the place of a secret.
pub const HIDDEN: &str = "***";

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// Its place in the text, in bytes.
    pub range: Range<usize>,
    /// The parameter, option or header with this value; `None` if it is recognized only by its form.
    pub name: Option<String>,
}

/// Masks these secrets in a text.
pub(super) fn hide(text: &str, found: &[FoundSecret]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for FoundSecret { range, .. } in found {
        masked += &text[at..range.start];
        masked += HIDDEN;
        at = range.end;
    }
    masked + &text[at..]
}
