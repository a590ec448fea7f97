//! Patterns of secrets, of card numbers and of the user's own texts.

use std::{borrow::Cow, collections::BTreeMap};

use memchr::memmem;
use regex::Regex;

use super::{
    cards::find_cards,
    found::{FoundSecret, HIDDEN, join_overlapping, replace_secrets},
    plain_text::{PlainText, is_plain},
    tokens::{KEY_WORDS, find_private_keys, find_tokens, may_hold_token},
};

/// The beginning of the text in place of a secret: `[redacted: github token]`.
const MARK: &str = "[redacted: ";

/// The longest name of a pattern, in characters.
const NAME_CHARS_MAX: usize = 40;

/// Patterns whose matches are replaced by their names.
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

    /// Returns the text with marks in place of what the patterns match.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(replace_secrets(
            text,
            &join_overlapping(found),
            FoundSecret::mark,
        ))
    }

    /// Finds the matches in the text as it is, and as people read it, without hidden characters and with a
    /// space for every blank.
    pub(super) fn find(&self, text: &str) -> Vec<FoundSecret> {
        let mut found = self.find_as_written(text);
        if let Some(plain) = PlainText::of(text) {
            let in_plain = self.find_as_written(&plain.text).into_iter();
            let in_plain = in_plain.filter(|secret| !secret.range.is_empty());
            found.extend(in_plain.map(|secret| plain.locate(secret)));
        }
        found
    }

    fn find_as_written(&self, text: &str) -> Vec<FoundSecret> {
        let known = find_private_keys(text).chain(find_tokens(text));
        let mut found: Vec<FoundSecret> = known.chain(find_cards(text)).collect();
        for (name, pattern) in &self.own {
            let own = pattern.find_iter(text);
            found.extend(own.map(|place| FoundSecret::new(place.range(), Some(name))));
        }
        found
    }

    /// Returns true if the built-in patterns match nowhere in a text of JSON, and there are no others. The bytes of
    /// a token are not escaped in JSON but as `\u...` or `\/`; a letter of another escape may stand before it.
    pub fn is_surely_clean(&self, json: &str) -> bool {
        self.own.is_empty()
            && is_plain(json)
            && memmem::find(json.as_bytes(), br"\u").is_none()
            && memmem::find(json.as_bytes(), br"\/").is_none()
            && !may_hold_token(json)
            && !has_card_number(json)
            && memmem::find(json.as_bytes(), KEY_WORDS).is_none()
    }
}

impl FoundSecret {
    /// Returns the text in place of a secret: the name of its pattern, if it has one.
    pub(super) fn mark(&self) -> String {
        match &self.name {
            Some(name) => format!("{MARK}{name}]"),
            None => HIDDEN.to_owned(),
        }
    }
}

/// Returns true if a text has the number of a card.
pub fn has_card_number(text: &str) -> bool {
    find_cards(text).next().is_some()
}

/// Counts the marks in a text.
pub fn count_redacted(text: &str) -> u64 {
    memmem::find_iter(text.as_bytes(), MARK).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(own: &[(&str, &str)]) -> Redaction {
        let own = own.iter();
        let own = own.map(|(name, pattern)| ((*name).to_owned(), (*pattern).to_owned()));
        Redaction::new(&own.collect()).unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let redaction = redaction(&[]);
        assert_eq!(redaction.text(text), expected);
        let json = serde_json::Value::from(text).to_string();
        assert!(text == expected || !redaction.is_surely_clean(&json));
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
}
