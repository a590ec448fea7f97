//! Replaces secrets, card numbers and texts of the user's own patterns in everything that a server sends:
//! results, errors, progress, log messages and stderr.

mod plain_text;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, LazyLock},
};

use jsonrpc::Json;
use memchr::memmem;
use printable::{TOKEN_CHARS_MIN, TOKEN_PATTERNS};
use regex::Regex;
use serde_json::value::RawValue;

use plain_text::{PlainText, is_plain};

use crate::{LogSink, ProgressSink, Request};

/// The beginning of the text in place of a secret: `[redacted: github token]`.
const MARK: &str = "[redacted: ";

/// A result of up to this many bytes is read on the event loop: it takes some 20 microseconds.
const INLINE_BYTES_MAX: usize = 16 * 1024;

/// The longest run of characters in which tokens are searched; a JWT has some thousand.
const TOKEN_RUN_BYTES_MAX: usize = 16 * 1024;

/// The longest name of a pattern, in characters.
const NAME_CHARS_MAX: usize = 40;

/// The patterns that are replaced in what one server sends.
#[derive(Debug, Clone)]
pub struct Redaction {
    /// The user's own patterns, by the name in the mark.
    own: Vec<(String, Regex)>,
}

/// Compared as written, so that a change restarts the server, whose log is redacted too.
impl PartialEq for Redaction {
    fn eq(&self, other: &Self) -> bool {
        let written = |(name, pattern): &(String, Regex)| (name.clone(), pattern.to_string());
        self.own
            .iter()
            .map(written)
            .eq(other.own.iter().map(written))
    }
}

impl Eq for Redaction {}

impl Redaction {
    /// Compiles the user's own patterns, which are used besides the built-in ones. The error is the name of
    /// a pattern, and what is wrong with it.
    pub fn new(own: &BTreeMap<String, String>) -> Result<Self, (String, String)> {
        let compile = |(name, pattern): (&String, &String)| {
            let fail = |why: &str| (name.clone(), why.to_owned());
            if name.is_empty()
                || name.chars().count() > NAME_CHARS_MAX
                || name.contains([']', '"', '\\'])
            {
                return Err(fail(
                    "its name is empty, longer than 40 characters, or has one of `]\"\\`",
                ));
            }
            let regex = Regex::new(pattern).map_err(|error| fail(&error.to_string()))?;
            if regex.is_match("") {
                return Err(fail("it matches the empty text"));
            }
            Ok((name.clone(), regex))
        };
        let own = own.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { own })
    }

    /// Returns the text with marks in place of what the patterns match: in the text as it is, and as people
    /// read it, without hidden characters and with a space for every blank.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = self.find(text);
        if let Some(plain) = PlainText::of(text) {
            let in_plain = self.find(&plain.text).into_iter();
            let in_plain = in_plain.filter(|(range, _)| !range.is_empty());
            found.extend(in_plain.map(|(range, name)| (plain.original_range(range), name)));
        }
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        // Of two that overlap, the first is named, and all of both is replaced.
        found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut shown = String::with_capacity(text.len());
        let mut at = 0;
        for (range, name) in found {
            if range.start >= at {
                shown.push_str(&text[at..range.start]);
                shown.push_str(MARK);
                shown.push_str(name);
                shown.push(']');
            }
            at = at.max(range.end);
        }
        shown.push_str(&text[at..]);
        Cow::Owned(shown)
    }

    fn find(&self, text: &str) -> Vec<Found<'_>> {
        let known = find_keys(text).into_iter();
        let known = known.chain(find_tokens(text)).chain(find_cards(text));
        let mut found: Vec<Found<'_>> = known.map(|it| it as Found<'_>).collect();
        for (name, pattern) in &self.own {
            found.extend(
                pattern
                    .find_iter(text)
                    .map(|it| (it.range(), name.as_str())),
            );
        }
        found
    }

    /// Does the same with the result of a call; with a large one off the event loop.
    pub(crate) async fn result(self: Arc<Self>, result: Json) -> Json {
        if result.len() <= INLINE_BYTES_MAX {
            return self.json(result);
        }
        let redacting = tokio::task::spawn_blocking(move || self.json(result));
        // Nothing is passed on unread.
        let failed = || Json::of_built(r#"{"content":[],"isError":true}"#.to_owned());
        redacting.await.unwrap_or_else(|_| failed())
    }

    /// Does the same in every string of a JSON text, names of members included, and in numbers. Everything
    /// else keeps its bytes.
    pub fn json(&self, json: Json) -> Json {
        if self.is_surely_clean(json.as_str()) {
            return json;
        }
        let redacted = self.json_text(json.as_str());
        redacted.map_or(json, Json::of_built)
    }

    /// Returns true if the built-in patterns match nowhere and there are no others. The bytes of a token are
    /// not escaped in JSON but as `\u...` or `\/`; a letter of another escape may stand before it.
    fn is_surely_clean(&self, json: &str) -> bool {
        static TOKEN: LazyLock<Regex> = LazyLock::new(|| compile_tokens("(?-u)"));
        self.own.is_empty()
            && is_plain(json)
            && memmem::find(json.as_bytes(), br"\u").is_none()
            && memmem::find(json.as_bytes(), br"\/").is_none()
            && find_token_runs(json).all(|run| !TOKEN.is_match(&json[run]))
            && find_cards(json).next().is_none()
            && memmem::find(json.as_bytes(), b"PRIVATE KEY").is_none()
    }

    fn json_text(&self, json: &str) -> Option<String> {
        let mut redacted = String::new();
        let (mut kept, mut at) = (0, 0);
        let bytes = json.as_bytes();
        while at < bytes.len() {
            let end = match bytes[at] {
                b'"' => end_of_string(bytes, at),
                b'0'..=b'9' => end_of_digits(bytes, at),
                _ => {
                    at += 1;
                    continue;
                }
            };
            if let Some(new) = self.json_token(&json[at..end]) {
                redacted.push_str(&json[kept..at]);
                redacted.push_str(&new);
                kept = end;
            }
            at = end;
        }
        (kept > 0).then(|| redacted + &json[kept..])
    }

    /// Returns what replaces a string or the digits of a number.
    fn json_token(&self, token: &str) -> Option<String> {
        let text: Cow<'_, str> = if token.starts_with('"') {
            let inner = token.get(1..token.len() - 1)?;
            if inner.contains('\\') {
                Cow::Owned(serde_json::from_str(token).ok()?)
            } else {
                Cow::Borrowed(inner)
            }
        } else {
            find_cards(token).next()?;
            Cow::Borrowed(token)
        };
        match self.text(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(serde_json::Value::from(text).to_string()),
        }
    }

    /// Returns the request with sinks that get redacted messages.
    pub(crate) fn watch(self: &Arc<Self>, mut request: Request) -> Request {
        let redacted = |this: &Self, params: &RawValue| {
            let text = this.json_text(params.get());
            text.and_then(|text| RawValue::from_string(text).ok())
        };
        let wrap = |client: ProgressSink| -> ProgressSink {
            let this = Arc::clone(self);
            Arc::new(move |params| match redacted(&this, params) {
                Some(params) => client(&params),
                None => client(params),
            })
        };
        request.progress = request.progress.map(wrap);
        request.log = request.log.map(|log| LogSink {
            send: wrap(log.send),
            ..log
        });
        request
    }
}

