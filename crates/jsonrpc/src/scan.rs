//! Finds the members and items of JSON text without building values.
//!
//! The whole text is checked, and the same texts are valid as for `serde_json` (RFC 8259). Its own
//! search in strings stops at each escape; this one compares 16 bytes at once and continues behind an
//! escape, which is about twice as fast in a text that is JSON or code inside a string.

use std::cell::Cell;

use serde::{
    Deserialize,
    de::value::{BorrowedStrDeserializer, Error, MapDeserializer},
};
use serde_json::value::RawValue;
use wide::u8x16;

use crate::known::KnownStrings;

/// Calls `each` with the members of the object that is the whole text: the key in its quotes, and the
/// value. Returns the known strings of the text, or `None` if the text is not an object, or `each` does.
pub(crate) fn scan_members<'a>(
    text: &'a str,
    mut each: impl FnMut(&'a str, &'a RawValue) -> Option<()>,
) -> Option<KnownStrings> {
    let scanner = Scanner::new(text);
    let mut at = scanner.begin(b'{')?;
    while scanner.byte(at) != Some(b'}') {
        let value = scanner.key(at)?;
        let key = text[at..value].trim_end_matches([':', ' ', '\t', '\n', '\r']);
        let value = scanner.skip_space(value);
        let end = scanner.value(value)?;
        each(key, raw(&text[value..end])?)?;
        at = scanner.next(end, b'}')?;
    }
    scanner.end(at + 1)?;
    Some(scanner.known.get())
}

/// Returns the items of the array that is the whole text.
pub(crate) fn scan_items(text: &str) -> Option<Vec<&RawValue>> {
    let scanner = Scanner::new(text);
    let mut items = Vec::new();
    let mut at = scanner.begin(b'[')?;
    while scanner.byte(at) != Some(b']') {
        let end = scanner.value(at)?;
        items.push(raw(&text[at..end])?);
        at = scanner.next(end, b']')?;
    }
    scanner.end(at + 1)?;
    Some(items)
}

/// Replaces the escapes of a valid string without its quotes. Returns `None` for half a surrogate pair,
/// and for an escape that JSON does not have.
pub(crate) fn unescape(quoted: &str) -> Option<String> {
    let bytes = quoted.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(block) = bytes.get(at..at + BLOCK) {
        text.extend_from_slice(block);
        let escapes = u8x16::new(block.try_into().ok()?).simd_eq(u8x16::splat(b'\\'));
        let escapes = escapes.to_bitmask();
        if escapes == 0 {
            at += BLOCK;
        } else {
            let place = escapes.trailing_zeros() as usize;
            text.truncate(text.len() - BLOCK + place);
            at = unescape_one(bytes, at + place, &mut text)?;
        }
    }
    while let Some(byte) = bytes.get(at) {
        if *byte == b'\\' {
            at = unescape_one(bytes, at, &mut text)?;
        } else {
            text.push(*byte);
            at += 1;
        }
    }
    String::from_utf8(text).ok()
}

/// Appends the character of the escape at a position, and returns the position behind it.
fn unescape_one(bytes: &[u8], at: usize, text: &mut Vec<u8>) -> Option<usize> {
    let byte = match bytes.get(at + 1)? {
        byte @ (b'"' | b'\\' | b'/') => *byte,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let first = code_unit(bytes, at)?;
            let second = code_unit(bytes, at + 6).filter(|_| matches!(first, 0xd800..0xdc00));
            let mut units = char::decode_utf16([first].into_iter().chain(second));
            let char = units.next()?.ok()?;
            text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(at + 6 * char.len_utf16());
        }
        _ => return None,
    };
    text.push(byte);
    Some(at + 2)
}

/// Reads `\u` and four digits.
fn code_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = str::from_utf8(escape.strip_prefix(b"\\u")?).ok()?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

/// The bytes that are compared at once.
const BLOCK: usize = 16;

/// Wraps a checked value. `RawValue` has no constructor for this without a second check, but reads
/// itself from any deserializer that offers it under this name. A test fails if the name changes.
fn raw(value: &str) -> Option<&RawValue> {
    const NAME: &str = "$serde_json::private::RawValue";
    let member = (NAME, BorrowedStrDeserializer::<Error>::new(value));
    Deserialize::deserialize(MapDeserializer::new(std::iter::once(member))).ok()
}

