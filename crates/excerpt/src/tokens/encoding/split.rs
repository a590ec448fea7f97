//! Splits a text into the pieces in which the encoding looks for words: the matches of its pattern,
//! found without a regex engine.
//!
//! The pattern has three kinds of letters: capitals, small letters, and those that are both (letters
//! without case, and marks). Its alternatives, in order: a word that ends with small letters, with one
//! character before it that is not a letter, number or line end; a word of capitals, likewise; up to
//! three digits; signs with the space before and the line ends after them; white space.

use std::iter;

/// The class of a character in the pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Upper,
    Lower,
    /// A letter without case.
    Letter,
    Mark,
    Number,
    Space,
    Sign,
}

// The first character of each run of one class.
include!(concat!(env!("OUT_DIR"), "/classes.rs"));

pub(super) fn class(c: char) -> Class {
    match c {
        'a'..='z' => Class::Lower,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Number,
        ' ' | '\t'..='\r' => Class::Space,
        '\0'..='\x7f' => Class::Sign,
        _ => {
            let after = BOUNDS.partition_point(|(start, _)| *start <= u32::from(c));
            BOUNDS[after - 1].1
        }
    }
}

/// Returns the pieces of a text in order; joined they are the text.
pub(super) fn split(mut text: &str) -> impl Iterator<Item = &str> {
    iter::from_fn(move || {
        let end = find_end(text)?;
        let (piece, rest) = text.split_at(end);
        text = rest;
        Some(piece)
    })
}

/// Returns the end of the first piece; none for an empty text.
pub(in crate::tokens) fn find_end(text: &str) -> Option<usize> {
    if let Some(end) = find_end_of_plain_word(text.as_bytes()) {
        return Some(end);
    }
    let first = text.chars().next()?;
    let own = class(first);
    let is_letter = matches!(own, Class::Upper | Class::Lower | Class::Letter);
    let may_precede = !is_letter && own != Class::Number && !is_line_end(first);
    let prefixes = [first.len_utf8(), 0].into_iter();
    let prefixes = prefixes.skip(usize::from(!may_precede));
    let word = |end: fn(&str) -> Option<usize>| {
        let mut ends = prefixes
            .clone()
            .filter_map(|it| Some(it + end(&text[it..])?));
        ends.next()
            .map(|end| end + contraction_length(&text[end..]))
    };
    let end = match own {
        Class::Number => digits_end(text),
        _ => word(small_word_end).or_else(|| word(capital_word_end)),
    };
    let end = end.or_else(|| signs_end(text));
    Some(end.unwrap_or_else(|| space_end(text)))
}

/// Returns the end of the most frequent piece: ASCII letters of which the last is small, with one ASCII
/// character before them. `None` if the piece is another one, or if the text after it may belong to it.
fn find_end_of_plain_word(text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let may_precede =
        first.is_ascii() && !first.is_ascii_alphanumeric() && !is_line_end(char::from(first));
    let mut end = usize::from(may_precede);
    let count = |from: usize, is_in: fn(&u8) -> bool| {
        text[from..].iter().take_while(|byte| is_in(byte)).count()
    };
    end += count(end, u8::is_ascii_uppercase);
    let small = count(end, u8::is_ascii_lowercase);
    end += small;
    let is_over = text
        .get(end)
        .is_none_or(|next| next.is_ascii() && *next != b'\'');
    (small > 0 && is_over).then_some(end)
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\r' | '\n')
}

/// Returns the end of the leading characters that satisfy `is_in`.
fn run(text: &str, is_in: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_in(c)).unwrap_or(text.len())
}

/// Returns the end of optional capitals and at least one small letter. If no small letter follows,
/// the last letter or mark without case counts as one.
fn small_word_end(text: &str) -> Option<usize> {
    let capitals = run(text, |c| is_capital(class(c)));
    let small = run(&text[capitals..], |c| is_small(class(c)));
    if small > 0 {
        return Some(capitals + small);
    }
    let mut letters = text[..capitals].char_indices().rev();
    let (at, letter) = letters.find(|(_, c)| is_small(class(*c)))?;
    Some(at + letter.len_utf8())
}

fn capital_word_end(text: &str) -> Option<usize> {
    Some(run(text, |c| is_capital(class(c)))).filter(|end| *end > 0)
}

fn is_capital(class: Class) -> bool {
    matches!(class, Class::Upper | Class::Letter | Class::Mark)
}

fn is_small(class: Class) -> bool {
    matches!(class, Class::Lower | Class::Letter | Class::Mark)
}

/// Returns the length of `'s` or another contraction after a word, in any case, also with a long s.
fn contraction_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix('\'') else {
        return 0;
    };
    let mut letters = rest.chars().map(|c| {
        if c == 'ſ' {
            's'
        } else {
            c.to_ascii_lowercase()
        }
    });
    let length = match (letters.next(), letters.next()) {
        (Some('s'), _) => rest.chars().next().map_or(0, char::len_utf8),
        (Some('t' | 'm' | 'd'), _) => 1,
        (Some('r' | 'v'), Some('e')) | (Some('l'), Some('l')) => 2,
        _ => return 0,
    };
    1 + length
}

fn digits_end(text: &str) -> Option<usize> {
    let digits = text.chars().take(3);
    let digits = digits.take_while(|c| class(*c) == Class::Number);
    Some(digits.map(char::len_utf8).sum()).filter(|end| *end > 0)
}

fn signs_end(text: &str) -> Option<usize> {
    let from = usize::from(text.starts_with(' '));
    let signs = run(&text[from..], |c| {
        matches!(class(c), Class::Sign | Class::Mark)
    });
    let end = from + signs;
    let behind = run(&text[end..], |c| is_line_end(c) || c == '/');
    (signs > 0).then_some(end + behind)
}

/// Returns the end of white space: its last line end, or else the character before the last one if other
/// text follows.
fn space_end(text: &str) -> usize {
    let end = run(text, |c| class(c) == Class::Space);
    let space = &text[..end];
    if let Some(last) = space.rfind(is_line_end) {
        return last + 1;
    }
    let last = space.chars().next_back().map_or(0, char::len_utf8);
    if end < text.len() && end > last {
        end - last
    } else {
        end
    }
}
