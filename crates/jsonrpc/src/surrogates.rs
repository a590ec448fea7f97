//! Replaces half surrogate pairs in the escapes of JSON strings.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};

/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

const REPLACEMENT: &str = r"\ufffd";

/// Replaces half a surrogate pair in a string by U+FFFD. A text with one is no valid Unicode: some clients
/// cannot parse it, and others pass it to a model's API, which refuses it. `parts` are JSON text that is not
/// divided inside a string; only a part with such an escape is copied.
pub fn replace_lone_surrogates(mut parts: Vec<Bytes>) -> Vec<Bytes> {
    for part in &mut parts {
        let mut copy: Option<BytesMut> = None;
        for at in find_lone(part) {
            let copy = copy.get_or_insert_with(|| BytesMut::from(&part[..]));
            copy[at..at + ESCAPE].copy_from_slice(REPLACEMENT.as_bytes());
        }
        if let Some(copy) = copy {
            *part = copy.freeze();
        }
    }
    parts
}

/// Returns JSON text in which half a surrogate pair is U+FFFD, for a reader that has no other character
/// for it.
pub fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    let lone = find_lone(json.as_bytes());
    if lone.is_empty() {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    let mut begin = 0;
    for at in lone {
        text.push_str(&json[begin..at]);
        text.push_str(REPLACEMENT);
        begin = at + ESCAPE;
    }
    text.push_str(&json[begin..]);
    Cow::Owned(text)
}

/// Returns the positions of the escapes that are half a pair.
fn find_lone(text: &[u8]) -> Vec<usize> {
    let mut places: Vec<usize> = [br"\ud".as_slice(), br"\uD"]
        .into_iter()
        .flat_map(|begin| memchr::memmem::find_iter(text, begin))
        .filter(|at| !is_escaped(text, *at))
        .collect();
    places.sort_unstable();
    let mut lone = Vec::new();
    let mut places = places.into_iter().peekable();
    while let Some(at) = places.next() {
        match code_unit(text, at) {
            Some(0xd800..0xdc00) => {
                let is_low = |next: &usize| {
                    *next == at + ESCAPE && matches!(code_unit(text, *next), Some(0xdc00..0xe000))
                };
                if places.next_if(is_low).is_none() {
                    lone.push(at);
                }
            }
            Some(0xdc00..0xe000) => lone.push(at),
            _ => {}
        }
    }
    lone
}

/// Returns true if the backslash at a position belongs to the escape of a backslash.
fn is_escaped(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev().take_while(|byte| **byte == b'\\');
    before.count() % 2 == 1
}

fn code_unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = str::from_utf8(text.get(at + 2..at + ESCAPE)?).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &'static str, expected: &str) {
        let part = Bytes::from_static(text.as_bytes());
        let replaced = replace_lone_surrogates(vec![part.clone()]);
        assert_eq!(replaced, [expected], "{text}");
        assert_eq!(without_lone_surrogates(text), expected, "{text}");
        assert_eq!(
            replaced[0].as_ptr() == part.as_ptr(),
            text == expected,
            "{text}"
        );
    }

    #[test]
    fn half_a_pair_is_replaced_and_everything_else_stays() {
        for same in [
            r#"{"a":"plain"}"#,
            r#""\ud83d\ude00""#,
            r#""\uD83D\uDE00\uD83D\uDE00""#,
            r#""\\ud83d""#,
            r#""\\\\ud83d""#,
            r#""\ud7ff \u00e9 \ue000""#,
        ] {
            check(same, same);
        }
        check(r#""tail \ud83d""#, r#""tail \ufffd""#);
        check(r#""\uDE00 head""#, r#""\ufffd head""#);
        check(r#""\\\ud83d""#, r#""\\\ufffd""#);
        check(r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#);
        check(r#""\ud83d\\ude00""#, r#""\ufffd\\ude00""#);
        check(r#""\uDBFFx\udc00\uDFFF""#, r#""\ufffdx\ufffd\ufffd""#);
        check(r#"{"\ud800":["\udfff"]}"#, r#"{"\ufffd":["\ufffd"]}"#);
    }

    proptest::proptest! {
        #[test]
        fn every_string_is_valid_afterwards(text in r"(\\u[dD][89abcdefABCDEF83][0-9a-f]{2}|\\\\|x|\\n|ud83d){0,8}") {
            let text = format!("\"{text}\"");
            let replaced = replace_lone_surrogates(vec![Bytes::from(text.clone())]);
            let after: Result<String, _> = serde_json::from_slice(&replaced[0]);
            proptest::prop_assert!(after.is_ok(), "{text}");
            if let Ok(before) = serde_json::from_str::<String>(&text) {
                proptest::prop_assert_eq!(before, after.unwrap());
            }
        }
    }
}