/// A text, which is read from a position on. Its methods return the position after what they read,
/// or `None` if it is not valid there.
struct Scanner<'a> {
    text: &'a [u8],
    /// Those of the strings that were read.
    known: Cell<KnownStrings>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text: text.as_bytes(),
            known: Cell::default(),
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    fn skip_space(&self, at: usize) -> usize {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        at + self.text[at..].iter().take_while(|it| is_space(it)).count()
    }

    /// Reads an opening bracket, up to the first item or the closing one.
    fn begin(&self, bracket: u8) -> Option<usize> {
        let at = self.skip_space(0);
        (self.byte(at) == Some(bracket)).then(|| self.skip_space(at + 1))
    }

    /// Reads from the end of an item to the next one, or to the closing bracket.
    fn next(&self, end: usize, bracket: u8) -> Option<usize> {
        let at = self.skip_space(end);
        match self.byte(at)? {
            b',' => {
                let item = self.skip_space(at + 1);
                // A bracket directly after a comma would end the caller's loop.
                (self.byte(item) != Some(bracket)).then_some(item)
            }
            byte => (byte == bracket).then_some(at),
        }
    }

    fn end(&self, at: usize) -> Option<()> {
        (self.skip_space(at) == self.text.len()).then_some(())
    }

    /// Reads a key and its colon.
    fn key(&self, at: usize) -> Option<usize> {
        if self.byte(at)? != b'"' {
            return None;
        }
        let colon = self.skip_space(self.whole_string(at + 1)?);
        (self.byte(colon)? == b':').then_some(colon + 1)
    }

    /// Reads a value at any depth, without recursion.
    fn value(&self, mut at: usize) -> Option<usize> {
        let mut open = Vec::new();
        loop {
            at = self.skip_space(at);
            let first = self.byte(at)?;
            at = match first {
                b'{' | b'[' => {
                    let inside = self.skip_space(at + 1);
                    // The closing bracket follows the opening one by two in ASCII.
                    if self.byte(inside)? == first + 2 {
                        inside + 1
                    } else {
                        open.push(first + 2);
                        at = if first == b'{' {
                            self.key(inside)?
                        } else {
                            inside
                        };
                        continue;
                    }
                }
                b'"' => self.whole_string(at + 1)?,
                b'-' | b'0'..=b'9' => self.number(at)?,
                b't' => self.word(at, b"true")?,
                b'f' => self.word(at, b"false")?,
                b'n' => self.word(at, b"null")?,
                _ => return None,
            };
            at = loop {
                let Some(closing) = open.last().copied() else {
                    return Some(at);
                };
                at = self.skip_space(at);
                let byte = self.byte(at)?;
                at += 1;
                if byte == closing {
                    open.pop();
                } else if byte != b',' {
                    return None;
                } else if closing == b'}' {
                    break self.key(self.skip_space(at))?;
                } else {
                    break at;
                }
            };
        }
    }

    fn word(&self, at: usize, word: &[u8]) -> Option<usize> {
        self.text[at..].starts_with(word).then_some(at + word.len())
    }

    fn number(&self, at: usize) -> Option<usize> {
        let digits = |from: usize| {
            let count = self.text[from..]
                .iter()
                .take_while(|it| it.is_ascii_digit());
            Some(from + count.count()).filter(|end| *end > from)
        };
        let start = at + usize::from(self.byte(at) == Some(b'-'));
        let mut end = digits(start)?;
        if self.byte(start) == Some(b'0') && end > start + 1 {
            return None;
        }
        if self.byte(end) == Some(b'.') {
            end = digits(end + 1)?;
        }
        if matches!(self.byte(end), Some(b'e' | b'E')) {
            let sign = matches!(self.byte(end + 1), Some(b'+' | b'-'));
            end = digits(end + 1 + usize::from(sign))?;
        }
        Some(end)
    }

    /// Reads a string after its opening quote, up to behind the closing one, and notes it if it is known.
    fn whole_string(&self, at: usize) -> Option<usize> {
        let end = self.string(at)?;
        let mut known = self.known.get();
        known.note(&self.text[at..end - 1]);
        self.known.set(known);
        Some(end)
    }

    fn string(&self, mut at: usize) -> Option<usize> {
        'blocks: while let Some(block) = self.text.get(at..at + BLOCK) {
            let block = u8x16::new(block.try_into().ok()?);
            let is_control = block.min(u8x16::splat(b' ' - 1)).simd_eq(block);
            let is_special =
                block.simd_eq(u8x16::splat(b'"')) | block.simd_eq(u8x16::splat(b'\\')) | is_control;
            let mut special = is_special.to_bitmask();
            while special != 0 {
                let place = special.trailing_zeros() as usize;
                match self.text[at + place] {
                    b'"' => return Some(at + place + 1),
                    b'\\' => {
                        let behind = self.escape(at + place)?;
                        if behind >= at + BLOCK {
                            at = behind;
                            continue 'blocks;
                        }
                        special &= u32::MAX << (behind - at);
                    }
                    _ => return None,
                }
            }
            at += BLOCK;
        }
        loop {
            match self.byte(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at = self.escape(at)?,
                0..b' ' => return None,
                _ => at += 1,
            }
        }
    }

    fn escape(&self, at: usize) -> Option<usize> {
        match self.byte(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
            b'u' => {
                let digits = self.text.get(at + 2..at + 6)?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 6)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn members(text: &str) -> Option<BTreeMap<&str, &str>> {
        let mut members = BTreeMap::new();
        scan_members(text, |key, value| {
            members.insert(key.trim_matches('"'), value.get());
            Some(())
        })?;
        Some(members)
    }

    /// Compares a text with `serde_json`, as the only item and as the first of two members.
    #[track_caller]
    fn compare(text: &str) {
        let array = format!(" [{text}]");
        let items = |items: Vec<&RawValue>| items.iter().map(|it| it.get().to_owned()).collect();
        let expected: Option<Vec<String>> = serde_json::from_str(&array).ok().map(items);
        assert_eq!(scan_items(&array).map(items), expected, "{array}");

        let expected = serde_json::from_str::<String>(text).ok();
        let inner = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        if let Some(inner) = inner
            && scan_items(&array).is_some_and(|items| items.len() == 1)
        {
            assert_eq!(unescape(inner), expected, "{text}");
        }

        let object = format!("{{\"a\" :{text},\"b\":0}} ");
        let expected: Option<BTreeMap<&str, &RawValue>> = serde_json::from_str(&object).ok();
        let expected = expected.map(|it| it.into_iter().map(|(key, it)| (key, it.get())).collect());
        assert_eq!(members(&object), expected, "{object}");
    }

    fn any_json() -> impl Strategy<Value = String> {
        let text = prop_oneof!["\\PC{0,40}", "[ -~]{0,80}", "[\"\\\\\n\t\u{1}/]{0,40}"];
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            text.prop_map(serde_json::Value::from),
        ];
        let value = leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
                proptest::collection::vec(("[a-c\"]{0,3}", inner), 0..5)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        });
        (value, any::<bool>()).prop_map(|(value, is_pretty)| {
            if is_pretty {
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                value.to_string()
            }
        })
    }

    proptest! {
        #[test]
        fn the_same_texts_are_valid_as_for_serde_json(text in any_json()) {
            compare(&text);
        }

        #[test]
        fn a_damaged_text_is_refused_like_there(
            text in any_json(),
            place in any::<prop::sample::Index>(),
            other in "[\\[\\]{}:,\"\\\\u0-9.eE+ \u{1f}é-]{0,2}",
        ) {
            let mut text: Vec<char> = text.chars().collect();
            let place = place.index(text.len());
            text.splice(place..=place, other.chars());
            compare(&String::from_iter(text));
        }

        #[test]
        fn any_few_signs_are_read_like_there(text in "[\\[\\]{}:,\"\\\\utrefalsn0-9.eE+ \n-]{0,12}") {
            compare(&text);
        }
    }

    #[test]
    fn forms_that_are_easily_confused_are_read_like_there() {
        for text in [
            "",
            "01",
            "-",
            "-0",
            "1.",
            ".1",
            "1e",
            "1e+",
            "1E-07",
            "tru",
            "truex",
            "nul",
            "[,]",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{,}",
            "{\"a\":1,}",
            "[}",
            "{]",
            "[1 2]",
            "\"",
            "\"\\\"",
            "\"\\u12g4\"",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"\t\"",
            "\u{a0}1",
            "[[[]",
            "[]]",
            "1}",
        ] {
            compare(text);
        }
        compare(&("[".repeat(5_000) + &"]".repeat(5_000)));
        for length in 0..40 {
            let before = "x".repeat(length);
            compare(&format!("\"{before}\\\"\\\\\\u00e9é\""));
            compare(&format!("\"{before}\\ud83d\\ude00{before}\""));
            compare(&format!(
                "\"{before}\\ud83d\\u0041{before}\\/\\b\\f\\r\\t\\n\""
            ));
            compare(&format!("\"{before}\\ude00\""));
            compare(&format!("\"{before}\u{1f}\""));
            compare(&format!("\"{before}\\\\\\\""));
        }
    }

    #[test]
    fn a_value_is_wrapped_without_a_check() {
        assert_eq!(raw("not [checked").unwrap().get(), "not [checked");
    }
}