/// Counts the marks in a text.
pub fn count_redacted(text: &str) -> u64 {
    memmem::find_iter(text.as_bytes(), MARK).count() as u64
}

fn compile_tokens(before: &str) -> Regex {
    let patterns = TOKEN_PATTERNS.map(|(_, pattern)| pattern).join("|");
    Regex::new(&format!("{before}(?:{patterns})")).expect("the patterns are ours")
}

/// A place in a text, and the name in its mark.
type Found<'n> = (Range<usize>, &'n str);

fn find_tokens(text: &str) -> impl Iterator<Item = Found<'static>> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| compile_tokens(r"(?-u)\b"));
    static NAMED: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
        let compile = |(name, pattern): &(&'static str, &str)| {
            let regex = Regex::new(&format!("^(?-u)(?:{pattern})$"));
            (*name, regex.expect("the patterns are ours"))
        };
        TOKEN_PATTERNS.iter().map(compile).collect()
    });
    find_token_runs(text).flat_map(move |run| {
        let begin = run.start;
        TOKEN.find_iter(&text[run]).map(move |found| {
            let named = NAMED.iter().find(|(_, it)| it.is_match(found.as_str()));
            let name = named.map_or("secret", |(name, _)| name);
            (begin + found.start()..begin + found.end(), name)
        })
    })
}

/// Finds the texts that may contain tokens. A longer one is an image or other encoded data, in which a part
/// may look like a token by chance.
fn find_token_runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let runs = find_runs(text, is_of_token, TOKEN_CHARS_MIN);
    runs.filter(|run| run.len() <= TOKEN_RUN_BYTES_MAX)
}

/// Finds private keys in PEM; one that is cut off ends with the text.
fn find_keys(text: &str) -> Vec<Found<'static>> {
    static KEY: LazyLock<Regex> = LazyLock::new(|| {
        let key = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)";
        Regex::new(key).expect("the pattern is ours")
    });
    if memmem::find(text.as_bytes(), b"PRIVATE KEY").is_none() {
        return Vec::new();
    }
    let found = KEY.find_iter(text);
    found.map(|it| (it.range(), "private key")).collect()
}

