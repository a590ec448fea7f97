//! Reads the outer shape of a long message, and checks all of it, several times faster than a
//! general parser: a large answer is nearly all text, and text is passed over in great steps.
//!
//! What it accepts is exactly what `serde_json` accepts (a property test holds them together):
//! a line that goes on to a client must be JSON.

/// The members of one JSON object, each as the text of its value.
pub(crate) type Members<'a> = Vec<(&'a str, &'a str)>;

/// The members of the object that `text` is; `None` for anything that is no JSON object. Keys
/// are given as they are written between their quotes.
pub(crate) fn members(text: &str) -> Option<Members<'_>> {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
    };
    scanner.space();
    let members = scanner.object()?;
    scanner.space();
    (scanner.at == text.len()).then_some(members)
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn object(&mut self) -> Option<Members<'a>> {
        let mut members = Vec::new();
        self.take(b'{')?;
        self.space();
        if self.take(b'}').is_some() {
            return Some(members);
        }
        loop {
            let key = self.key()?;
            let from = self.at;
            self.value()?;
            members.push((key, &self.text[from..self.at]));
            self.space();
            if self.take(b'}').is_some() {
                return Some(members);
            }
            self.take(b',')?;
            self.space();
        }
    }

    /// A key and its colon; what is between the quotes.
    fn key(&mut self) -> Option<&'a str> {
        let from = self.at + 1;
        self.string()?;
        let key = &self.text[from..self.at - 1];
        self.space();
        self.take(b':')?;
        self.space();
        Some(key)
    }

    /// Passes over one value. Containers are counted, not called: a deep one costs no stack.
    fn value(&mut self) -> Option<()> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek()? {
                container @ (b'{' | b'[') => {
                    self.at += 1;
                    self.space();
                    if self.take(closing(container)).is_none() {
                        open.push(container);
                        self.begin_member(container)?;
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if !self.next_member(&mut open)? {
                return Some(());
            }
        }
    }

    /// After a value: closes what ends here and begins what follows; false when nothing is open.
    fn next_member(&mut self, open: &mut Vec<u8>) -> Option<bool> {
        while let Some(&container) = open.last() {
            self.space();
            if self.take(b',').is_some() {
                self.space();
                self.begin_member(container)?;
                return Some(true);
            }
            self.take(closing(container))?;
            open.pop();
        }
        Some(false)
    }

    fn begin_member(&mut self, container: u8) -> Option<()> {
        if container == b'{' {
            self.key()?;
        }
        Some(())
    }

    fn scalar(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn string(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            let rest = &self.bytes[self.at..];
            let length = memchr::memchr2(b'"', b'\\', rest)?;
            if has_control(&rest[..length]) {
                return None;
            }
            self.at += length + 1;
            if rest[length] == b'"' {
                return Some(());
            }
            self.escape()?;
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<()> {
        let kind = self.peek()?;
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4)?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.take(b'-');
        if self.take(b'0').is_none() {
            self.digits()?;
        }
        if self.take(b'.').is_some() {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let rest = &self.bytes[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.bytes[self.at..].starts_with(word);
        self.at += word.len();
        found.then_some(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found.then_some(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

fn closing(container: u8) -> u8 {
    if container == b'{' { b'}' } else { b']' }
}

/// Looks for the least byte, which the compiler does for many at once.
fn has_control(bytes: &[u8]) -> bool {
    let least = bytes.iter().fold(u8::MAX, |least, byte| least.min(*byte));
    least < 0x20
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, value::RawValue};

    use super::members;

    fn accepts(text: &str) -> bool {
        let is_object = text.trim_start().starts_with('{');
        is_object && serde_json::from_str::<&RawValue>(text).is_ok()
    }

    #[track_caller]
    fn check(text: &str) {
        assert_eq!(members(text).is_some(), accepts(text), "{text:?}");
    }

    #[test]
    fn it_accepts_what_serde_json_accepts() {
        let values = [
            "1",
            "-0",
            "0",
            "00",
            "01",
            "-",
            "1.",
            ".5",
            "1.5e+10",
            "1e",
            "1E-2",
            "tru",
            "true",
            "null",
            "nul",
            "false",
            "\"\"",
            "\"a\\n\"",
            "\"\\u00e9\"",
            "\"\\u00g9\"",
            "\"\\x\"",
            "\"\u{1}\"",
            "\"ü\\ud800\"",
            "[]",
            "[ ]",
            "[1,]",
            "[1 , 2]",
            "[1 2]",
            "{}",
            "{ }",
            "{\"a\":1,}",
            "{\"a\" : [ {\"b\":{}} ] }",
            "{\"a\"}",
            "{a:1}",
            "[}",
            "{]",
            "",
            "\"open",
            "\"\\",
            "\"\\u12",
            "+1",
            "1e400",
            "[[[[]]]]",
            "\u{a0}1",
        ];
        for value in values {
            check(&format!("{{\"key\":{value}}}"));
            check(&format!(" {{ \"key\" :\t{value}\r\n}} "));
            check(value);
        }
        for text in [
            "{}",
            "{} x",
            "{\"a\":1}{",
            "{\"a\":1,\"a\":2}",
            "{",
            "{,}",
            "{\"a\":}",
        ] {
            check(text);
        }
        for depth in [1, 127, 128, 129, 100_000] {
            check(&format!(
                "{{\"a\":{}{}}}",
                "[".repeat(depth),
                "]".repeat(depth)
            ));
        }
    }

    #[test]
    fn members_are_given_as_they_are_written() {
        let text = r#"{"id": 7 ,"result":{"a":[1, 2]},"\u0061":"x\"y"}"#;
        let expected = vec![
            ("id", "7"),
            ("result", r#"{"a":[1, 2]}"#),
            (r"\u0061", r#""x\"y""#),
        ];
        assert_eq!(members(text), Some(expected));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::from(map.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_object_is_read_as_it_was_written(value in any_value()) {
            let text = serde_json::to_string(&serde_json::json!({"k": value})).unwrap();
            let read = members(&text).expect("it is an object");
            prop_assert_eq!(read[0].1, value.to_string());
        }

        #[test]
        fn a_damaged_text_is_judged_alike(
            value in any_value(),
            at in any::<prop::sample::Index>(),
            with in any::<char>(),
        ) {
            let mut chars: Vec<char> = format!("{{\"k\":{value}}}").chars().collect();
            let at = at.index(chars.len());
            chars[at] = with;
            let text: String = chars.into_iter().collect();
            prop_assert_eq!(members(&text).is_some(), accepts(&text), "{:?}", text);
        }
    }
}
