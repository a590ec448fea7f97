//! A text in the pieces that a tokenizer looks at one by one.

/// The longest piece, in bytes. A longer run is looked at in several: a tokenizer's time grows
/// with the square of a piece's length.
const PIECE_BYTES_MAX: usize = 64;

/// The pieces of a text in order; joined they are the text.
///
/// They follow the pattern of `o200k`: words with the one character before them, up to three
/// digits, runs of signs, runs of white space. Where this is coarser than the pattern the
/// tokenizer splits a piece itself; where it is finer, a text counts for a little more.
#[derive(Debug)]
pub struct Pieces<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Pieces<'a> {
    /// The pieces of a text.
    pub fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let mut end = piece_end(rest).min(PIECE_BYTES_MAX).min(rest.len());
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        self.at += end;
        Some(&rest[..end])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Digit,
    LineEnd,
    Space,
    Sign,
}

/// The class of the first character, and its length in bytes.
fn class(text: &str) -> Option<(Class, usize)> {
    let byte = *text.as_bytes().first()?;
    let class = match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b'\r' | b'\n' => Class::LineEnd,
        b' ' | b'\t' | 0x0B | 0x0C => Class::Space,
        _ if byte.is_ascii() => Class::Sign,
        _ => return text.chars().next().map(|c| (class_beyond(c), c.len_utf8())),
    };
    Some((class, 1))
}

fn class_beyond(c: char) -> Class {
    match c {
        _ if c.is_uppercase() => Class::Upper,
        _ if c.is_alphabetic() => Class::Lower,
        _ if c.is_numeric() => Class::Digit,
        _ if c.is_whitespace() => Class::Space,
        _ => Class::Sign,
    }
}

/// Finds the end of the run of characters that satisfy `is_in`, from `at` on and within a piece.
fn run(text: &str, mut at: usize, is_in: impl Fn(Class) -> bool) -> usize {
    while at < PIECE_BYTES_MAX
        && let Some((class, length)) = class(&text[at..])
        && is_in(class)
    {
        at += length;
    }
    at
}

fn is_letter(class: Class) -> bool {
    matches!(class, Class::Upper | Class::Lower)
}

fn piece_end(text: &str) -> usize {
    let Some((first, length)) = class(text) else {
        return 0;
    };
    let next = class(&text[length..]).map(|(class, _)| class);
    match (first, next) {
        (Class::Upper | Class::Lower, _) => word_end(text, 0),
        (Class::Digit, _) => digits_end(text),
        (Class::Space | Class::Sign, Some(next)) if is_letter(next) => word_end(text, length),
        (Class::Sign, _) => signs_end(text, 0),
        (Class::Space, Some(Class::Sign)) if text.starts_with(' ') => signs_end(text, 1),
        _ => space_end(text),
    }
}

/// Capitals, then small letters, then perhaps `'s` and its like.
fn word_end(text: &str, from: usize) -> usize {
    let capitals = run(text, from, |class| class == Class::Upper);
    let end = run(text, capitals, |class| class == Class::Lower);
    let rest = &text.as_bytes()[end..];
    let is = |tail: &[u8]| {
        rest.get(1..=tail.len())
            .is_some_and(|it| it.eq_ignore_ascii_case(tail))
    };
    if rest.first() != Some(&b'\'') {
        return end;
    }
    let tails: [&[u8]; 7] = [b"s", b"t", b"re", b"ve", b"m", b"ll", b"d"];
    let tail = tails.iter().find(|tail| is(tail));
    end + tail.map_or(0, |tail| 1 + tail.len())
}

fn digits_end(text: &str) -> usize {
    let mut end = 0;
    for _ in 0..3 {
        match class(&text[end..]) {
            Some((Class::Digit, length)) => end += length,
            _ => break,
        }
    }
    end
}

fn signs_end(text: &str, from: usize) -> usize {
    let end = run(text, from, |class| class == Class::Sign);
    let rest = &text.as_bytes()[end..];
    let more = rest
        .iter()
        .take_while(|byte| matches!(byte, b'\r' | b'\n' | b'/'));
    end + more.count()
}

/// White space up to its last line end; else all but the character before a word.
fn space_end(text: &str) -> usize {
    let end = run(text, 0, |class| {
        matches!(class, Class::Space | Class::LineEnd)
    });
    let space = &text[..end];
    if let Some(last) = space.rfind(['\r', '\n']) {
        return last + 1;
    }
    let last = space.chars().next_back().map_or(0, char::len_utf8);
    match class(&text[end..]) {
        Some(_) if end > last => end - last,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::Pieces;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(Pieces::of(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn pieces_are_those_of_the_pattern() {
        check(
            "It's 12345 HTTPServers",
            &["It's", " ", "123", "45", " HTTPServers"],
        );
        check("a  b\n\n  c", &["a", " ", " b", "\n\n", " ", " c"]);
        check(
            r#"{"id":1,"name":"x"}"#,
            &["{\"", "id", "\":", "1", ",\"", "name", "\":\"", "x", "\"}"],
        );
        check("end.\nnext  ", &["end", ".\n", "next", "  "]);
        check("日本 ünï", &["日本", " ünï"]);
        check("", &[]);
    }

    #[test]
    fn a_long_run_is_looked_at_in_pieces() {
        let text = "é".repeat(1_000);
        let pieces: Vec<&str> = Pieces::of(&text).collect();
        assert!(pieces.iter().all(|piece| piece.len() <= 64));
        assert_eq!(pieces.concat(), text);
    }
}
