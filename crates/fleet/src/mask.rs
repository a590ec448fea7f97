//! Masks secrets in texts that people and models read.

use jsonrpc::ProtocolError;
use std::{cmp::Reverse, collections::VecDeque, ops::Range, sync::Arc};

use parking_lot::RwLock;

use crate::{Redaction, forms};

/// A value of at least this many bytes is masked everywhere, in every form.
const SECRET_BYTES_MIN: usize = 8;

/// A shorter value is masked everywhere unless it has letters only: words occur in ordinary text.
const SECRET_BYTES_MIN_OF_NO_WORD: usize = 6;

/// An even shorter value, and a word, is masked only in the position of a value: `KEY=test`, `"test"`.
/// Values below this size are not masked.
const SECRET_BYTES_MIN_AS_VALUE: usize = 4;

/// The number of renewed tokens that are still masked.
const SENT_MAX: usize = 4;

const HIDDEN: &str = "***";

/// The values that must not appear in a server's messages, in any form that programs commonly
/// print: plain, as JSON, in hexadecimal, base64 or percent-encoded.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    secrets: Vec<String>,
    /// The values and their other forms, the longest first.
    forms: Vec<String>,
    /// Short values and words, which are masked only in the position of a value.
    words: Vec<String>,
    sent: Arc<RwLock<VecDeque<Mask>>>,
    /// The patterns that are replaced besides.
    redaction: Option<Arc<Redaction>>,
}

impl Mask {
    /// Masks these values, unless they are too short to be secrets.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let values = values
            .into_iter()
            .filter(|it| it.len() >= SECRET_BYTES_MIN_AS_VALUE);
        let (mut secrets, mut words): (Vec<String>, Vec<String>) = values.partition(|value| {
            let is_word = value.chars().all(char::is_alphabetic);
            value.len() >= SECRET_BYTES_MIN
                || (value.len() >= SECRET_BYTES_MIN_OF_NO_WORD && !is_word)
        });
        sort_longest_first(&mut secrets);
        sort_longest_first(&mut words);
        let mut forms: Vec<String> = secrets.iter().flat_map(|it| forms::of(it)).collect();
        // A secret that contains another one is masked as a whole.
        sort_longest_first(&mut forms);
        Self {
            secrets,
            forms,
            words,
            sent: Arc::default(),
            redaction: None,
        }
    }

    pub(crate) fn with_redaction(self, redaction: Option<Arc<Redaction>>) -> Self {
        Self { redaction, ..self }
    }

    /// Masks a token that is sent from now on, and the last few before it.
    pub(crate) fn add_sent(&self, token: &str) {
        let is_last = |mask: &Self| mask.secrets.first().is_some_and(|it| it == token);
        if self.sent.read().back().is_some_and(is_last) {
            return;
        }
        let mut sent = self.sent.write();
        if sent.len() == SENT_MAX {
            sent.pop_front();
        }
        sent.push_back(Self::new([token.to_owned()]));
    }

    /// Masks the secrets in an error of a server, whose texts go to the model.
    pub(crate) fn error(&self, error: ProtocolError) -> ProtocolError {
        error.map(|text| self.apply(text))
    }

    /// Masks the values in a text.
    pub fn apply(&self, text: &str) -> String {
        match &self.redaction {
            Some(redaction) => redaction.text(&self.apply_values(text)).into_owned(),
            None => self.apply_values(text),
        }
    }

    fn apply_values(&self, text: &str) -> String {
        let hide = |text: String, form: &String| {
            if text.contains(form.as_str()) {
                return text.replace(form.as_str(), HIDDEN);
            }
            text
        };
        let text = self.forms.iter().fold(text.to_owned(), hide);
        let text = self
            .words
            .iter()
            .fold(text, |text, word| hide_as_value(text, word));
        let sent = self.sent.read();
        let text = sent.iter().fold(text, |text, sent| sent.apply(&text));
        if text.contains(['%', '+']) {
            return self.secrets.iter().fold(text, hide_encoded);
        }
        text
    }

    /// Masks the values in a text whose end was cut off, perhaps within a secret.
    pub(crate) fn apply_to_cut(&self, text: &str) -> String {
        let text = self.apply(text);
        let begun = |secret: &String| count_begun(&text, secret);
        match self.forms.iter().map(begun).max() {
            Some(bytes @ 1..) => format!("{}{HIDDEN}", &text[..text.len() - bytes]),
            _ => text,
        }
    }
}

/// Masks a short secret or a word in the position of a value.
fn hide_as_value(text: String, word: &str) -> String {
    let mut shown = String::new();
    let mut at = 0;
    for (found, _) in text.match_indices(word) {
        let behind = text[found + word.len()..].chars().next();
        let is_value = text[..found].ends_with(['=', ':', '"', '\'', '`']);
        if found >= at && is_value && !behind.is_some_and(char::is_alphanumeric) {
            shown += &text[at..found];
            shown += HIDDEN;
            at = found + word.len();
        }
    }
    if at == 0 { text } else { shown + &text[at..] }
}

fn sort_longest_first(texts: &mut Vec<String>) {
    texts.sort_by_cached_key(|text| (Reverse(text.len()), text.clone()));
    texts.dedup();
}

/// Masks a secret some of whose bytes are percent-encoded.
fn hide_encoded(text: String, secret: &String) -> String {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match forms::find_encoded(&text.as_bytes()[at..], secret.as_bytes()) {
            Some(bytes) => {
                found.push(at..at + bytes);
                at += bytes;
            }
            None => at += 1,
        }
    }
    let mut text = text;
    for range in found.into_iter().rev() {
        text.replace_range(range, HIDDEN);
    }
    text
}

