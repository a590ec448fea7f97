//! Makes untrusted text readable: invisible characters are removed or escaped.
//!
//! Names, descriptions, errors and stderr reach a model or a terminal. They must not forge a line, move a
//! cursor, change the writing direction, or contain invisible text.

use std::{borrow::Cow, iter::Peekable, str::Chars};

use crate::short::shorten;

/// Returns true if a character is invisible, or affects the text around it: controls, direction
/// marks, tags, fillers, line separators. Joiners are included; prose does not need them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Puts an untrusted text on one line: white space is collapsed, hidden characters are removed.
pub fn one_line(text: &str) -> String {
    let prose = prose(text);
    let words: Vec<&str> = prose.split_whitespace().collect();
    words.join(" ")
}

/// Puts an untrusted text on one line of at most `chars_max` characters, with `…` for the rest.
pub fn one_line_of(text: &str, chars_max: usize) -> String {
    one_line_cow(text, chars_max).into_owned()
}

/// The same as [`one_line_of`]. Nothing is copied of a short text without white space.
pub fn one_line_cow(text: &str, chars_max: usize) -> Cow<'_, str> {
    if text.len() <= chars_max && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Cow::Borrowed(text);
    }
    // Reads no more of a long text than can be shown.
    let end = text
        .char_indices()
        .nth(chars_max.saturating_mul(READ_FACTOR));
    let line = one_line(end.map_or(text, |(end, _)| &text[..end]));
    match shorten(&line, chars_max) {
        Cow::Borrowed(_) if end.is_some() => Cow::Owned(line + "…"),
        short => Cow::Owned(short.into_owned()),
    }
}

/// The characters that are read for each shown one: blanks and colour sequences are not all shown.
const READ_FACTOR: usize = 16;

/// Cleans an untrusted text of several lines: line ends and tabs are kept, hidden characters are removed.
pub fn prose(text: &str) -> Cow<'_, str> {
    let is_kept = |c: char| c == '\n' || c == '\t' || !is_hidden(c);
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut prose = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => pass_sequence(&mut chars),
            '\u{9b}' => pass_parameters(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => prose.push('\n'),
            c if is_kept(c) => prose.push(c),
            _ => {}
        }
    }
    Cow::Owned(prose)
}

/// Escapes the hidden characters in the strings of JSON: the value is the same, and all of it is visible.
pub fn seen_json(json: &str) -> Cow<'_, str> {
    // Outside its strings JSON has no hidden characters but white space.
    let is_plain = |c: char| matches!(c, '\n' | '\r' | '\t') || !is_hidden(c);
    write_out(json, is_plain, |c, to| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            to.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

/// Prepares a text for a terminal: hidden characters are escaped like `\u{1b}`, so that they are visible
/// and have no effect. Joiners are kept, because the letters of some scripts need them.
pub fn for_terminal(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}') || !is_hidden(c);
    let write = |c: char, to: &mut String| to.extend(c.escape_unicode());
    if text.contains("\r\n") {
        let text = text.replace("\r\n", "\n");
        return Cow::Owned(write_out(&text, is_plain, write).into_owned());
    }
    write_out(text, is_plain, write)
}

fn write_out(
    text: &str,
    is_plain: impl Fn(char) -> bool,
    write: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if text.chars().all(&is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            write(c, &mut out);
        }
    }
    Cow::Owned(out)
}

/// Skips the characters after an escape: colours and cursors end with a letter, titles and links
/// with a bell or at the end of the line, any other sequence is one character long.
fn pass_sequence(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            pass_parameters(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next_if(|c| *c != '\n') {
                if c == '\u{7}' || c == '\u{9c}' {
                    return;
                }
                if c == '\u{1b}' {
                    chars.next_if_eq(&'\\');
                    return;
                }
            }
        }
        Some('\n') | None => {}
        Some(_) => {
            chars.next();
        }
    }
}

fn pass_parameters(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, line: &str, lines: &str) {
        assert_eq!(one_line(text), line, "{text:?}");
        assert_eq!(prose(text), lines, "{text:?}");
    }

    #[test]
    fn what_is_hidden_goes() {
        check("plain ☃ 日本語", "plain ☃ 日本語", "plain ☃ 日本語");
        check(" a\r\nb\rc\u{2028}d\te ", "a b c d e", " a\nb\nc\nd\te ");
        check("\u{1b}[1;31mred\u{1b}[0m", "red", "red");
        check("\u{1b}]0;title\u{7}x", "x", "x");
        check("\u{1b}]8;;u\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link", "link");
        check("\u{1b}]never ended\nnext", "next", "\nnext");
        check("\u{9b}2Jx\u{1b}", "x", "x");
        check("a\u{202e}b\u{2066}c\u{200b}d\u{feff}", "abcd", "abcd");
        check("x\u{e0001}\u{e0041}\u{e007f}y", "xy", "xy");
        check("\0\u{8}\u{7f}\u{85}z", "z", "\nz");
        assert_eq!(one_line_of("one two three", 7), "one two…");
        assert_eq!(one_line_of("one two", 7), "one two");
    }

    #[test]
    fn json_says_what_it_hides() {
        assert_eq!(
            seen_json("{\"a\u{202e}\u{e0041}\u{7f}\": \"☃\"}"),
            r#"{"a\u202e\udb40\udc41\u007f": "☃"}"#
        );
        assert!(matches!(seen_json("{\n\"a\": 1}"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_terminal_is_shown_what_would_act_on_it() {
        assert_eq!(
            for_terminal("a\r\nb\t\u{1b}[2J\u{202e}"),
            "a\nb\t\\u{1b}[2J\\u{202e}"
        );
        assert!(matches!(
            for_terminal("می\u{200c}خواهم\n"),
            Cow::Borrowed(_)
        ));
    }

    proptest! {
        #[test]
        fn no_text_keeps_what_is_hidden(text in "(\\PC|\\p{C}|[\\x00-\\x1f]){0,80}") {
            let line = one_line(&text);
            prop_assert!(!line.chars().any(is_hidden), "{:?}", line);
            let plain = |c: char| c == '\n' || c == '\t' || !is_hidden(c);
            prop_assert!(prose(&text).chars().all(plain), "{:?}", text);
            let json = serde_json::Value::from(text.as_str()).to_string();
            let seen = seen_json(&json);
            prop_assert!(!seen.chars().any(is_hidden), "{:?}", seen);
            let read: String = serde_json::from_str(&seen).unwrap();
            prop_assert_eq!(read, text);
        }
    }
}
