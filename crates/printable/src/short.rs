//! Shortens texts.

use std::borrow::Cow;

/// Returns the first `chars_max` characters of a text.
pub fn first_chars(text: &str, chars_max: usize) -> &str {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Shortens a text to `chars_max` characters, with `…` for the rest.
pub fn shorten(text: &str, chars_max: usize) -> Cow<'_, str> {
    let first = first_chars(text, chars_max);
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{first}…"))
}

/// Shortens a text to `chars_max` characters, with `…` for its middle: the beginning of an error has the
/// cause, and the last quarter the next step.
pub fn shorten_middle(text: &str, chars_max: usize) -> Cow<'_, str> {
    if first_chars(text, chars_max).len() == text.len() {
        return Cow::Borrowed(text);
    }
    let tail = chars_max / 4;
    let head = first_chars(text, chars_max - tail - 1);
    let start = text.char_indices().rev().take(tail).last();
    let start = start.map_or(text.len(), |(start, _)| start);
    Cow::Owned(format!("{head}…{}", &text[start..]))
}

#[cfg(test)]
mod tests {
    use super::{first_chars, shorten, shorten_middle};

    #[test]
    fn characters_are_counted_and_none_is_torn() {
        assert_eq!(first_chars("äöü", 2), "äö");
        assert_eq!(first_chars("äöü", 3), "äöü");
        assert_eq!(shorten("äöü", 2), "äö…");
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten_middle("0123456789", 8), "01234…89");
        assert_eq!(shorten_middle("äöüäöü", 5), "äöü…ü");
        assert_eq!(shorten_middle("01234567", 8), "01234567");
    }
}