/// The digits of a card number.
const CARD_DIGITS: Range<usize> = 14..17;

/// Finds card numbers: 14 to 16 digits in groups or together, with the first digits of an issuer and a valid
/// checksum.
fn find_cards(text: &str) -> impl Iterator<Item = Found<'static>> {
    let runs = find_runs(
        text,
        |byte| matches!(byte, b'0'..=b'9' | b' ' | b'-'),
        CARD_DIGITS.start,
    );
    runs.flat_map(|run| find_cards_in(text, run))
        .map(|range| (range, "card number"))
}

/// Finds them in a run of digits, blanks and hyphens.
fn find_cards_in(text: &str, run: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let begins_word = |at: usize| at == 0 || !is_of_word(bytes[at - 1]);
    let ends_word = |at: usize| at == bytes.len() || !is_of_word(bytes[at]);
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = run.start;
    while at < run.end {
        if !bytes[at].is_ascii_digit() || !begins_word(at) {
            at += 1;
            continue;
        }
        let (mut digits, mut card, mut end) = (Vec::new(), None, at);
        while end < run.end && digits.len() < CARD_DIGITS.end {
            match bytes[end] {
                digit @ b'0'..=b'9' => digits.push(digit - b'0'),
                // Two separators in a row separate numbers.
                _ if !bytes[end - 1].is_ascii_digit() => break,
                _ => {}
            }
            end += 1;
            if ends_word(end) && bytes[end - 1].is_ascii_digit() && is_card(&digits) {
                card = Some(at..end);
            }
        }
        match card {
            Some(range) => {
                at = range.end;
                found.push(range);
            }
            None => at += 1,
        }
    }
    found
}

fn is_card(digits: &[u8]) -> bool {
    let issued = match digits {
        [3, 4 | 7, ..] => digits.len() == 15,
        [3, 0 | 6 | 8 | 9, ..] => digits.len() == 14,
        [4 | 6, ..] | [5, 1..=5, ..] | [2, 2..=7, ..] => digits.len() == 16,
        _ => false,
    };
    let doubled = |digit: u8| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum = |(place, digit): (usize, &u8)| {
        u32::from(if place % 2 == 1 {
            doubled(*digit)
        } else {
            *digit
        })
    };
    issued && digits.iter().rev().enumerate().map(sum).sum::<u32>() % 10 == 0
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./+=".contains(&byte)
}

/// Returns the runs of at least `bytes_min` such bytes. Looks at one byte in `bytes_min` where there is
/// none.
fn find_runs(
    text: &str,
    is_member: impl Fn(u8) -> bool,
    bytes_min: usize,
) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut begin = 0;
    std::iter::from_fn(move || {
        loop {
            let mut probe = begin + bytes_min - 1;
            while probe >= begin && is_member(*bytes.get(probe)?) {
                if probe == begin {
                    let rest = bytes[begin..].iter().position(|byte| !is_member(*byte));
                    let run = begin..rest.map_or(bytes.len(), |length| begin + length);
                    begin = run.end;
                    return Some(run);
                }
                probe -= 1;
            }
            begin = probe + 1;
        }
    })
}

