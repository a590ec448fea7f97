//! Masks secrets in texts that people and models read.

use std::{collections::VecDeque, fmt, iter, ops::Range, sync::Arc};

use parking_lot::RwLock;

use super::{
    Redaction,
    found::{FoundSecret, HIDDEN, join_overlapping, replace_secrets},
    known_values::KnownValues,
    plain_text::PlainText,
};

/// The number of renewed tokens that are still masked.
const RENEWED_MAX: usize = 4;

/// Masks known values in every form that programs commonly print, and texts that match patterns. Clones share the
/// renewed tokens.
#[derive(Clone, Default)]
pub struct Redactor {
    values: KnownValues,
    renewed: Arc<RwLock<VecDeque<KnownValues>>>,
    patterns: Option<Arc<Redaction>>,
}

/// Shows no value.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Masks these values, unless they are too short to be secrets.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        Self {
            values: KnownValues::new(values),
            ..Self::default()
        }
    }

    /// Replaces the texts that match these patterns as well.
    #[must_use]
    pub fn with_patterns(self, patterns: Option<Arc<Redaction>>) -> Self {
        Self { patterns, ..self }
    }

    /// Masks a token that is sent from now on, and the last few before it.
    pub fn add_renewed(&self, token: &str) {
        let is_last = |values: &KnownValues| values.contains(token);
        if self.renewed.read().back().is_some_and(is_last) {
            return;
        }
        let mut renewed = self.renewed.write();
        if renewed.len() == RENEWED_MAX {
            renewed.pop_front();
        }
        renewed.push_back(KnownValues::new([token.to_owned()]));
    }

    /// Masks the secrets in a text.
    pub fn apply(&self, text: &str) -> String {
        let mut found = self.find_values(text, KnownValues::find);
        found.extend(self.find_values(text, KnownValues::find_words));
        // A value may be broken into lines, or interrupted by hidden characters.
        if let Some(joined) = PlainText::without_lines(text) {
            let values = self.find_values(&joined.text, KnownValues::find);
            found.extend(values.into_iter().map(|secret| joined.locate(secret)));
        }
        if let Some(patterns) = &self.patterns {
            found.extend(patterns.find(text));
        }
        replace_secrets(text, &join_overlapping(found), FoundSecret::mark)
    }

    /// Masks the secrets in a text whose end was cut off, perhaps within a secret.
    pub fn apply_to_cut(&self, text: &str) -> String {
        let text = self.apply(text);
        match self.values.count_begun(&text) {
            0 => text,
            bytes => format!("{}{HIDDEN}", &text[..text.len() - bytes]),
        }
    }

    fn find_values(
        &self,
        text: &str,
        find: impl Fn(&KnownValues, &str) -> Vec<Range<usize>>,
    ) -> Vec<FoundSecret> {
        let renewed = self.renewed.read();
        let known = iter::once(&self.values).chain(&*renewed);
        let places = known.flat_map(|values| find(values, text));
        places.map(|place| FoundSecret::new(place, None)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

    use proptest::prelude::*;

    use super::{Redaction, Redactor};
    use crate::secret::known_values::SECRET_BYTES_MIN;

    #[test]
    fn tokens_that_were_sent_are_hidden_too() {
        let redactor = Redactor::new(["hunter2".to_owned()]);
        let clone = redactor.clone();
        for token in ["token-one", "token-two", "token-two"] {
            clone.add_renewed(token);
        }
        let shown = redactor.apply("hunter2, token-one or token-two");
        assert_eq!(shown, "***, *** or ***");
    }

    #[test]
    fn secrets_are_hidden_and_short_values_are_not() {
        let secrets = ["hunter2hunter2", "hunter2", "on"].map(str::to_owned);
        let redactor = Redactor::new(secrets);
        let shown = redactor.apply("token hunter2hunter2 or hunter2 is on");
        assert_eq!(shown, "token *** or *** is on");
    }

    #[test]
    fn an_overlap_leaves_no_part_of_a_secret() {
        let redactor =
            Redactor::new(["abcdefgh1234", "1234ijklmnop", "xyxyxyxy"].map(str::to_owned));
        assert_eq!(redactor.apply("<abcdefgh1234ijklmnop>"), "<***>");
        assert_eq!(redactor.apply("<xyxyxyxyxy>"), "<***>");
    }

    #[test]
    fn a_secret_is_hidden_over_several_lines() {
        let key = "-----BEGIN KEY-----\n  MIIEowIBAAKC\n-----END KEY-----";
        let redactor = Redactor::new([key.to_owned(), "sk-live-5f1e9c0b7a".to_owned()]);
        assert_eq!(redactor.apply(&format!("<{key}>")), "<***>");
        assert_eq!(redactor.apply("read MIIEowIBAAKC"), "read ***");
        assert_eq!(
            redactor.apply("a sk-live-\r\n5f1e\u{200b}9c0b7a b"),
            "a *** b"
        );
        let encoded = STANDARD.encode("sk-live-5f1e9c0b7a");
        let (begin, end) = encoded.split_at(10);
        assert_eq!(redactor.apply(&format!("{begin}\n{end}")), "***");
        assert_eq!(format!("{redactor:?}"), "Redactor");
    }

    #[test]
    fn patterns_are_replaced_beside_values() {
        let patterns = Arc::new(Redaction::new(&BTreeMap::new()).unwrap());
        let redactor = Redactor::new(["ghp_0123456789abcdef".to_owned()]);
        let redactor = redactor.with_patterns(Some(patterns));
        let shown = redactor.apply("ghp_0123456789abcdef, ghp_fedcba9876543210");
        assert_eq!(shown, "***, [redacted: github token]");
    }

    #[test]
    fn an_ordinary_word_is_hidden_as_a_value_alone() {
        let redactor =
            Redactor::new(["test", "key", "secret", "default", "4711"].map(str::to_owned));
        let plain = "the test of a key: secret/default tests, API key, 4711 files, ${secret:x}";
        assert_eq!(redactor.apply(plain), plain);
        assert_eq!(redactor.apply("the mode:\ntest"), "the mode:\ntest");
        let shown = redactor.apply("MODE=test {\"a\":\"secret\"} ada:4711@db KEY=tests");
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
            prop_assume!(secret.len() >= SECRET_BYTES_MIN && !secret.contains('*'));
            let redactor = Redactor::new([secret.clone(), "word".to_owned()]);
            let json = serde_json::Value::from(secret.as_str()).to_string();
            let json = json[1..json.len() - 1].to_owned();
            let hex = hex::encode(&secret);
            let percent: Vec<String> = secret.bytes().map(|it| format!("%{it:02X}")).collect();
            let percent = percent.concat();
            for form in [&secret, &json, &hex, &hex.to_uppercase(), &percent] {
                let shown = redactor.apply(&format!("{before}{form}{behind}"));
                prop_assert!(!shown.contains(form.as_str()), "{shown}");
            }
            let encoded = STANDARD.encode(format!("{before}{secret}{behind}"));
            let shown = redactor.apply(&encoded);
            prop_assert!(shown.contains("***"), "{shown}");
        }
    }

    #[test]
    fn a_secret_is_hidden_as_json_too() {
        let redactor = Redactor::new([r#"he said "no""#.to_owned()]);
        assert_eq!(
            redactor.apply(r#"{"said":"he said \"no\""}"#),
            r#"{"said":"***"}"#
        );
    }

    #[test]
    fn a_secret_is_hidden_as_programs_encode_it() {
        let secret = "sk/live+5f1e 9c0ñ?b7~";
        let redactor = Redactor::new([secret.to_owned()]);
        let check = |text: &str| assert_eq!(redactor.apply(&format!("<{text}>")), "<***>");
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
        let redactor = Redactor::new([secret.to_owned()]);
        for before in ["", "u", "us", "user:", "a longer name:"] {
            for after in ["", "x", "\n", ":and more"] {
                let text = format!("{before}{secret}{after}");
                for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                    let encoded = engine.encode(&text);
                    let shown = redactor.apply(&encoded);
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
        let redactor = Redactor::new(["hunter2".to_owned(), "100% sure".to_owned()]);
        for text in [
            "",
            "50%",
            "a+b",
            "%zz%4",
            "hunter%20",
            "68756e7465",
            "ünter2 100%",
        ] {
            assert_eq!(redactor.apply(text), text);
        }
        assert_eq!(redactor.apply("ü hunter%32 ü"), "ü *** ü");
        assert_eq!(redactor.apply("100%25+sure"), "***");
    }

    #[test]
    fn a_secret_that_was_cut_is_hidden_too() {
        let redactor = Redactor::new(["hunter2", "señor-secret"].map(str::to_owned));
        let check = |text, shown| assert_eq!(redactor.apply_to_cut(text), shown);
        check("it is hunter", "it is ***");
        check("hunter2 is hu", "*** is ***");
        check("hunter2", "***");
        check("dear señ", "dear ***");
        check("nothing here.", "nothing here.");
        check("", "");
    }
}
