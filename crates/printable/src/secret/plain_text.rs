//! A text without the characters that hide a pattern from a search, and the way back to the text itself.

use std::ops::Range;

use super::found::FoundSecret;

/// A text in which every blank is a space, every hyphen is ASCII, and no character is hidden.
#[derive(Debug)]
pub(super) struct PlainText<'t> {
    original: &'t str,
    pub(super) text: String,
    /// The positions from which both texts have the same bytes: in the plain text, and in the original.
    steps: Vec<(usize, usize)>,
}

impl<'t> PlainText<'t> {
    /// Returns `None` if the text is plain already.
    pub(super) fn of(original: &'t str) -> Option<Self> {
        (!is_plain(original)).then(|| Self::read(original, plain_char))
    }

    /// Removes the ends of lines as well. Returns `None` if there are none, and the text is plain.
    pub(super) fn without_lines(original: &'t str) -> Option<Self> {
        let is_line_end = |c: char| "\r\n".contains(c);
        let read = |c: char| plain_char(c).filter(|c| !is_line_end(*c));
        (original.contains(is_line_end) || !is_plain(original)).then(|| Self::read(original, read))
    }

    fn read(original: &'t str, plain_char: impl Fn(char) -> Option<char>) -> Self {
        let mut plain = Self {
            original,
            text: String::with_capacity(original.len()),
            steps: vec![(0, 0)],
        };
        for (at, c) in original.char_indices() {
            let shown = plain_char(c);
            if shown != Some(c) && shown.is_some() {
                plain.steps.push((plain.text.len(), at));
            }
            plain.text.extend(shown);
            if shown != Some(c) {
                plain.steps.push((plain.text.len(), at + c.len_utf8()));
            }
        }
        plain
    }

    /// Returns a secret of the plain text, which is not empty, with its place in the original.
    pub(super) fn locate(&self, secret: FoundSecret) -> FoundSecret {
        FoundSecret {
            range: self.original_range(secret.range),
            ..secret
        }
    }

    /// Returns the range of the original text for a range of the plain text that is not empty.
    fn original_range(&self, range: Range<usize>) -> Range<usize> {
        let last = self.text[range.clone()].char_indices().next_back();
        let last = self.original_position(range.start + last.map_or(0, |(at, _)| at));
        let length = self.original[last..]
            .chars()
            .next()
            .map_or(0, char::len_utf8);
        self.original_position(range.start)..last + length
    }

    fn original_position(&self, at: usize) -> usize {
        let next = self.steps.partition_point(|(plain, _)| *plain <= at);
        let (plain, original) = self.steps[next - 1];
        original + (at - plain)
    }
}

/// Returns true for a text without blanks, hyphens and hidden characters beyond ASCII.
pub(super) fn is_plain(text: &str) -> bool {
    let is_plain_byte = |byte: u8| byte.is_ascii_graphic() || b" \n\r\t".contains(&byte);
    text.bytes().all(is_plain_byte) || text.chars().all(|c| plain_char(c) == Some(c))
}

/// Returns the character that people read; `None` for a hidden one.
fn plain_char(c: char) -> Option<char> {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ff0d}' => Some('-'),
        '\n' | '\r' | '\t' => Some(c),
        _ if crate::is_hidden(c) => None,
        _ if c.is_whitespace() => Some(' '),
        _ => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_of_the_plain_text_is_found_in_the_original() {
        let check = |original: &str, plain: &str, found: &str, expected: &str| {
            let read = PlainText::of(original).unwrap();
            assert_eq!(read.text, plain);
            let at = plain.find(found).unwrap();
            let range = read.original_range(at..at + found.len());
            assert_eq!(&original[range], expected);
        };
        check("ä\u{a0}b", "ä b", "b", "b");
        check("ä\u{a0}b", "ä b", "ä ", "ä\u{a0}");
        check(
            "x\u{200b}\u{200b}ab\u{feff}c\u{200b}y",
            "xabcy",
            "abc",
            "ab\u{feff}c",
        );
        check("1\u{200b}\u{a0}\u{2011}2", "1 -2", " -", "\u{a0}\u{2011}");
        check("\u{200b}é\u{200d}", "é", "é", "é");
        for plain in ["", "a b-c\n\t", "日本語 é"] {
            assert!(PlainText::of(plain).is_none(), "{plain}");
        }
    }

    proptest! {
        #[test]
        fn every_range_maps_to_whole_characters(text in "[a-c é\u{a0}\u{2011}\u{200b}]{1,20}") {
            if let Some(plain) = PlainText::of(&text) {
                for (at, c) in plain.text.char_indices() {
                    let range = plain.original_range(at..at + c.len_utf8());
                    let original = &text[range];
                    prop_assert_eq!(original.chars().count(), 1);
                    prop_assert_eq!(original.chars().next().and_then(plain_char), Some(c));
                }
            }
        }
    }
}