/// Returns the end of the string that begins here, after its quote.
fn end_of_string(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn end_of_digits(bytes: &[u8], begin: usize) -> usize {
    let digits = bytes[begin..].iter().take_while(|it| it.is_ascii_digit());
    begin + digits.count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn redaction(own: &[(&str, &str)]) -> Redaction {
        let own = own.iter();
        let own = own.map(|(name, pattern)| ((*name).to_owned(), (*pattern).to_owned()));
        Redaction::new(&own.collect()).unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(redaction(&[]).text(text), expected);
        let json = Value::from(text).to_string();
        let redacted = redaction(&[]).json(Json::of_built(json));
        let read: String = serde_json::from_str(redacted.as_str()).unwrap();
        assert_eq!(read, expected, "as JSON");
    }

    #[test]
    fn keys_of_services_are_replaced_by_their_names() {
        let hex = "0123456789abcdef0123456789abcdef";
        check(
            &format!("token ghp_{hex}\n"),
            "token [redacted: github token]\n",
        );
        check(&format!("\nghp_{hex}"), "\n[redacted: github token]");
        check("AKIAIOSFODNN7EXAMPLE", "[redacted: aws key]");
        check("a=xoxb-12345678;b", "a=[redacted: slack token];b");
        check(
            &format!("(sk-ant-{hex}) and glpat-{hex}"),
            "([redacted: api key]) and [redacted: gitlab token]",
        );
        check(
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb",
            "[redacted: private key]\nb",
        );
    }

    #[test]
    fn card_numbers_need_an_issuer_and_a_checksum() {
        check("4111 1111 1111 1111", "[redacted: card number]");
        check("pay 4111-1111-1111-1111.", "pay [redacted: card number].");
        check("378282246310005", "[redacted: card number]");
        for text in [
            "4111 1111 1111 1112",
            "1700000000000",
            "1234567812345670",
            "x4111111111111111",
            "41111111111111111",
            "2026-11-25 12:00:00 4111",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn blanks_and_hidden_characters_hide_nothing() {
        let card = "[redacted: card number]";
        check(
            "a 4111\u{a0}1111\u{a0}1111\u{a0}1111 b",
            &format!("a {card} b"),
        );
        check("4111\u{202f}1111\u{2009}1111\u{3000}1111", card);
        check("4111\u{2011}1111\u{2011}1111\u{2011}1111", card);
        check(
            "411\u{200b}1 1111 1111 1111\u{200b}!",
            &format!("{card}\u{200b}!"),
        );
        check("4111\u{ad}1111\u{ad}1111\u{ad}1111", card);
        let token = "é gh\u{200d}p_0123456789\u{feff}abcdef0123456789 é";
        check(token, "é [redacted: github token] é");
        check("A\u{1}KIAIOSFODNN7EXAMPLE", "[redacted: aws key]");
        check(
            "-----BEGIN\u{a0}PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
            "[redacted: private key]",
        );
        let own = redaction(&[("staff number", r"E-\d{6}")]);
        let shown = own.text("x\u{a0}E-123\u{200b}456 y");
        assert_eq!(shown, "x\u{a0}[redacted: staff number] y");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "/home/ada/projects/proxy/src/main.rs",
            "the pattern-of-tokens-and-tests is a skeleton-key-of-words",
            "f631ef6b2c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f",
            format!("{}/EAAB{}", "A".repeat(20_000), "c9".repeat(20)).as_str(),
            "2026-11-25T12:00:00Z 0.000001 1,234,567",
            "日本\u{3000}語\u{a0}– \u{200b}é",
            "",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn strings_names_and_numbers_of_json_are_redacted_and_the_rest_keeps_its_bytes() {
        let check = |own: &[(&str, &str)], json: &str, expected: &str| {
            let redacted = redaction(own).json(Json::of_built(json.to_owned()));
            assert_eq!(redacted.as_str(), expected);
        };
        check(
            &[],
            r#"{ "a\n":[1.50, "gh\u0070_0123456789abcdef"] , "n": 4111111111111111}"#,
            r#"{ "a\n":[1.50, "[redacted: github token]"] , "n": "[redacted: card number]"}"#,
        );
        check(
            &[],
            r#"{"npm_0123456789abcdef": "x\\"}"#,
            r#"{"[redacted: npm token]": "x\\"}"#,
        );
        check(
            &[("staff number", r"E-\d{6}"), ("name", "(?i)ada l[a-z]+")],
            r#"["E-123456 and \"Ada Lovelace\"", "E-12345"]"#,
            r#"["[redacted: staff number] and \"[redacted: name]\"", "E-12345"]"#,
        );
    }

    #[test]
    fn a_wrong_pattern_is_told_with_its_name() {
        let check = |name: &str, pattern: &str, expected: &str| {
            let own = BTreeMap::from([(name.to_owned(), pattern.to_owned())]);
            let (at, why) = Redaction::new(&own).unwrap_err();
            assert_eq!(at, name);
            assert!(why.contains(expected), "{why}");
        };
        check("a", "(", "unclosed group");
        check("a", "x*", "matches the empty text");
        check("a]", "x", "its name");
    }

    proptest! {
        #[test]
        fn every_run_is_found(text in "[a-c ]{0,80}", bytes_min in 1..8usize) {
            let found: Vec<_> = find_runs(&text, |byte| byte != b' ', bytes_min).collect();
            let mut expected = Vec::new();
            let mut begin = 0;
            for word in text.split(' ') {
                if word.len() >= bytes_min {
                    expected.push(begin..begin + word.len());
                }
                begin += word.len() + 1;
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn json_stays_json(text in "\\PC{0,40}", number in any::<u64>()) {
            let own = redaction(&[("x", "[a-m]+")]);
            let value = json!({ text.clone(): [text, number, {"ghp_0123456789abcdef": null}] });
            let redacted = own.json(Json::of_built(value.to_string()));
            prop_assert!(serde_json::from_str::<Value>(redacted.as_str()).is_ok());
        }
    }
}
