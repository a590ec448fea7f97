//! Known secret values, in the forms in which programs print a value that they were given.

use std::{cmp::Reverse, iter, ops::Range};

use base64::{
    Engine as _,
    engine::{GeneralPurpose, general_purpose},
};

/// A value of at least this many bytes is found everywhere, in every form.
pub(super) const SECRET_BYTES_MIN: usize = 8;

/// A shorter value is found everywhere unless it has letters only: words occur in ordinary text.
const SECRET_BYTES_MIN_OF_NO_WORD: usize = 6;

/// An even shorter value, and a word, is found only in the position of a value: `KEY=test`, `"test"`.
/// Values below this size are not found.
const SECRET_BYTES_MIN_AS_VALUE: usize = 4;

/// Secret values: plain, as JSON, in hexadecimal, in base64, or percent-encoded.
#[derive(Clone, Default)]
pub(super) struct KnownValues {
    secrets: Vec<String>,
    /// The values and their other forms, except for percent-encoding.
    forms: Vec<String>,
    /// Short values and words, which are found only in the position of a value.
    words: Vec<String>,
}

impl KnownValues {
    pub(super) fn new(values: impl IntoIterator<Item = String>) -> Self {
        let values = values
            .into_iter()
            .filter(|value| value.len() >= SECRET_BYTES_MIN_AS_VALUE);
        let (mut secrets, mut words): (Vec<String>, Vec<String>) = values.partition(|value| {
            let is_word = value.chars().all(char::is_alphabetic);
            value.len() >= SECRET_BYTES_MIN
                || (value.len() >= SECRET_BYTES_MIN_OF_NO_WORD && !is_word)
        });
        // A value of several lines may be printed line by line.
        let lines = secrets.iter().flat_map(|value| value.lines());
        let lines = lines.map(|line| line.trim().to_owned());
        let lines: Vec<String> = lines
            .filter(|line| line.len() >= SECRET_BYTES_MIN)
            .collect();
        secrets.extend(lines);
        let mut forms = secrets.iter().flat_map(|value| forms_of(value)).collect();
        for texts in [&mut secrets, &mut words, &mut forms] {
            texts.sort_by_cached_key(|text| (Reverse(text.len()), text.clone()));
            texts.dedup();
        }
        Self {
            secrets,
            forms,
            words,
        }
    }

    pub(super) fn contains(&self, value: &str) -> bool {
        self.secrets.iter().any(|secret| secret == value)
    }

    /// Finds the longer values in a text, in no order; places may overlap.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let whole = self.forms.iter().flat_map(|form| find_all(text, form));
        let mut found: Vec<Range<usize>> = whole.collect();
        if text.contains(['%', '+']) {
            let encoded = |secret| find_encoded(text.as_bytes(), secret);
            found.extend(self.secrets.iter().map(String::as_bytes).flat_map(encoded));
        }
        found
    }

    /// Finds short values and words in the position of a value.
    pub(super) fn find_words(&self, text: &str) -> Vec<Range<usize>> {
        let words = self.words.iter().flat_map(|word| find_all(text, word));
        words.filter(|place| is_value(text, place)).collect()
    }

    /// Counts the bytes at the end of a text that are the beginning of a value.
    pub(super) fn count_begun(&self, text: &str) -> usize {
        let begun = |form: &String| {
            let mut starts = form.char_indices().map(|(at, _)| at).rev();
            starts.find(|at| text.ends_with(&form[..*at])).unwrap_or(0)
        };
        self.forms.iter().map(begun).max().unwrap_or(0)
    }
}

/// Returns the value itself, and its forms as JSON, in hexadecimal and in base64.
fn forms_of(value: &str) -> Vec<String> {
    let escapes = [
        ('\\', "\\\\"),
        ('"', "\\\""),
        ('\n', "\\n"),
        ('\r', "\\r"),
        ('\t', "\\t"),
    ];
    let json = escapes.iter().fold(value.to_owned(), |json, (c, escaped)| {
        json.replace(*c, escaped)
    });
    let mut forms = vec![
        value.to_owned(),
        json,
        hex::encode_upper(value),
        hex::encode(value),
    ];
    for engine in [
        &general_purpose::STANDARD_NO_PAD,
        &general_purpose::URL_SAFE_NO_PAD,
    ] {
        forms.extend((0..3).map(|before| base64_within(value, before, engine)));
    }
    forms
}

/// Returns the text that the base64 of any text contains in which so many bytes (of three) come before the
/// value: a character holds six bits, so those at both ends hold bits of the neighbours as well.
fn base64_within(value: &str, before: usize, engine: &GeneralPurpose) -> String {
    let mut bytes = vec![0; before];
    bytes.extend(value.as_bytes());
    let encoded = engine.encode(&bytes);
    let (begin, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    encoded[begin..end].to_owned()
}

/// Finds every place of a text in another one, also those that overlap.
fn find_all(text: &str, part: &str) -> impl Iterator<Item = Range<usize>> {
    let first = part.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    iter::from_fn(move || {
        let start = from + text[from..].find(part)?;
        from = start + first;
        Some(start..start + part.len())
    })
}

/// Returns true for a place after `=`, `:` or a quote, with a whole word.
fn is_value(text: &str, place: &Range<usize>) -> bool {
    let behind = text[place.end..].chars().next();
    text[..place.start].ends_with(['=', ':', '"', '\'', '`'])
        && !behind.is_some_and(char::is_alphanumeric)
}

/// Finds a value some of whose bytes are percent-encoded; a space may be `+`.
fn find_encoded(text: &[u8], value: &[u8]) -> impl Iterator<Item = Range<usize>> {
    (0..text.len()).filter_map(move |start| {
        let mut rest = &text[start..];
        for byte in value {
            let length = match rest {
                [b'%', high, low, ..] if hex_byte(*high, *low) == Some(*byte) => 3,
                [first, ..] if first == byte || (*first == b'+' && *byte == b' ') => 1,
                _ => return None,
            };
            rest = &rest[length..];
        }
        Some(start..text.len() - rest.len())
    })
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}
