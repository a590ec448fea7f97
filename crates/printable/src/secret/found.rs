//! Secrets in a text, and texts in their place.

use std::{cmp::Reverse, ops::Range};

/// The text in the place of a secret.
pub const HIDDEN: &str = "***";

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    /// Its place in the text, in bytes.
    pub range: Range<usize>,
    /// The parameter, option, header or pattern of this value; `None` if it is recognized only by its form.
    pub name: Option<String>,
}

impl FoundSecret {
    pub(super) fn new(range: Range<usize>, name: Option<&str>) -> Self {
        let name = name.map(str::to_owned);
        Self { range, name }
    }
}

/// Sorts secrets by their place, and joins those that overlap, so that no part of a secret stays in the
/// text. The longest one gives its name.
pub fn join_overlapping(mut found: Vec<FoundSecret>) -> Vec<FoundSecret> {
    found.retain(|secret| !secret.range.is_empty());
    found.sort_by_key(|secret| (secret.range.start, Reverse(secret.range.end)));
    let (mut joined, mut longest) = (Vec::<FoundSecret>::new(), 0);
    for secret in found {
        let length = secret.range.len();
        match joined.last_mut() {
            Some(last) if secret.range.start < last.range.end => {
                last.range.end = last.range.end.max(secret.range.end);
                if length > longest {
                    (last.name, longest) = (secret.name, length);
                }
            }
            _ => {
                longest = length;
                joined.push(secret);
            }
        }
    }
    joined
}

/// Replaces secrets, which are in order and do not overlap, in a text.
pub fn replace_secrets(
    text: &str,
    found: &[FoundSecret],
    mut replacement: impl FnMut(&FoundSecret) -> String,
) -> String {
    let (mut replaced, mut at) = (String::with_capacity(text.len()), 0);
    for secret in found {
        replaced += &text[at..secret.range.start];
        replaced += &replacement(secret);
        at = secret.range.end;
    }
    replaced + &text[at..]
}

/// Masks secrets, which are in order and do not overlap, in a text.
pub(super) fn hide(text: &str, found: &[FoundSecret]) -> String {
    replace_secrets(text, found, |_| HIDDEN.to_owned())
}