/// Counts the bytes at the end of a text that are the beginning of a secret.
fn count_begun(text: &str, secret: &str) -> usize {
    let starts = secret.char_indices().map(|(at, _)| at).rev();
    let mut starts = starts.filter(|at| text.ends_with(&secret[..*at]));
    starts.next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

    use proptest::prelude::*;

    use super::Mask;

    #[test]
    fn tokens_that_were_sent_are_hidden_too() {
        let mask = Mask::new(["hunter2".to_owned()]);
        let clone = mask.clone();
        for token in ["token-one", "token-two", "token-two"] {
            clone.add_sent(token);
        }
        let shown = mask.apply("hunter2, token-one or token-two");
        assert_eq!(shown, "***, *** or ***");
    }

    #[test]
    fn secrets_are_hidden_and_short_values_are_not() {
        let secrets = ["hunter2hunter2", "hunter2", "on"].map(str::to_owned);
        let mask = Mask::new(secrets);
        let shown = mask.apply("token hunter2hunter2 or hunter2 is on");
        assert_eq!(shown, "token *** or *** is on");
    }

    #[test]
    fn an_ordinary_word_is_hidden_as_a_value_alone() {
        let mask = Mask::new(["test", "key", "secret", "default", "4711"].map(str::to_owned));
        let plain = "the test of a key: secret/default tests, API key, 4711 files, ${secret:x}";
        assert_eq!(mask.apply(plain), plain);
        let shown = mask.apply("MODE=test {\"a\":\"secret\"} ada:4711@db KEY=tests");
        assert_eq!(shown, "MODE=*** {\"a\":\"***\"} ada:***@db KEY=tests");
    }

    proptest! {
        /// Holds for any surrounding text, and for every form of the secret.
        #[test]
        fn no_secret_of_eight_bytes_survives(
            secret in "\\PC{8,40}",
            before in "\\PC{0,12}",
            behind in "\\PC{0,12}",
        ) {
            prop_assume!(secret.len() >= super::SECRET_BYTES_MIN && !secret.contains('*'));
            let mask = Mask::new([secret.clone(), "word".to_owned()]);
            let json = serde_json::Value::from(secret.as_str()).to_string();
            let json = json[1..json.len() - 1].to_owned();
            let hex = hex::encode(&secret);
            let percent: Vec<String> = secret.bytes().map(|it| format!("%{it:02X}")).collect();
            let percent = percent.concat();
            for form in [&secret, &json, &hex, &hex.to_uppercase(), &percent] {
                let shown = mask.apply(&format!("{before}{form}{behind}"));
                prop_assert!(!shown.contains(form.as_str()), "{shown}");
            }
            let encoded = STANDARD.encode(format!("{before}{secret}{behind}"));
            let shown = mask.apply(&encoded);
            prop_assert!(shown.contains("***"), "{shown}");
        }
    }

    #[test]
    fn a_secret_is_hidden_as_json_too() {
        let mask = Mask::new([r#"he said "no""#.to_owned()]);
        assert_eq!(
            mask.apply(r#"{"said":"he said \"no\""}"#),
            r#"{"said":"***"}"#
        );
    }

    #[test]
    fn a_secret_is_hidden_as_programs_encode_it() {
        let secret = "sk/live+5f1e 9c0ñ?b7~";
        let mask = Mask::new([secret.to_owned()]);
        let check = |text: &str| assert_eq!(mask.apply(&format!("<{text}>")), "<***>");
        check(&hex::encode(secret));
        check(&hex::encode_upper(secret));
        for encoded in [
            "sk%2Flive%2B5f1e%209c0%C3%B1%3Fb7~",
            "sk%2flive%2b5f1e+9c0%c3%b1%3fb7%7e",
            "sk/live%2B5f1e%209c0%C3%B1%3Fb7~",
            "%73%6B/live+5f1e%209c0%c3%B1?b7~",
        ] {
            check(encoded);
        }
    }

    #[test]
    fn a_secret_is_hidden_wherever_it_lies_in_base64() {
        let secret = "sk-live-5f1e9c0b7a??>>";
        let mask = Mask::new([secret.to_owned()]);
        for before in ["", "u", "us", "user:", "a longer name:"] {
            for after in ["", "x", "\n", ":and more"] {
                let text = format!("{before}{secret}{after}");
                for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                    let encoded = engine.encode(&text);
                    let shown = mask.apply(&encoded);
                    assert!(shown.contains("***"), "{text:?}: {encoded}");
                    // The rest reveals no more of the secret than a part of a byte.
                    let left = shown.replace("***", "").len();
                    let others = (before.len() + after.len()) * 4 / 3 + 8;
                    assert!(left <= others, "{text:?}: {shown}");
                }
            }
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        let mask = Mask::new(["hunter2".to_owned(), "100% sure".to_owned()]);
        for text in [
            "",
            "50%",
            "a+b",
            "%zz%4",
            "hunter%20",
            "68756e7465",
            "ünter2 100%",
        ] {
            assert_eq!(mask.apply(text), text);
        }
        assert_eq!(mask.apply("ü hunter%32 ü"), "ü *** ü");
        assert_eq!(mask.apply("100%25+sure"), "***");
    }

    #[test]
    fn a_secret_that_was_cut_is_hidden_too() {
        let mask = Mask::new(["hunter2", "señor-secret"].map(str::to_owned));
        let check = |text, shown| assert_eq!(mask.apply_to_cut(text), shown);
        check("it is hunter", "it is ***");
        check("hunter2 is hu", "*** is ***");
        check("hunter2", "***");
        check("dear señ", "dear ***");
        check("nothing here.", "nothing here.");
        check("", "");
    }
}
